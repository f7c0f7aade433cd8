"""The contexts a session has been through, and the documents it left, as the archive asks for them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from sm.core.effects import RecordContext
from sm.core.model.history import Context, Document

Row = TypeVar("Row")
RECORD = """
    INSERT INTO contexts (session, number, conversation, transcript, started, log_start)
    SELECT ?1, coalesce((SELECT number + (conversation <> ?2) FROM contexts WHERE session = ?1
        ORDER BY number DESC LIMIT 1), 1), ?2, ?3, ?4, ?5
    WHERE true ON CONFLICT (session, number) DO UPDATE SET transcript = coalesce(excluded.transcript, transcript)
"""
"""The newest context's own conversation is no other context: it only learns its transcript."""
CONTEXTS = "SELECT session, number, conversation, transcript, started, log_start FROM contexts ORDER BY number"
DOCUMENTS = "SELECT session, id, conversation, copy, created, state FROM handoffs ORDER BY created"


def record(connection: sqlite3.Connection, wanted: RecordContext, session: str) -> None:
    values = (session, wanted.conversation, wanted.transcript, wanted.started, wanted.log_start)
    connection.execute(RECORD, values)


def contexts(connection: sqlite3.Connection) -> dict[str, tuple[Context, ...]]:
    return _by_session(connection.execute(CONTEXTS), Context)


def documents(connection: sqlite3.Connection) -> dict[str, tuple[Document, ...]]:
    return _by_session(connection.execute(DOCUMENTS), Document)


def _by_session(rows: Iterable[Sequence[Any]], kind: Callable[..., Row]) -> dict[str, tuple[Row, ...]]:
    """Values made of the columns after the first one, which names the session."""
    found: dict[str, list[Row]] = {}
    for session, *values in rows:
        found.setdefault(session, []).append(kind(*values))
    return {session: tuple(values) for session, values in found.items()}
