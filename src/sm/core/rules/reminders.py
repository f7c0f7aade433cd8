"""Reminders, waits and stop notifications: what an event means for them. `core/model/notices.py` has the words.

Idle is not done: a task has ended once the client is at its prompt with nothing of its own running in the background
and no rotation under way, and has stayed so for SETTLE seconds. A background shell may run for ever, as a server does:
it counts for the same time that a rotation waits for it, and is then named. Only the clock makes a reminder speak
(`due`); an event only moves `due`. So each of them speaks once, whatever happens at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from sm.core import events as ev
from sm.core.effects import DropReminder, Record, RecordMessage, RecordReminder, ReminderRecord
from sm.core.errors import Refused
from sm.core.model import notices
from sm.core.model.message import MessageState
from sm.core.model.notices import DIALOG_TIMEOUT_S, NEVER_TAKEN, STOP_SETTLE_S, at_rest, gone, idle
from sm.core.model.reminder import Kind, Reminder
from sm.core.model.report import one_line
from sm.core.model.session import Session, Status

MIN_DELAY_S = 1.0
MIN_PERIOD_S = 10.0
MAX_DELAY_S = 30 * 86_400.0
MAX_REMINDERS = 100
"""Reminders one session may have at a time."""
TAKEN = frozenset({MessageState.DELIVERED, MessageState.CONFIRMED})
LOST = frozenset({MessageState.UNCONFIRMED, MessageState.EXPIRED, MessageState.FAILED})


@dataclass(frozen=True, slots=True)
class Moment:
    """An event of a session, with the session before and after it."""

    before: Session
    after: Session
    event: ev.Event
    messages: Mapping[str, MessageState]
    """What the event tells of messages, by their id."""


def moment(before: Session, after: Session, event: ev.Event, records: Iterable[Record]) -> Moment:
    told = {record.message: record.state for record in records if isinstance(record, RecordMessage)}
    return Moment(before, after, event, told)


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


# --- what an event means ---------------------------------------------------------------------------------------------


def follow(reminders: Iterable[Reminder], now: Moment) -> tuple[ReminderRecord, ...]:
    """Return changes of the reminders about the event's session, and its parent's notice if its task is complete."""
    moved = (FOLLOW[reminder.kind](reminder, now) for reminder in reminders)
    return *_completed(now), *(record for record in moved if record is not None)


def _completed(now: Moment) -> tuple[ReminderRecord, ...]:
    """A task is declared complete once, however often the agent says so."""
    told = now.before.report is not None and now.before.report.done
    if not isinstance(now.event, ev.TaskCompleted) or told or now.after.parent is None:
        return ()
    return (notices.done(now.after, now.after.parent, now.event),)


def _changed(reminder: Reminder, **values: object) -> ReminderRecord | None:
    moved = replace(reminder, **values)  # type: ignore[arg-type]  # the fields' own types
    return None if moved == reminder else RecordReminder(moved)


def _follow_own(reminder: Reminder, now: Moment) -> ReminderRecord | None:
    """A complete task, or a context that is cleared for another one, needs no reminders of the old."""
    return DropReminder(reminder.id) if isinstance(now.event, ev.TaskCompleted | ev.ClearRequested) else None


def _follow_track(reminder: Reminder, now: Moment) -> ReminderRecord | None:
    if isinstance(now.event, ev.TaskCompleted) or now.after.ended:
        return DropReminder(reminder.id)
    if isinstance(now.event, ev.StatusReported):
        return _changed(reminder, due=now.event.at + reminder.every, unanswered=0)
    return None


def _follow_wait(reminder: Reminder, now: Moment) -> ReminderRecord | None:
    given = MessageState.DELIVERED in now.messages.values()  # at a Stop the next message may ride on the reply
    if given or not (idle(now.after) or gone(now.after)):
        return _changed(reminder, due=reminder.deadline)
    if isinstance(now.event, ev.TurnEnded | ev.TurnFailed) or reminder.due == reminder.deadline:
        return _changed(reminder, due=_settled(reminder, now), text=_words(reminder, now))
    return None


def _settled(reminder: Reminder, now: Moment) -> float:
    soon = now.event.at + (0.0 if now.after.ended else STOP_SETTLE_S)
    return soon if reminder.deadline is None else min(soon, reminder.deadline)


def _follow_check(reminder: Reminder, now: Moment) -> ReminderRecord | None:
    state = now.messages.get(reminder.message)
    if state in LOST or now.after.ended:
        return DropReminder(reminder.id)  # its sender can see the state of the message
    begins = state in TAKEN and reminder.due is None
    return _changed(reminder, due=now.event.at + reminder.every) if begins else None


def _follow_stop(reminder: Reminder, now: Moment) -> ReminderRecord | None:
    if _known_already(reminder, now):
        return DropReminder(reminder.id)
    if gone(now.after):
        return _changed(reminder, running=True, due=reminder.due or now.event.at + STOP_SETTLE_S)
    if now.after.status is Status.WAITING:
        asked = now.before.status is not Status.WAITING
        return _changed(reminder, due=now.event.at + DIALOG_TIMEOUT_S) if asked else None
    return _follow_running(reminder, now) if reminder.running else _follow_unbegun(reminder, now)


def _follow_running(reminder: Reminder, now: Moment) -> ReminderRecord | None:
    if now.messages.get(reminder.message) is MessageState.QUEUED:
        return _changed(reminder, running=False, due=None)  # what a hook's reply carried was lost
    if not at_rest(now.after):
        return _changed(reminder, due=None)
    if isinstance(now.event, ev.TurnEnded | ev.TurnFailed) or reminder.due is None:
        return _changed(reminder, due=now.event.at + _patience(now.after), text=_words(reminder, now))
    return None


def _known_already(reminder: Reminder, now: Moment) -> bool:
    """The owner ended the session or cancelled the message, or the agent tells it that the task is complete."""
    if isinstance(now.event, ev.SessionKilled):
        return now.event.by == reminder.owner
    if isinstance(now.event, ev.MessageCancelled):
        return now.event.by == reminder.owner and now.event.id == reminder.message
    return isinstance(now.event, ev.TaskCompleted) and reminder.owner == now.after.parent


def _follow_unbegun(reminder: Reminder, now: Moment) -> ReminderRecord | None:
    state = now.messages.get(reminder.message)
    if state in LOST:
        return _changed(reminder, due=now.event.at, text=NEVER_TAKEN)
    begun = state in TAKEN if reminder.message else isinstance(now.event, ev.PromptSubmitted)
    return _changed(reminder, running=begun, due=None)


def _patience(session: Session) -> float:
    return session.policy.wait_background if session.background else STOP_SETTLE_S


def _words(reminder: Reminder, now: Moment) -> str:
    return one_line(now.event.text) if isinstance(now.event, ev.TurnEnded) else reminder.text


Follow = Callable[[Reminder, Moment], ReminderRecord | None]
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
