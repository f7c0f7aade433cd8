"""What is said once a reminder, a wait or a stop notification is due. `core/model/notices.py` has the words."""

from __future__ import annotations

from collections.abc import Callable

from sm.core.effects import DropReminder, QueueNotice, RecordReminder, ReminderRecord
from sm.core.model import notices
from sm.core.model.notices import NEVER_TAKEN, DueReminder
from sm.core.model.reminder import Kind, Notice, Reminder
from sm.core.model.session import Session, Status
from sm.core.rules.reminders import REPORT_WINDOW_S, STOP_SETTLE_S, at_rest, gone, idle
from sm.core.values import replace


def fire(due: DueReminder) -> tuple[ReminderRecord, ...]:
    """Return what is said, and the reminder after that, to be written in one transaction."""
    return FIRE[due.reminder.kind](due)


def _notice(due: DueReminder, session: str, text: str) -> QueueNotice:
    return QueueNotice(Notice(f"{due.reminder.id}-{due.at:.3f}", session, text))


def _fire_once(due: DueReminder) -> tuple[ReminderRecord, ...]:
    return DropReminder(due.reminder.id), _notice(due, due.reminder.owner, notices.reminded(due.reminder))


def _fire_every(due: DueReminder) -> tuple[ReminderRecord, ...]:
    """One for all that were missed, and none while the one before still waits for the agent."""
    reminder = replace(due.reminder, due=_next(due))
    if _still_queued(due.owner, reminder.message):
        return (RecordReminder(reminder),)
    said = _notice(due, reminder.owner, notices.reminded(reminder))
    return RecordReminder(replace(reminder, message=said.notice.id)), said


def _next(due: DueReminder) -> float:
    """Return the next time in the rhythm the reminder has had from the start, which lies ahead."""
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
    said = _notice(due, reminder.target, notices.asked(reminder))
    return RecordReminder(replace(asked, message=said.notice.id)), said, *_complaint(due)


def _complaint(due: DueReminder) -> tuple[ReminderRecord, ...]:
    """Tell the owner once, when the target has left a second request to report unanswered."""
    if due.reminder.unanswered != 1:
        return ()
    identity = f"{due.reminder.id}-{due.at:.3f}-o"
    return (QueueNotice(Notice(identity, due.reminder.owner, notices.unreported(due))),)


def _fire_wait(due: DueReminder) -> tuple[ReminderRecord, ...]:
    reminder, target = due.reminder, due.target
    if target.ended:
        text = notices.ended(due)
    elif idle(target):
        text = notices.became_idle(due)
    elif gone(target) or (reminder.deadline is not None and due.at >= reminder.deadline):
        text = notices.not_idle(due)
    else:
        return (RecordReminder(replace(reminder, due=reminder.deadline)),)
    return DropReminder(reminder.id), _notice(due, reminder.owner, text)


def already_over(reminder: Reminder, target: Session) -> QueueNotice | None:
    """Return what is said of a wait that is over before it begins; None if the target still works."""
    over = target.ended or idle(target)
    return QueueNotice(Notice(reminder.id, reminder.owner, notices.already_idle(target))) if over else None


def _fire_stop(due: DueReminder) -> tuple[ReminderRecord, ...]:
    reminder, target = due.reminder, due.target
    if reminder.text == NEVER_TAKEN and not reminder.running:
        return DropReminder(reminder.id), _notice(due, reminder.owner, notices.never_taken(target))
    if target.status is Status.WAITING:
        said = _notice(due, reminder.owner, notices.waits_for_user(target))
        return RecordReminder(replace(reminder, due=None)), said
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
    return *drops, _notice(due, reminder.owner, notices.stopped(due))


def _fire_check(due: DueReminder) -> tuple[ReminderRecord, ...]:
    return DropReminder(due.reminder.id), _notice(due, due.reminder.owner, notices.checked(due))


Fire = Callable[[DueReminder], tuple[ReminderRecord, ...]]
FIRE: dict[Kind, Fire] = {
    Kind.ONCE: _fire_once,
    Kind.EVERY: _fire_every,
    Kind.TRACK: _fire_track,
    Kind.WAIT: _fire_wait,
    Kind.STOP: _fire_stop,
    Kind.CHECK: _fire_check,
}
