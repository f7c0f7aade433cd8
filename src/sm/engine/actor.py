"""One actor per session: takes events one at a time, decides, commits, then acts.

Event and new state are on disk before any effect runs, so that a server killed at any instant resumes where it was; a
hook's event goes there together with the reading that came with it. The reply to the hook that brought an event is the
first effect to run. While the database cannot be written, as on a full disk, events wait in memory, in order, and
commands are refused.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field

import structlog

from sm.core import effects as ef
from sm.core import events as ev
from sm.core.errors import Refused, SmError
from sm.core.model.client_traits import ClientTraits
from sm.core.model.session import Session
from sm.core.ports.clock import Clock
from sm.core.ports.provider import ClientOrder, NoAnswerError
from sm.core.ports.store import EventCommit, Store
from sm.core.rules.session.advance import advance, concerns, next_alarm
from sm.core.values import replace
from sm.engine.client_link import ClientLink
from sm.engine.errors import logged
from sm.engine.pane_queue import PaneQueue
from sm.engine.ticket import ReplyDraft, Ticket

log = structlog.get_logger()
NO_ROOM = frozenset({"disk_full", "database_unwritable", "database_busy"})
"""Codes of a database that cannot be written now, and can be once there is room."""
MAX_OWED = 10_000
"""Events of one session that are kept in memory until then."""
ALARM_RETRY_S = 1.0
"""Seconds after which an alarm that changed nothing rings again: a full disk must not keep the server busy."""


RunEffect = Callable[["Actor", ef.Effect, ReplyDraft], None]
BOUNDARIES = ev.ConversationStarted | ev.ConversationEnded | ev.SessionLaunched
"""Events with which a context may begin or end."""
HANDING_OVER = ev.ToolUsed | ev.TurnEnded | ev.PromptSubmitted | ev.ComposerReady | ev.BoxFree | ev.ContextRead
"""Events upon which a message may leave for its agent."""
Changed = Callable[[Session, Session, ev.Event, int], None]
Follow = Callable[[Session, Session, ev.Event, tuple[ef.Record, ...]], tuple[ef.Record, ...]]
"""What an event, with what it records, means beyond its own session: further records of the same transaction."""
Noted = Callable[[tuple[ef.Record, ...]], None]


@dataclass(slots=True)
class Decided:
    before: Session
    after: Session
    event: ev.Event
    effects: tuple[ef.Effect, ...]
    records: tuple[ef.Record, ...] = ()
    number: int | None = None
    """Of the event, once it is on disk; what does not concern the session is not written."""


Waiting = tuple[ev.Event, Ticket | None]


@dataclass(slots=True)
class Actor:
    session: Session
    traits: ClientTraits
    """What its client is like."""
    store: Store
    clock: Clock
    run_effect: RunEffect
    changed: Changed
    """Called with every committed event: the session before and after it, the event, and its number."""
    follow: Follow
    noted: Noted
    """Called with the records that are on disk."""
    log_end: Callable[[str], int] = lambda _: 0
    """Bytes a session's terminal has shown so far."""
    pane_queue: PaneQueue = field(init=False)
    link: ClientLink = field(init=False)
    inbox: asyncio.Queue[Waiting] = field(default_factory=asyncio.Queue)
    spawn: Callable[[Coroutine[None, None, None]], object] | None = None
    """Runs something beside the actor, while that runs."""
    task: asyncio.Task[None] | None = None
    rang: float | None = None
    """The deadline that rang last."""
    owed: deque[ev.Event] = field(default_factory=deque)
    """What happened while the database could not be written, in order: written, and acted on, once it can be again."""
    ahead: Session | None = None
    """The session as it is with those."""
    trouble: str = ""
    """Why they are not written."""

    def __post_init__(self) -> None:
        self.pane_queue = PaneQueue(self.put, self.clock)
        self.link = ClientLink(self.clock, expected=self.session.driver is ev.DrivenBy.MOD)

    def put(self, event: ev.Event, ticket: Ticket | None = None) -> None:
        if isinstance(event, BOUNDARIES):
            event = replace(event, log_end=self.log_end(self.session.id))
        elif isinstance(event, ev.MessageQueued) or (isinstance(event, HANDING_OVER) and self.session.outbox.queue):
            event = replace(event, position=self._transcript_end())
        self.inbox.put_nowait((event, ticket))

    async def ask(self, event: ev.Event) -> None:
        """Return once the event is decided and on disk; raise what kept it from that."""
        ticket = Ticket(asyncio.get_running_loop().create_future(), strict=True)
        self.put(event, ticket)
        await ticket.reply

    def _transcript_end(self) -> int:
        """Return its length in bytes: what the agent receives from now on is written after them."""
        current = self.session.conversation
        try:
            return os.stat(current.transcript).st_size if current is not None and current.transcript else 0  # noqa: PTH116  # 10 µs
        except (OSError, ValueError):
            return 0

    def retire(self) -> None:
        """End its work: the session is removed."""
        if self.task is not None:
            self.task.cancel()

    async def run(self) -> None:
        self.task = asyncio.current_task()
        async with asyncio.TaskGroup() as group:
            self.spawn = group.create_task
            group.create_task(self.pane_queue.run())
            while True:
                found = await self._next()
                if self.owed and not await self._caught_up():
                    if found is not None:
                        self._put_off(*found)
                elif found is not None:
                    await self.handle(found, *self._with(found))
                    if not self.inbox.empty():
                        await asyncio.sleep(0)  # a commit on the loop gives no other session a turn

    @property
    def shown(self) -> Session:
        """The session as people should see it, what is not written yet included."""
        return self.ahead or self.session

    async def _next(self) -> Waiting | None:
        """The next event, or the alarm if a deadline passes first; None when it is time to write what is owed."""
        if self.owed:
            try:
                async with asyncio.timeout(ALARM_RETRY_S):
                    return await self.inbox.get()
            except TimeoutError:
                return None
        alarm = next_alarm(self.session)
        if alarm is None:
            return await self.inbox.get()
        pause = ALARM_RETRY_S if alarm == self.rang else 0.0
        try:
            async with asyncio.timeout(max(pause, alarm - self.clock.now())):
                return await self.inbox.get()
        except TimeoutError:
            self.rang = alarm
            return ev.AlarmRang(at=max(self.clock.now(), alarm)), None

    def _with(self, found: Waiting) -> tuple[Waiting, ...]:
        """Return what is written with it in one transaction: a hook's event, with the reading that it came with."""
        reads = isinstance(found[0], ev.ContextRead) and found[1] is None
        return (self.inbox.get_nowait(),) if reads and not self.inbox.empty() else ()

    async def handle(self, *waiting: Waiting) -> None:
        """Decide them, write them in one transaction if that can be done, then act on each."""
        decided: list[Decided] = []
        with logged("event failed", session=self.session.id, what=type(waiting[-1][0]).__name__) as deciding:
            decided = await self._decide(*(event for event, _ in waiting))
        for decision, (_, ticket) in zip(decided, waiting, strict=False):
            self._act(decision, ticket)
        if deciding.problem is not None and len(waiting) == 1:
            self._failed(*waiting[0], deciding.problem)
        else:
            for one in waiting[len(decided) :]:
                await self.handle(one)

    def _failed(self, event: ev.Event, ticket: Ticket | None, problem: Exception) -> None:
        if _no_room(problem):
            self.trouble = str(problem)
            self._put_off(event, ticket)
        elif ticket is not None:
            ticket.fail(problem)

    def _act(self, decision: Decided, ticket: Ticket | None) -> None:
        """Do what a decision that is on disk means."""
        if decision.number is not None:
            with logged("event failed", session=self.session.id, what=type(decision.event).__name__) as noting:
                self.noted(decision.records)
                self.changed(decision.before, decision.after, decision.event, decision.number)
            if noting.problem is not None and ticket is not None:
                ticket.fail(noting.problem)
        reply = ReplyDraft()
        for effect in decision.effects:
            with logged("effect failed", session=self.session.id, what=type(effect).__name__):
                self._do(effect, reply)
        self._answer(ticket, reply)

    def _put_off(self, event: ev.Event, ticket: Ticket | None) -> None:
        """What happened is kept until it can be written; a command is refused, since nothing of it has been done."""
        if ticket is not None:
            ticket.fail(SmError(Refused("disk_full", self.trouble, "make room, then try again")))
            if ticket.strict:
                return
        if isinstance(event, ev.AlarmRang) or len(self.owed) >= MAX_OWED:
            return
        with logged("event failed", session=self.session.id, what=type(event).__name__):
            self.ahead = advance(self.shown, event, self.traits)[0]
            self.owed.append(event)

    async def _caught_up(self) -> bool:
        """Write what is owed, and act on it; False while that cannot be done."""
        while self.owed:
            event = self.owed[0]
            decided: list[Decided] = []
            try:
                decided = await self._decide(event)
            except Exception as problem:  # as at any other event
                if _no_room(problem):
                    self.trouble = str(problem)
                    return False
                log.exception("event failed", session=self.session.id, what=type(event).__name__)
            self.owed.popleft()
            for decision in decided:
                self._act(decision, None)
            await asyncio.sleep(0)
        log.info("written what was owed", session=self.session.id)
        self.ahead, self.trouble = None, ""
        return True

    async def _decide(self, *events: ev.Event) -> list[Decided]:
        """Decide the events, one upon the other, and write them, all or none; none after one that means more."""
        decided: list[Decided] = []
        written: list[Decided] = []
        session = self.session
        for event in events:
            before = session
            session, effects = advance(before, event, self.traits)
            decided.append(found := Decided(before, session, event, effects))
            if concerns(before, event):  # written also where it changed nothing: people follow what happened
                own = tuple(effect for effect in effects if isinstance(effect, ef.Record))
                found.records = (*own, *self.follow(before, session, event, own))
                written.append(found)
            if effects or found.records:
                break  # that is done before the next is decided
        if written:
            commits = [EventCommit(one.after, one.event, one.records, one.before) for one in written]
            numbers = await self.store.commit(*commits)
            self.session = session
            for one, number in zip(written, numbers, strict=True):
                one.number = number
        return decided

    def _do(self, effect: ef.Effect, reply: ReplyDraft) -> None:
        if isinstance(effect, ef.PaneCommand):
            self.pane_queue.give(effect)
        elif not isinstance(effect, ef.Record) or isinstance(effect, ef.RecordHandoff):
            # A record is on disk with its event; of a handoff's the manifest follows.
            self.run_effect(self, effect, reply)

    def _answer(self, ticket: Ticket | None, reply: ReplyDraft) -> None:
        hook_waits = ticket is not None and not ticket.strict
        if ticket is not None and not ticket.given_up and not ticket.reply.done():
            ticket.reply.set_result(reply.value())
            if hook_waits:
                return
        if not hook_waits and reply.context and self.session.driver is ev.DrivenBy.MOD and self.spawn is not None:
            self.spawn(self._tell(reply))
        else:
            self._lost(reply)

    async def _tell(self, reply: ReplyDraft) -> None:
        """Let the plugin in the client tell the agent what no hook waits for."""
        with logged("the agent was not told", session=self.session.id):
            try:
                refused = (await self.link.ask(ClientOrder("tell", reply.whole or "\n".join(reply.context)))).refused
            except NoAnswerError as problem:
                refused = str(problem)
                reply.messages.clear()  # it may have told them: their marks in the transcript decide
            if refused:
                log.info("the agent was not told", session=self.session.id, reason=refused)
                self._lost(reply)

    def _lost(self, reply: ReplyDraft) -> None:
        if reply.notices or reply.messages or reply.document:
            notices, messages = tuple(reply.notices), tuple(reply.messages)
            lost = ev.ReplyLost(at=self.clock.now(), notices=notices, messages=messages, document=reply.document)
            self.put(lost)


def _no_room(problem: Exception | None) -> bool:
    return isinstance(problem, SmError) and problem.refused.code in NO_ROOM
