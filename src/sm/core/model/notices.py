"""The words of reminders, waits, stop notifications and interruptions.

Which of the first three is said: `core/rules/due_reminders.py`.

What another agent has written is quoted, so that it can neither speak for `sm` nor for anyone else.
"""

from __future__ import annotations

from dataclasses import dataclass

from sm.core.model.reminder import Reminder
from sm.core.model.report import MAX_QUOTED_CHARS, one_line, quoted
from sm.core.model.session import Session

NEVER_TAKEN = "never received the message you wait for"


@dataclass(frozen=True, slots=True)
class DueReminder:
    """A reminder whose time has come, with what it may be decided by."""

    reminder: Reminder
    owner: Session
    target: Session
    at: float
    others: tuple[Reminder, ...] = ()
    """The other reminders about the same target."""


def started_again(scope: str) -> str:
    """Tell an agent in an unattended run that its work was interrupted."""
    return (
        f"{scope}\n[sm run] Your client ended in the middle of this work and was started again. What it was doing may "
        "be half done: look at git status and git log, then continue."
    )


# --- sm remind, sm track --------------------------------------------------------------------------------------------


def reminded(reminder: Reminder) -> str:
    return f"[sm remind] {reminder.text}"


def asked(reminder: Reminder) -> str:
    """Ask the target for a report; name the time if it has left earlier requests unanswered."""
    if not reminder.unanswered:
        return ASK
    return ASK_AGAIN.format(_span((reminder.unanswered + 1) * reminder.every))


ASK = "[sm track] Report what you are doing: sm status TEXT, or sm done TEXT if the task is complete. Then continue."
ASK_AGAIN = "[sm track] You have not reported for {}. Now: sm status TEXT, or sm done TEXT if the task is complete."


def unreported(due: DueReminder) -> str:
    silent = _span(2 * due.reminder.every)
    text = f"[sm track] {who(due.target)} has not reported for {silent}; it is {state(due.target)}."
    return text + _last_report(due)


# --- sm wait --------------------------------------------------------------------------------------------------------


def ended(due: DueReminder) -> str:
    return f"[sm wait] {who(due.target)} has ended: {why(due.target)}.{_last_report(due)}"


def became_idle(due: DueReminder) -> str:
    return f"[sm wait] {who(due.target)} is idle.{_last_words(due.reminder)}{_last_report(due)}"


def not_idle(due: DueReminder) -> str:
    waited = _span(due.at - due.reminder.created)
    text = f"[sm wait] {who(due.target)} is not idle after {waited}: {state(due.target)}."
    return text + _left_running(due.target) + _last_report(due)


def already_idle(target: Session) -> str:
    """Say of a wait that it was over before it began."""
    how = f"has ended already: {why(target)}" if target.ended else "is idle already"
    return f"[sm wait] {who(target)} {how}."


def checked(due: DueReminder) -> str:
    """Say what the target does, so long after it was given a message."""
    since = _span(due.reminder.every)
    text = f"[sm wait] {since} after your message {who(due.target)} is {state(due.target)}."
    return text + _left_running(due.target) + _last_report(due)


# --- stop notifications, and a task that is declared complete -------------------------------------------------------


def never_taken(target: Session) -> str:
    return f"[sm] {who(target)} {NEVER_TAKEN}; it is {state(target)}."


def waits_for_user(target: Session) -> str:
    return f"[sm] {who(target)} waits for the user: {why(target) or 'a dialog is open'}."


def stopped(due: DueReminder) -> str:
    target = due.target
    if target.ended:
        how = f"has ended: {why(target)}."
    elif target.detail:
        how = f"has stopped: {why(target)}."
    else:
        how = f"has finished its turn and is idle.{_last_words(due.reminder)}"
    return f"[sm] {who(target)} {how}{_left_running(target)}{_last_report(due)}"


def done(session: Session, text: str) -> str:
    said = f": {quoted(text)}" if text else "."
    return f"[sm] {who(session)} is done{said}"


# --- their parts ----------------------------------------------------------------------------------------------------


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
