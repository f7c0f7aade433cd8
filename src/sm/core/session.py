"""The life of a session: `advance(session, event) → (session, effects)` is the one entry, for every event there is.

The order of the parts is fixed: a person's orders, which conversation, what status, how full, the rotation, then
delivery. An event of another conversation, and the result of an older step, change nothing. At most one order goes to
the pane at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from sm.core import advice, capacity, carrying, compaction, context, delivery, gate, keeping, limit, restart, rotation
from sm.core import events as ev
from sm.core.capacity import NO_LIMITS, ClientLimits, Lesson
from sm.core.compaction import Hold
from sm.core.context import ContextReading, Level, Monitor, Policy
from sm.core.effects import (
    AddContext,
    BlockCompaction,
    DenyTool,
    Effect,
    EndClient,
    InjectHandoff,
    KeepDocument,
    MakeDocument,
    PaneOrder,
    ReadContext,
    RecordContext,
    RecordHandoff,
    TellParent,
)
from sm.core.errors import Refused
from sm.core.handoff import Handoff, HandoffState, HandoffType
from sm.core.ids import as_argument
from sm.core.keeping import Offer
from sm.core.limit import UsageLimit
from sm.core.mailbox import Mode
from sm.core.mailbox import message as new_message
from sm.core.outbox import Outbox, placed
from sm.core.report import Report, one_line
from sm.core.rotation import Phase, Rotation
from sm.core.scene import Scene
from sm.core.terminal import Foreground, counted


class Status(StrEnum):
    STARTING = "starting"
    IDLE = "idle"
    WORKING = "working"
    WAITING = "waiting"
    """A permission or other dialog stands."""
    COMPACTING = "compacting"
    LIMITED = "limited"
    """A usage limit of the account is met; shown only, what the client does beside it stays known."""
    ROTATING = "rotating"
    BLOCKED = "blocked"
    """The client refuses to go on, as at its context limit."""
    SILENT = "silent"
    """It works, but no hook has arrived for SILENCE seconds."""
    EXITED = "exited"
    CRASHED = "crashed"
    UNKNOWN = "unknown"


ENDED = frozenset({Status.EXITED, Status.CRASHED})
LIMITABLE = frozenset({Status.IDLE, Status.UNKNOWN, Status.STARTING})
"""What a client that waits for the end of a limit says of itself."""
SILENCE = 120.0
DIALOG_APPEARS = 1.0
"""Seconds from PermissionRequest until the dialog surely shows in the client's state (seen: at most 0.55)."""


@dataclass(frozen=True, slots=True)
class Conversation:
    id: str
    transcript: str | None = None
    started: float = 0.0
    epoch: int = 0
    """Counts compactions within the conversation: a reading of an older epoch is dropped."""
    boundary: tuple[int | None, int | None] | None = None
    """The newest compaction the transcript has shown."""
    looked: bool = False
    """True once the transcript was read: only then is a boundary news."""
    monitor: Monitor = Monitor()
    hold: Hold = Hold()
    """How long its compaction has been put off."""
    ordered: bool = False
    """The compaction that comes was ordered, as by /compact: no handoff is late then."""
    resting: bool = False
    """It came at the prompt, as of a client that compacts an idle conversation: its size is no limit."""
    log_end: int | None = None
    """Bytes the terminal had shown when the client said that it leaves this conversation."""


@dataclass(frozen=True, slots=True)
class Session:
    id: str
    name: str
    provider: str
    directory: str
    created: float
    model: str | None = None
    parent: str | None = None
    status: Status = Status.STARTING
    detail: str = ""
    """Why the status is what it is, in words for a person."""
    dialog: float | None = None
    """When a permission was asked for that is not known to be answered."""
    conversation: Conversation | None = None
    past: tuple[str, ...] = ()
    """Earlier conversations, oldest first."""
    pane: str | None = None
    """None if nothing can be typed to its client."""
    foreground: Foreground | None = None
    """Where its client runs if that is a person's own terminal."""
    pid: int | None = None
    rotation: Rotation | None = None
    rotations: int = 0
    too_late: int = 0
    """Compactions that came before a handoff."""
    outbox: Outbox = Outbox()
    background: tuple[ev.BackgroundTask, ...] = ()
    scheduled: tuple[str, ...] = ()
    """Jobs that the client will run later, as its last Stop named them."""
    mode: str = ""
    """The client's permission mode, as its last hook told."""
    report: Report | None = None
    """What the agent last said of itself."""
    at_prompt: bool = False
    """The main turn is over by the client's own hooks; only background tasks can keep it busy."""
    step: int = 0
    last_activity: float = 0.0
    adopted: bool = False
    """The person started the client themselves: measured and told, never typed to, rotated or ended."""
    config: str = ""
    """The client's configuration directory."""
    asked: tuple[tuple[str, str], ...] = ()
    """What its launch says about where the client compacts."""
    limits: ClientLimits = NO_LIMITS
    """That, and what the client's settings say."""
    limit: UsageLimit | None = None
    """The limit of the account that it has met and that is not known to be over."""
    lesson: Lesson | None = None
    """Where the client was seen to compact by itself."""
    window: int | None = None
    """The model's window in tokens, where the client's status line has told it."""
    policy: Policy = Policy()
    offer: Offer | None = None
    """What its first context is still to be told of."""
    kept: Handoff | None = None
    """A document of it that no rotation goes on from: made for it, or kept when it was killed."""
    told: str = ""
    """The handoff its context was given; empty again once a compaction is about to take it away."""
    failed_starts: tuple[float, ...] = ()
    """When its client ended by itself, the newest last, since a turn of it last ended: what a loop restores in vain."""

    @property
    def ended(self) -> bool:
        return self.status in ENDED

    @property
    def shown_status(self) -> Status:
        """What a person is shown: a rotation under way, unless something more pressing holds."""
        if self.limit is not None and self.status in LIMITABLE:
            return Status.LIMITED
        under_way = self.rotation is not None and self.rotation.phase in rotation.UNDER_WAY
        return Status.ROTATING if under_way and self.status in {Status.IDLE, Status.WORKING} else self.status


