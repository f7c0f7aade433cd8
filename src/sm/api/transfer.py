"""One request and its answer on their way: how much may come, and when an answer ends early.

A body is counted while it comes, since a chunked one announces no length.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from starlette.types import Message, Receive, Send

from sm.core.errors import error

MAX_DRAINED = 256 * 1024 * 1024
"""Bytes of a body that is refused which are read and thrown away, so that the sender sees why."""


@dataclass(slots=True)
class Transfer:
    receive: Receive
    send: Send
    limit: int
    refused: bool
    ending: asyncio.Event | None = None
    """Set when the caller may not read on: a stream then ends as if the reader had left."""
    seen: int = 0
    started: bool = False
    finished: bool = False

    async def take(self) -> Message:
        message = await self.receive() if self.ending is None else await self._received(self.ending)
        self.seen += len(message.get("body", b""))
        if self.seen > self.limit:
            self.refused = True
            raise error("too_large", f"The body is larger than {self.limit:,} bytes")
        return message

    async def give(self, message: Message) -> None:
        """Send the answer, then throw away the rest of a refused body: a sender that is cut off sees no answer."""
        self.started = True
        if self.ending is not None and message["type"] == "http.response.start":
            message = _private(message)
        self.finished = message["type"] == "http.response.body" and not message.get("more_body", False)
        if self.refused and message["type"] == "http.response.body":
            await self.send({**message, "more_body": True})
            await self._drain()
            message = {"type": "http.response.body"}
        await self.send(message)

    async def finish(self) -> None:
        """End an answer that was cut off in its middle."""
        if self.started and not self.finished and self.ending is not None and self.ending.is_set():
            await self.send({"type": "http.response.body"})

    async def _received(self, ending: asyncio.Event) -> Message:
        """Return what comes next; that the reader has left once `ending` is set."""
        async with asyncio.TaskGroup() as group:
            coming, ended = group.create_task(_next(self.receive)), group.create_task(ending.wait())
            await asyncio.wait({coming, ended}, return_when=asyncio.FIRST_COMPLETED)
            is_over = ended.done()
            coming.cancel()
            ended.cancel()
        return {"type": "http.disconnect"} if is_over else coming.result()

    async def _drain(self) -> None:
        rest, more = MAX_DRAINED, True
        while more and rest > 0:
            message = await self.receive()
            rest -= len(message.get("body", b""))
            more = message.get("more_body", False)


def _private(message: Message) -> Message:
    """Add what keeps a browser from storing an answer, and from taking it for something else than it is."""
    present = {name.lower() for name, _ in message["headers"]}
    added = [header for header in PRIVATE if header[0] not in present]
    return {**message, "headers": [*message["headers"], *added]}


PRIVATE = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))


async def _next(receive: Receive) -> Message:
    return await receive()
