"""What a session's status is, by its client's hooks and by what else shows of it."""

from __future__ import annotations

from enum import StrEnum

from sm.core import events as ev
from sm.core.effects import Outcome
from sm.core.model.ask import AskKind
from sm.core.model.client_traits import ClientTraits
from sm.core.model.session import DIALOG_DELAY_S, SILENCE_TIMEOUT_S, Session, Status, changed
from sm.core.rules.session.refusals import MAX_FAILED_STARTS
from sm.core.values import replace


class StatusVerdict(StrEnum):
    """What an event means to the status where its kind alone does not decide."""

    SILENT = "silent for long"
    CRASHED = "not by the user, and not in order"
    REFUSED = "and the client refuses to continue"


Row = type[ev.Event] | tuple[type[ev.Event], StatusVerdict] | ev.Activity | tuple[Status, ev.Activity]

STATUS_AFTER: dict[Row, Status] = {
    ev.SessionLaunched: Status.STARTING,
    ev.LaunchFailed: Status.CRASHED,
    ev.PromptSubmitted: Status.WORKING,
    ev.ToolUsed: Status.WORKING,
    ev.PermissionAsked: Status.WAITING,
    ev.AskOpened: Status.WAITING,
    ev.TurnEnded: Status.IDLE,
    ev.TurnFailed: Status.IDLE,
    (ev.TurnFailed, StatusVerdict.REFUSED): Status.BLOCKED,  # never idle in between: it would be typed into
    ev.CompactionStarted: Status.COMPACTING,
    ev.CompactionEnded: Status.WORKING,
    ev.ComposerReady: Status.IDLE,
    ev.ClientBlocked: Status.BLOCKED,
    ev.ClientExited: Status.EXITED,
    (ev.ClientExited, StatusVerdict.CRASHED): Status.CRASHED,
    ev.SessionKilled: Status.EXITED,
    ev.ServerStarted: Status.UNKNOWN,
    (ev.AlarmRang, StatusVerdict.SILENT): Status.SILENT,
    # What the client's own state shows.
    ev.Activity.IDLE: Status.IDLE,
    ev.Activity.BUSY: Status.WORKING,
    ev.Activity.WAITING: Status.WAITING,
    ev.Activity.STOPPED: Status.WAITING,
    ev.Activity.UNKNOWN: Status.UNKNOWN,
    # What it cannot tell from the status that the session has.
    (Status.BLOCKED, ev.Activity.IDLE): Status.BLOCKED,
    (Status.BLOCKED, ev.Activity.UNKNOWN): Status.BLOCKED,
    (Status.COMPACTING, ev.Activity.BUSY): Status.COMPACTING,
    (Status.COMPACTING, ev.Activity.UNKNOWN): Status.COMPACTING,
    (Status.STARTING, ev.Activity.UNKNOWN): Status.STARTING,
}
"""The status after an event, or after what the client's state shows; without a row it stays as it is."""


def follow_status(session: Session, event: ev.Event, _: ClientTraits) -> Outcome:
    if session.ended and not isinstance(event, ev.SessionLaunched):
        return session, ()
    session = _follow_turn(_follow_dialog(_follow_interruption(session, event), event), event)
    status = STATUS_AFTER.get(_row(session, event))
    if status is None:
        return session, ()
    detail = _detail_shown(session, event) if isinstance(event, ev.ActivityChanged) else _detail(event)
    since = session.since if status is session.status else event.at
    return changed(session, status=status, detail=detail, since=since, evidence=EVIDENCE.get(type(event), "")), ()


EVIDENCE: dict[type[ev.Event], str] = {
    ev.SessionLaunched: "its client was started",
    ev.LaunchFailed: "its client did not start",
    ev.PromptSubmitted: "its client took a prompt",
    ev.ToolUsed: "its client ran a tool",
    ev.PermissionAsked: "its client asked",
    ev.AskOpened: "its client asked",
    ev.TurnEnded: "its client ended a turn",
    ev.TurnFailed: "its client ended a turn",
    ev.CompactionStarted: "its client began to compact",
    ev.CompactionEnded: "its client has compacted",
    ev.ComposerReady: "its screen",
    ev.ClientBlocked: "its client's words",
    ev.ClientExited: "its process",
    ev.SessionKilled: "it was ended",
    ev.ServerStarted: "the server has just started",
    ev.AlarmRang: "nothing was heard of it",
    ev.ActivityChanged: "its client's own state",
}
"""What shows the status, for each event that has one."""


def _row(session: Session, event: ev.Event) -> Row:
    """Return what the table has, or has not, for the event."""
    match event:
        case ev.AlarmRang() if (
            session.status is Status.WORKING and event.at >= session.last_activity + SILENCE_TIMEOUT_S
        ):
            return ev.AlarmRang, StatusVerdict.SILENT
        case ev.TurnFailed() if event.refusal:
            return ev.TurnFailed, StatusVerdict.REFUSED
        case ev.ClientExited() if _crashed(session, event):
            return ev.ClientExited, StatusVerdict.CRASHED
        case ev.ActivityChanged(activity=ev.Activity.BUSY) if session.status is Status.WAITING and _is_over(session):
            return ev.Activity.IDLE
        case ev.ActivityChanged(activity=activity) if not _lags(session, activity):
            return (session.status, activity) if (session.status, activity) in STATUS_AFTER else activity
    return type(event)