def changed(session: Session, **values: object) -> Session:
    """The session with these fields; itself where nothing differs, which spares most of a tool call's copies."""
    if all(getattr(session, name) == value for name, value in values.items()):
        return session
    return replace(session, **values)  # type: ignore[arg-type]  # the fields' own types


Outcome = tuple[Session, tuple[Effect, ...]]


def advance(session: Session, event: ev.Event) -> Outcome:
    """Return the session after `event`, and what to do about it."""
    if not concerns(session, event):
        return session, ()
    effects: tuple[Effect, ...] = ()
    for part in PARTS:
        session, more = part(session, event)
        effects += more
    return (changed(session, last_activity=event.at) if isinstance(event, HOOKED) else session), effects


def concerns(session: Session, event: ev.Event) -> bool:
    """False for what belongs to another conversation, to an older step, or to a client that has ended."""
    if session.ended and not isinstance(event, AFTER_END):
        return False
    if isinstance(event, ev.StepResult):
        return event.step == session.step
    if isinstance(event, BOUND):
        return session.conversation is not None and event.conversation == session.conversation.id
    return True


AFTER_END = (
    ev.SessionLaunched
    | ev.LaunchFailed
    | ev.SessionKilled
    | ev.SessionRenamed
    | ev.PolicyChanged
    | ev.MessageQueued
    | ev.MessageCancelled
    | ev.MessagesSought
    | ev.ReplyLost
    | ev.HandoffCancelled
    | ev.HandoffWithdrawn
    | ev.DocumentKept
)
"""What can still happen to a session whose client has ended; a client that is started again says so first."""
BOUND = (
    ev.PromptSubmitted
    | ev.ToolAsked
    | ev.ToolUsed
    | ev.PermissionAsked
    | ev.TurnEnded
    | ev.TurnFailed
    | ev.CompactionStarted
    | ev.CompactionEnded
    | ev.ContextRead
    | ev.WindowTold
    | ev.LimitTold
    | ev.TranscriptMoved
    | ev.AgentWarned
    | ev.CompactedTooLate
)
HOOKED = (
    ev.ConversationStarted
    | ev.PromptSubmitted
    | ev.ToolAsked
    | ev.ToolUsed
    | ev.PermissionAsked
    | ev.TurnEnded
    | ev.TurnFailed
    | ev.CompactionStarted
    | ev.CompactionEnded
)


def scene(session: Session) -> Scene:
    current = session.conversation
    return Scene(
        idle=session.status is Status.IDLE and session.dialog is None and session.limit is None,
        working=session.status in {Status.WORKING, Status.SILENT} and session.dialog is None,
        held=session.rotation is not None and session.rotation.holds_messages,
        ended=session.ended,
        typed_to=session.pane is not None,
        max_hold=session.policy.max_hold,
        turn_over=session.at_prompt and session.limit is None,
        conversation=current.id if current else None,
        before=session.past[-1] if session.past else None,
        transcript=current.transcript if current else None,
        step=session.step + 1,
        background=session.background,
        scheduled=session.scheduled,
        wait_background=session.policy.wait_background,
        dialog_shows=0.0 if session.dialog is None else session.dialog + DIALOG_APPEARS,
        tool_calls=current.monitor.tool_calls if current else 0,
        foreground=session.foreground,
    )


def next_alarm(session: Session) -> float | None:
    """When the next deadline of the session passes, UTC seconds; an ended one has none left."""
    if session.ended:
        return None
    deadlines = [session.outbox.deadline, session.outbox.look, *(one.expires for one in session.outbox.free)]
    deadlines.append(session.limit.over if session.limit is not None else None)
    if session.rotation is not None:
        deadlines.append(session.rotation.deadline)
    if session.status is Status.WORKING:
        deadlines.append(session.last_activity + SILENCE)
    return min((one for one in deadlines if one is not None), default=None)


def may_hand_off(session: Session) -> Refused | None:
    if session.ended:
        return Refused("ended", f"Session {session.id} has ended", "sm restore brings it back")
    if session.adopted:
        return not_ours(session)
    current = session.rotation
    if current is not None and current.phase in rotation.UNDER_WAY:
        return Refused("rotating", f"A handoff is already in progress ({current.phase.value})", "sm handoff --status")
    if current is not None and current.active and current.handoff is None:
        return Refused("rotating", "This context is about to be cleared by the parent or the user", "end your turn")
    return None


