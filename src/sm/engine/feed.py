"""Every committed event in order, for whoever follows them, with the number to continue from."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from sm.core import events as ev
from sm.core.model.session import Session

MAX_BACKLOG = 1000
"""Events a slow listener may lag behind before it is cut off; it comes back with its last number."""


@dataclass(frozen=True, slots=True)
class Item:
    number: int
    session: str
    kind: str
    at: float
    status: str
    phase: str | None
    data: str
    """What the store keeps of the event, as JSON."""


@dataclass(slots=True)
class Feed:
    describe: Callable[[ev.Event], str]
    """The store's own form of an event, so that a listener reads the same live and replayed."""
    listeners: set[asyncio.Queue[Item | None]] = field(default_factory=set)
    closed: bool = False

    def publish(self, _: Session, after: Session, event: ev.Event, number: int) -> None:
        if not self.listeners:
            return
        phase = after.rotation.phase.value if after.rotation else None
        item = Item(
            number, after.id, type(event).__name__, event.at, after.shown_status.value, phase, self.describe(event)
        )
        for queue in tuple(self.listeners):
            if queue.full():
                self.listeners.discard(queue)
                queue.get_nowait()
                queue.put_nowait(None)
            else:
                queue.put_nowait(item)

    @contextmanager
    def subscribed(self) -> Iterator[AsyncIterator[Item]]:
        """Every event from now on: whoever also replays subscribes first, so that none falls between."""
        queue: asyncio.Queue[Item | None] = asyncio.Queue(MAX_BACKLOG)
        self.listeners.add(queue)
        if self.closed:
            queue.put_nowait(None)
        try:
            yield _until_none(queue)
        finally:
            self.listeners.discard(queue)

    def close(self) -> None:
        """End every listener's stream, and those to come, so that a stopping server need not wait for them."""
        self.closed = True
        for queue in tuple(self.listeners):
            self.listeners.discard(queue)
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(None)


async def _until_none(queue: asyncio.Queue[Item | None]) -> AsyncIterator[Item]:
    while (item := await queue.get()) is not None:
        yield item
