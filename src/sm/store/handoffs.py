"""The handoffs' rows: which session holds which. A change is one statement, so that only one session gets a document.

A session's record changes a row only while no other session holds it. A session has one open handoff in a channel: an
older one that no session holds is cleared.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from shlex import quote

from sm.core.effects import RecordHandoff
from sm.core.errors import SmError, error
from sm.core.ids import as_argument
from sm.core.model.handoff import OPEN, Handoff, HandoffState, HandoffType, StoredHandoff
from sm.core.model.session import Session

COLUMNS = (
    "id, path, copy, conversation, channel, directory, created, type, session,"
    " branch, state, changed, reason, holder, counted, created_pid, consumed, consumed_pid"
)
INSERT_OR_UPDATE = """
    INSERT INTO handoffs (id, path, copy, conversation, channel, directory, created, type, session,
        branch, state, changed, reason, holder, counted, created_pid, consumed, consumed_pid)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET state = excluded.state, changed = excluded.changed, reason = excluded.reason,
        holder = excluded.holder, consumed = excluded.consumed, consumed_pid = excluded.consumed_pid
    WHERE holder IN ('', ?)
"""
CLEAR_REPLACED = """
    UPDATE handoffs SET state = 'cleared', holder = '', changed = ?, reason = 'replaced by a newer one'
    WHERE session = ? AND channel = ? AND state IN ('pending', 'active') AND holder IN ('', session)
        AND EXISTS (SELECT 1 FROM handoffs AS other WHERE other.session = handoffs.session
            AND other.channel = handoffs.channel AND other.state IN ('pending', 'active')
            AND (other.created, other.id) > (handoffs.created, handoffs.id))
"""
TAKE = """
    UPDATE handoffs SET state = 'active', holder = ?, changed = ?, reason = ''
    WHERE id = ? AND holder IN ('', ?) AND state IN ('pending', 'active', 'failed', 'expired')
"""
RELEASE_ENDED = """
    UPDATE handoffs SET holder = '' WHERE state = 'active' AND holder IN (SELECT id FROM sessions WHERE ended = 1)
"""
CLOSE = "UPDATE handoffs SET state = ?, changed = ?, reason = ? WHERE id = ? AND state = 'active' AND holder = ''"


def record(connection: sqlite3.Connection, wanted: RecordHandoff, session: Session, now: float) -> None:
    """Write what `session` records of a handoff; nothing if another session holds it."""
    handoff, state = wanted.handoff, wanted.state
    consumed = state is HandoffState.CONSUMED
    owner = handoff.session or session.id
    values = (
        handoff.id, handoff.path, handoff.copy, handoff.conversation, handoff.channel, handoff.directory,
        handoff.created, handoff.type.value, owner, handoff.branch, state.value, now, wanted.reason or handoff.reason,
        session.id if wanted.held else "", handoff.created, session.pid, now if consumed else None,
        session.pid if consumed else None, session.id,
    )  # fmt: skip
    connection.execute(INSERT_OR_UPDATE, values)
    if state in OPEN:
        connection.execute(CLEAR_REPLACED, (now, owner, handoff.channel))


def take(connection: sqlite3.Connection, handoff: Handoff, session: Session, now: float) -> None:
    """Give a session a handoff that no other holds, a new one included; SmError if it is not available."""
    if find(connection, handoff.id) is None:
        record(connection, RecordHandoff(handoff, HandoffState.ACTIVE), session, now)
    elif connection.execute(TAKE, (session.id, now, handoff.id, session.id)).rowcount == 0:
        raise _not_available(connection, handoff.id)


def _not_available(connection: sqlite3.Connection, handoff: str) -> SmError:
    found = find(connection, handoff)
    if found is None or not found.holder:
        state = "gone" if found is None else found.state.value
        return error("handoff_closed", f"Handoff {handoff} is {state}", "sm handoffs lists the open ones")
    query = "SELECT name FROM sessions WHERE id = ?"
    name = (connection.execute(query, (found.holder,)).fetchone() or (found.holder,))[0]
    had = "was picked up" if found.state is HandoffState.CONSUMED else "is being picked up"
    message = f"Handoff {handoff} {had} by session {name} ({found.holder})"
    hint = (
        f"sm attach {as_argument(name, found.holder)}, or `sm resume {quote(found.handoff.copy)}` for another session"
    )
    return error("handoff_taken", message, hint)


def close(connection: sqlite3.Connection, ids: Iterable[str], state: HandoffState, reason: str, now: float) -> int:
    """End handoffs that no session holds; return how many."""
    return sum(connection.execute(CLOSE, (state.value, now, reason, handoff)).rowcount for handoff in ids)


def settle(connection: sqlite3.Connection, now: float) -> None:
    """Release the handoffs of sessions that have ended; where the clock was set back, ages count from now."""
    connection.execute(RELEASE_ENDED)
    connection.execute("UPDATE handoffs SET counted = ? WHERE counted > ?", (now, now))


def find(connection: sqlite3.Connection, handoff: str) -> StoredHandoff | None:
    row = connection.execute(f"SELECT {COLUMNS} FROM handoffs WHERE id = ?", (handoff,)).fetchone()  # noqa: S608
    return None if row is None else _entry(row)


def listed(connection: sqlite3.Connection, channel: str | None, limit: int) -> list[StoredHandoff]:
    """Return the newest first, of every channel or of one."""
    query = (
        f"SELECT {COLUMNS} FROM handoffs WHERE :channel IS NULL OR channel = :channel"  # noqa: S608  # our own columns
        " ORDER BY created DESC, id DESC LIMIT :limit"
    )
    return [_entry(row) for row in connection.execute(query, {"channel": channel, "limit": limit})]


def waiting(connection: sqlite3.Connection) -> list[StoredHandoff]:
    query = f"SELECT {COLUMNS} FROM handoffs WHERE state = 'active' AND holder = '' ORDER BY created DESC, id DESC"  # noqa: S608
    return [_entry(row) for row in connection.execute(query)]


def channels(connection: sqlite3.Connection) -> list[str]:
    return [str(row[0]) for row in connection.execute("SELECT DISTINCT channel FROM handoffs")]


def _entry(row: tuple[object, ...]) -> StoredHandoff:
    names = ("id", "path", "copy", "conversation", "channel", "directory", "created")
    fields = dict(zip(names, row[:7], strict=True))
    handoff = Handoff(**fields, type=HandoffType(row[7]), session=row[8], branch=row[9])  # type: ignore[arg-type]  # by the schema
    state, rest = HandoffState(str(row[10])), row[11:]
    return StoredHandoff(handoff, state, *rest)  # type: ignore[arg-type]  # by the schema