MAX_FAILED_STARTS = 5
FAILED_STARTS_WITHIN = 300.0
"""Seconds."""


def stays_down(session: Session, now: float) -> Refused | None:
    """Why the session is not started again: whatever restores it, as a timer, would do so without end."""
    recent = [at for at in session.failed_starts if 0 <= now - at < FAILED_STARTS_WITHIN]
    if len(recent) < MAX_FAILED_STARTS:
        return None
    seconds = int(FAILED_STARTS_WITHIN - (now - recent[0])) + 1
    message = (
        f"Session {session.name} stays down: its client has ended {len(recent)} times within"
        f" {now - recent[0]:.0f} s without finishing a turn"
    )
    name = as_argument(session.name, session.id)
    hint = f"sm output {name} shows why; restore it in {seconds} s, or now with sm restore {name} --force"
    return Refused("restart_loop", message, hint)


def not_ours(session: Session) -> Refused:
    return Refused("adopted", f"Session {session.name} runs in a terminal of its own: sm only watches it", OWN_TERMINAL)


OWN_TERMINAL = "use that terminal; after it has ended, sm restore continues it in a pane"


# --- which conversation --------------------------------------------------------------------------------------------


def _follow_conversation(session: Session, event: ev.Event) -> Outcome:
    if isinstance(event, ev.SessionLaunched):
        fresh = Conversation(event.conversation, event.transcript, event.at)
        same = session.conversation is not None and session.conversation.id == event.conversation
        stays = same or not event.conversation
        moved = replace(
            session if stays else _move(session, fresh),
            config=event.config,
            asked=event.asked,
            limits=event.limits,
            adopted=event.adopted,
            foreground=event.foreground,
            pane=event.pane,
            pid=event.pid,
            dialog=None,
            background=(),
            scheduled=(),
        )
        return moved, () if stays else (_recorded(fresh, event.log_end),)
    if isinstance(event, ev.ConversationEnded):
        return _left(session, event), ()
    if isinstance(event, ev.TranscriptMoved) and session.conversation is not None:
        moved_to = replace(session.conversation, transcript=event.transcript)
        reads = _read(moved_to, settle=False)
        return replace(session, conversation=moved_to), (_recorded(moved_to, 0), reads)
    if not isinstance(event, ev.ConversationStarted):
        return session, ()
    session = replace(session, pid=event.pid or session.pid, model=event.model or session.model)
    current = session.conversation
    if current is None or current.id != event.conversation:
        fresh = Conversation(event.conversation, event.transcript, event.at)
        begins = event.log_end if current is None or current.log_end is None else current.log_end
        return _move(session, fresh), (_recorded(fresh, begins),)
    epoch = current.epoch + (event.origin is ev.Origin.COMPACT)
    known, current = current, replace(current, transcript=event.transcript or current.transcript, epoch=epoch)
    news = (_recorded(current, event.log_end),) if current.transcript != known.transcript else ()
    return replace(session, conversation=replace(current, log_end=None)), news


def _left(session: Session, event: ev.ConversationEnded) -> Session:
    """The next context's first bytes come after this: the client says that it leaves before it wipes the screen."""
    current = session.conversation
    if current is None or current.id != event.conversation:
        return session
    return replace(session, conversation=replace(current, log_end=event.log_end))


def _recorded(conversation: Conversation, log_start: int) -> RecordContext:
    return RecordContext(conversation.id, conversation.transcript, conversation.started, log_start)


def _move(session: Session, conversation: Conversation) -> Session:
    old = session.conversation
    past = session.past if old is None else (*(one for one in session.past if one != old.id), old.id)
    return replace(session, conversation=conversation, past=past)


# --- what status ---------------------------------------------------------------------------------------------------

STATUS_AFTER: dict[type[ev.Event], Status] = {
    ev.SessionLaunched: Status.STARTING,
    ev.LaunchFailed: Status.CRASHED,
    ev.PromptSubmitted: Status.WORKING,
    ev.ToolUsed: Status.WORKING,
    ev.PermissionAsked: Status.WAITING,
    ev.TurnEnded: Status.IDLE,
    ev.TurnFailed: Status.IDLE,
    ev.CompactionStarted: Status.COMPACTING,
    ev.CompactionEnded: Status.WORKING,
    ev.ComposerReady: Status.IDLE,
    ev.ClientBlocked: Status.BLOCKED,
    ev.SessionKilled: Status.EXITED,
    ev.ServerStarted: Status.UNKNOWN,
}
STATUS_SHOWN: dict[ev.Activity, Status] = {
    ev.Activity.IDLE: Status.IDLE,
    ev.Activity.BUSY: Status.WORKING,
    ev.Activity.WAITING: Status.WAITING,
    ev.Activity.STOPPED: Status.WAITING,
    ev.Activity.UNKNOWN: Status.UNKNOWN,
}
KEPT_WHILE: dict[Status, frozenset[ev.Activity]] = {
    Status.BLOCKED: frozenset({ev.Activity.IDLE, ev.Activity.UNKNOWN}),
    Status.COMPACTING: frozenset({ev.Activity.BUSY, ev.Activity.UNKNOWN}),
    Status.STARTING: frozenset({ev.Activity.UNKNOWN}),
}
"""What a witness cannot tell from the status that stands."""
ANSWERED = ev.PromptSubmitted | ev.TurnEnded | ev.TurnFailed | ev.ConversationStarted | ev.ToolUsed
"""Events that cannot come while the main conversation's own dialog stands."""


