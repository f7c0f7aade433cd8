"""The one SQLite file of an SM_HOME: how it is opened, brought up to date, written and read.

Callers hand over a whole function, which runs in one transaction: in the writer's thread, or for the few statements of
the hook path at once, on the loop, which spares it two changes of thread. aiosqlite has no public call for either (each
of its statements is a hop of its own), and its private `_execute` is all that would be used of it: the thread and its
queue are 40 lines here. Reads have a second connection, so that a long search never delays a hook.
"""

from __future__ import annotations

import asyncio
import os
import queue
import re
import shlex
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Self, TypeVar

from sm.core.errors import Refused, SmError, error
from sm.paths import PRIVATE_FILE

T = TypeVar("T")
BUSY_TIMEOUT_MS = 5000
"""How long to wait for another process, as `sqlite3` on the command line: with 0, case A53 loses messages."""
CHECKPOINT_COMMITS = 500
"""After so many (about 10 MB) the reader's thread writes the log into the file: that takes 20 ms, which in the writer's
thread would delay 20 hooks."""
CHECKPOINT_TRIES = 5
"""The log is restarted only once all of it is in the file; what was added during a try takes another, shorter one."""
CHECKPOINT_PAGES = 16_000
"""Under a load without a pause the writer itself writes the rest at 64 MB."""
SLOW_COMMIT_S = 0.01
"""A commit on the loop that took longer says that the disk is slow: it must not keep every session waiting again."""
SLOW_DISK_S = 10.0
"""For so long commits are then made in the thread."""
MIGRATIONS = Path(__file__).parent / "migrations"
_FILE = re.compile(r"(\d{4})_[a-z0-9_]+\.sql")


class Database:
    """Opened with `Database.open`; close it, or use it as an async context manager."""

    def __init__(self, path: Path, writer: sqlite3.Connection, reader: sqlite3.Connection) -> None:
        self.path = path
        self._writer = _Worker(writer, path, "sm-database-writer")
        self._reader = _Worker(reader, path, "sm-database-reader")
        self._commits = 0
        self._slow_until = 0.0

    @classmethod
    async def open(cls, path: Path, migrations: Path = MIGRATIONS) -> Self:
        """Create or open the file and apply what is missing; SmError if it cannot be used."""
        return cls(path, *await asyncio.to_thread(_open, path, migrations))

    async def run(self, function: Callable[[sqlite3.Connection], T]) -> T:
        """Run `function` in a transaction of its own: committed when it returns, rolled back when it raises.

        It runs to its end, commit included, even if the caller is cancelled.
        """
        outcome = await self._writer.call(lambda connection: _patiently(connection, function))
        self._committed()
        return outcome

    async def run_at_once(self, function: Callable[[sqlite3.Connection], T]) -> T:
        """Run `function`, of a few short statements, as `run` does; on the loop unless a lock or the disk delays it."""
        began = time.monotonic()
        if began < self._slow_until or not self._writer.free:
            return await self.run(function)
        try:
            outcome = self._writer.here(lambda connection: _in_transaction(connection, function))
        except SmError as problem:
            if problem.refused.code != "database_busy":
                raise
            return await self.run(function)
        ended = time.monotonic()
        if ended - began > SLOW_COMMIT_S:
            self._slow_until = ended + SLOW_DISK_S
        self._committed()
        return outcome

    def _committed(self) -> None:
        self._commits += 1
        if self._commits % CHECKPOINT_COMMITS == 0:
            self._reader.post(_checkpoint)

    async def read(self, function: Callable[[sqlite3.Connection], T]) -> T:
        """Run `function` on a connection that cannot write; it sees what was committed before each statement."""
        return await self._reader.call(function)

    async def close(self) -> None:
        """Finish the functions that were handed over, then close. Idempotent."""
        await self._reader.close()
        await self._writer.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _checkpoint(connection: sqlite3.Connection) -> None:
    """Write the log into the file without waiting for the writer or delaying it. The writer meets the same errors."""
    with suppress(sqlite3.Error):
        for _ in range(CHECKPOINT_TRIES):
            _, pages, done = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            if done >= pages:
                return


def _patiently(connection: sqlite3.Connection, function: Callable[[sqlite3.Connection], T]) -> T:
    connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
    try:
        return _in_transaction(connection, function)
    finally:
        connection.execute("PRAGMA busy_timeout = 0")


