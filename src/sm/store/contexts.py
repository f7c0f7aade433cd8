"""Contexts of each session, and its handoff documents, for the archive."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

from sm.core.effects import RecordContext
from sm.core.model.history import Context, Document

T = TypeVar("T")
INSERT_OR_UPDATE = """
    INSERT INTO contexts (session, number, conversation, transcript, started, log_start, provider)
    SELECT :session, coalesce((SELECT number + (conversation <> :conversation) FROM contexts WHERE session = :session
        ORDER BY number DESC LIMIT 1), 1), :conversation, :transcript, :started, :log_start,
        :provider
    WHERE true ON CONFLICT (session, number) DO UPDATE SET transcript = coalesce(excluded.transcript, transcript)
"""
"""A conversation that is the newest context's own adds no context: only its transcript is filled in."""
SELECT_CONTEXTS = """
    SELECT session, number, conversation, transcript, started, log_start, provider FROM contexts ORDER BY number
"""
SELECT_OF_SESSION = """
    SELECT number, conversation, transcript, started, log_start, provider FROM contexts
    WHERE session = ? ORDER BY number
"""
SELECT_DOCUMENTS = "SELECT session, id, conversation, copy, created, state FROM handoffs ORDER BY created"


def record(connection: sqlite3.Connection, wanted: RecordContext, session: str) -> None:
    connection.execute(INSERT_OR_UPDATE, {**asdict(wanted), "session": session})


def contexts(connection: sqlite3.Connection) -> dict[str, tuple[Context, ...]]:
    return _by_session(connection.execute(SELECT_CONTEXTS), Context)


def of_session(connection: sqlite3.Connection, session: str) -> tuple[Context, ...]:
    return tuple(Context(*row) for row in connection.execute(SELECT_OF_SESSION, (session,)))


def documents_of(connection: sqlite3.Connection, session: str) -> tuple[Document, ...]:
    query = "SELECT id, conversation, copy, created, state FROM handoffs WHERE session = ? ORDER BY created"
    return tuple(Document(*row) for row in connection.execute(query, (session,)))


def documents(connection: sqlite3.Connection) -> dict[str, tuple[Document, ...]]:
    return _by_session(connection.execute(SELECT_DOCUMENTS), Document)


def _by_session(rows: Iterable[Sequence[Any]], kind: Callable[..., T]) -> dict[str, tuple[T, ...]]:
    """Group rows by their first column, the session; make a value of the other columns."""
    found: dict[str, list[T]] = {}
    for session, *values in rows:
        found.setdefault(session, []).append(kind(*values))
    return {session: tuple(values) for session, values in found.items()}