def _follow_status(session: Session, event: ev.Event) -> Outcome:
    if session.ended and not isinstance(event, ev.SessionLaunched):
        return session, ()
    session = _follow_limit(_follow_turn(_follow_dialog(session, event), event), event)
    if isinstance(event, ev.AlarmRang):
        silent = session.status is Status.WORKING and event.at >= session.last_activity + SILENCE
        return (replace(session, status=Status.SILENT, detail="no hook has arrived"), ()) if silent else (session, ())
    if isinstance(event, ev.ClientExited):
        return _exited(session, event), ()
    if isinstance(event, ev.ActivityChanged):
        return _witnessed(session, event), ()
    status = STATUS_AFTER.get(type(event))
    if status is None or (status is Status.UNKNOWN and session.ended):
        return session, ()
    return changed(session, status=status, detail=_detail(event)), ()


def _follow_turn(session: Session, event: ev.Event) -> Session:
    if isinstance(event, ev.TurnEnded):
        scheduled = session.scheduled if event.replayed else event.scheduled
        return changed(session, background=event.background, scheduled=scheduled, at_prompt=True, failed_starts=())
    if isinstance(event, ev.TurnFailed | ev.ConversationStarted | ev.ComposerReady):
        return changed(session, at_prompt=True)
    if isinstance(event, ev.PromptSubmitted | ev.ToolUsed):
        return changed(session, at_prompt=False, mode=event.mode or session.mode)
    if isinstance(event, ev.SessionLaunched | ev.ClientExited):
        return changed(session, at_prompt=False)
    return session


LIFTS = ev.PromptSubmitted | ev.ToolUsed | ev.TurnEnded
"""Events that show a client at work again."""


def _follow_limit(session: Session, event: ev.Event) -> Session:
    met = session.limit
    if isinstance(event, ev.TurnFailed):
        return changed(session, limit=event.limit)
    if isinstance(event, ev.LimitTold) and met is not None and met.kind in {event.kind, "usage"}:
        return replace(session, limit=replace(met, kind=event.kind, resets_at=event.resets_at))
    if met is not None and isinstance(event, ev.AlarmRang) and event.at >= met.over:
        return replace(session, limit=None, detail="")
    return changed(session, limit=None) if isinstance(event, LIFTS) else session


def runs_only_background(session: Session) -> bool:
    """True while a busy client is idle at its prompt all the same: only subagents in the background work."""
    return session.at_prompt and any(task.kind == SUBAGENT for task in session.background)


SUBAGENT = "subagent"


def _detail(event: ev.Event) -> str:
    match event:
        case ev.TurnFailed(limit=met) if met is not None:
            return met.words
        case ev.TurnFailed(error=error):
            return f"the last turn failed: {error}"
        case ev.ClientBlocked(reason=reason) | ev.LaunchFailed(reason=reason) | ev.SessionKilled(reason=reason):
            return reason
        case ev.PermissionAsked(tool=tool):
            return f"asks for permission: {tool}" if tool else "asks for permission"
    return ""


def _follow_dialog(session: Session, event: ev.Event) -> Session:
    if isinstance(event, ev.PermissionAsked):
        return replace(session, dialog=event.at)
    old = session.dialog is not None and event.at >= session.dialog + DIALOG_APPEARS
    seen_gone = isinstance(event, ev.ActivityChanged) and event.activity is not ev.Activity.WAITING and old
    if isinstance(event, ANSWERED) or seen_gone or (isinstance(event, ev.ComposerReady) and old):
        return changed(session, dialog=None)
    return session


SIGNALS_OF_A_PERSON = frozenset({1, 2, 15})
"""SIGHUP, SIGINT, SIGTERM: a closed terminal, Ctrl-C, `kill`."""
ENDED_BY_PERSON = frozenset(128 + number for number in SIGNALS_OF_A_PERSON)


def _exited(session: Session, event: ev.ClientExited) -> Session:
    crashed = event.signal is not None or event.code not in {0, None}
    if session.foreground is not None and (event.code in ENDED_BY_PERSON or event.signal in SIGNALS_OF_A_PERSON):
        crashed = False
    how = f"signal {event.signal}" if event.signal is not None else f"exit code {event.code}"
    detail = event.reason or f"the client has ended ({how})"
    return replace(
        session,
        status=Status.CRASHED if crashed else Status.EXITED,
        detail=detail,
        dialog=None,
        background=(),
        failed_starts=(*session.failed_starts, event.at)[-MAX_FAILED_STARTS:],
    )


AT_WORK_OR_REST = frozenset({Status.IDLE, Status.WORKING})


