"""Messages in SQLite: the text of each, what waits for whom, and its state.

A message is kept, and each change of its state recorded, in the transaction of the event that brought it: see
`statement`. Everything else here reads, except for `expire_messages`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from sm.core.effects import KeepMessage, RecordMessage
from sm.core.model.message import MessageState, Mode, StoredMessage
from sm.core.model.message_queue import Refill
from sm.core.ports.clock import Clock
from sm.store.database import Database

Parameters = tuple[object, ...] | dict[str, object]
KEEP = (
    "INSERT INTO messages (id, target, sender, body, queued, state, changed, number, frame, mode, command, expires,"
    " notify_on_stop, wait) VALUES (?, ?, ?, ?, ?, 'queued', ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING"
)
RECORD = (
    "UPDATE messages SET state = :state, changed = :now, reason = :reason, channel = coalesce(:channel, channel),"
    " delivered = CASE :state WHEN 'queued' THEN NULL WHEN 'delivered' THEN :now"
    "  WHEN 'confirmed' THEN coalesce(delivered, :now) ELSE delivered END,"
    " confirmed = CASE :state WHEN 'confirmed' THEN :now ELSE confirmed END WHERE id = :id"
)
FAIL_QUEUED = (
    "UPDATE messages SET state = 'failed', changed = ?, reason = 'the session was removed'"
    " WHERE target = ? AND state = 'queued'"
)
STORED = "id, target, sender, frame, body, number, mode, expires, command, notify_on_stop, wait"
SHOWN = (
    "id", "target", "sender", "frame", "mode", "command", "state", "channel", "queued", "delivered", "confirmed",
    "changed", "expires", "reason", "notify_on_stop", "wait", "size",
)  # fmt: skip
COLUMNS = ", ".join(SHOWN[:-1]) + ", length(CAST(body AS BLOB))"
FLAGS = frozenset({"command", "notify_on_stop"})
MAX_SHOWN = 1000


def statement(record: KeepMessage | RecordMessage, now: float) -> tuple[str, Parameters]:
    if isinstance(record, RecordMessage):
        channel = record.channel.value if record.channel else None
        values = {"state": record.state.value, "reason": record.reason, "channel": channel, "id": record.message}
        return RECORD, {**values, "now": now}
    stored = record.message
    return KEEP, (
        stored.id, stored.target, stored.sender, stored.body, now, now, stored.number, stored.frame, stored.mode.value,
        int(stored.command), stored.expires, int(stored.notify_on_stop), stored.wait,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class MessageTable:
    database: Database
    clock: Clock

    async def last_number(self) -> int:
        rows = await self._read("SELECT coalesce(max(number), 0) FROM messages")
        return int(str(rows[0][0]))

    async def queued_numbers(self) -> list[tuple[str, Mode, int, str]]:
        """(target, mode, number, id) of every message that waits, in order."""
        rows = await self._read("SELECT target, mode, number, id FROM messages WHERE state = 'queued' ORDER BY number")
        return [(str(row[0]), Mode(str(row[1])), int(str(row[2])), str(row[3])) for row in rows]

    async def stored_message(self, message: str) -> StoredMessage | None:
        rows = await self._read(f"SELECT {STORED} FROM messages WHERE id = ?", (message,))  # noqa: S608  # constants
        return _stored(rows[0]) if rows else None

    async def next_messages(self, target: str, refill: Refill) -> tuple[list[StoredMessage], int]:
        """The next ones of a lane, and how many of those known wait behind them."""
        where = "target = ? AND mode = ? AND state = 'queued' AND number > ? AND number <= ?"
        lane = (target, refill.mode.value, refill.after, refill.known)

        def select(connection: sqlite3.Connection) -> tuple[list[StoredMessage], int]:
            query = f"SELECT {STORED} FROM messages WHERE {where} ORDER BY number LIMIT ?"  # noqa: S608  # constants
            found = [_stored(row) for row in connection.execute(query, (*lane, refill.count))]
            count = connection.execute(f"SELECT count(*) FROM messages WHERE {where}", lane).fetchone()  # noqa: S608
            return found, int(count[0]) - len(found)

        return await self.database.read(select)

    async def message(self, message: str) -> dict[str, object] | None:
        rows = await self._read(f"SELECT {COLUMNS} FROM messages WHERE id = ?", (message,))  # noqa: S608  # constants
        return _shown(rows[0]) if rows else None

    async def body(self, message: str) -> str | None:
        rows = await self._read("SELECT body FROM messages WHERE id = ?", (message,))
        return str(rows[0][0]) if rows else None

    async def inbox(self, target: str) -> list[dict[str, object]]:
        """Return what waits for a session or is being delivered, in order, with the beginning of each body."""
        query = (
            f"SELECT {COLUMNS}, substr(body, 1, 200) FROM messages"  # noqa: S608  # constants
            " WHERE target = ? AND state IN ('queued', 'delivered') ORDER BY number LIMIT ?"
        )
        rows = await self._read(query, (target, MAX_SHOWN))
        return [{**_shown(row[:-1]), "text": row[-1]} for row in rows]

    async def dead_letters(self, session: str) -> list[dict[str, object]]:
        """Return messages to or from a session that did not arrive, the newest first."""
        query = (
            f"SELECT {COLUMNS}, substr(body, 1, 200) FROM messages WHERE (target = ? OR sender = ?)"  # noqa: S608  # constants
            " AND state IN ('unconfirmed', 'expired', 'failed') ORDER BY number DESC LIMIT ?"
        )
        rows = await self._read(query, (session, session, MAX_SHOWN))
        return [{**_shown(row[:-1]), "text": row[-1]} for row in rows]

    async def newest_messages(self, session: str, limit: int = MAX_SHOWN) -> list[dict[str, object]]:
        """Return messages to or from a session in any state, the newest first, with the beginning of each."""
        query = (
            f"SELECT {COLUMNS}, substr(body, 1, 200) FROM messages WHERE target = ? OR sender = ?"  # noqa: S608  # constants
            " ORDER BY number DESC LIMIT ?"
        )
        rows = await self._read(query, (session, session, limit))
        return [{**_shown(row[:-1]), "text": row[-1]} for row in rows]

    async def exchanges(self) -> dict[tuple[str, str], int]:
        rows = await self._read("SELECT sender, target, count FROM exchanges")
        return {(str(sender), str(target)): int(str(count)) for sender, target, count in rows}

    async def count_exchange(self, sender: str, target: str) -> None:
        add = (
            "INSERT INTO exchanges (sender, target, count) VALUES (?, ?, 1)"
            " ON CONFLICT (sender, target) DO UPDATE SET count = count + 1"
        )
        await self.database.run(lambda connection: connection.execute(add, (sender, target)))

    async def forget_exchanges(self, session: str) -> None:
        drop = "DELETE FROM exchanges WHERE ? IN (sender, target)"
        await self.database.run(lambda connection: connection.execute(drop, (session,)))

    async def expire_messages(self) -> None:
        """Mark messages whose time is over as expired; a living session does the same for its own queue."""
        now = self.clock.now()

        def update(connection: sqlite3.Connection) -> None:
            late = "state = 'queued' AND expires IS NOT NULL AND expires <= ?"
            if connection.execute(f"SELECT 1 FROM messages WHERE {late} LIMIT 1", (now,)).fetchone():  # noqa: S608
                reason = (MessageState.EXPIRED.value, now, "expired before delivery", now)
                connection.execute(f"UPDATE messages SET state = ?, changed = ?, reason = ? WHERE {late}", reason)  # noqa: S608

        await self.database.run(update)

    async def _read(self, query: str, values: Sequence[object] = ()) -> list[tuple[object, ...]]:
        return await self.database.read(lambda connection: connection.execute(query, tuple(values)).fetchall())


def _stored(row: Sequence[object]) -> StoredMessage:
    identity, target, sender, frame, body, number, mode, expires, command, notify_on_stop, wait = row
    return StoredMessage(
        id=str(identity),
        target=str(target),
        sender=str(sender),
        frame=str(frame),
        body=str(body),
        number=int(str(number)),
        mode=Mode(str(mode)),
        expires=None if expires is None else float(str(expires)),
        command=bool(command),
        notify_on_stop=bool(notify_on_stop),
        wait=None if wait is None else float(str(wait)),
    )


def _shown(row: Sequence[object]) -> dict[str, object]:
    found = dict(zip(SHOWN, row, strict=True))
    return {name: bool(value) if name in FLAGS else value for name, value in found.items()}
