"""The full-text index: a SQLite file of its own, which may be lost at any time and is then filled again.

Passages of redacted text are kept compressed, and FTS5 keeps the words alone. A passage's number grows with its time,
so that the newest hits come first without sorting.
"""

from __future__ import annotations

import os
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import structlog

from sm.archive.search.query import TOKENIZER, Term, expression, humps, scope_word, spaced
from sm.paths import PRIVATE_FILE

T = TypeVar("T")
log = structlog.get_logger()
SCHEMA_VERSION = 1
SCHEMA = f"""
CREATE TABLE sources (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    session TEXT NOT NULL,
    context INTEGER,
    kind TEXT NOT NULL,
    path TEXT NOT NULL,
    cursor INTEGER NOT NULL DEFAULT 0,
    mark TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE TABLE passages (
    id INTEGER PRIMARY KEY,
    source INTEGER NOT NULL,
    at REAL NOT NULL,
    text BLOB NOT NULL
) STRICT;
CREATE INDEX passages_source ON passages (source);
CREATE VIRTUAL TABLE words USING fts5(text, humps, scope, content='', columnsize=0, tokenize='{TOKENIZER}');
PRAGMA user_version = {SCHEMA_VERSION};
"""
SEARCH_QUERY = """
SELECT passages.at, passages.text, sources.session, sources.context, sources.kind, sources.path
FROM words JOIN passages ON passages.id = words.rowid JOIN sources ON sources.id = passages.source
WHERE words MATCH ? ORDER BY words.rowid DESC LIMIT ?
"""
PASSAGES_PER_MS = 1 << 16
"""Passages that may have the same millisecond."""
DAMAGE_ERRORS = (sqlite3.DatabaseError, zlib.error, UnicodeDecodeError)
FORGET_BATCH = 200
"""Passages that are removed in one transaction."""


@dataclass(frozen=True, slots=True)
class IndexedText:
    """A text that is indexed: one context's terminal or transcript, or one document."""

    kind: str
    """`terminal`, `transcript` or `handoff`."""
    session: str
    context: int | None
    path: str
    name: str = ""
    """Distinguishes it from the session's others of its kind and context."""

    @property
    def key(self) -> str:
        return f"{self.kind}:{self.session}:{self.context or ''}:{self.name}"


@dataclass(frozen=True, slots=True)
class IndexProgress:
    """How far a source is indexed."""

    cursor: int = 0
    mark: str = ""
    """Shows whether the source is still the same."""


@dataclass(frozen=True, slots=True)
class Passage:
    at: float
    text: str


@dataclass(frozen=True, slots=True)
class FoundPassage:
    """A passage that holds all terms."""

    at: float
    text: str
    session: str
    context: int | None
    kind: str
    path: str


class SearchIndex:
    """Written by one thread at a time. `search` opens the file for itself and may run at the same time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None
        self._inode = 0
        self._generation = 0
        self.damaged = False
        """A search has found damage, which writing alone may not show."""

    def generation(self) -> int:
        """Return a number that changes each time the content is lost; replace the file if it is damaged."""
        if self.damaged:
            log.warning("search index damaged; started again", problem="found by a search")
            self._remove()
        self._run(lambda _: None)
        return self._generation

    def progress(self, source: IndexedText) -> IndexProgress:
        def read(connection: sqlite3.Connection) -> IndexProgress:
            row = connection.execute("SELECT cursor, mark FROM sources WHERE key = ?", (source.key,)).fetchone()
            return IndexProgress(*row) if row else IndexProgress()

        return self._run(read)

    def add(self, source: IndexedText, passages: Iterable[Passage], progress: IndexProgress) -> None:
        """Add passages and record how far the source is done, both or neither."""

        def write(connection: sqlite3.Connection) -> None:
            number = _source(connection, source)
            for passage in sorted(passages, key=lambda passage: passage.at):
                _insert(connection, number, source.session, passage)
            reached = (progress.cursor, progress.mark, number)
            connection.execute("UPDATE sources SET cursor = ?, mark = ? WHERE id = ?", reached)

        self._run(lambda connection: _transaction(connection, write))

    def forget(self, source: IndexedText) -> None:
        """Remove all passages of a source, in small transactions."""
        while not self._run(lambda db: _transaction(db, lambda db: _forget_some(db, source.key))):
            pass

    def sources(self) -> list[IndexedText]:
        query = "SELECT kind, session, context, path, key FROM sources"

        def read(connection: sqlite3.Connection) -> list[IndexedText]:
            rows = connection.execute(query)
            return [
                IndexedText(kind, session, number, path, key.split(":", 3)[3])
                for kind, session, number, path, key in rows
            ]

        return self._run(read)

    def search(self, terms: tuple[Term, ...], scopes: tuple[str, ...] | None, limit: int) -> list[FoundPassage]:
        """Return the newest passages that hold every term; none where the index is lost or damaged."""
        if not terms or scopes == () or not self.path.exists():
            return []
        try:
            with closing(sqlite3.connect(f"{self.path.as_uri()}?mode=ro", uri=True)) as connection:
                rows = connection.execute(SEARCH_QUERY, (expression(terms, scopes), limit)).fetchall()
            return [FoundPassage(at, zlib.decompress(text).decode(), *rest) for at, text, *rest in rows]
        except DAMAGE_ERRORS as problem:
            self.damaged = not isinstance(problem, sqlite3.OperationalError) or "no such table" in str(problem)
            log.warning("search failed", problem=str(problem))
            return []

    def size(self) -> int:
        files = (self.path, self.path.with_name(f"{self.path.name}-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    def close(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def _run(self, function: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return function(self._opened())
        except sqlite3.OperationalError:
            self.close()
            raise  # a full disk, a locked file: a new file would not help
        except DAMAGE_ERRORS as problem:
            log.warning("search index damaged; started again", problem=str(problem))
            self._remove()
            return function(self._opened())

    def _opened(self) -> sqlite3.Connection:
        if self._connection is not None and _inode(self.path) != self._inode:
            self.close()
        if self._connection is None:
            self._connection, empty = _open(self.path)
            inode = _inode(self.path)
            self._generation += empty or inode != self._inode
            self._inode = inode
        return self._connection

    def _remove(self) -> None:
        self.close()
        self.damaged = False
        for suffix in ("", "-wal", "-shm"):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)


def _inode(path: Path) -> int:
    return path.stat().st_ino if path.exists() else 0


def _open(path: Path) -> tuple[sqlite3.Connection, bool]:
    """Return the connection, and whether the index is empty."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE))
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = OFF")  # what a power cut damages is filled again
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version == 0:
            connection.executescript(f"BEGIN;{SCHEMA}COMMIT;")
    except BaseException:
        connection.close()
        raise
    if version in {0, SCHEMA_VERSION}:
        return connection, version == 0
    connection.close()
    raise sqlite3.DatabaseError(f"its version is {version}")


