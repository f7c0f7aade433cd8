"""What is said when a reminder, a wait or a stop notification is due, and its state after that.

What another agent has written is quoted, so that it can neither speak for `sm` nor for anyone else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sm.core import events as ev
from sm.core.effects import DropReminder, QueueNotice, RecordReminder, ReminderRecord
from sm.core.model.reminder import Kind, Notice, Reminder
from sm.core.model.report import MAX_QUOTED_CHARS, one_line, quoted
from sm.core.model.session import Session, Status

STOP_SETTLE_S = 1.0
"""Seconds of rest after which a Stop was one: a foreign hook, or a background task that ends, continues at once."""
DIALOG_TIMEOUT_S = 20.0
"""Seconds a dialog of the client may be open before a watcher reads that it waits for the user."""
REPORT_WINDOW_S = 30.0
"""Seconds within which an agent's own word to the watcher makes the notice of its stop needless."""
SHELL = "shell"

# --- the state of a session ---------------------------------------------------------------------------------------


def gone(session: Session) -> bool:
    """True if it does nothing any more: it has ended, or its client is blocked and no rotation will help."""
    rotates = session.rotation is not None and session.rotation.active
    return session.ended or (session.status is Status.BLOCKED and not rotates)


def idle(session: Session) -> bool:
    """At its prompt with nothing running, nothing queued and no rotation ahead."""
    rotates = session.rotation is not None and session.rotation.active
    busy = session.background or session.outbox.waiting or session.outbox.handed or rotates
    return session.status is Status.IDLE and session.dialog is None and session.limit is None and not busy


def at_rest(session: Session) -> bool:
    """True if its turn has ended for good: only shells are left in the background, and no rotation is ahead."""
    rotates = session.rotation is not None and session.rotation.active
    works = any(task.kind != SHELL for task in session.background)
    return session.status is Status.IDLE and session.dialog is None and session.at_prompt and not (works or rotates)


# --- what is said ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DueReminder:
    """A reminder whose time has come, with what it may be decided by."""

    reminder: Reminder
    owner: Session
    target: Session
    at: float
    others: tuple[Reminder, ...] = ()
    """The other reminders about the same target."""


def fire(due: DueReminder) -> tuple[ReminderRecord, ...]:
    """Return what is said, and the reminder after that, to be written in one transaction."""
    return FIRE[due.reminder.kind](due)


def _notice(due: DueReminder, session: str, text: str) -> QueueNotice:
    return QueueNotice(Notice(f"{due.reminder.id}-{due.at:.3f}", session, text))


def _fire_once(due: DueReminder) -> tuple[ReminderRecord, ...]:
    said = _notice(due, due.reminder.owner, f"[sm remind] {due.reminder.text}")
    return DropReminder(due.reminder.id), said


def _fire_every(due: DueReminder) -> tuple[ReminderRecord, ...]:
    """One for all that were missed, and none while the one before still waits for the agent."""
    reminder = replace(due.reminder, due=_next(due))
    if _still_queued(due.owner, reminder.message):
        return (RecordReminder(reminder),)
    said = _notice(due, reminder.owner, f"[sm remind] {reminder.text}")
    return RecordReminder(replace(reminder, message=said.notice.id)), said


def _next(due: DueReminder) -> float:
    """The next time in the rhythm the reminder has had from the start, which lies ahead."""
    begun, every = due.reminder.due or due.at, due.reminder.every
    return begun + every * (int((due.at - begun) / every) + 1)


def _still_queued(session: Session, message: str) -> bool:
    return any(waiting.id == message for waiting in session.outbox.queue)


def _fire_track(due: DueReminder) -> tuple[ReminderRecord, ...]:
    reminder = replace(due.reminder, due=due.at + due.reminder.every)
    if idle(due.target) or due.target.status is Status.COMPACTING:
        return (RecordReminder(reminder),)  # it does nothing it could report on
    asked = replace(reminder, unanswered=reminder.unanswered + 1)
    if _still_queued(due.target, reminder.message):
        return RecordReminder(asked), *_complaint(due)
    text = ASK_AGAIN.format(_span(asked.unanswered * asked.every)) if reminder.unanswered else ASK
    said = _notice(due, reminder.target, text)
    return RecordReminder(replace(asked, message=said.notice.id)), said, *_complaint(due)


def _complaint(due: DueReminder) -> tuple[ReminderRecord, ...]:
    """Tell the owner once, when the target has left a second request to report unanswered."""
    if due.reminder.unanswered != 1:
        return ()
    silent = _span(2 * due.reminder.every)
    text = f"[sm track] {who(due.target)} has not reported for {silent}; it is {state(due.target)}."
    return (QueueNotice(Notice(f"{due.reminder.id}-{due.at:.3f}-o", due.reminder.owner, text + _last_report(due))),)


