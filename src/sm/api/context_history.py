"""How full a session's context was over its whole life: its readings, thinned as they become many, and what happened.

What was read once is kept, and read on from there. Of each stretch of readings the highest stays: a peak is what a
reader looks for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec

from sm.store import events
from sm.store.database import Database

MAX_READINGS = 1_500
"""More than a screen has columns. Even, so that two and two become one."""
MAX_MARKS = 1_000
MAX_SESSIONS = 64
"""Whose past is kept; of another one it is read again."""
PAGE = 2_000
"""Events read at once, so that no other request waits long for the database."""
READINGS = ("ContextRead", "ContextReported")
MARKS = {
    "AgentWarned": "warned",
    "CompactionEnded": "compacted",
    "HandoffRequested": "handoff",
    "ConversationStarted": "new context",
}
ORIGINS = {"clear": "rotated", "compact": "compacted", "startup": "started"}
KINDS = (*READINGS, *MARKS)


@dataclass(frozen=True, slots=True)
class Reading:
    at: float
    tokens: int
    """What the next request weighs, which the thresholds are compared with."""
    usable: int | None


@dataclass(frozen=True, slots=True)
class Mark:
    at: float
    words: str


@dataclass(slots=True)
class ContextHistory:
    seen: int = 0
    """The number of the last event that is in it."""
    highest: list[Reading] = field(default_factory=list)
    """Each of as many readings in a row as `stretch` says."""
    stretch: int = 1
    last: Reading | None = None
    marks: list[Mark] = field(default_factory=list)
    _in_last_stretch: int = 0

    @property
    def readings(self) -> list[Reading]:
        """Return them oldest first; the last one always, since it says how full the context is now."""
        newest = [self.last] if self.last is not None and self.highest[-1] != self.last else []
        return [*self.highest, *newest]

    def take(self, found: Reading | Mark) -> None:
        if isinstance(found, Mark):
            self.marks.append(found)
            if len(self.marks) > MAX_MARKS:
                self.marks = self.marks[::2]
            return
        self.last = found
        if self.highest and self._in_last_stretch < self.stretch:
            self._in_last_stretch += 1
            self.highest[-1] = max(self.highest[-1], found, key=_size)
            return
        if len(self.highest) == MAX_READINGS:
            pairs = zip(self.highest[::2], self.highest[1::2], strict=True)
            self.highest = [max(pair, key=_size) for pair in pairs]
            self.stretch *= 2
        self.highest.append(found)
        self._in_last_stretch = 1


def _size(reading: Reading) -> int:
    return reading.tokens


@dataclass(slots=True)
class ContextHistories:
    known: dict[str, ContextHistory] = field(default_factory=dict)
    reading: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def of(self, database: Database, session: str) -> ContextHistory:
        """Return the history of a session up to now."""
        async with self.reading:
            history = self.known.pop(session, None) or ContextHistory()
            self.known[session] = history
            while len(self.known) > MAX_SESSIONS:
                self.known.pop(next(iter(self.known)))
            while page := await database.read(partial(_page, session=session, after=history.seen)):
                history.seen = page[-1][0]
                for _, found in page:
                    if found is not None:
                        history.take(found)
            return history


def _page(connection: Any, session: str, after: int) -> list[tuple[int, Reading | Mark | None]]:  # noqa: ANN401  # SQLite's
    rows = events.of_kinds(connection, session, KINDS, after, PAGE)
    return [(number, _found(at, kind, msgspec.json.decode(data))) for number, at, kind, data in rows]


def _found(at: float, kind: str, data: Mapping[str, Any]) -> Reading | Mark | None:
    if kind in READINGS:
        size = data.get("reading") or data
        tokens = size.get("tokens") if size.get("projected") is None else size["projected"]
        return Reading(at, tokens, data.get("usable") or None) if isinstance(tokens, int) else None
    if data.get("repeated"):
        return None
    return Mark(at, _words(kind, data))


def _words(kind: str, data: Mapping[str, Any]) -> str:
    if kind == "AgentWarned":
        return f"warned: {data.get('level')}"
    return ORIGINS.get(str(data.get("origin")), "began") if kind == "ConversationStarted" else MARKS[kind]
