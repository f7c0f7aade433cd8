"""One actor per session: takes events one at a time, decides, commits, then acts.

Event and new state are on disk before any effect runs, so that a server killed at any instant resumes where it was.
The reply to the hook that brought an event is the first effect to run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from sm.core import effects as ef
from sm.core import events as ev
from sm.core.ports import Clock, HookReply, Store
from sm.core.session import Session, advance, next_alarm
from sm.engine.orders import Orders

log = structlog.get_logger()


@dataclass(slots=True)
class Ticket:
    """A hook that waits for its answer. `given_up` once it has gone on without."""

    reply: asyncio.Future[HookReply]
    given_up: bool = False


@dataclass(slots=True)
class Reply:
    """The hook answer under construction while one event's effects run."""

    context: list[str] = field(default_factory=list)
    block: str | None = None
    notices: list[str] = field(default_factory=list)

    def value(self) -> HookReply:
        return HookReply("\n".join(self.context), self.block)


Perform = Callable[["Actor", ef.Effect, Reply], None]
Changed = Callable[[Session, Session, ev.Event, int], None]


@dataclass(slots=True)
class Actor:
    session: Session
    store: Store
    clock: Clock
    perform: Perform
    changed: Changed
    """Told of every committed event: the session before and after it, the event, and its number."""
    orders: Orders = field(init=False)
    inbox: asyncio.Queue[tuple[ev.Event, Ticket | None]] = field(default_factory=asyncio.Queue)

    def __post_init__(self) -> None:
        self.orders = Orders(self.put, self.clock)

    def put(self, event: ev.Event, ticket: Ticket | None = None) -> None:
        self.inbox.put_nowait((event, ticket))

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.orders.run())
            await self._work()

    async def _work(self) -> None:
        while True:
            event, ticket = await self._next()
            try:
                await self.handle(event, ticket)
            except Exception:  # the actor's boundary: one bad event must not end a session's actor
                log.exception("event failed", session=self.session.id, what=type(event).__name__)
                if ticket is not None and not ticket.reply.done():
                    ticket.reply.set_result(HookReply())

    async def _next(self) -> tuple[ev.Event, Ticket | None]:
        """The next event, or the alarm if a deadline passes first."""
        alarm = next_alarm(self.session)
        if alarm is None:
            return await self.inbox.get()
        try:
            async with asyncio.timeout(max(0.0, alarm - self.clock.now())):
                return await self.inbox.get()
        except TimeoutError:
            return ev.AlarmRang(at=max(self.clock.now(), alarm)), None

    async def handle(self, event: ev.Event, ticket: Ticket | None = None) -> None:
        before = self.session
        after, effects = advance(before, event)
        if after is not before or effects:
            number = await self.store.commit(after, event)
            self.session = after
            self.changed(before, after, event, number)
        reply = Reply()
        for effect in effects:
            if isinstance(effect, ef.PaneOrder):
                self.orders.give(effect)
            else:
                self.perform(self, effect, reply)
        self._answer(ticket, reply)

    def _answer(self, ticket: Ticket | None, reply: Reply) -> None:
        if ticket is not None and not ticket.given_up and not ticket.reply.done():
            ticket.reply.set_result(reply.value())
        elif reply.notices:
            self.put(ev.ReplyLost(at=self.clock.now(), notices=tuple(reply.notices)))