def _in_transaction(connection: sqlite3.Connection, function: Callable[[sqlite3.Connection], T]) -> T:
    connection.execute("BEGIN IMMEDIATE")
    try:
        result = function(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return result


class _Worker:
    """A thread that runs functions on one connection, in the order of the calls."""

    def __init__(self, connection: sqlite3.Connection, path: Path, name: str) -> None:
        self._connection = connection
        self._path = path
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._open = True
        self._waiting = 0
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    @property
    def free(self) -> bool:
        """Whether nothing runs or waits in the thread."""
        return self._waiting == 0

    def here(self, function: Callable[[sqlite3.Connection], T]) -> T:
        """Run `function` in the caller's thread. Only while the worker is free."""
        self._check_open()
        try:
            return function(self._connection)
        except Exception as problem:
            translated = _translated(problem, self._path)
            if translated is problem:
                raise
            raise translated from problem

    async def call(self, function: Callable[[sqlite3.Connection], T]) -> T:
        self._check_open()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def job() -> None:
            try:
                outcome = function(self._connection)
            except Exception as problem:  # noqa: BLE001  # handed to the caller as it is
                self._report(loop, _fail, future, _translated(problem, self._path))
            else:
                self._report(loop, _succeed, future, outcome)

        self._waiting += 1
        self._jobs.put(job)
        return await future

    def _check_open(self) -> None:
        if not self._open:
            raise error("database_closed", "The database is closed", "the server is stopping; try again")

    def _report(self, loop: asyncio.AbstractEventLoop, tell: Callable[..., None], *arguments: object) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(self._reported, tell, arguments)

    def _reported(self, tell: Callable[..., None], arguments: tuple[object, ...]) -> None:
        self._waiting -= 1
        tell(*arguments)

    def post(self, function: Callable[[sqlite3.Connection], None]) -> None:
        """Run `function` later, without waiting for it."""
        if self._open:
            self._jobs.put(lambda: function(self._connection))

    async def close(self) -> None:
        if self._open:
            self._open = False
            self._jobs.put(None)
        await asyncio.to_thread(self._thread.join)

    def _work(self) -> None:
        with closing(self._connection):
            while (job := self._jobs.get()) is not None:
                job()


def _succeed(future: asyncio.Future[T], outcome: T) -> None:
    if not future.done():
        future.set_result(outcome)


def _fail(future: asyncio.Future[T], problem: Exception) -> None:
    if not future.done():
        future.set_exception(problem)


_REFUSALS = {
    sqlite3.SQLITE_FULL: Refused("disk_full", "", "make room on its file system"),
    sqlite3.SQLITE_READONLY: Refused("database_unwritable", "", "correct the permissions of file and directory"),
    sqlite3.SQLITE_IOERR: Refused("database_unwritable", "", "see the system's log for the disk's errors"),
    sqlite3.SQLITE_CORRUPT: Refused("database_corrupt", "", ""),
    sqlite3.SQLITE_NOTADB: Refused("database_corrupt", "", ""),
    sqlite3.SQLITE_CANTOPEN: Refused("database_unwritable", "", "correct the permissions of file and directory"),
    sqlite3.SQLITE_BUSY: Refused("database_busy", "", "another program has locked it; end that program"),
}
"""SQLite's primary result code → what the user reads; for a damaged file `recovery_hint` completes it."""


def _refusal(problem: Exception) -> Refused | None:
    if isinstance(problem, UnicodeDecodeError):  # sqlite3 raises it where its own message quotes damaged bytes
        return _REFUSALS[sqlite3.SQLITE_CORRUPT]
    code = getattr(problem, "sqlite_errorcode", None)
    return None if code is None else _REFUSALS.get(code & 0xFF)


def damaged(path: Path, why: object) -> SmError:
    """Return the error for a file whose content cannot be read, with the commands that restore a readable one."""
    return error("database_corrupt", f"{path}: {why}", recovery_hint(path))


def recovery_hint(path: Path) -> str:
    """Return commands that put the newest back-up in the place of a damaged database, or start an empty one."""
    own = shlex.quote(str(path))
    away = f"sm server stop; mv {own} {own}.damaged; rm -f {own}-wal {own}-shm"
    kept = sorted(path.parent.glob(f"{path.name}.v*.bak"), key=lambda backup: backup.stat().st_mtime)
    if not kept:
        return f"no back-up exists. To begin with an empty one: {away}; sm server start. Documents and logs stay"
    made = datetime.fromtimestamp(kept[-1].stat().st_mtime, UTC)
    restore = f"{away}; cp -p {shlex.quote(str(kept[-1]))} {own}; sm server start"
    return f"to go back to the newest back-up, of {made:%Y-%m-%d %H:%M} UTC: {restore}"


def _translated(problem: Exception, path: Path) -> Exception:
    """Return the problem as an SmError where the user can do something about it."""
    refusal = _refusal(problem)
    if refusal is None:
        return problem
    why = "its schema is damaged" if isinstance(problem, UnicodeDecodeError) else problem
    translated = SmError(replace(refusal, message=f"{path}: {why}"))
    if refusal.code == "database_corrupt":
        translated = damaged(path, why)
    translated.__cause__ = problem
    return translated


def _open(path: Path, migrations: Path) -> tuple[sqlite3.Connection, sqlite3.Connection]:
    try:
        _create_private(path)
        writer = _connect(path)
    except (sqlite3.Error, UnicodeDecodeError, OSError) as problem:
        raise _unusable(path, problem) from problem
    try:
        _migrate(writer, path, _scripts(migrations))
        writer.execute("PRAGMA busy_timeout = 0")
        reader = _connect(path)
        reader.execute("PRAGMA query_only = ON")
    except (sqlite3.Error, UnicodeDecodeError) as problem:
        writer.close()
        raise _unusable(path, problem) from problem
    except BaseException:
        writer.close()
        raise
    return writer, reader


def _unusable(path: Path, problem: Exception) -> SmError:
    translated = _translated(problem, path)
    if isinstance(translated, SmError):
        return translated
    why = problem.strerror if isinstance(problem, OSError) else problem
    return error("database_unusable", f"Cannot open {path}: {why}", "the file was left as it is")


def _create_private(path: Path) -> None:
    """Create the file with mode 0600; -wal and -shm take the mode of the file they belong to."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE))


def _connect(path: Path) -> sqlite3.Connection:
    # isolation_level=None: we begin transactions, the module begins none by itself.
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=256)
    try:
        connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
        connection.execute("PRAGMA journal_mode = WAL")
        # A power cut may lose the last transactions, never the file; a commit then costs no fsync.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        connection.execute("PRAGMA foreign_keys = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _scripts(directory: Path) -> list[Path]:
    """Return the migrations in order: number N is at index N - 1."""
    found = sorted(path for path in directory.iterdir() if path.suffix == ".sql")
    for number, path in enumerate(found, start=1):
        match = _FILE.fullmatch(path.name)
        if match is None or int(match[1]) != number:
            raise error("bad_migration", f"{path} should be {number:04}_name.sql", "this installation is damaged")
    return found


def schema_version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _migrate(connection: sqlite3.Connection, path: Path, scripts: list[Path]) -> None:
    version, newest = schema_version(connection), len(scripts)
    if version > newest:
        raise _newer(path, version, newest)
    if version == newest:
        return
    if version:
        _back_up(connection, backup_path(path, version))
    elif connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
        raise error("database_foreign", f"{path} is a database, but not of sm", "move it away, or set another SM_HOME")
    connection.execute("PRAGMA foreign_keys = OFF")  # not possible inside a transaction; a rebuilt table needs it
    for number in range(version + 1, newest + 1):
        _apply(connection, number, scripts[number - 1])
    connection.execute("PRAGMA foreign_keys = ON")


def _newer(path: Path, version: int, newest: int) -> SmError:
    message = f"{path} has schema {version}, this sm knows schemas up to {newest}"
    kept = backup_path(path, newest)
    older = f", or put {kept} in its place, which loses everything after it" if kept.exists() else ""
    return error("database_newer", message, f"install the sm that wrote it{older}")


def backup_path(path: Path, version: int) -> Path:
    return path.with_name(f"{path.name}.v{version}.bak")


def _back_up(connection: sqlite3.Connection, target: Path) -> None:
    temporary = target.with_name(f"{target.name}.tmp")
    temporary.unlink(missing_ok=True)
    _create_private(temporary)
    try:
        with closing(sqlite3.connect(temporary)) as copy:
            connection.backup(copy)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _apply(connection: sqlite3.Connection, number: int, script: Path) -> None:
    """Run script, check of the references and new version number in one transaction."""
    try:
        connection.executescript(f"BEGIN IMMEDIATE;\n{script.read_text(encoding='utf-8')}\n;")
        broken = connection.execute("PRAGMA foreign_key_check").fetchall()
        if broken:
            raise sqlite3.IntegrityError(f"{len(broken)} rows refer to nothing, the first in {broken[0][0]}")
        connection.execute(f"PRAGMA user_version = {number}")
        connection.execute("COMMIT")
    except (sqlite3.Error, UnicodeDecodeError) as problem:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        if _refusal(problem) is not None:
            raise
        hint = "the database is unchanged; please report this"
        raise error("migration_failed", f"{script.name}: {problem}", hint) from problem
