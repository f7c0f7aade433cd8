"""Reminders, waits and stop notifications: what an event means for them, and when each of them is due.

What is said then: `core/rules/due_reminders.py`.

Idle is not done: a task has ended once the client is at its prompt with nothing of its own running in the background
and no rotation under way, and has stayed so for STOP_SETTLE_S. A background shell may run for ever, as a server does:
it counts for the same time that a rotation waits for it, and is then named. Only the clock makes a reminder speak
(`due`); an event only moves `due`. So each of them speaks once, whatever happens at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from sm.core import events as ev
from sm.core.effects import DropReminder, QueueNotice, Record, RecordMessage, RecordReminder, ReminderRecord
from sm.core.errors import Refused
from sm.core.model import notices
from sm.core.model.message import MessageState
from sm.core.model.notices import NEVER_TAKEN
from sm.core.model.reminder import Kind, Notice, Reminder
from sm.core.model.report import one_line
from sm.core.model.session import Session, Status
from sm.core.values import replace

MIN_DELAY_S = 1.0
MIN_PERIOD_S = 10.0
MAX_DELAY_S = 30 * 86_400.0
MAX_REMINDERS = 100
"""Reminders one session may have at a time."""
STOP_SETTLE_S = 1.0
"""Seconds of rest after which a Stop was one: a foreign hook, or a background task that ends, continues at once."""
DIALOG_TIMEOUT_S = 20.0
"""Seconds a dialog of the client may be open before a watcher reads that it waits for the user."""
REPORT_WINDOW_S = 30.0
"""Seconds within which an agent's own word to the watcher makes the notice of its stop needless."""
SHELL = "shell"
TAKEN = frozenset({MessageState.DELIVERED, MessageState.CONFIRMED})
LOST = frozenset({MessageState.UNCONFIRMED, MessageState.EXPIRED, MessageState.FAILED})


@dataclass(frozen=True, slots=True)
class SessionChange:
    """An event of a session, with the session before and after it."""

    before: Session
    after: Session
    event: ev.Event
    messages: Mapping[str, MessageState]
    """What the event tells of messages, by their id."""


def session_change(before: Session, after: Session, event: ev.Event, records: Iterable[Record]) -> SessionChange:
    messages = {record.message: record.state for record in records if isinstance(record, RecordMessage)}
    return SessionChange(before, after, event, messages)


def check(delay: float | None, *, every: bool, owned: int, more: int = 1) -> Refused | None:
    """Why a reminder of `delay` seconds is refused to a session that has `owned` of them and wants so many `more`."""
    if owned + more > MAX_REMINDERS:
        return Refused(
            "too_many", f"A session has at most {MAX_REMINDERS} reminders", "sm remind list; sm remind cancel ID"
        )
    shortest = MIN_PERIOD_S if every else MIN_DELAY_S
    if delay is not None and not shortest <= delay <= MAX_DELAY_S:
        return Refused(
            "bad_delay",
            f"Invalid delay {delay:g} s: must be {shortest:g} seconds to 30 days",
            "Use 90, 90s, 5m, 2h or 1d",
        )
    return None


# --- the state of a session ------------------------------------------------------------------------------------------


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


def has_nothing_ahead(session: Session) -> bool:
    """True if it is at rest, and no message, limit or document will make it work again."""
    waits = session.limit is not None or session.wants_context
    return at_rest(session) and not (waits or session.outbox.waiting or session.outbox.handed)


# --- what an event means ---------------------------------------------------------------------------------------------


def follow(reminders: Iterable[Reminder], change: SessionChange) -> tuple[ReminderRecord, ...]:
    """Return changes of the reminders about the event's session, and its parent's notice if its task is complete."""
    moved = (FOLLOW[reminder.kind](reminder, change) for reminder in reminders)
    return *_completed(change), *(record for record in moved if record is not None)


def _completed(change: SessionChange) -> tuple[ReminderRecord, ...]:
    """A task is declared complete once, however often the agent says so."""
    declared = change.before.report is not None and change.before.report.done
    if not isinstance(change.event, ev.TaskCompleted) or declared or change.after.parent is None:
        return ()
    identity = f"done-{change.after.id}-{change.event.at:.3f}"
    said = notices.done(change.after, change.event.text)
    return (QueueNotice(Notice(identity, change.after.parent, said)),)


def _changed(reminder: Reminder, **values: object) -> ReminderRecord | None:
    moved = replace(reminder, **values)  # type: ignore[arg-type]  # the fields' own types
    return None if moved == reminder else RecordReminder(moved)


