"""Requests to the API and its stream of events, on asyncio: nothing here ever blocks the screen.

An answer that refuses is an `SmError`, a server that does not answer an `UnavailableError`.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import msgspec

from sm import hook
from sm.client import Client, UnavailableError, answered

ANSWER_TIMEOUT_S = 4.0
"""A server that answers later than that hangs, as far as the screen says."""
ACTION_TIMEOUT_S = 30.0
"""Of what a key has ordered: an answer to an ask waits for the client, a kill for the end of its processes."""
SILENCE_TIMEOUT_S = 60.0
"""A stream without a byte for that long is dead: the server sends a ping every 15 s."""
MAX_EVENT_BYTES = 1 << 24
EVENTS_INTERVAL_S = 0.2
"""Events that come close together are read together: waking up takes longer than reading them."""
END = b"\r\n\r\n"
FAILURES = (OSError, ValueError, EOFError, asyncio.IncompleteReadError, asyncio.LimitOverrunError)
OK = 200


class SeenEvent(msgspec.Struct):
    """What the screen reads of an event; it takes the rest from the answers of the API."""

    number: int
    kind: str
    session: str | None = None


@dataclass(frozen=True, slots=True)
class Api:
    """A server with the token of the user."""

    client: Client

    async def get(self, path: str, timeout: float = ANSWER_TIMEOUT_S) -> Any:  # noqa: ANN401, ASYNC109  # JSON; the limit is part of the error
        return await self.call("GET", path, timeout=timeout)

    async def call(self, method: str, path: str, body: object = None, timeout: float = ACTION_TIMEOUT_S) -> Any:  # noqa: ANN401, ASYNC109  # as above
        try:
            async with asyncio.timeout(timeout), self._connected(method, path, body) as (status, reader, _):
                content = await reader.read()
        except FAILURES as problem:
            raise UnavailableError(str(problem) or "timed out") from problem
        if status == OK:
            with suppress(msgspec.DecodeError):  # half a surrogate pair, which only the slower decoder takes
                return msgspec.json.decode(content)
        return answered(self.client.address, status, content)

    async def events(self, after: int | None) -> AsyncIterator[SeenEvent | None]:
        """Yield None once no event can be missed any more, then each event; it ends with the server.

        With the number of an event what came after it is sent first.
        """
        extra = "" if after is None else f"Last-Event-ID: {after}\r\n"
        try:
            async with self._connected("GET", "/events", None, extra) as (status, reader, transport):
                if status != OK:
                    answered(self.client.address, status, await reader.read())
                begun = b""
                while read := await self._read(reader):
                    *blocks, begun = (begun + read).split(END)
                    for block in blocks:
                        _, found, data = block.partition(b"data: ")
                        yield msgspec.json.decode(data, type=SeenEvent) if found else None  # `subscribed`, or a ping
                    if len(begun) > MAX_EVENT_BYTES:
                        raise ValueError("an event without an end")
                    transport.pause_reading()
                    await asyncio.sleep(EVENTS_INTERVAL_S)
                    transport.resume_reading()
        except FAILURES as problem:
            raise UnavailableError(str(problem)) from problem

    async def _read(self, reader: asyncio.StreamReader) -> bytes:
        """Return what has come; empty at the end."""
        async with asyncio.timeout(SILENCE_TIMEOUT_S):
            return await reader.read(MAX_EVENT_BYTES)

    @asynccontextmanager
    async def _connected(
        self, method: str, path: str, body: object, extra: str = ""
    ) -> AsyncIterator[tuple[int, asyncio.StreamReader, asyncio.Transport]]:
        """Send a request; yield the status, the reader of what follows the head, and what that comes by.

        It is HTTP/1.0 to the server, so that the body has no chunks and ends with the connection.
        """
        host, _, port = self.client.address.partition("://")[2].rstrip("/").rpartition(":")
        content = b"" if body is None else json.dumps(body).encode()
        request = hook.request_bytes(
            method, path, self.client.token, content, f"X-SM-Pid: {os.getpid()}\r\n{extra}"
        ).replace(b" HTTP/1.1\r\n", b" HTTP/1.0\r\n", 1)
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            reader, writer = await asyncio.open_connection(host, int(port), limit=MAX_EVENT_BYTES)
        try:
            assert isinstance(writer.transport, asyncio.Transport)
            writer.write(request)
            head = await reader.readuntil(END)
            status = head[9:12]  # after "HTTP/1.1 "
            if not head.startswith(b"HTTP/1.") or not status.isdigit():
                raise ValueError("no HTTP answer")
            yield int(status), reader, writer.transport
        finally:
            writer.close()