def _witnessed(session: Session, event: ev.ActivityChanged) -> Session:
    if event.activity in KEPT_WHILE.get(session.status, frozenset()):
        return session
    if session.dialog is not None and event.activity is not ev.Activity.WAITING:
        return session  # the dialog is on its way: the client's state lags behind its hook
    if event.activity is ev.Activity.BUSY and runs_only_background(session):
        return session
    asked = event.activity is ev.Activity.WAITING and session.dialog is not None
    # How a turn ended stays said: its hook comes before the client's own state.
    over = event.activity is not ev.Activity.WAITING and session.at_prompt and session.status in AT_WORK_OR_REST
    detail = (session.detail if asked else "") or event.detail or (session.detail if over else "")
    return replace(session, status=STATUS_SHOWN[event.activity], detail=detail)


# --- how full -----------------------------------------------------------------------------------------------------


def _follow_context(session: Session, event: ev.Event) -> Outcome:
    handler = CONTEXT_HANDLERS.get(type(event))
    current = session.conversation
    if handler is None or current is None:
        return session, ()
    return handler(session, current, event)


def _with_monitor(session: Session, current: Conversation, monitor: Monitor) -> Session:
    return replace(session, conversation=replace(current, monitor=monitor))


def handed_off(session: Session) -> bool:
    """True if the agent itself has written down how to go on; a document made without it is only a safeguard."""
    current = session.rotation
    return current is not None and current.active and not _is_safeguard(current)


def _is_safeguard(current: Rotation) -> bool:
    return current.handoff is not None and current.handoff.type is HandoffType.COMPACTION


def _judged(session: Session, monitor: Monitor, at: float) -> Monitor:
    in_turn = session.status in {Status.WORKING, Status.SILENT, Status.WAITING}
    given = (monitor, session.policy, at, _advice(session))
    return context.decide(*given, handed_off=handed_off(session), in_turn=in_turn)


def _advice(session: Session) -> advice.Advice:
    return advice.ADVICE_ADOPTED if session.adopted else advice.advice_of(advice.handoff_file(session.id))


def _tool_used(session: Session, current: Conversation, event: ev.Event) -> Outcome:
    assert isinstance(event, ev.ToolUsed)
    policy = session.policy
    monitor = context.counted(current.monitor, event.tool, event.work, policy)
    saved = bool(event.document) and session.adopted and not event.failed
    monitor = context.saved(monitor, event.at) if saved else monitor
    due = context.is_due(monitor.tool_calls, policy)
    monitor = _judged(session, monitor, event.at) if due else monitor
    session, effects = _tell(_with_monitor(session, current, monitor))
    if due:
        effects += (_read(current, settle=True),)
    return session, (*effects, KeepDocument(event.document)) if saved else effects


def _tool_asked(session: Session, current: Conversation, event: ev.Event) -> Outcome:
    """The gate: past the critical level only what serves the handoff, until one is pending."""
    assert isinstance(event, ev.ToolAsked)
    policy = session.policy
    closed = policy.gate and policy.enabled and not session.adopted and not handed_off(session)
    if not closed or event.permitted or context.level(current.monitor, policy) is not Level.CRITICAL:
        return session, ()
    return session, (DenyTool(gate.reason(session.id)),)


def _tell(session: Session) -> Outcome:
    """Let this hook's reply carry what is owed."""
    current = session.conversation
    if current is None or not current.monitor.owed or handed_off(session):
        return session, ()
    owed = current.monitor.owed
    return _with_monitor(session, current, replace(current.monitor, owed=())), (AddContext("\n".join(owed), owed),)


def _read(current: Conversation, *, settle: bool) -> ReadContext:
    return ReadContext(current.id, current.transcript, current.epoch, settle)


def _prompt_submitted(session: Session, _: Conversation, event: ev.Event) -> Outcome:
    assert isinstance(event, ev.PromptSubmitted)
    return (session, ()) if event.replayed else _tell(session)


def _turn_over(_session: Session, current: Conversation, _event: ev.Event) -> Outcome:
    return _session, (_read(current, settle=True),)


def _went_idle(session: Session, current: Conversation, event: ev.Event) -> Outcome:
    """A Stop hook that takes its time holds back the record of the turn's last reply: it is there once all is idle."""
    assert isinstance(event, ev.ActivityChanged)
    idle = event.activity is ev.Activity.IDLE
    return session, (_read(current, settle=True),) if idle else ()


def _compaction_started(session: Session, current: Conversation, event: ev.Event) -> Outcome:
    """The client asks before it compacts: put off for an agent that can still hand off, never for good."""
    assert isinstance(event, ev.CompactionStarted)
    current = replace(current, ordered=not event.automatic, resting=session.at_prompt)
    session = replace(session, conversation=current)
    wanted = session.foreground.on_compact if session.foreground is not None else session.policy.on_compact
    rotates = wanted == compaction.ROTATE and not session.adopted
    hold = compaction.held(current.hold, current.monitor, event.at) if rotates else None
    if hold is None or not event.automatic:
        session, dropped = _let_go(session, event.at)
        return session, (*dropped, MakeDocument(rotate=False))
    monitor = current.monitor
    if not handed_off(session) and not monitor.owed:
        monitor = replace(monitor, told=event.at, owed=(advice.critical_notice(_advice(session)),))
    session = replace(session, status=Status.WORKING, conversation=replace(current, hold=hold, monitor=monitor))
    safe = session.rotation is not None and session.rotation.active
    return session, (BlockCompaction(compaction.HELD), *(() if safe else (MakeDocument(rotate=True),)))


