"""What a session's status is, by its client's hooks and by what else shows of it."""

from __future__ import annotations

from dataclasses import replace

from sm.core import events as ev
from sm.core.effects import Outcome
from sm.core.model.session import DIALOG_APPEARS, SILENCE, Session, Status, changed
from sm.core.rules.session.refusals import MAX_FAILED_STARTS

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


def follow_status(session: Session, event: ev.Event) -> Outcome:
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