def _follow_own(reminder: Reminder, change: SessionChange) -> ReminderRecord | None:
    """A complete task, or a context that is cleared for another one, needs no reminders of the old."""
    return DropReminder(reminder.id) if isinstance(change.event, ev.TaskCompleted | ev.ClearRequested) else None


def _follow_track(reminder: Reminder, change: SessionChange) -> ReminderRecord | None:
    if isinstance(change.event, ev.TaskCompleted) or change.after.ended:
        return DropReminder(reminder.id)
    if isinstance(change.event, ev.StatusReported):
        return _changed(reminder, due=change.event.at + reminder.every, unanswered=0)
    return None


def _follow_wait(reminder: Reminder, change: SessionChange) -> ReminderRecord | None:
    given = MessageState.DELIVERED in change.messages.values()  # at a Stop the next message may ride on the reply
    if given or not (idle(change.after) or gone(change.after)):
        return _changed(reminder, due=reminder.deadline)
    if isinstance(change.event, ev.TurnEnded | ev.TurnFailed) or reminder.due == reminder.deadline:
        return _changed(reminder, due=_settled(reminder, change), text=_words(reminder, change))
    return None


def _settled(reminder: Reminder, change: SessionChange) -> float:
    soon = change.event.at + (0.0 if change.after.ended else STOP_SETTLE_S)
    return soon if reminder.deadline is None else min(soon, reminder.deadline)


def _follow_check(reminder: Reminder, change: SessionChange) -> ReminderRecord | None:
    state = change.messages.get(reminder.message)
    if state in LOST or change.after.ended:
        return DropReminder(reminder.id)  # its sender can see the state of the message
    begins = state in TAKEN and reminder.due is None
    return _changed(reminder, due=change.event.at + reminder.every) if begins else None


def _follow_stop(reminder: Reminder, change: SessionChange) -> ReminderRecord | None:
    if _known_already(reminder, change):
        return DropReminder(reminder.id)
    if gone(change.after):
        return _changed(reminder, running=True, due=reminder.due or change.event.at + STOP_SETTLE_S)
    if change.after.status is Status.WAITING:
        asked = change.before.status is not Status.WAITING
        return _changed(reminder, due=change.event.at + DIALOG_TIMEOUT_S) if asked else None
    return _follow_running(reminder, change) if reminder.running else _follow_unbegun(reminder, change)


def _follow_running(reminder: Reminder, change: SessionChange) -> ReminderRecord | None:
    if change.messages.get(reminder.message) is MessageState.QUEUED:
        return _changed(reminder, running=False, due=None)  # what a hook's reply carried was lost
    if not at_rest(change.after):
        return _changed(reminder, due=None)
    if isinstance(change.event, ev.TurnEnded | ev.TurnFailed) or reminder.due is None:
        return _changed(reminder, due=change.event.at + _patience(change.after), text=_words(reminder, change))
    return None


def _known_already(reminder: Reminder, change: SessionChange) -> bool:
    """The owner ended the session or cancelled the message, or the agent tells it that the task is complete."""
    if isinstance(change.event, ev.SessionKilled):
        return change.event.by == reminder.owner
    if isinstance(change.event, ev.MessageCancelled):
        return change.event.by == reminder.owner and change.event.id == reminder.message
    return isinstance(change.event, ev.TaskCompleted) and reminder.owner == change.after.parent


def _follow_unbegun(reminder: Reminder, change: SessionChange) -> ReminderRecord | None:
    state = change.messages.get(reminder.message)
    if state in LOST:
        return _changed(reminder, due=change.event.at, text=NEVER_TAKEN)
    begun = state in TAKEN if reminder.message else isinstance(change.event, ev.PromptSubmitted)
    return _changed(reminder, running=begun, due=None)


def _patience(session: Session) -> float:
    return session.policy.wait_background if session.background else STOP_SETTLE_S


def _words(reminder: Reminder, change: SessionChange) -> str:
    return one_line(change.event.text) if isinstance(change.event, ev.TurnEnded) else reminder.text


Follow = Callable[[Reminder, SessionChange], ReminderRecord | None]
FOLLOW: dict[Kind, Follow] = {
    Kind.ONCE: _follow_own,
    Kind.EVERY: _follow_own,
    Kind.TRACK: _follow_track,
    Kind.WAIT: _follow_wait,
    Kind.STOP: _follow_stop,
    Kind.CHECK: _follow_check,
}


def reported(reminders: Iterable[Reminder], owner: str, at: float) -> tuple[ReminderRecord, ...]:
    """The target of these has told `owner` something itself."""
    stops = (reminder for reminder in reminders if reminder.kind is Kind.STOP and reminder.running)
    return tuple(RecordReminder(replace(reminder, reported=at)) for reminder in stops if reminder.owner == owner)