def _let_go(session: Session, at: float) -> Outcome:
    """The client compacts: a rotation that only was to spare it that has nothing left to do."""
    current = session.rotation
    if current is None or current.phase is not Phase.PENDING or current.handoff is None or not _is_safeguard(current):
        return session, ()
    moved = rotation.entered(current, Phase.CANCELLED, at, "the client compacted first")
    return replace(session, rotation=moved), (RecordHandoff(current.handoff, HandoffState.CLEARED, moved.note),)


def _compaction_ended(session: Session, current: Conversation, _: ev.Event) -> Outcome:
    return replace(session, conversation=replace(current, hold=Hold())), (_read(current, settle=True),)


def _context_read(session: Session, current: Conversation, event: ev.Event) -> Outcome:
    assert isinstance(event, ev.ContextRead)
    if event.epoch != current.epoch:
        return session, ()
    session, effects = _notice_boundary(session, current, event.reading)
    current = session.conversation or current
    last = current.monitor.reading
    reading = event.reading if session.policy.baseline else context.without_usage(event.reading, last)
    model = capacity.named(event.reading.model, session.model)
    usable = capacity.taught(event.usable, session.lesson, model)
    monitor = context.measured(current.monitor, reading, usable)
    monitor = _judged(session, monitor, event.at)
    return changed(_with_monitor(session, current, monitor), model=model), effects


def _window_told(session: Session, current: Conversation, event: ev.Event) -> Outcome:
    assert isinstance(event, ev.WindowTold)
    reading = replace(current.monitor.reading, window=event.window, assumed=False)
    usable = capacity.taught(event.usable, session.lesson, reading.model or session.model)
    monitor = _judged(session, replace(current.monitor, reading=reading, usable=usable), event.at)
    return replace(_with_monitor(session, current, monitor), window=event.window), ()


def _notice_boundary(session: Session, current: Conversation, reading: ContextReading) -> Outcome:
    """A boundary that was not there before: the client compacted before a handoff came."""
    fresh = reading.boundary is not None and reading.boundary != current.boundary and current.looked
    boundary = reading.boundary if reading.boundary is not None else current.boundary
    current = replace(current, boundary=boundary, looked=True)
    if not fresh or reading.boundary is None:
        return replace(session, conversation=current), ()
    before, after = reading.boundary
    session = _learned(session, current, reading)
    ordered = current.ordered
    current = replace(current, monitor=Monitor(tool_calls=current.monitor.tool_calls), ordered=False)
    session = replace(session, conversation=current)
    if ordered:
        return session, ()
    session = replace(session, too_late=session.too_late + 1)
    return session, (TellParent(advice.too_late_notice(session.name, before, after)),)


def _learned(session: Session, current: Conversation, reading: ContextReading) -> Session:
    """Where the client compacted by itself, at work, its limit is, whatever was assumed."""
    before = reading.boundary[0] if reading.boundary is not None else None
    if before is None or not reading.automatic or current.ordered or current.resting:
        return session
    model = capacity.named(reading.model, session.model)
    known = capacity.taught(before, session.lesson, model)
    return replace(session, lesson=Lesson(model, before if known is None else known))


def _started(session: Session, current: Conversation, event: ev.Event) -> Outcome:
    assert isinstance(event, ev.ConversationStarted)
    if event.origin is ev.Origin.COMPACT:
        current = replace(current, monitor=Monitor(tool_calls=current.monitor.tool_calls), looked=True)
        session = replace(session, conversation=current)
    first = event.origin in {ev.Origin.STARTUP, ev.Origin.RESUME, ev.Origin.FORK}
    first_words = (AddContext(primer(session.id)),) if first and session.policy.primer and not session.adopted else ()
    return session, (*first_words, _read(current, settle=False))


def _rearm(session: Session, current: Conversation, event: ev.Event) -> Outcome:
    monitor = replace(current.monitor, crossed=(), owed=(), told=0.0, fallback_told=False)
    # Nothing new may come to be read of an idle agent: what is known already decides.
    monitor = _judged(session, monitor, event.at)
    return _with_monitor(session, current, monitor), (_read(current, settle=False),)


def _reply_lost(session: Session, current: Conversation, event: ev.Event) -> Outcome:
    assert isinstance(event, ev.ReplyLost)
    owed = (*event.notices, *(one for one in current.monitor.owed if one not in event.notices))
    return _with_monitor(session, current, replace(current.monitor, owed=owed)), ()


ContextHandler = Callable[[Session, Conversation, ev.Event], Outcome]
CONTEXT_HANDLERS: dict[type[ev.Event], ContextHandler] = {
    ev.ToolAsked: _tool_asked,
    ev.ToolUsed: _tool_used,
    ev.PromptSubmitted: _prompt_submitted,
    ev.TurnEnded: _turn_over,
    ev.TurnFailed: _turn_over,
    ev.CompactionStarted: _compaction_started,
    ev.CompactionEnded: _compaction_ended,
    ev.ContextRead: _context_read,
    ev.ActivityChanged: _went_idle,
    ev.WindowTold: _window_told,
    ev.ConversationStarted: _started,
    ev.LatchesReset: _rearm,
    ev.ReplyLost: _reply_lost,
}


