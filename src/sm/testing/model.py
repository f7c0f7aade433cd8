"""The scripted model: a Messages and a Responses API on loopback that answer from a scenario and record their requests.

    async with ScriptedModel(scenario(Turn("hello", [Say("Hi.")]))) as model:
        ...  # run a client in offline_client_env(home, model.url), or in offline_codex_env(home, model.url)
        request = await model.wait_for(lambda request: "warning" in request.context_text)

From another process: `python -m sm.testing --scenario FILE --log FILE`, and `read_log(FILE)`.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
import time
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from sm.testing import responses_sse, sse
from sm.testing.player import Answer, Player, tokens
from sm.testing.request import Request, RequestKind, read_request
from sm.testing.responses_request import read_responses_request
from sm.testing.scenario import Fault, Scenario, Turn, parse_scenario

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path
    from types import TracebackType

    from starlette.requests import Request as HttpRequest

Predicate: TypeAlias = "Callable[[Request], bool]"


class ScriptedModel:
    def __init__(self, script: Scenario | None = None, *, port: int = 0, log: Path | None = None) -> None:
        self.player = Player(script or Scenario(), prefix=secrets.token_hex(4))
        self.requests: list[Request] = []
        self._port = port
        self._log = log
        self._arrived = asyncio.Condition()
        self._closing = asyncio.Event()
        self._tasks = asyncio.TaskGroup()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def main_requests(self) -> list[Request]:
        """The requests of the agent, without those of the client itself."""
        return [request for request in self.requests if request.kind is RequestKind.MAIN]

    def play(self, *turns: Turn) -> None:
        """Put turns in front of the scenario while it runs."""
        script = self.player.scenario
        self.player.scenario = msgspec.structs.replace(script, turns=[*turns, *script.turns])

    async def wait_for(self, predicate: Predicate, within: float = 10.0) -> Request:
        """Return the first request of an agent, received already or still to come, that fulfils the predicate.

        Those of the client itself are passed over: the one for a session's title holds the user's words too (2.1.290).
        """

        def found() -> Request | None:
            return next((one for one in self.requests if one.kind is not RequestKind.SIDE and predicate(one)), None)

        async with asyncio.timeout(within), self._arrived:
            await self._arrived.wait_for(lambda: found() is not None)
        request = found()
        assert request is not None
        return request

    async def __aenter__(self) -> Self:
        listener = _listener(self._port)
        self._port = listener.getsockname()[1]
        self._server = _Server(uvicorn.Config(self._app(), log_level="error", lifespan="off", access_log=False))
        await self._tasks.__aenter__()
        self._tasks.create_task(self._server.serve(sockets=[listener]))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._server.should_exit = True
        if kind is not None and issubclass(kind, asyncio.CancelledError):
            await self._tasks.__aexit__(kind, error, trace)
        # An error of the body propagates as it is; the group would wrap it.
        await self._tasks.__aexit__(None, None, None)

    def _app(self) -> Starlette:
        methods = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH"]
        return Starlette(
            routes=[
                Route("/v1/messages", self._messages, methods=["POST"]),
                Route("/v1/responses", self._responses, methods=["POST"]),
                Route("/v1/messages/count_tokens", self._count_tokens, methods=["POST"]),
                Route("/", self._probe, methods=["GET"]),
                Route("/{path:path}", self._unknown, methods=methods),
            ],
            exception_handlers={msgspec.MsgspecError: _malformed},
        )

    async def _messages(self, http: HttpRequest) -> Response:
        request = read_request(await http.body(), **_received(http, len(self.requests) + 1))
        answer = await self._answer(request)
        if answer.step.error:
            await self._pause(answer.step.delay)
            return _error(answer.step.error, request.number)
        if request.stream:
            return self._streamed(answer, sse.events(answer, request.model, request.number))
        await self._pause(answer.step.delay)
        return JSONResponse(sse.message(answer, request.model, request.number))

    async def _responses(self, http: HttpRequest) -> Response:
        request = read_responses_request(await http.body(), **_received(http, len(self.requests) + 1))
        answer = await self._answer(request)
        if answer.step.error:
            await self._pause(answer.step.delay)
            return JSONResponse(*responses_sse.error(answer.step.error))
        return self._streamed(answer, responses_sse.events(answer, request))

    async def _answer(self, request: Request) -> Answer:
        answer = self.player.answer(request)
        await self._remember(msgspec.structs.replace(request, matched=answer.matched))
        return answer

    async def _count_tokens(self, http: HttpRequest) -> Response:
        request = read_request(await http.body(), **_received(http, len(self.requests) + 1))
        await self._remember(request)
        return JSONResponse({"input_tokens": tokens(request.all_text)})

    async def _probe(self, http: HttpRequest) -> Response:
        await self._remember(Request(**_received(http, len(self.requests) + 1)))
        return JSONResponse({"scripted": True})

    async def _unknown(self, http: HttpRequest) -> Response:
        await self._remember(Request(**_received(http, len(self.requests) + 1)))
        return _error(Fault(404, f"the scripted model has no {http.url.path}"), len(self.requests))

    def _streamed(self, answer: Answer, frames: Iterator[bytes]) -> Response:
        return StreamingResponse(self._stream(answer, frames), media_type="text/event-stream")

    async def _stream(self, answer: Answer, frames: Iterator[bytes]) -> AsyncIterator[bytes]:
        await self._pause(answer.step.delay)
        for part in frames:
            if b"delta" in part[:40]:
                await self._pause(answer.step.chunk_delay)
            yield part

    async def _pause(self, seconds: float) -> None:
        """Wait, at most until the server closes."""
        if seconds:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), seconds)

    async def _remember(self, request: Request) -> None:
        async with self._arrived:
            self.requests.append(request)
            if self._log:
                with self._log.open("ab") as file:
                    file.write(msgspec.json.encode(request) + b"\n")
            self._arrived.notify_all()


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the owner of the event loop."""
        yield


def read_scenario(path: Path) -> Scenario:
    return parse_scenario(path.read_text(), toml=path.suffix == ".toml")


def read_log(path: Path) -> list[Request]:
    """Return the requests that a model in another process has logged so far."""
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [msgspec.json.decode(line, type=Request) for line in lines]


def _listener(port: int) -> socket.socket:
    listener = socket.socket(proto=socket.IPPROTO_TCP)  # else asyncio leaves TCP_NODELAY unset
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen()
    return listener


def _received(http: HttpRequest, number: int) -> dict[str, Any]:
    return {
        "number": number,
        "at": time.monotonic(),
        "epoch": time.time(),  # noqa: TID251  # a stamp to compare with those in the client's own files
        "method": http.method,
        "path": http.url.path,
    }


async def _malformed(_: HttpRequest, problem: Exception) -> Response:
    return _error(Fault(400, f"not a request of this API: {problem}"), 0)


def _error(fault: Fault, number: int) -> JSONResponse:
    body, headers = sse.error(fault, number)
    return JSONResponse(body, fault.status, headers)
