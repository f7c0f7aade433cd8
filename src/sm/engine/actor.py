"""One actor per session: takes events one at a time, decides, commits, then acts.

Event and new state are on disk before any effect runs, so that a server killed at any instant resumes where it was.
The reply to the hook that brought an event is the first effect to run. While the database cannot be written, as on a
full disk, events wait in memory, in order, and commands are refused.
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
from sm.core.ports.provider import ClientOrder, HookReply, NoAnswerError
from sm.core.ports.store import Store
from sm.core.rules.session.advance import advance, concerns, next_alarm
from sm.core.values import replace
from sm.engine.client_link import ClientLink
from sm.engine.errors import logged
from sm.engine.pane_queue import PaneQueue

log = structlog.get_logger()
NO_ROOM = frozenset({"disk_full", "database_unwritable", "database_busy"})
"""Codes of a database that cannot be written now, and can be once there is room."""
MAX_OWED = 10_000
"""Events of one session that are kept in memory until then."""
ALARM_RETRY_S = 1.0
"""Seconds after which an alarm that changed nothing rings again: a full disk must not keep the server busy."""


@dataclass(slots=True)
class Ticket:
    """A hook, or a command, that waits for its answer."""

    reply: asyncio.Future[HookReply]
    strict: bool = False
    """True for a command: its failure is raised to the caller. A hook gets an empty answer instead."""
    given_up: bool = False
    """The hook has continued without it."""

    def fail(self, problem: Exception) -> None:
        if self.reply.done():
            return
        if self.strict:
            self.reply.set_exception(problem)
        else:
            self.reply.set_result(HookReply())


@dataclass(slots=True)
class ReplyDraft:
    """The hook answer under construction while one event's effects run."""

    context: list[str] = field(default_factory=list)
    block: str | None = None
    shown: str = ""
    notices: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    document: str = ""
    """The handoff whose document is in it."""
    whole: str = ""
    """That document, where the context holds a part of it."""

    def value(self) -> HookReply:
        return HookReply("\n".join(self.context), self.block, self.shown, self.whole)


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
    inbox: asyncio.Queue[tuple[ev.Event, Ticket | None]] = field(default_factory=asyncio.Queue)
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
                    await self.handle(*found)
                    if not self.inbox.empty():
                        await asyncio.sleep(0)  # a commit on the loop gives no other session a turn

    @property
    def shown(self) -> Session:
        """The session as people should see it, what is not written yet included."""
        return self.ahead or self.session

    async def _next(self) -> tuple[ev.Event, Ticket | None] | None:
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

    async def handle(self, event: ev.Event, ticket: Ticket | None = None) -> None:
        effects: tuple[ef.Effect, ...] = ()
        with logged("event failed", session=self.session.id, what=type(event).__name__) as deciding:
            effects = await self._decide(event)
        if _no_room(deciding.problem):
            self.trouble = str(deciding.problem)
            self._put_off(event, ticket)
            return
        reply = self._done(effects)
        if deciding.problem is not None and ticket is not None:
            ticket.fail(deciding.problem)
        self._answer(ticket, reply)

    def _done(self, effects: tuple[ef.Effect, ...]) -> ReplyDraft:
        reply = ReplyDraft()
        for effect in effects:
            with logged("effect failed", session=self.session.id, what=type(effect).__name__):
                self._do(effect, reply)
        return reply

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
            try:
                effects = await self._decide(event)
            except Exception as problem:  # as at any other event
                if _no_room(problem):
                    self.trouble = str(problem)
                    return False
                log.exception("event failed", session=self.session.id, what=type(event).__name__)
                effects = ()
            self.owed.popleft()
            self._answer(None, self._done(effects))
            await asyncio.sleep(0)
        log.info("written what was owed", session=self.session.id)
        self.ahead, self.trouble = None, ""
        return True

    async def _decide(self, event: ev.Event) -> tuple[ef.Effect, ...]:
        before = self.session
        after, effects = advance(before, event, self.traits)
        if concerns(before, event):  # written also where it changed nothing: people follow what happened
            own = tuple(effect for effect in effects if isinstance(effect, ef.Record))
            records = (*own, *self.follow(before, after, event, own))
            number = await self.store.commit(after, event, records)
            self.session = after
            self.noted(records)
            self.changed(before, after, event, number)
        return effects

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