def primer(session: str) -> str:
    return PRIMER.format(file=advice.handoff_file(session))


PRIMER = """\
You run inside a session of `sm`, which keeps your work across contexts.
- `sm handoff FILE`: when your context fills up, write a handoff document ({file}: goal, what is done, \
what is not, decisions and constraints, files changed, the exact next step), call this as the last action of your turn \
and end the turn. sm then clears the context and wakes you with the document, as the same session. `sm handoff -` \
reads the document from standard input, `sm handoff --auto` makes one from the transcript if you have no room left.
- `sm handoff --status` shows its progress, `--cancel` cancels it.
- `sm context` shows how full your context is, `sm status` who you are; `sm status TEXT` reports what you do to others.
- `sm send TARGET TEXT` messages another session (an id, a name, `parent`, `children`) for the end of its turn, \
`--important` for its next tool call. `sm inbox` lists your queued messages, `sm message ID` shows whether \
one was delivered.
- `sm spawn PROMPT` starts a child; you get a message when it stops. `sm children` lists them, `sm kill CHILD` and \
`sm clear CHILD PROMPT` end one or give it another task; after `sm wait TARGET DELAY` you get a message \
when TARGET is idle.
- `sm remind DELAY TEXT` reminds you later. `sm done TEXT` reports the task as complete to your parent.
- What begins with `[Input from: NAME (id) via sm send]` was sent by that session, not by the user. Notices that begin \
with `[sm` come from sm."""


# --- what a person decides about it -----------------------------------------------------------------------------------


def _administer(session: Session, event: ev.Event) -> Outcome:
    if isinstance(event, ev.PolicyChanged):
        return replace(session, policy=event.policy), ()
    if isinstance(event, ev.LimitsChanged):
        return replace(session, limits=event.limits), ()
    return (replace(session, name=event.name), ()) if isinstance(event, ev.SessionRenamed) else (session, ())


def _report(session: Session, event: ev.Event) -> Outcome:
    """What the agent says of itself; a task it has declared complete is over until it is given another."""
    match event:
        case ev.StatusReported(at=at, text=text):
            return replace(session, report=Report(one_line(text), at)), ()
        case ev.TaskCompleted(at=at, text=text):
            return replace(session, report=Report(one_line(text), at, done=True)), ()
        case ev.PromptSubmitted() if session.report is not None and session.report.done:
            return replace(session, report=None), ()
        case ev.ClearRequested():
            return replace(session, report=None), ()
    return session, ()


# --- rotation and delivery -------------------------------------------------------------------------------------------


def _rotate(session: Session, event: ev.Event) -> Outcome:
    if isinstance(event, ev.HandoffRequested | ev.ClearRequested):
        return _request(session, event)
    if isinstance(event, ev.DocumentKept):
        return _keep(session, event)
    session = _count_restarts(session, event)
    old = session.rotation
    effects: tuple[Effect, ...] = ()
    if old is not None:
        rules = rotation if session.foreground is None else restart
        moved, effects = rules.advance(old, _as_lifted(session, old, event), scene(session))
        if session.limit is not None and _begins(old, moved, event):
            moved, effects = replace(old, note=limit.HELD, deadline=None), ()
        done = (moved.phase is Phase.DONE) - (old.phase is Phase.DONE)
        kept = None if done > 0 else session.kept
        session = changed(session, rotation=moved, rotations=session.rotations + done, kept=kept)
    if isinstance(event, CLIENT_ENDS):
        session, effects = _give_back(session, old, effects, crashed=isinstance(event, ev.ClientExited))
    if isinstance(event, ev.HandoffWithdrawn) and session.kept is not None and session.kept.id == event.handoff:
        session = replace(session, kept=None)
    return _ordered(*_inform(session, event, effects))


def _begins(old: Rotation, moved: Rotation, event: ev.Event) -> bool:
    """Whether something is to be typed or ended from now on; a new conversation has begun by itself."""
    waited = old.phase in {Phase.PENDING, Phase.FAILED} and moved.phase in rotation.UNDER_WAY
    return waited and not isinstance(event, ev.ConversationStarted)


def _as_lifted(session: Session, old: Rotation, event: ev.Event) -> ev.Event:
    """A rotation that waited for the end of a limit begins when that is over, though no turn has ended since."""
    waited = old.phase is Phase.PENDING and old.note == limit.HELD
    over = isinstance(event, ev.AlarmRang) and session.limit is None and session.at_prompt
    return ev.HandoffRetried(at=event.at) if waited and over else event


OF_ITS_START = 10.0
"""Seconds in which a conversation's first prompt may be an argument of its client, and no person's."""


def _count_restarts(session: Session, event: ev.Event) -> Session:
    """Keep count of what `sm run` does to its client; a person who goes on themselves begins it anew."""
    foreground, current = session.foreground, session.conversation
    if foreground is None or current is None:
        return session
    if isinstance(event, ev.RestartTaken):
        return replace(session, foreground=counted(foreground, event.at, current.monitor.tool_calls))
    if isinstance(event, ev.PromptSubmitted) and event.at - current.started >= OF_ITS_START and foreground.restarts:
        return replace(session, foreground=replace(foreground, restarts=()))
    return session


