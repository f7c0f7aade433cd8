"""Sessions, their events, handoffs and messages in SQLite. Event and state go in one transaction."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar, assert_never

import msgspec

from sm.core.effects import (
    DropEpisode,
    DropReminder,
    EpisodeRecord,
    KeepMessage,
    OpenEpisode,
    QueueNotice,
    Record,
    RecordAsk,
    RecordContext,
    RecordEpisode,
    RecordHandoff,
    RecordMessage,
    RecordReminder,
    ReminderRecord,
)
from sm.core.errors import error
from sm.core.ids import PREFIX_RULE, is_prefix, name_taken_hint, token_hash, too_short
from sm.core.model.ask import StoredAsk
from sm.core.model.handoff import Handoff, HandoffState, StoredHandoff
from sm.core.model.history import Context, Document
from sm.core.model.notification import Episode
from sm.core.model.reminder import Notice, Reminder
from sm.core.model.session import Session
from sm.core.ports.store import EventCommit, LaunchRecord
from sm.store import asks, contexts, episodes, reminders
from sm.store import events as event_rows
from sm.store import handoffs as table
from sm.store.database import damaged
from sm.store.messages import FAIL_QUEUED, MessageTable, statement

T = TypeVar("T")


def _decoded(path: Path, text: object, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(str(text), type=kind)
    except ValueError as problem:  # msgspec's errors are ValueErrors
        raise damaged(path, f"a session's record cannot be read ({problem})") from problem


def any_alive(path: Path) -> bool:
    """Whether a session is alive in the database at `path`, which no process has open; True where it cannot be read."""
    if not path.exists():
        return False
    try:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            return connection.execute("SELECT 1 FROM sessions WHERE ended = 0").fetchone() is not None
    except (sqlite3.Error, UnicodeDecodeError):
        return True


class SqliteStore(MessageTable):
    __slots__ = ()

    async def add(self, session: Session, token: str, launch: LaunchRecord, taken: Handoff | None = None) -> None:
        now = self.clock.now()
        attempt = session.attempt or None
        row = (session.id, session.name, session.created, token_hash(token), _json(launch), _json(session), attempt)

        def insert(connection: sqlite3.Connection) -> None:
            connection.execute(
                "INSERT INTO sessions (id, name, created, token, launch, state, attempt) VALUES (?, ?, ?, ?, ?, ?, ?)",
                row,
            )
            if taken is not None:
                table.take(connection, taken, session, now)

        try:
            await self.database.run(insert)
        except sqlite3.IntegrityError as problem:
            if "sessions.attempt" in str(problem):
                raise error("attempt_taken", f"Another session has the attempt {attempt}", "sm list shows it") from None
            words, hint = f"A session named {session.name!r} is alive", name_taken_hint(session.name)
            raise error("name_taken", words, hint) from None

    async def renew(self, session: str, token: str, launch: LaunchRecord | None = None) -> None:
        """Store the new token of a session whose client is started again, and how, if that is new."""
        values = (token_hash(token), None if launch is None else _json(launch), session)

        def update(connection: sqlite3.Connection) -> None:
            connection.execute(
                "UPDATE sessions SET token = ?, launch = coalesce(?, launch), ended = 0 WHERE id = ?", values
            )

        try:
            await self.database.run(update)
        except sqlite3.IntegrityError:
            raise error("name_taken", "Another living session has this name", "rename that one first") from None

    async def exchange(self, session: str, token: str, launch: LaunchRecord) -> None:
        values = (token_hash(token), _json(launch), session)

        def update(connection: sqlite3.Connection) -> None:
            connection.execute("UPDATE sessions SET token = ?, launch = ? WHERE id = ?", values)

        await self.database.run(update)

    async def remove(self, session: str) -> None:
        """Forget an ended session, in one transaction; what waits for it is over."""
        now = self.clock.now()

        def update(connection: sqlite3.Connection) -> None:
            connection.execute("UPDATE sessions SET removed = ? WHERE id = ?", (now, session))
            connection.execute("DELETE FROM contexts WHERE session = ?", (session,))
            connection.execute("DELETE FROM reminders WHERE ? IN (owner, target)", (session,))
            connection.execute("DELETE FROM notices WHERE session = ?", (session,))
            connection.execute("DELETE FROM asks WHERE session = ?", (session,))
            connection.execute("DELETE FROM episodes WHERE session = ?", (session,))
            connection.execute(FAIL_QUEUED, (now, session))

        await self.database.run(update)

    async def commit(self, *events: EventCommit) -> list[int]:
        session = events[-1].session
        state = (_json(session), session.name, int(session.ended), session.id)
        rows = [event_rows.row(commit) for commit in events]
        now = self.clock.now()

        def write(connection: sqlite3.Connection) -> list[int]:
            connection.execute("UPDATE sessions SET state = ?, name = ?, ended = ? WHERE id = ?", state)
            for after, _, records, _ in events:
                for record in records:
                    _record(connection, record, after, now)
            return [connection.execute(event_rows.INSERT, row).lastrowid or 0 for row in rows]

        return await self.database.run_at_once(write)

    async def sessions(self) -> list[Session]:
        rows = await self.database.read(_select("SELECT state FROM sessions WHERE removed IS NULL ORDER BY created"))
        return [_decoded(self.database.path, row[0], Session) for row in rows]

    async def launches(self) -> dict[str, LaunchRecord]:
        rows = await self.database.read(_select("SELECT id, launch FROM sessions WHERE removed IS NULL"))
        return {str(row[0]): _decoded(self.database.path, row[1], LaunchRecord) for row in rows}

    async def tokens(self) -> dict[str, str]:
        """Session id by token hash."""
        rows = await self.database.read(_select("SELECT token, id FROM sessions WHERE removed IS NULL"))
        return {str(row[0]): str(row[1]) for row in rows}

    async def contexts(self) -> dict[str, tuple[Context, ...]]:
        return await self.database.read(contexts.contexts)

    async def documents(self) -> dict[str, tuple[Document, ...]]:
        return await self.database.read(contexts.documents)

    async def take(self, handoff: Handoff, session: Session) -> None:
        now = self.clock.now()
        await self.database.run(lambda connection: table.take(connection, handoff, session, now))

    async def handoff(self, handoff: str) -> StoredHandoff | None:
        return await self.database.read(lambda connection: table.find(connection, handoff))

    async def handoffs(self, channel: str | None, limit: int = 500) -> list[StoredHandoff]:
        return await self.database.read(lambda connection: table.listed(connection, channel, limit))

    async def waiting(self) -> list[StoredHandoff]:
        return await self.database.read(table.waiting)

    async def channels(self) -> list[str]:
        return await self.database.read(table.channels)

    async def close(self, ids: Sequence[str], state: HandoffState, reason: str) -> int:
        now = self.clock.now()
        return await self.database.run(lambda connection: table.close(connection, ids, state, reason, now))

    async def settle(self) -> None:
        now = self.clock.now()
        await self.database.run(lambda connection: table.settle(connection, now))

    async def ask(self, prefix: str) -> StoredAsk:
        """Return the one whose id begins so; SmError if there is none, or more than one."""
        begun = prefix.lower() if is_prefix(prefix) else ""
        found = await self.database.read(lambda connection: asks.beginning_with(connection, begun)) if begun else []
        if len(found) == 1:
            return found[0]
        if found:
            raise error("ambiguous", f"More than one ask begins with {prefix}", "give more of it; sm asks lists them")
        rule = f"{PREFIX_RULE}; " if too_short(prefix) else ""
        raise error("not_found", f"Ask {prefix} not found", f"{rule}sm asks lists them")

    async def asks(self, *, standing: bool) -> list[StoredAsk]:
        return await self.database.read(lambda connection: asks.listed(connection, standing=standing))

    async def add_reminder(self, reminder: Reminder) -> None:
        row = reminders.row(reminder)

        def insert(connection: sqlite3.Connection) -> None:
            connection.execute(reminders.INSERT, row)

        await self.database.run(insert)

    async def note(self, records: Sequence[ReminderRecord | EpisodeRecord]) -> None:
        """Write records that no event caused, in one transaction."""

        def write(connection: sqlite3.Connection) -> None:
            for record in records:
                _noted(connection, record)

        await self.database.run(write)

    async def reminders(self) -> list[Reminder]:
        return [reminders.value(row) for row in await self.database.read(_select(reminders.SELECT_ALL))]

    async def notices(self) -> list[Notice]:
        rows = await self.database.read(_select(reminders.SELECT_NOTICES))
        return [Notice(str(row[0]), str(row[1]), str(row[2])) for row in rows]

    async def forget_notice(self, notice: str) -> None:
        def delete(connection: sqlite3.Connection) -> None:
            connection.execute(reminders.DELETE_NOTICE, (notice,))

        await self.database.run(delete)

    async def episodes(self) -> list[Episode]:
        return [episodes.value(row) for row in await self.database.read(_select(episodes.SELECT_ALL))]

    async def events_after(self, number: int, limit: int = 1000) -> list[dict[str, object]]:
        return await self.database.read(lambda connection: event_rows.after(connection, number, limit))

    async def newest_event(self) -> int:
        """Return the highest number ever given, deleted events included; 0 before the first."""
        rows = await self.database.read(_select("SELECT seq FROM sqlite_sequence WHERE name = ?", ("events",)))
        return int(str(rows[0][0])) if rows else 0

    async def events_of(self, session: str, limit: int) -> list[dict[str, object]]:
        return await self.database.read(lambda connection: event_rows.newest(connection, session, limit))

    async def forget_old_events(self) -> None:
        oldest = self.clock.now() - event_rows.MAX_AGE_S

        def delete(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM events WHERE at < ?", (oldest,))
            asks.forget(connection, oldest)

        await self.database.run(delete)


def _record(connection: sqlite3.Connection, record: Record, session: Session, now: float) -> None:
    match record:
        case RecordHandoff():
            table.record(connection, record, session, now)
        case RecordAsk():
            asks.record(connection, record, session)
        case RecordContext():
            contexts.record(connection, record, session.id)
        case KeepMessage() | RecordMessage():
            connection.execute(*statement(record, now))
        case _:
            _noted(connection, record)


def _noted(connection: sqlite3.Connection, record: ReminderRecord | EpisodeRecord) -> None:
    match record:
        case RecordReminder() | DropReminder() | QueueNotice():
            connection.execute(*reminders.statement(record))
        case OpenEpisode() | RecordEpisode() | DropEpisode():
            connection.execute(*episodes.statement(record))
        case _:
            assert_never(record)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _select(query: str, values: Sequence[object] = ()) -> Callable[[sqlite3.Connection], list[tuple[object, ...]]]:
    return lambda connection: connection.execute(query, tuple(values)).fetchall()