def _follow_turn(session: Session, event: ev.Event) -> Session:
    match event:
        case ev.TurnEnded(background=background):
            scheduled = session.scheduled if event.replayed else event.scheduled
            session = _counted(session, event)
            return changed(session, background=background, scheduled=scheduled, at_prompt=True, failed_starts=())
        case ev.TurnFailed() | ev.ConversationStarted() | ev.ComposerReady():
            starts = isinstance(event, ev.ConversationStarted) and event.origin in ev.STARTS
            return changed(session, at_prompt=True, fresh=session.fresh or starts)
        case ev.PromptSubmitted(mode=mode) | ev.ToolUsed(mode=mode):
            told = isinstance(event, ev.PromptSubmitted) and not event.replayed
            prompted = event.at if told else session.prompted
            return changed(session, at_prompt=False, fresh=False, mode=mode or session.mode, prompted=prompted)
        case ev.ClientExited(at=at):
            failed = (*session.failed_starts, at)[-MAX_FAILED_STARTS:]
            return replace(session, at_prompt=False, dialog=None, background=(), failed_starts=failed)
        case ev.SessionLaunched(mode=mode):
            return changed(session, at_prompt=False, fresh=True, mode=mode)
    return session


def _counted(session: Session, event: ev.TurnEnded) -> Session:
    current = session.conversation
    assert current is not None  # the event belongs to it
    return changed(session, said=event.text or session.said, conversation=replace(current, turns=current.turns + 1))


def _follow_interruption(session: Session, event: ev.Event) -> Session:
    match event:
        case ev.TurnEnded() | ev.PromptSubmitted() | ev.ToolUsed():
            return changed(session, interrupted=False)
        case ev.ClientExited() | ev.SessionKilled():
            return changed(session, interrupted=_in_turn(session))
    return session


def _in_turn(session: Session) -> bool:
    """Whether the end of its client interrupts work, as far as is known; one that was interrupted stays so."""
    return session.interrupted or (not session.at_prompt and session.status in WITH_TURN)


WITH_TURN = frozenset({Status.WORKING, Status.SILENT, Status.WAITING, Status.COMPACTING, Status.UNKNOWN})


def runs_only_background(session: Session) -> bool:
    """True while a busy client is idle at its prompt all the same: only subagents in the background work."""
    return session.at_prompt and any(task.kind == SUBAGENT for task in session.background)


SUBAGENT = "subagent"


def _is_over(session: Session) -> bool:
    """Whether what a subagent in the background asked is all that the session waited for, and no dialog is open."""
    return session.dialog is None and runs_only_background(session)


ASKS = {AskKind.QUESTION: "asks a question", AskKind.PLAN: "asks to approve a plan"}


def _detail(event: ev.Event) -> str:
    match event:
        case ev.TurnFailed(error=error, limit=met):
            return event.refusal or (f"the last turn failed: {error}" if met is None else met.words)
        case ev.ClientBlocked(reason=reason) | ev.LaunchFailed(reason=reason) | ev.SessionKilled(reason=reason):
            return reason
        case ev.ClientExited():
            how = f"signal {event.signal}" if event.signal is not None else f"exit code {event.code}"
            return event.reason or f"the client has ended ({how})"
        case ev.PermissionAsked(tool=tool) | ev.AskOpened(tool=tool):
            kind = event.kind if isinstance(event, ev.AskOpened) else AskKind.PERMISSION
            return ASKS.get(kind) or (f"asks for permission: {tool}" if tool else "asks for permission")
        case ev.AlarmRang():
            return "no hook has arrived"
    return ""


def _detail_shown(session: Session, event: ev.ActivityChanged) -> str:
    if (session.status, event.activity) in STATUS_AFTER:
        return session.detail
    waiting = event.activity is ev.Activity.WAITING
    asked = waiting and session.dialog is not None
    # How a turn ended stays said: its hook comes before the client's own state.
    over = not waiting and session.at_prompt and session.status in AT_WORK_OR_REST
    return (session.detail if asked else "") or event.detail or (session.detail if over else "")


AT_WORK_OR_REST = frozenset({Status.IDLE, Status.WORKING})


def _follow_dialog(session: Session, event: ev.Event) -> Session:
    old = session.dialog is not None and event.at >= session.dialog + DIALOG_DELAY_S
    match event:
        case ev.PermissionAsked(at=at) | ev.AskOpened(at=at):
            return replace(session, dialog=at)
        case ev.ActivityChanged(activity=activity) if activity is not ev.Activity.WAITING and old:
            return changed(session, dialog=None)
        case ev.ComposerReady() if old:
            return changed(session, dialog=None)
        case ev.PromptSubmitted() | ev.TurnEnded() | ev.TurnFailed() | ev.ConversationStarted() | ev.ToolUsed():
            return changed(session, dialog=None)  # none of these comes while the main conversation's dialog is open
    return session


PANE_LOST = "pane lost (tmux stopped or machine rebooted)"
"""The reason of an end that took the pane with it."""


def lost_at(session: Session) -> float | None:
    """Return when the client in a session's pane ended without an order to; None if it was ended, quit or lives."""
    in_pane = not session.adopted and session.foreground is None
    unasked = session.status is Status.CRASHED or (session.ended and session.detail == PANE_LOST)
    return session.failed_starts[-1] if in_pane and unasked and session.failed_starts else None


USER_SIGNALS = frozenset({1, 2, 15})
"""SIGHUP, SIGINT, SIGTERM: a closed terminal, Ctrl-C, `kill`."""
USER_EXIT_CODES = frozenset(128 + number for number in USER_SIGNALS)


def _crashed(session: Session, event: ev.ClientExited) -> bool:
    by_user = event.code in USER_EXIT_CODES or event.signal in USER_SIGNALS
    in_order = event.signal is None and event.code in {0, None}
    return not in_order and not (session.foreground is not None and by_user)


def _lags(session: Session, activity: ev.Activity) -> bool:
    """Whether the client's state does not show yet, or not at all, what its hooks have told."""
    asked = session.dialog is not None and activity is not ev.Activity.WAITING  # the dialog is about to open
    return asked or (activity is ev.Activity.BUSY and runs_only_background(session))
