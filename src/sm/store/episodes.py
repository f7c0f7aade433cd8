"""Rows of the episodes table: what the user is notified of, until it is over."""

from __future__ import annotations

import dataclasses

from sm.core.effects import DropEpisode, EpisodeRecord, OpenEpisode
from sm.core.model.notification import Episode
from sm.core.model.notify_rules import NotificationKind

FIELDS = tuple(field.name for field in dataclasses.fields(Episode))
_COLUMNS = ", ".join(FIELDS)
INSERT = f"INSERT OR IGNORE INTO episodes ({_COLUMNS}) VALUES ({', '.join('?' * len(FIELDS))})"  # noqa: S608  # our own names
UPDATE = f"UPDATE episodes SET {', '.join(f'{name} = ?' for name in FIELDS)} WHERE id = ?"  # noqa: S608  # our own names
"""Changes no row that is gone: an episode that ended while it was sent does not come back."""
DELETE = "DELETE FROM episodes WHERE id = ?"
SELECT_ALL = f"SELECT {_COLUMNS} FROM episodes ORDER BY since, id"  # noqa: S608  # our own names
SEPARATOR = "\n"


def statement(record: EpisodeRecord) -> tuple[str, tuple[object, ...]]:
    if isinstance(record, DropEpisode):
        return DELETE, (record.episode,)
    values = row(record.episode)
    return (INSERT, values) if isinstance(record, OpenEpisode) else (UPDATE, (*values, record.episode.id))


def row(episode: Episode) -> tuple[object, ...]:
    values = {name: getattr(episode, name) for name in FIELDS}
    return tuple({**values, "kind": episode.kind.value, "pending": SEPARATOR.join(episode.pending)}.values())


def value(columns: tuple[object, ...]) -> Episode:
    fields = dict(zip(FIELDS, columns, strict=True))
    pending = tuple(name for name in str(fields["pending"]).split(SEPARATOR) if name)
    fields.update(kind=NotificationKind(str(fields["kind"])), sent=bool(fields["sent"]), pending=pending)
    return Episode(**fields)  # type: ignore[arg-type]  # STRICT columns of the fields' own types
