"""The events' rows: without what was said, and with the phase that a rotation has entered with one."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import msgspec

from sm.core.events import Event
from sm.core.model.rotation import PhaseEntered, phase_entered
from sm.core.ports.store import EventCommit

INSERT = "INSERT INTO events (session, at, kind, data, phase, handoff) VALUES (?, ?, ?, ?, ?, ?)"
BODIES = ("text", "message", "messages", "policy", "request", "answers")
SIZES = {name: f"{name}_size" for name in BODIES} | {"stored": "letter_size"}
"""Event fields that hold what was said or configured, with the names under which only their size is stored."""
MAX_AGE_S = 30 * 86_400.0


def event_data(event: Event) -> str:
    fields = {name: getattr(event, name) for name in event.__dataclass_fields__}
    kept = {name: value for name, value in fields.items() if name not in SIZES and name != "at"}
    kept.update({SIZES[name]: len(str(value)) for name, value in fields.items() if name in SIZES})
    return msgspec.json.encode(kept).decode()


def row(commit: EventCommit) -> tuple[object, ...]:
    session, event, _, before = commit
    entered = None if before is None else phase_entered(before.rotation, session.rotation)
    return session.id, event.at, type(event).__name__, event_data(event), *(entered or (None, None))


def after(connection: sqlite3.Connection, number: int, limit: int) -> list[dict[str, object]]:
    query = "SELECT number, session, at, kind, data FROM events WHERE number > ? ORDER BY number LIMIT ?"
    return _named(("number", "session", "at", "kind", "data"), connection.execute(query, (number, limit)).fetchall())


def newest(connection: sqlite3.Connection, session: str, limit: int) -> list[dict[str, object]]:
    """Return the newest events of a session, oldest first."""
    query = "SELECT number, at, kind, data FROM events WHERE session = ? ORDER BY number DESC LIMIT ?"
    return _named(("number", "at", "kind", "data"), connection.execute(query, (session, limit)).fetchall()[::-1])


def of_kinds(
    connection: sqlite3.Connection, session: str, kinds: Sequence[str], after: int, limit: int
) -> list[tuple[int, float, str, str]]:
    """Return number, time, kind and data of the first events of these kinds after one, oldest first."""
    marks = ", ".join("?" * len(kinds))
    query = f"SELECT number, at, kind, data FROM events WHERE session = ? AND number > ? AND kind IN ({marks})"  # noqa: S608  # marks
    return connection.execute(f"{query} ORDER BY number LIMIT ?", (session, after, *kinds, limit)).fetchall()


def phases(connection: sqlite3.Connection, session: str, limit: int) -> tuple[PhaseEntered, ...]:
    """Return the phases that a session's rotations have entered last, oldest first."""
    query = (
        "SELECT at, kind, phase, handoff FROM events WHERE session = ? AND phase IS NOT NULL"
        " ORDER BY number DESC LIMIT ?"
    )
    return tuple(PhaseEntered(*found) for found in connection.execute(query, (session, limit)).fetchall()[::-1])


def _named(names: Sequence[str], rows: Sequence[Sequence[object]]) -> list[dict[str, object]]:
    return [dict(zip(names, found, strict=True)) for found in rows]
