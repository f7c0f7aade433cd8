"""Rows of the reminders table, one column for each field of the value, and of the notices made of them."""

from __future__ import annotations

import dataclasses

from sm.core.effects import DropReminder, QueueNotice, RecordReminder
from sm.core.model.reminder import Kind, Reminder

FIELDS = tuple(field.name for field in dataclasses.fields(Reminder))
_COLUMNS = ", ".join(FIELDS)
INSERT = f"INSERT INTO reminders ({_COLUMNS}) VALUES ({', '.join('?' * len(FIELDS))})"  # noqa: S608  # our own names
UPDATE = f"UPDATE reminders SET {', '.join(f'{name} = ?' for name in FIELDS)} WHERE id = ?"  # noqa: S608  # our own names
"""Changes no row that is gone: a reminder that was delivered in between does not come back."""
INSERT_NOTICE = "INSERT INTO notices (id, session, text) VALUES (?, ?, ?)"
SELECT_NOTICES = "SELECT id, session, text FROM notices ORDER BY rowid"
DELETE_NOTICE = "DELETE FROM notices WHERE id = ?"
DELETE = "DELETE FROM reminders WHERE id = ?"
SELECT_ALL = f"SELECT {_COLUMNS} FROM reminders ORDER BY created, id"  # noqa: S608  # our own names


def statement(record: RecordReminder | DropReminder | QueueNotice) -> tuple[str, tuple[object, ...]]:
    match record:
        case RecordReminder(reminder=reminder):
            return UPDATE, (*row(reminder), reminder.id)
        case DropReminder(reminder=identity):
            return DELETE, (identity,)
    notice = record.notice
    return INSERT_NOTICE, (notice.id, notice.session, notice.text)


def row(reminder: Reminder) -> tuple[object, ...]:
    return tuple(getattr(reminder, name) for name in FIELDS)


def value(columns: tuple[object, ...]) -> Reminder:
    fields = dict(zip(FIELDS, columns, strict=True))
    fields.update(kind=Kind(str(fields["kind"])), running=bool(fields["running"]))
    return Reminder(**fields)  # type: ignore[arg-type]  # STRICT columns of the fields' own types
