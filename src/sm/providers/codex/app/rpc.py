"""Requests to an app-server, their results, and what it says by itself, over a WebSocket on a unix socket.

Each message is a JSON object without the member "jsonrpc" (Codex 0.171.0). What the server asks has an id and is
answered with `reply`; its notifications have none. They come in their order, and a result may come between them. What
is odd in a message counts as missing, and what is no message of this protocol is passed over.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar, cast

import msgspec
from websockets.asyncio.client import ClientConnection, unix_connect
from websockets.exceptions import WebSocketException

from sm import __version__
from sm.providers.codex.app import schema
from sm.providers.lenient import lenient

ANSWER_TIMEOUT_S = 30.0
CLOSE_TIMEOUT_S = 0.1
"""It says no goodbye (0.171.0)."""
NAME = "sm"
QUIET = ("item/agentMessage/delta", "item/reasoning/textDelta", "item/commandExecution/outputDelta")
"""Notifications that are not sent: what the agent says while it says it."""


class LostError(Exception):
    """The connection is gone, or was never there; the message says why."""


class RefusedError(Exception):
    """The server did not do it; the message has its words."""


Kind = TypeVar("Kind", bound=msgspec.Struct)
EMPTY = msgspec.Raw(b"{}")


class ServerMessage(msgspec.Struct, frozen=True):
    """What the server says by itself; with an id it waits for a reply."""

    method: str
    params: msgspec.Raw = EMPTY
    id: int | str | None = None

    @property
    def thread(self) -> str:
        """The one that it is about; empty for none."""
        return self.read(_About).thread_id

    def read(self, kind: type[Kind]) -> Kind:
        return _read(kind, self.params)


class _About(schema.FromServer, frozen=True):
    thread_id: str = ""


class _Problem(msgspec.Struct):
    message: str = ""


class _Received(msgspec.Struct):
    method: str | None = None
    params: msgspec.Raw = EMPTY
    id: int | str | None = None
    result: msgspec.Raw = EMPTY
    error: _Problem | None = None


def _read(kind: type[Kind], told: msgspec.Raw) -> Kind:
    try:
        return lenient(kind, bytes(told))
    except ValueError:
        return kind()


TURN_STARTED, TURN_OVER = "turn/started", "turn/completed"
_ENCODER = msgspec.json.Encoder()


@dataclass(slots=True, eq=False)
class Rpc:
    socket: ClientConnection
    told: asyncio.Queue[ServerMessage | None] = field(default_factory=asyncio.Queue)
    """What the server says; None is the end."""
    turns_over: dict[str, asyncio.Event] = field(default_factory=lambda: defaultdict(asyncio.Event))
    """By thread: set as soon as the server has said that its turn is over, whatever waits in `told` before that."""
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    _waiting: dict[int | str, asyncio.Future[msgspec.Raw]] = field(default_factory=dict)
    _lost: bool = False

    async def call(self, request: schema.AppRequest[schema.Result]) -> schema.Result:
        """Return the result; RefusedError, LostError."""
        number = next(self._numbers)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            await self._send({"id": number, "method": request.method, "params": request})
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                return cast("schema.Result", _read(request.result, await answer))
        except TimeoutError as problem:
            raise LostError(f"no answer to {request.method} within {ANSWER_TIMEOUT_S:.0f} s") from problem
        finally:
            self._waiting.pop(number, None)

    async def reply(self, number: int | str, result: schema.ToServer) -> None:
        await self._send({"id": number, "result": result})

    async def _send(self, message: dict[str, object]) -> None:
        if self._lost:
            raise LostError("the connection is closed")
        try:
            await self.socket.send(_ENCODER.encode(message), text=True)
        except (OSError, WebSocketException) as problem:
            raise LostError(str(problem) or type(problem).__name__) from problem

    async def notify(self, method: str) -> None:
        await self._send({"method": method})

    async def read(self) -> None:
        """Take in what comes, until the end."""
        try:
            while True:
                self._take(await self.socket.recv(decode=False))
        except (OSError, WebSocketException):
            pass  # the end follows
        finally:
            self._lost = True
            self.told.put_nowait(None)
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(LostError("the app-server has closed the connection"))

    def _take(self, text: bytes) -> None:
        try:
            received = lenient(_Received, text)
        except ValueError:
            return  # nothing that this protocol has
        if received.method is not None:
            message = ServerMessage(received.method, received.params, received.id)
            if message.method == TURN_STARTED:
                self.turns_over[message.thread].clear()
            elif message.method == TURN_OVER:
                self.turns_over[message.thread].set()
            self.told.put_nowait(message)
            return
        answer = self._waiting.get(received.id) if received.id is not None else None
        if answer is None or answer.done():
            return
        if received.error is not None:
            answer.set_exception(RefusedError(received.error.message))
        else:
            answer.set_result(received.result)


@asynccontextmanager
async def connected(path: str) -> AsyncIterator[Rpc]:
    """Connect and say hello; LostError if nothing answers there."""
    try:
        socket = await unix_connect(
            path,
            uri="ws://localhost/",
            max_size=None,
            compression=None,
            ping_interval=None,
            close_timeout=CLOSE_TIMEOUT_S,
        )
    except (OSError, WebSocketException, TimeoutError) as problem:
        raise LostError(str(problem)) from problem
    rpc = Rpc(socket)
    reading = asyncio.get_running_loop().create_task(rpc.read())
    try:
        capabilities = schema.InitializeCapabilities(experimental_api=True, opt_out_notification_methods=list(QUIET))
        client = schema.ClientInfo(name=NAME, title=NAME, version=__version__)
        await rpc.call(schema.Initialize(client_info=client, capabilities=capabilities))
        await rpc.notify("initialized")
        yield rpc
    finally:
        reading.cancel()
        await socket.close()
