"""Rows of the asks table: what clients ask their users, without secrets, and how it ended."""

from __future__ import annotations

import sqlite3

import msgspec

from sm.core.effects import RecordAsk
from sm.core.model.ask import Ask, AskKind, AskRequest, AskState, Decision, StoredAsk
from sm.core.model.session import Session

COLUMNS = (
    "id, kind, tool, asked, agent, state, changed, reason, decision, always, by, answer, answers, session, input,"
    " suggestions"
)
OPEN = f"INSERT OR IGNORE INTO asks ({COLUMNS}) VALUES ({', '.join('?' * 16)})"  # noqa: S608  # our own names
CHANGE = (
    "UPDATE asks SET state = ?, changed = ?, reason = ?, decision = ?, always = ?, by = ?, answer = ?, answers = ?"
    " WHERE id = ?"
)
STANDING = "state IN ('open', 'expired')"
LIKE = str.maketrans({character: f"\\{character}" for character in "\\%_"})
MAX_SHOWN = 1_000


def record(connection: sqlite3.Connection, wanted: RecordAsk, session: Session) -> None:
    ask, request = wanted.ask, wanted.request
    decision = None if ask.decision is None else ask.decision.value
    ended = (ask.state.value, ask.changed, ask.reason, decision, int(ask.always), ask.by)
    changes = (*ended, wanted.answer, msgspec.json.encode(wanted.answers).decode())
    if request is None:
        connection.execute(CHANGE, (*changes, ask.id))
        return
    head = (ask.id, ask.kind.value, ask.tool, ask.asked, ask.agent)
    connection.execute(OPEN, (*head, *changes, session.id, request.input, request.suggestions))
    connection.execute(f"{CHANGE} AND state != 'withdrawn'", (*changes, ask.id))  # one that is asked again


def beginning_with(connection: sqlite3.Connection, prefix: str) -> list[StoredAsk]:
    """Return up to two of them: one is what is meant."""
    query = f"SELECT {COLUMNS} FROM asks WHERE id LIKE ? ESCAPE '\\' ORDER BY id LIMIT 2"  # noqa: S608  # our own names
    return [_value(row) for row in connection.execute(query, (f"{prefix.translate(LIKE)}%",))]


def listed(connection: sqlite3.Connection, *, standing: bool) -> list[StoredAsk]:
    """Return the oldest first; those for which a dialog may be open, or the newest of all."""
    where = STANDING if standing else "1"
    query = f"SELECT {COLUMNS} FROM asks WHERE {where} ORDER BY asked DESC LIMIT ?"  # noqa: S608  # our own names
    return [_value(row) for row in connection.execute(query, (MAX_SHOWN,))][::-1]


def forget(connection: sqlite3.Connection, before: float) -> None:
    connection.execute("DELETE FROM asks WHERE asked < ? AND state NOT IN ('open', 'expired')", (before,))


def _value(row: tuple[object, ...]) -> StoredAsk:
    identity, kind, tool, asked, agent, state, changed, reason, decision, always, by, *texts = row
    ask = Ask(
        id=str(identity),
        kind=AskKind(str(kind)),
        tool=str(tool),
        asked=float(str(asked)),
        agent=str(agent),
        state=AskState(str(state)),
        changed=float(str(changed)),
        reason=str(reason),
        decision=None if decision is None else Decision(str(decision)),
        always=bool(always),
        by=str(by),
    )
    answer, answers, session, given, suggestions = map(str, texts)
    request = AskRequest(ask.kind, ask.tool, given, suggestions, ask.agent)
    return StoredAsk(ask, session, request, answer, msgspec.json.decode(answers, type=tuple[str, ...]))
