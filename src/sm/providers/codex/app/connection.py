"""The server's connection to one session's app-server: which thread is the session's, what it tells, what it does.

The file with the thread's id says which one the session is in, also to a server that has just started and to the
client's screen, which shows that thread. A thread that the user begins in the screen becomes the session's; those of
subagents and of the client itself do not. What it says of a thread is passed on in its order, one at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass, field, replace

import structlog

from sm.core import events as ev
from sm.core.ports.provider import (
    ClientOrder,
    ClientReports,
    ClientState,
    ConnectedSession,
    HookEvent,
    OrderResult,
)
from sm.providers.codex.app import asks, schema
from sm.providers.codex.app.goals import HeldGoal
from sm.providers.codex.app.place import AppPlace
from sm.providers.codex.app.rpc import NAME, LostError, RefusedError, Rpc, ServerMessage, connected
from sm.providers.codex.app.subagents import Subagents
from sm.providers.codex.app.thread_events import ThreadEvents, activity_of
from sm.providers.codex.app.threads import Opened, ThreadSettings, resumed, started

log = structlog.get_logger()
RETRY_INTERVAL_S = 0.05
SLOW_RETRY_INTERVAL_S = 1.0
FAST_RETRIES = 200
BEAT_INTERVAL_S = 10.0
"""How often the engine hears that the connection is there."""
CALLS = frozenset({"commandExecution", "fileChange", "mcpToolCall", "dynamicToolCall", "webSearch"})


IN_TURN = (ev.PromptSubmitted, ev.ToolUsed)


@dataclass(slots=True)
class AppConnection:
    session: ConnectedSession
    place: AppPlace
    reports: ClientReports
    states: dict[int, ClientState]
    """By the process of the client's pane; this connection keeps its own."""
    settings: ThreadSettings = field(default_factory=ThreadSettings)
    """With which a new thread begins."""

    async def run(self) -> None:
        """Connect, again and again, until cancelled."""
        tries = 0
        try:
            while True:
                with contextlib.suppress(LostError):
                    async with connected(str(self.place.socket)) as rpc:
                        tries = 0
                        await self._serve(rpc)
                self.states.pop(self.session.pid, None)
                tries += 1
                await asyncio.sleep(RETRY_INTERVAL_S if tries < FAST_RETRIES else SLOW_RETRY_INTERVAL_S)
        finally:
            self.states.pop(self.session.pid, None)

    async def _serve(self, rpc: Rpc) -> None:
        link = _Link(self, rpc)
        try:
            async with asyncio.TaskGroup() as link.group:
                await link.attach()
                await self.reports.connected()
                others = [link.group.create_task(work) for work in (link.beat(), link.carry_out_orders())]
                await link.follow()
                for task in (*others, *link.asking.values()):
                    task.cancel()
        except* LostError:
            pass  # it is connected to again
        except* RefusedError as refused:
            log.warning("app-server refused", session=self.session.id, problem=str(refused.exceptions[0]))
            await asyncio.sleep(SLOW_RETRY_INTERVAL_S)