def _fire_wait(due: DueReminder) -> tuple[ReminderRecord, ...]:
    reminder, target = due.reminder, due.target
    if gone(target):
        text = f"{who(target)} has ended: {why(target)}." if target.ended else _not_idle(due)
    elif idle(target):
        text = f"{who(target)} is idle." + _last_words(reminder)
    elif reminder.deadline is not None and due.at >= reminder.deadline:
        text = _not_idle(due)
    else:
        return (RecordReminder(replace(reminder, due=reminder.deadline)),)
    return DropReminder(reminder.id), _notice(due, reminder.owner, f"[sm wait] {text}{_last_report(due)}")


def _not_idle(due: DueReminder) -> str:
    waited = _span(due.at - due.reminder.created)
    return f"{who(due.target)} is not idle after {waited}: {state(due.target)}.{_left_running(due.target)}"


def already_idle(reminder: Reminder, target: Session) -> QueueNotice:
    """A wait that was over before it began."""
    how = f"has ended already: {why(target)}" if target.ended else "is idle already"
    return QueueNotice(Notice(reminder.id, reminder.owner, f"[sm wait] {who(target)} {how}."))


def _fire_stop(due: DueReminder) -> tuple[ReminderRecord, ...]:
    reminder, target = due.reminder, due.target
    if reminder.text == NEVER_TAKEN and not reminder.running:
        text = f"[sm] {who(target)} {NEVER_TAKEN}; it is {state(target)}."
        return DropReminder(reminder.id), _notice(due, reminder.owner, text)
    if target.status is Status.WAITING:
        text = f"[sm] {who(target)} waits for the user: {why(target) or 'a dialog is open'}."
        return RecordReminder(replace(reminder, due=None)), _notice(due, reminder.owner, text)
    if not (gone(target) or (reminder.running and at_rest(target))):
        again = due.at + STOP_SETTLE_S if target.status is Status.UNKNOWN else None
        return (RecordReminder(replace(reminder, due=again)),)
    # Two tasks that ended in one turn are one stop.
    drops = tuple(
        DropReminder(other.id)
        for other in (reminder, *due.others)
        if other.kind is Kind.STOP and other.owner == reminder.owner and other.running
    )
    if reminder.reported and due.at - reminder.reported <= REPORT_WINDOW_S and not gone(target):
        return drops
    return *drops, _notice(due, reminder.owner, _stopped(due))


def _stopped(due: DueReminder) -> str:
    target = due.target
    if target.ended:
        how = f"has ended: {why(target)}."
    elif target.detail:
        how = f"has stopped: {why(target)}."
    else:
        how = f"has finished its turn and is idle.{_last_words(due.reminder)}"
    return f"[sm] {who(target)} {how}{_left_running(target)}{_last_report(due)}"


def _fire_check(due: DueReminder) -> tuple[ReminderRecord, ...]:
    target, since = due.target, _span(due.reminder.every)
    text = f"[sm wait] {since} after your message {who(target)} is {state(target)}.{_left_running(target)}"
    return DropReminder(due.reminder.id), _notice(due, due.reminder.owner, text + _last_report(due))


Fire = Callable[[DueReminder], tuple[ReminderRecord, ...]]
FIRE: dict[Kind, Fire] = {
    Kind.ONCE: _fire_once,
    Kind.EVERY: _fire_every,
    Kind.TRACK: _fire_track,
    Kind.WAIT: _fire_wait,
    Kind.STOP: _fire_stop,
    Kind.CHECK: _fire_check,
}

# --- words ------------------------------------------------------------------------------------------------------------

NEVER_TAKEN = "never received the message you wait for"
ASK = "[sm track] Report what you are doing: sm status TEXT, or sm done TEXT if the task is complete. Then continue."
ASK_AGAIN = "[sm track] You have not reported for {}. Now: sm status TEXT, or sm done TEXT if the task is complete."


def done(session: Session, parent: str, event: ev.TaskCompleted) -> QueueNotice:
    said = f": {quoted(event.text)}" if event.text else "."
    return QueueNotice(Notice(f"done-{session.id}-{event.at:.3f}", parent, f"[sm] {who(session)} is done{said}"))


def who(session: Session) -> str:
    return f"{one_line(session.name)} ({session.id})"


def state(session: Session) -> str:
    return session.shown_status.value + (f" ({why(session)})" if session.detail else "")


def why(session: Session) -> str:
    return one_line(session.detail, MAX_QUOTED_CHARS)


def _last_words(reminder: Reminder) -> str:
    return f" Last line: {quoted(reminder.text)}" if reminder.text else ""


def _last_report(due: DueReminder) -> str:
    report = due.target.report
    if report is None:
        return ""
    return f"\nIts last report, {_span(due.at - report.at)} ago: {quoted(report.text)}"


def _left_running(session: Session) -> str:
    if not session.background or session.ended:
        return ""
    names = ", ".join(task.description or task.kind for task in session.background)
    return f" Still running in the background: {quoted(names)}"


def _span(seconds: float) -> str:
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= 2 * size or (seconds >= size and seconds % size == 0):
            return f"{seconds / size:.0f}{unit}"
    return f"{max(0.0, seconds):.0f}s"