def _give_back(session: Session, old: Rotation | None, effects: tuple[Effect, ...], *, crashed: bool) -> Outcome:
    """At the client's end. What its own rotation is over for stays the session's newest document all the same."""
    left = keeping.left_behind(old, session.rotation, session.kept)
    if left is not None:
        owed = session.rotation is not None and session.rotation.unfinished
        session, effects = changed(session, kept=None if owed else left), keeping.given_back(left, effects)
    if crashed and session.status is Status.CRASHED and keeping.tells_too_little(left):
        effects = (*effects, MakeDocument(rotate=False, kind=HandoffType.CRASH))
    return session, effects


CLIENT_ENDS = ev.ClientExited | ev.SessionKilled | ev.LaunchFailed


def _inform(session: Session, event: ev.Event, effects: tuple[Effect, ...]) -> Outcome:
    """Let a context that begins know of what was handed off; a rotation that has given its document comes first."""
    if isinstance(event, ev.CompactionStarted):
        return changed(session, told=""), effects
    if isinstance(event, ev.ConversationStarted) and not any(isinstance(one, InjectHandoff) for one in effects):
        own = keeping.newest(session.rotation, session.kept)
        effects = (*effects, *keeping.at_start(event, session.offer, own, session.told))
        session = changed(session, offer=None)
    given = [one.handoff.id for one in effects if isinstance(one, InjectHandoff)]
    return (changed(session, told=given[-1]) if given else session), effects


def _request(session: Session, event: ev.HandoffRequested | ev.ClearRequested) -> Outcome:
    old = session.rotation
    records: tuple[Effect, ...] = ()
    if old is not None and old.active and old.handoff is not None:
        records = (RecordHandoff(old.handoff, HandoffState.CLEARED, REPLACED),)
    handoff = event.handoff if isinstance(event, ev.HandoffRequested) else None
    rules = rotation if session.foreground is None else restart
    started, effects = rules.start(handoff, event.at, scene(session))
    started = started if session.limit is None else replace(started, note=limit.HELD)
    if handoff is not None:
        records += (RecordHandoff(handoff, HandoffState.PENDING),)
    return _ordered(replace(session, rotation=started, kept=None), (*records, *effects))


REPLACED = "replaced by a newer one"


def _keep(session: Session, event: ev.DocumentKept) -> Outcome:
    """A document made for the session. One of the agent's own that is still to be taken up says more."""
    if session.rotation is not None and session.rotation.unfinished:
        return session, (RecordHandoff(event.handoff, HandoffState.CLEARED, "the agent's own document waits"),)
    if event.rotate and session.conversation is not None and session.conversation.id == event.handoff.conversation:
        return _request(session, ev.HandoffRequested(at=event.at, handoff=event.handoff))
    record = RecordHandoff(event.handoff, HandoffState.ACTIVE, held=not session.ended)
    return replace(session, kept=event.handoff), (record,)


def _deliver(session: Session, event: ev.Event) -> Outcome:
    ordered = session.rotation is not None and session.rotation.phase in rotation.UNDER_WAY
    if ordered and isinstance(event, ev.StepResult):
        return session, ()
    seen = scene(session)
    outbox, effects = delivery.advance(session.outbox, event, seen)
    ours = isinstance(event, ev.PromptSubmitted) and delivery.took(session.outbox, outbox)
    outbox, carried = carrying.advance(outbox, event, seen, ours=ours)
    session, effects = _ordered(changed(session, outbox=outbox), (*effects, *carried))
    if isinstance(event, ev.SessionKilled):
        return session, (*effects, EndClient())
    if isinstance(event, ev.TurnEnded) and any(isinstance(one, AddContext) for one in carried):
        session = changed(session, status=Status.WORKING, at_prompt=False)
    session = _queue_owed(session, event.at)
    outbox, more = delivery.begin(session.outbox, scene(session))
    session, more = _ordered(changed(session, outbox=outbox), more)
    return session, (*effects, *more)


def _queue_owed(session: Session, at: float) -> Session:
    """To an idle agent a warning is a queued message, ahead of the others."""
    current = session.conversation
    if current is None or not current.monitor.owed or session.outbox.step is not None or not _may_type(session):
        return session
    text = current.monitor.owed[-1]
    notice = replace(new_message(f"context-{current.id[:8]}-{at:.3f}", text), mode=Mode.IMPORTANT)
    session = _with_monitor(session, current, replace(current.monitor, owed=()))
    return replace(session, outbox=placed(session.outbox, notice))


def _may_type(session: Session) -> bool:
    held = session.rotation is not None and session.rotation.holds_messages
    free = session.dialog is None and session.limit is None and not held
    return session.status is Status.IDLE and session.pane is not None and free


def _ordered(session: Session, effects: tuple[Effect, ...]) -> Outcome:
    """Return the session with its step moved on if one of `effects` is a new order to the pane."""
    steps = [effect.step for effect in effects if isinstance(effect, PaneOrder)]
    return (changed(session, step=max(session.step, *steps)) if steps else session), effects


Part = Callable[[Session, ev.Event], Outcome]
PARTS: tuple[Part, ...] = (
    _administer,
    _report,
    _follow_conversation,
    _follow_status,
    _follow_context,
    _rotate,
    _deliver,
)
