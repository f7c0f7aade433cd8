"""All sessions of this server: takes their hooks, watches their clients, carries their commands.

A hook is believed if it names the session's own conversation, or if the client's own files show that the session's own
process has moved to the one it names; anything else came from some other client that inherited our environment.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import structlog

from sm.core import events as ev
from sm.core.errors import SmError, error
from sm.core.ids import name_fault
from sm.core.model.handoff import Handoff, HandoffType
from sm.core.model.message import Mode, SendRequest
from sm.core.model.notices import derived_events, who
from sm.core.model.rotation import CANCELLABLE, OVER, Phase
from sm.core.model.session import Session
from sm.core.ports.clock import Clock
from sm.core.ports.documents import Documents
from sm.core.ports.panes import PaneError, Panes, PaneStatus
from sm.core.ports.policies import Policies
from sm.core.ports.provider import ClientState, Composer, HookEvent, HookReply, Provider
from sm.core.ports.store import LaunchRecord, Store
from sm.core.rules.session.refusals import may_hand_off, not_ours
from sm.core.rules.session.status import runs_only_background
from sm.core.rules.team import already_ended
from sm.engine.actor import Actor, Changed, Ticket
from sm.engine.client_monitor import INTERVAL, ClientMonitor, moved
from sm.engine.effect_runner import EffectRunner
from sm.engine.errors import logged
from sm.engine.foreground_terminal import ForegroundComposer
from sm.engine.handoff_registry import HandoffRegistry
from sm.engine.log_keeper import LogKeeper
from sm.engine.messages import Messages
from sm.engine.pane_queue import PaneWriter
from sm.engine.reminders import Reminders
from sm.engine.termination import Terminations
from sm.engine.transcripts import transcript_of
from sm.processes import alive, descends_from, started_with

log = structlog.get_logger()
HOOK_BUDGET = 0.05
"""Seconds a hook waits for its answer; past it the work goes on behind."""
PATIENT_BUDGET = 2.0
TRIES = 20
STRETCH = 10
"""Looks after which hooks are let in: a stretch takes half a millisecond, one way through the loop a tenth of that."""
CONFIGURATION_INTERVAL = 2.0


@dataclass(slots=True)
class Supervisor:
    store: Store
    documents: Documents
    panes: Panes
    clock: Clock
    providers: dict[str, Provider]
    policies: Policies
    changed: Changed
    actors: dict[str, Actor] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    """Session id by token hash."""
    launches: dict[str, LaunchRecord] = field(default_factory=dict)
    names_in_use: list[str] = field(default_factory=list)
    """Names of the sessions that are being made."""
    restoring: set[str] = field(default_factory=set)
    """Sessions whose client is being started again: one at a time."""
    spawn_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while a child is started: one at a time."""
    registering: asyncio.Lock = field(default_factory=asyncio.Lock)
    group: asyncio.TaskGroup = field(default_factory=asyncio.TaskGroup)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    asked_of: dict[tuple[str, int], tuple[tuple[str, str], ...]] = field(default_factory=dict)
    """What processes of sessions were started with, as far as it has been looked for there."""
    messages: Messages = field(init=False)
    terminations: Terminations = field(init=False)
    runner: EffectRunner = field(init=False)
    monitor: ClientMonitor = field(init=False)
    reminders: Reminders = field(init=False)
    logs: LogKeeper = field(init=False)
    handoffs: HandoffRegistry = field(init=False)

    def __post_init__(self) -> None:
        self.terminations = Terminations(self.panes, self.spawn)
        self.messages = Messages(
            store=self.store,
            documents=self.documents,
            clock=self.clock,
            policies=self.policies,
            providers=self.providers,
            actors=self.actors,
            ask=self.ask,
            spawn=self.spawn,
            promise=self._promise,
        )
        self.handoffs = HandoffRegistry(self.store, self.documents, self.clock, self.policies, self.spawn, self.who)
        self.runner = EffectRunner(
            documents=self.documents,
            clock=self.clock,
            providers=self.providers,
            spawn=self.spawn,
            messages=self.messages,
            end=self.terminations.begin,
            policies=self.policies,
            note=self.handoffs.note,
        )
        self.logs = LogKeeper(self.panes, self.documents, self.clock, self.actors)
        self.monitor = ClientMonitor(self.panes, self.clock, self.providers)
        self.reminders = Reminders(self.store, self.clock, lambda one: self.actor(one).session, self.messages.post)

    # --- life of the server --------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Take over every session from the server's last life; their clients may have gone on without it."""
        await self.handoffs.start()
        self.tokens = await self.store.tokens()
        self.launches = await self.store.launches()
        await self.reminders.load()
        panes = await self._all_panes()
        for session in await self.store.sessions():
            self._resume(self.register(session), panes.get(session.id))
        with logged("messages not loaded"):
            await self.messages.start()
        self.spawn(self.reminders.run())
        self.spawn(self.reminders.deliver())
        self.spawn(self._monitor())
        self.spawn(self._follow_configuration())
        self.spawn(self.handoffs.sweep())
        self.spawn(self.logs.run())

    def _resume(self, actor: Actor, pane: PaneStatus | None) -> None:
        """Go on where the last life of the server ended: its last order may have been given and not carried out."""
        session, at = actor.session, self.clock.now()
        if session.adopted and not session.ended:
            self._renew_policy(actor)
            self._take_over(actor, session)
            return
        started = session.pid is not None
        killed = session.ended and session.pid is not None and alive(session.pid)
        if pane is not None and not pane.dead and (killed or not started):
            self.terminations.begin(session.id)
        if session.ended:
            return
        self._renew_policy(actor)
        if not started:
            actor.put(ev.LaunchFailed(at=at, reason="the server ended while the client was being started"))
        elif session.foreground is not None:
            self._take_over(actor, session)  # whether its client lives, the watch tells, or `sm run`
        elif pane is None:
            actor.put(ev.ClientExited(at=at, reason="pane lost (tmux stopped or machine rebooted)"))
        else:
            self._take_over(actor, session)

    async def _all_panes(self) -> dict[str, PaneStatus]:
        """Every pane of ours. A tmux that is just ending answers nobody for a moment."""
        for _ in range(TRIES):
            try:
                return await self.panes.all()
            except PaneError as problem:
                log.warning("tmux does not answer yet", problem=str(problem))
                await asyncio.sleep(INTERVAL)
        return await self.panes.all()

    def release(self) -> None:
        """Let go whoever waits for an order: the server is about to stop."""
        for actor in self.actors.values():
            actor.pane_queue.release()

    def stop(self) -> None:
        """End the actors; what they were doing is on disk and is taken up at the next start."""
        for task in self.tasks:
            task.cancel()

    def problems(self) -> list[str]:
        """What the user should know of events and terminal logs that cannot be written."""
        owing = [actor for actor in self.actors.values() if actor.owed]
        if not owing:
            return self.logs.problems()
        count = sum(len(actor.owed) for actor in owing)
        what = "1 event waits" if count == 1 else f"{count} events wait"
        said = f"{owing[0].trouble}; {what} to be written, and no handoff takes place until there is room"
        return [said, *self.logs.problems()]

    def register(self, session: Session) -> Actor:
        actor = Actor(
            session,
            self.adapter(session.provider).traits,
            self.store,
            self.clock,
            self.runner.run_effect,
            self._changed,
            self.reminders.follow,
            self.reminders.noted,
            self.documents.log_end,
        )
        self.actors[session.id] = actor
        self.spawn(actor.run())
        if not session.ended:
            self.set_writer(actor, session)
        return actor

    def _take_over(self, actor: Actor, session: Session) -> None:
        found = self._client_state(session)
        current = session.conversation
        if found is not None and current is not None and found.conversation != current.id:
            actor.put(moved(found, self.clock.now()))
        elif session.foreground is not None and current is not None and current.transcript is None:
            self._find_transcript(actor, session, current.id)
        actor.put(ev.ServerStarted(at=self.clock.now()))

    def _find_transcript(self, actor: Actor, session: Session, conversation: str) -> None:
        """`sm run` may have started a client whose first hooks found no server."""
        path = self.providers[session.provider].found_transcript(session.config, conversation)
        if path is not None:
            at, origin = self.clock.now(), ev.Origin.WITNESS
            actor.put(ev.ConversationStarted(at=at, conversation=conversation, transcript=path, origin=origin))

    async def _monitor(self) -> None:
        while True:
            for number, actor in enumerate(tuple(self.actors.values())):
                await self._look(actor)
                if number % STRETCH == 0:
                    await asyncio.sleep(0)  # hooks go in between
            await asyncio.sleep(INTERVAL)

    async def _look(self, actor: Actor) -> None:
        with logged("watch failed", session=actor.session.id):
            try:
                await self.monitor.look(actor)
            except (OSError, PaneError) as problem:
                log.warning("watch failed", session=actor.session.id, problem=str(problem))

    async def _follow_configuration(self) -> None:
        while True:
            await asyncio.sleep(CONFIGURATION_INTERVAL)
            for actor in tuple(self.actors.values()):
                with logged("configuration not followed", session=actor.session.id):
                    self._renew_policy(actor)
                    self._renew_limits(actor)
                    self._renew_transcript(actor)
                await asyncio.sleep(0)

    def _renew_policy(self, actor: Actor) -> None:
        policy = self.policies.policy(actor.session.directory)
        if not actor.session.ended and policy != actor.session.policy:
            actor.put(ev.PolicyChanged(at=self.clock.now(), policy=policy))

    def _renew_transcript(self, actor: Actor) -> None:
        session, current = actor.session, actor.session.conversation
        if session.ended or current is None or current.transcript is None:
            return
        path = transcript_of(self.providers[session.provider], session)
        if path is not None and path != current.transcript:
            actor.put(ev.TranscriptMoved(at=self.clock.now(), conversation=current.id, transcript=path))

    def _renew_limits(self, actor: Actor) -> None:
        """The client reads its settings anew when they change, so the limit is another from then on."""
        session = actor.session
        if session.ended or not session.config:
            return
        provider = self.providers[session.provider]
        limits = provider.limits(session.config, session.directory, session.asked or self._asked(session))
        if limits != session.limits:
            actor.put(ev.LimitsChanged(at=self.clock.now(), limits=limits))
            self.runner.context_readers.resize(actor, limits)

    def _asked(self, session: Session) -> tuple[tuple[str, str], ...]:
        """What its client was started with, where no event says so: a server before the last upgrade kept less."""
        if session.pid is None:
            return ()
        client = session.id, session.pid
        if client not in self.asked_of:
            self.asked_of[client] = self.providers[session.provider].asked(*started_with(session.pid))
        return self.asked_of[client]

    def spawn(self, work: Coroutine[object, object, None]) -> None:
        task = self.group.create_task(_guarded(work))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        task.add_done_callback(lambda _: work.close())  # cancelled before its first step it would count as forgotten

    def _changed(self, before: Session, after: Session, event: ev.Event, number: int) -> None:
        if isinstance(event, ev.SessionLaunched):
            self.set_writer(self.actors[after.id], after)
            self.reminders.woken.set()  # those of a session that lives again
        if isinstance(event, ev.ContextRead) and event.reading.messages is None and event.reading.exact:
            self.runner.context_readers.count(self.actors[after.id])
        for news in derived_events(before, after, event):
            self.actors[after.id].put(news)
        self.messages.heard(before, event)
        self.changed(before, after, event, number)

    def set_writer(self, actor: Actor, session: Session) -> None:
        def client_state() -> ClientState | None:
            return self._client_state(actor.session)

        provider = self.providers[session.provider]
        target = self.panes.pane(session.pane) if session.pane is not None else None
        composer: Composer
        if target is not None:
            composer = provider.composer(target, client_state, lambda: runs_only_background(actor.session))
        elif session.foreground is not None:
            composer = ForegroundComposer(provider, self.clock, lambda: actor.session, client_state)
        else:
            return
        actor.pane_queue.writer = PaneWriter(session.id, provider, target, composer, self.documents, self.clock)

    def _client_state(self, session: Session) -> ClientState | None:
        if session.pid is None:
            return None
        return self.providers[session.provider].client_state(session.config, session.pid)

    # --- hooks ------------------------------------------------------------------------------------------------------

    async def hook(self, session: str, provider: str, payload: bytes, pid: int | None) -> dict[str, object]:
        actor = self.actor(session)
        adapter = self.adapter(provider)
        hook = self.decoded(adapter, payload, pid)
        if hook.event is None or not self._believes(actor, hook):
            return {}
        return adapter.encode(hook.name, await self.ask_in_time(actor, hook))

    def adapter(self, provider: str) -> Provider:
        adapter = self.providers.get(provider)
        if adapter is None:
            raise error("unknown_provider", f"No provider {provider!r}", f"one of {', '.join(self.providers)}")
        return adapter

    def decoded(self, adapter: Provider, payload: bytes, pid: int | None) -> HookEvent:
        try:
            return adapter.decode(payload, self.clock.now(), pid)
        except ValueError as problem:
            raise error("bad_payload", str(problem)) from problem

    async def ask_in_time(self, actor: Actor, hook: HookEvent) -> HookReply:
        assert hook.event is not None
        ticket = Ticket(asyncio.get_running_loop().create_future())
        self._follow_transcript(actor, hook)
        if isinstance(hook.event, ev.ToolUsed | ev.ToolAsked):
            self.runner.context_readers.catch_up(actor)
        actor.put(hook.event, ticket)
        try:
            async with asyncio.timeout(PATIENT_BUDGET if hook.name in actor.traits.patient_hooks else HOOK_BUDGET):
                return await asyncio.shield(ticket.reply)
        except TimeoutError:
            ticket.given_up = True
            return HookReply()

    def _follow_transcript(self, actor: Actor, hook: HookEvent) -> None:
        """Every hook of the conversation names its transcript, which the client may have moved."""
        current = actor.session.conversation
        starts = isinstance(hook.event, ev.ConversationStarted)
        if starts or current is None or hook.conversation != current.id or not hook.transcript:
            return
        if hook.transcript != current.transcript:
            at, moved_to = self.clock.now(), hook.transcript
            actor.put(ev.TranscriptMoved(at=at, conversation=current.id, transcript=moved_to))

    def _believes(self, actor: Actor, hook: HookEvent) -> bool:
        session = actor.session
        current = session.conversation
        starts = isinstance(hook.event, ev.ConversationStarted)
        if starts and session.rotation is not None and hook.conversation == session.rotation.next:
            return True  # `sm run` was told to start it, and may not have said yet that it has
        if starts and hook.pid is not None and session.pid is not None:
            return self._is_own_client(session, hook.pid, session.pid)
        if current is not None and hook.conversation == current.id:
            return True
        if hook.conversation in session.past:
            return False  # a late hook of a conversation that was left behind
        found = self._client_state(session)
        if found is None or found.conversation != hook.conversation:
            log.info("foreign hook ignored", session=session.id, hook=hook.name, conversation=hook.conversation)
            return False
        if not starts:
            actor.put(moved(found, self.clock.now()))
        return True

    def _is_own_client(self, session: Session, pid: int, known: int) -> bool:
        """Our client, or the one that what we started, such as a wrapper, has started; never a client below that."""
        return pid == known or (self._client_state(session) is None and descends_from(pid, known))

    # --- commands ---------------------------------------------------------------------------------------------------

    def actor(self, session: str) -> Actor:
        actor = self.actors.get(session)
        if actor is None:
            raise error("not_found", f"Session {session} not found", "sm list shows the sessions")
        return actor

    def has_ended(self, session: str) -> bool:
        """False while its client is being started again, whose first hook may be faster than the word of its start."""
        actor = self.actors.get(session)
        return actor is not None and actor.session.ended and session not in self.restoring

    def who(self, session: str) -> str:
        """Name and id; of a session that is forgotten the id alone."""
        actor = self.actors.get(session)
        return session if actor is None else who(actor.session)

    def find(self, name: str) -> Actor:
        """The session with that id, or the living, else the newest ended one of that name."""
        if name in self.actors:
            return self.actors[name]
        named = [actor for actor in self.actors.values() if actor.session.name == name]
        named.sort(key=lambda actor: (not actor.session.ended, actor.session.created))
        if not named:
            raise error("not_found", f"Session {name} not found", "sm list shows the sessions")
        return named[-1]

    def taken_names(self) -> frozenset[str]:
        """Of what lives or is being made."""
        living = (actor.session.name for actor in self.actors.values() if not actor.session.ended)
        return frozenset([*living, *self.names_in_use])

    async def ask(self, actor: Actor, event: ev.Event) -> None:
        """Return once the event is decided and on disk; raise what kept it from that."""
        ticket = Ticket(asyncio.get_running_loop().create_future(), strict=True)
        actor.put(event, ticket)
        await ticket.reply

    async def hand_off(
        self,
        session: str,
        path: str,
        reason: str = "",
        kind: HandoffType = HandoffType.AGENT,
        *,
        confined: bool = False,
    ) -> Handoff:
        """Schedule the session's rotation; `confined` to the files that an agent may hand off."""
        actor = self.actor(session)
        refused = may_hand_off(actor.session)
        if refused is not None:
            raise SmError(refused)
        at = self.clock.now()
        schedule = partial(self.documents.schedule, confined=confined)
        handoff = await asyncio.to_thread(schedule, actor.session, Path(path), at, reason, kind)
        await self.ask(actor, ev.HandoffRequested(at=at, handoff=handoff))
        return handoff

    async def keep(self, session: str, text: str, kind: HandoffType) -> Handoff:
        """Keep a document that was made for the session without its agent, as before a compaction."""
        actor, at = self.actor(session), self.clock.now()
        handoff = await asyncio.to_thread(self.documents.keep, actor.session, text, kind, at)
        await self.ask(actor, ev.DocumentKept(at=at, handoff=handoff))
        return handoff

    async def cancel_handoff(self, session: str) -> None:
        actor = self.actor(session)
        current = actor.session.rotation
        if current is None or current.handoff is None or current.phase in OVER:
            raise error("no_handoff", "No handoff is pending", "sm handoff --status")
        if current.phase not in CANCELLABLE:
            raise error(
                "too_late",
                f"The handoff can no longer be cancelled ({current.phase.value})",
                "sm handoff --status",
            )
        await self.ask(actor, ev.HandoffCancelled(at=self.clock.now()))

    async def clear_handoff(self, handoff: str) -> None:
        """A person does not want it any more: taken back from the session that is to begin from it, or not offered."""
        holder = self.actors.get((await self.handoffs.entry(handoff)).holder)
        current = holder.session.rotation if holder is not None else None
        document = current.handoff if current is not None and current.active else None
        if holder is not None and document is not None and document.id == handoff:
            await self.cancel_handoff(holder.session.id)
        else:
            await self.handoffs.clear(handoff)

    async def retry_handoff(self, session: str) -> None:
        actor = self.actor(session)
        current = actor.session.rotation
        if actor.session.ended:
            raise error("ended", f"Session {session} has ended", "sm restore brings it back with its document")
        if current is None or current.phase not in {Phase.PENDING, Phase.FAILED}:
            raise error("no_handoff", "No failed handoff to retry", "sm handoff --status")
        await self.ask(actor, ev.HandoffRetried(at=self.clock.now()))

    async def send(self, target: str, sender: str, request: SendRequest) -> str:
        """Queue a message of a session, or of the user; return its id."""
        identity = await self.messages.send(self.actor(target), sender, request)
        await self.reminders.reported(sender, target)
        return identity

    async def cancel_message(self, message: str, by: str = "") -> None:
        """Take back a message if it still waits."""
        stored = await self.store.stored_message(message)
        if stored is not None:
            at = self.clock.now()
            event = ev.MessageCancelled(at=at, id=message, mode=stored.mode, number=stored.number, by=by)
            await self.ask(self.actor(stored.target), event)

    async def _promise(self, sender: str, target: str, message: str, request: SendRequest) -> None:
        """Arm what a session wants to be told about its message."""
        if not sender and (request.notify_on_stop or request.wait is not None):
            raise error(
                "bad_request",
                "--notify-on-stop and --wait only work from inside a session",
                f"sm tail {target} -f shows what it does",
            )
        if request.notify_on_stop:
            await self.reminders.watch_stop(sender, target, message)
        if request.wait is not None:
            await self.reminders.check_after(sender, target, message, request.wait)

    def tell(self, target: str, text: str, *, sender: str = "", mode: Mode = Mode.SEQUENTIAL) -> None:
        """Queue words of `sm` itself for a session."""
        self.messages.tell(target, text, sender=sender, mode=mode)

    async def rename(self, session: str, name: str) -> None:
        check_name(name)
        actor = self.actor(session)
        others = {one.session.name for one in self.actors.values() if not one.session.ended and one is not actor}
        if name in others:
            raise error("name_taken", f"A session named {name!r} is alive", "choose another name")
        await self.ask(actor, ev.SessionRenamed(at=self.clock.now(), name=name))

    async def kill(self, session: str, by: str = "") -> None:
        """Return once the client has ended; SmError if it has not in time, while the ending goes on."""
        actor = self.actor(session)
        if actor.session.adopted and not actor.session.ended:
            raise SmError(not_ours(actor.session))
        reason = f"killed by {self.actor(by).session.name}" if by else "killed"
        if not actor.session.ended:
            await self.ask(actor, ev.SessionKilled(at=self.clock.now(), reason=reason, by=by))
        elif session not in self.terminations.under_way:
            raise SmError(already_ended(actor.session))
        over, pid = await self.terminations.over(session), actor.session.pid
        if not over and pid is not None and alive(pid):
            raise error("still_ending", f"The client (pid {pid}) has not ended yet", "sm keeps trying")

    async def pane_of(self, session: Session) -> str | None:
        """The session's pane while it exists. A new tmux counts from the start: its number may by now be another's."""
        status = await self.panes.status(session.pane) if session.pane is not None else None
        return status.pane if status is not None and status.session == session.id else None


def check_name(name: str) -> None:
    if (wrong := name_fault(name)) is not None:
        raise error("bad_name", f"Invalid name {name!r}: {wrong}", "choose another name")


async def _guarded(work: Coroutine[object, object, None]) -> None:
    with logged("background work failed"):
        await work