def _transaction(connection: sqlite3.Connection, function: Callable[[sqlite3.Connection], T]) -> T:
    connection.execute("BEGIN IMMEDIATE")
    try:
        result = function(connection)
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
    return result


def _source(connection: sqlite3.Connection, source: IndexedText) -> int:
    values = (source.key, source.session, source.context, source.kind, source.path)
    insert = "INSERT INTO sources (key, session, context, kind, path) VALUES (?, ?, ?, ?, ?)"
    connection.execute(f"{insert} ON CONFLICT (key) DO UPDATE SET path = excluded.path", values)
    return int(connection.execute("SELECT id FROM sources WHERE key = ?", (source.key,)).fetchone()[0])


def _insert(connection: sqlite3.Connection, source: int, session: str, passage: Passage) -> None:
    number = int(passage.at * 1000) * PASSAGES_PER_MS
    query = "SELECT coalesce(max(id) + 1, :first) FROM passages WHERE id BETWEEN :first AND :first + :more"
    number = connection.execute(query, {"first": number, "more": PASSAGES_PER_MS - 1}).fetchone()[0]
    packed = zlib.compress(passage.text.encode("utf-8", "replace"), 6)
    connection.execute("INSERT INTO passages VALUES (?, ?, ?, ?)", (number, source, passage.at, packed))
    columns = (number, *_columns(session, passage.text))
    connection.execute("INSERT INTO words (rowid, text, humps, scope) VALUES (?, ?, ?, ?)", columns)


def _columns(session: str, text: str) -> tuple[str, str, str]:
    return spaced(text), humps(text), scope_word(session)


def _forget_some(connection: sqlite3.Connection, key: str) -> bool:
    """Remove a batch; True once nothing of the source is left. FTS5 removes words only if they are given again."""
    query = (
        "SELECT passages.id, passages.text, sources.session FROM passages JOIN sources ON sources.id = passages.source"
        " WHERE sources.key = ? LIMIT ?"
    )
    rows = connection.execute(query, (key, FORGET_BATCH)).fetchall()
    for number, packed, session in rows:
        columns = (number, *_columns(session, zlib.decompress(packed).decode()))
        connection.execute(
            "INSERT INTO words (words, rowid, text, humps, scope) VALUES ('delete', ?, ?, ?, ?)", columns
        )
        connection.execute("DELETE FROM passages WHERE id = ?", (number,))
    if not rows:
        connection.execute("DELETE FROM sources WHERE key = ?", (key,))
    return not rows


MAX_PASSAGE_CHARS = 2_000
"""All words of a query must be in one passage."""


def passages_of(lines: Iterable[str]) -> Iterator[str]:
    """Group lines into passages; empty ones are left out."""
    held: list[str] = []
    size = 0
    for line in lines:
        if not line.strip():
            continue
        if held and size + len(line) > MAX_PASSAGE_CHARS:
            yield "\n".join(held)
            held, size = [], 0
        held.append(line)
        size += len(line) + 1
    if held:
        yield "\n".join(held)