@dataclass(slots=True)
class _Link:
    """One connection, until it is lost."""

    owner: AppConnection
    rpc: Rpc
    events: ThreadEvents = field(default_factory=lambda: ThreadEvents(""))
    group: asyncio.TaskGroup = field(default_factory=asyncio.TaskGroup)
    goal: HeldGoal = field(init=False)
    subagents: Subagents = field(default_factory=Subagents)
    asking: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    """By the number of the server's request."""

    def __post_init__(self) -> None:
        self.goal = HeldGoal(self.owner.place.goal_file)

    async def attach(self) -> None:
        """Take up the session's thread, or begin its first one."""
        known, told = self.owner.place.thread(), self.owner.reports.conversation()
        thread = await resumed(self.rpc, known) if known else None
        if thread is None:
            thread = await started(self.rpc, self.owner.session, self.owner.settings, "startup")
            await self._enter(thread, ev.Origin.STARTUP)
        elif told == known:  # the server was away, and the client was not
            self._take_up(thread)
            await self.subagents.take_up(self.rpc, known)
        else:
            await self._enter(thread, ev.Origin.CLEAR if told else ev.Origin.RESUME)

    async def _enter(self, thread: Opened, origin: ev.Origin) -> None:
        """Make it the session's thread: on disk first, so that a killed server finds it."""
        self._take_up(thread)
        if self.owner.place.thread() != self.events.thread:
            self.owner.place.enter(self.events.thread)
        at, pid = time.time(), self.owner.session.pid  # noqa: TID251  # as the client's own stamps
        await self._tell(self.events.began(origin, at, pid, thread.model or None))

    def _take_up(self, opened: Opened) -> None:
        thread = opened.thread
        self.owner.settings.note(opened)
        self.events = ThreadEvents(thread.id, thread.path, resets=self.events.resets)
        self.events.mode = self.owner.settings.mode
        self._note_status(thread.status)

    async def beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT_INTERVAL_S)
            self.owner.reports.alive()

    # --- what it tells ----------------------------------------------------------------------------------------------

    async def follow(self) -> None:
        """Pass on what the server says, until it says no more."""
        while (message := await self.rpc.told.get()) is not None:
            self.subagents.note(message, self.events.thread)
            if message.id is not None:
                self._asked(message)
            elif message.method == "thread/started":
                await self._other_thread(message.read(schema.ThreadStartedNotification).thread)
            elif message.method == "serverRequest/resolved":
                self._resolved(str(message.read(schema.ServerRequestResolvedNotification).request_id))
            elif message.thread in {"", self.events.thread}:
                await self._followed(message)

    async def _followed(self, message: ServerMessage) -> None:
        match message.method:
            case "thread/status/changed":
                self._note_status(message.read(schema.ThreadStatusChangedNotification).status)
            case "thread/settings/updated":
                self.owner.settings.note(message.read(schema.ThreadSettingsUpdatedNotification).thread_settings)
                self.events.mode = self.owner.settings.mode
            case "thread/tokenUsage/updated":
                usage = message.read(schema.ThreadTokenUsageUpdatedNotification).token_usage
                if usage.last.input_tokens and usage.model_context_window:
                    tokens, window = usage.last.input_tokens, usage.model_context_window
                    self.owner.reports.reported(self.events.thread, tokens, window)
            case "item/started":
                # The reply that calls it is in the rollout by now, and the next request leaves when it is done.
                if message.read(schema.ItemStartedNotification).item.type in CALLS:
                    self.owner.reports.measure()
        hook = self.events.take(message, time.time())  # noqa: TID251  # compared with the client's own stamps
        if hook is not None:
            await self._tell(hook)

    async def _tell(self, hook: HookEvent) -> None:
        """Give the engine an event; what it replies is added to what the next request carries."""
        reply = await self.owner.reports.hook(hook)
        text = reply.whole or reply.context
        try:
            if text:
                await self._inject(hook.conversation, text)
                if isinstance(hook.event, IN_TURN) and self.rpc.turns_over[hook.conversation].is_set():
                    # The turn was over first: one without a prompt carries what was added.
                    await self.rpc.call(schema.TurnStart(input=[], thread_id=hook.conversation))
            if reply.block is not None and isinstance(hook.event, ev.PromptSubmitted) and self.events.turn:
                await self.rpc.call(schema.TurnInterrupt(thread_id=self.events.thread, turn_id=self.events.turn))
        except RefusedError as problem:
            log.warning("not told", session=self.owner.session.id, problem=str(problem))
        if isinstance(hook.event, ev.CompactionEnded):  # a context begins, of which hooks tell as of any
            at, pid = hook.event.at, self.owner.session.pid
            await self._tell(self.events.began(ev.Origin.COMPACT, at, pid, self.owner.settings.model))

    async def _inject(self, thread: str, text: str) -> None:
        words = {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": text}]}
        await self.rpc.call(schema.ThreadInjectItems(items=[words], thread_id=thread))

    async def _other_thread(self, thread: schema.Thread) -> None:
        """A thread that the user has begun in the client's screen is the session's from now on."""
        own = thread.id in {"", self.events.thread} or thread.id in self.owner.reports.past()
        if own or thread.ephemeral or thread.parent_thread_id or thread.agent_role:
            return
        if thread.originator == NAME:
            return  # begun by an order; it is entered there
        found = await resumed(self.rpc, thread.id)
        if found is not None:
            await self._enter(found, ev.Origin.CLEAR)

    def _note_status(self, status: schema.ThreadStatus) -> None:
        activity, detail = activity_of(status)
        known = self.owner.states.get(self.owner.session.pid)
        same = known is not None and (known.activity, known.detail) == (activity, detail)
        since = known.since if known is not None and same else time.time()  # noqa: TID251  # as the client's own stamps
        self.owner.states[self.owner.session.pid] = ClientState(activity, detail, self.events.thread, since)

    # --- what it asks -----------------------------------------------------------------------------------------------

    def _asked(self, message: ServerMessage) -> None:
        if message.method not in asks.ANSWERED or message.thread not in {self.events.thread, *self.subagents.threads}:
            return  # its own screen answers
        number = str(message.id)
        if number not in self.asking:
            self.asking[number] = self.group.create_task(self._ask(message))

    async def _ask(self, message: ServerMessage) -> None:
        request = asks.request_of(message, self.events.started | self.subagents.started)
        if request is None or message.id is None:
            return
        if message.thread != self.events.thread:
            request = replace(request, agent=message.thread, stays=True)
        event = ev.PermissionAsked(at=time.time(), conversation=self.events.thread, tool=request.tool)  # noqa: TID251
        hook = HookEvent("PermissionRequest", self.events.thread, event, transcript=self.events.transcript, ask=request)
        about = message.read(asks.Asked)
        identity = f"{about.item_id} {about.approval_id or ''} {message.id}"
        answer = await self.owner.reports.ask(identity, hook)
        self.asking.pop(str(message.id), None)
        if answer is None:
            return
        with contextlib.suppress(LostError):
            if answer.text:  # first: the next request leaves at once
                with contextlib.suppress(RefusedError):
                    await self._inject(message.thread, f"[sm] The user has denied it: {answer.text}")
            await self.rpc.reply(message.id, asks.answered(message, request, answer))

    def _resolved(self, number: str) -> None:
        task = self.asking.pop(number, None)
        if task is not None:
            task.cancel()

    # --- what it is ordered -----------------------------------------------------------------------------------------

    async def carry_out_orders(self) -> None:
        while True:
            for number, order in await self.owner.reports.orders():
                try:
                    result = await self._carry_out(order)
                except RefusedError as problem:
                    result = OrderResult(refused=str(problem))
                self.owner.reports.done(number, result)

    async def _carry_out(self, order: ClientOrder) -> OrderResult:
        thread, text = self.events.thread, [{"type": "text", "text": order.text}]
        match order.kind:
            case "rotate":
                return await self._rotate()
            case "prompt" | "steer":  # in a turn that runs, a start joins it (0.171.0)
                await self.rpc.call(self.owner.settings.first_turn(thread, text))
                self.owner.settings.first_turn_begun()
                await self.goal.resume(self.rpc, thread)
            case "pause goal":
                await self.goal.pause(self.rpc, thread)
            case "resume goal":
                await self.goal.resume(self.rpc, thread)
            case "compact":
                await self.rpc.call(schema.ThreadCompactStart(thread_id=thread))
            case "tell":
                await self._inject(thread, order.text)
            case _:
                return OrderResult(refused=f"the app-server has no order {order.kind}")
        return OrderResult()

    async def _rotate(self) -> OrderResult:
        """Begin a thread with the rights of the last one, and leave that."""
        state = self.owner.states.get(self.owner.session.pid)
        if state is None or state.activity is not ev.Activity.IDLE:
            return OrderResult(refused="the client is busy")
        old = self.events.thread
        found = await resumed(self.rpc, old)
        if found is not None:
            self.owner.settings.note(found)
        goal = await self.goal.pause(self.rpc, old)
        if self.events.turn:  # begun by the goal, and would run next to the new thread
            await self.rpc.call(schema.TurnInterrupt(thread_id=old, turn_id=self.events.turn))
        thread = await started(self.rpc, self.owner.session, self.owner.settings, "clear")
        await self.goal.carry(self.rpc, thread.thread.id, goal)
        await self._tell(self.events.left(time.time()))  # noqa: TID251  # as the client's own stamps
        await self._enter(thread, ev.Origin.CLEAR)
        with contextlib.suppress(RefusedError):
            await self.rpc.call(schema.ThreadUnsubscribe(thread_id=old))
        return OrderResult()
