"""A process that works on issues, as the durable engine knows it: an id of which at most one process is alive.

On a file of SQLite a lock of the kernel keeps a second process out, and a restart has the same id. On PostgreSQL each
process has an id of its own and a session-level advisory lock on it, which the server frees when the connection ends.
Whoever gets the lock of another one's id knows that it is dead, and gives its work back to the engine's own queue.

An engine that is alive and has lost its connection is taken for dead too. That is safe: the engine refuses the results
of a workflow that another process has got since, and each step finds what was done before.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import socket
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from sm.core.errors import error
from sm.paths import PRIVATE_FILE

if TYPE_CHECKING:
    from psycopg import Connection

LOCAL = "local"
LOOK_INTERVAL_S = 5.0
"""Between two looks for the dead."""
CONNECT_TIMEOUT_S = 10
KEEPALIVE = {"tcp_keepalives_idle": 10, "tcp_keepalives_interval": 5, "tcp_keepalives_count": 3}
"""In seconds, and probes: so soon PostgreSQL sees that a machine is gone. By itself it takes two hours."""


class Executor(Protocol):
    id: str

    def acquire(self) -> None:
        """Take the id, or SmError that says who has it."""

    def release(self) -> None: ...

    def alone(self) -> AbstractContextManager[None]:
        """Hold what one process at a time does, such as to begin a run."""

    def watch(self, pending: Callable[[], Collection[str]], recover: Callable[[str], None]) -> None:
        """Have `recover` called for each of the pending ids whose process is dead."""

    def unwatch(self) -> None: ...


class LocalExecutor:
    """The one process that works on a file."""

    def __init__(self, database: Path) -> None:
        self.id = LOCAL
        self._path = database.with_suffix(".lock")
        self._descriptor = -1

    def acquire(self) -> None:
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
            os.close(descriptor)
            hint = "wait for it, or press Ctrl-C there: the same command continues it"
            raise error("run_active", f"Another sm (pid {pid}) works on this project's issues", hint) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        self._descriptor = descriptor

    def release(self) -> None:
        os.close(self._descriptor)

    def alone(self) -> AbstractContextManager[None]:
        return nullcontext()

    def watch(self, pending: Callable[[], Collection[str]], recover: Callable[[str], None]) -> None:
        """The engine itself has continued what the process before this one has left."""

    def unwatch(self) -> None:
        """Nothing is watched."""


class SharedExecutor:
    """One of several processes that work on one PostgreSQL."""

    def __init__(self, url: str, application: str, interval: float = LOOK_INTERVAL_S) -> None:
        self.id = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self._url = url
        self._application = application
        self._interval = interval
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._connection: Connection[Any] | None = None
        self._locked = False

    def acquire(self) -> None:
        self._connection = connected(self._url)
        self._locked = _try(self._connection, self._key(self.id))  # the id has a random part: no other has it

    def release(self) -> None:
        self.unwatch()
        if self._connection is not None:
            self._connection.close()

    @contextmanager
    def alone(self) -> Iterator[None]:
        with connected(self._url) as connection:
            connection.execute("SELECT pg_advisory_lock(%s)", (self._key("begin"),))
            yield

    def watch(self, pending: Callable[[], Collection[str]], recover: Callable[[str], None]) -> None:
        self._thread = threading.Thread(target=self._watch, args=(pending, recover), daemon=True)
        self._thread.start()

    def unwatch(self) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self, pending: Callable[[], Collection[str]], recover: Callable[[str], None]) -> None:
        import psycopg  # noqa: PLC0415  # part of an extra, as below

        while not self._ended.wait(self._interval):
            with suppress(psycopg.Error):  # a database that is away is asked again
                connection = self._held()
                for other in sorted(set(pending()) - {self.id}):
                    self._look(connection, other, recover)

    def _held(self) -> Connection[Any]:
        """Return the connection that holds the lock; after a loss of it the lock is taken again."""
        import psycopg  # noqa: PLC0415

        assert self._connection is not None
        try:
            self._connection.execute("SELECT 1")
        except psycopg.Error:
            self._connection.close()
            self._locked = False
            self._connection = _connection(self._url)
        if not self._locked:  # the server may still hold the lost connection's lock, or another one looks at it
            self._locked = _try(self._connection, self._key(self.id))
        return self._connection

    def _look(self, connection: Connection[Any], other: str, recover: Callable[[str], None]) -> None:
        key = self._key(other)
        if _try(connection, key):
            try:
                recover(other)
            finally:
                connection.execute("SELECT pg_advisory_unlock(%s)", (key,))

    def _key(self, name: str) -> int:
        return advisory_key(self._application, name)


def advisory_key(application: str, name: str) -> int:
    """Return the number that PostgreSQL knows a lock by: 64 bits with a sign."""
    digest = hashlib.sha256(f"{application}/{name}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def connected(url: str) -> Connection[Any]:
    """Return a connection; SmError without the password that may be in the URL."""
    import psycopg  # noqa: PLC0415  # comes with the engine

    try:
        return _connection(url)
    except (psycopg.Error, ValueError) as problem:
        hint = "runner.database or --database: postgresql://USER@HOST/NAME, with a database that exists"
        first = str(problem).strip().partition("\n")[0]
        raise error("no_run_database", f"PostgreSQL does not answer: {first}", hint) from None


def _connection(url: str) -> Connection[Any]:
    import psycopg  # noqa: PLC0415

    connection = psycopg.connect(url, autocommit=True, connect_timeout=CONNECT_TIMEOUT_S)
    for name, value in KEEPALIVE.items():
        connection.execute("SELECT set_config(%s, %s, false)", (name, str(value)))
    return connection


def _try(connection: Connection[Any], key: int) -> bool:
    row = connection.execute("SELECT pg_try_advisory_lock(%s)", (key,)).fetchone()
    return bool(row and row[0])
