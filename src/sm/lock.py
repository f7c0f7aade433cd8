"""One server per SM_HOME: a kernel lock, held for the life of the process.

The kernel frees it with the process, so neither a crash nor a reused pid keeps it (case A55). The pid written into it
only shows the holder; nothing here sends a signal. SM_HOME itself is locked too: the lock file can be removed while the
server runs, and a second server could lock a new one.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from sm.core.errors import error
from sm.files import read_regular
from sm.paths import PRIVATE_FILE, SmHome, atomic_write

NO_LOCK_ERRORS = frozenset({errno.ENOTSUP, errno.ENOLCK, errno.EINVAL, errno.EBADF})
"""Errors of a file system that cannot lock directories, as over a network."""
LOCK_TRIES = 10
RETRY_DELAY_S = 0.01
"""Between tries: `held_by` takes the lock for an instant to check whether it is free."""
MAX_RECORD_BYTES = 1 << 16
"""Of the file of a ServerRecord."""
MAX_PORT = 65_535
_URL = re.compile(r"http://127\.0\.0\.1:[1-9]\d{0,4}", re.ASCII)
START_TOLERANCE_S = 2.0
"""Two readings of one start may differ by it: macOS returns whole seconds."""


class ServerLock:
    """Held from `acquire` until `release` or the end of the process."""

    def __init__(self, descriptor: int, directory: int) -> None:
        self._descriptor = descriptor
        self._directory = directory

    @classmethod
    def acquire(cls, home: SmHome) -> Self:
        """Take the lock; SmError with the holder's pid if another server has it."""
        descriptor, directory = _open(home.server_lock), _open_directory(home.root)
        for attempt in range(LOCK_TRIES):
            if _try_lock(directory, fcntl.LOCK_EX) and _try_lock(descriptor, fcntl.LOCK_EX):
                _write_holder(descriptor)
                return cls(descriptor, directory)
            if attempt < LOCK_TRIES - 1:
                time.sleep(RETRY_DELAY_S)
        os.close(directory)
        os.close(descriptor)
        pid = held_by(home) or "unknown"
        hint = "`sm server status` shows it; another SM_HOME can have a server of its own"
        raise error("already_running", f"A server (pid {pid}) already runs in {home.root}", hint)

    def release(self) -> None:
        """Release it; idempotent. The file stays: without it two servers could each lock a file of that name."""
        if self._descriptor >= 0:
            os.ftruncate(self._descriptor, 0)
            for descriptor in (self._descriptor, self._directory):
                _unlock(descriptor)  # a child between fork and exec still has a copy of it
                os.close(descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def held_by(home: SmHome) -> int | None:
    """Return the pid of the server in this SM_HOME, 0 if its pid is unknown; None without a server."""
    found = holder(home)
    return None if found is None else found[0]


def holder(home: SmHome) -> tuple[int, float | None] | None:
    """Return that pid with the start time of its process: a later one may have the same pid."""
    if home.server_lock.exists():
        descriptor = _open(home.server_lock)
        try:
            if not _try_lock(descriptor, fcntl.LOCK_SH):
                return _read_holder(descriptor)
        finally:
            os.close(descriptor)
    return _holder_of_directory(home) if home.root.is_dir() else None


def _holder_of_directory(home: SmHome) -> tuple[int, float | None] | None:
    """Return the holder where the lock's file was removed: from the last announcement, if that process lives."""
    directory = _open_directory(home.root)
    try:
        if _try_lock(directory, fcntl.LOCK_SH):
            return None
    finally:
        os.close(directory)
    record = last_server(home)
    known = record is not None and same_process(record.pid, record.started)
    return (record.pid, record.started) if record is not None and known else (0, None)


def _open_directory(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)


def _try_lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as problem:
        if problem.errno in NO_LOCK_ERRORS:
            return True
        raise
    return True


def _unlock(descriptor: int) -> None:
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def _write_holder(descriptor: int) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()} {process_start_time(os.getpid())}\n".encode(), 0)


def _read_holder(descriptor: int) -> tuple[int, float | None]:
    words = os.pread(descriptor, 100, 0).split()
    try:
        return int(words[0]), float(words[1])
    except (IndexError, ValueError):
        return 0, None


@dataclass(frozen=True, slots=True)
class ServerRecord:
    """How to reach the server of an SM_HOME: the content of `server.json`."""

    pid: int
    started: float | None
    """By `process_start_time`."""
    url: str
    version: str

    def is_sound(self) -> bool:
        """Whether every value has its type; the user, or a damaged disk, may have changed the file."""
        numbers = type(self.pid) is int and (self.started is None or type(self.started) in {int, float})
        texts = isinstance(self.url, str) and isinstance(self.version, str)
        return numbers and texts and _URL.fullmatch(self.url) is not None and self.port <= MAX_PORT

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])


def announce(home: SmHome, url: str, version: str) -> None:
    """Write the record; called by the holder of the lock, once it listens."""
    record = ServerRecord(os.getpid(), process_start_time(os.getpid()), url, version)
    atomic_write(home.server_record, json.dumps(asdict(record)).encode() + b"\n")


def last_server(home: SmHome) -> ServerRecord | None:
    """Return what the last server announced, whether it lives or not."""
    try:
        found = json.loads(read_regular(home.server_record, MAX_RECORD_BYTES)[0])
        record = ServerRecord(found["pid"], found["started"], found["url"], found["version"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return record if record.is_sound() else None


def running_server(home: SmHome) -> ServerRecord | None:
    """Return the record of the server that runs in this SM_HOME, once it has announced itself."""
    record = last_server(home)
    if record is None or not same_process(record.pid, record.started) or held_by(home) is None:
        return None
    return record


def process_start_time(pid: int) -> float | None:
    """Return when the process started; None if it has ended, a zombie included.

    In seconds of a clock that a step of the wall clock does not move: on Linux since boot.
    """
    return _start_by_ps(pid) if sys.platform == "darwin" else _start_in_proc(pid)


def same_process(pid: int, start: float | None) -> bool:
    """Whether the process that had `pid` and started at `start` still lives."""
    now = process_start_time(pid) if pid > 0 else None
    return now is not None and start is not None and abs(now - start) < START_TOLERANCE_S


def _start_in_proc(pid: int) -> float | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    # The second field is the name in brackets, which may itself hold spaces and brackets.
    fields = text.rpartition(b")")[2].split()
    if fields[0] in {b"Z", b"X"}:
        return None
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")


def _start_by_ps(pid: int) -> float | None:
    import subprocess  # noqa: PLC0415  # macOS only

    command = ["/bin/ps", "-o", "stat=,lstart=", "-p", str(pid)]
    result = subprocess.run(command, capture_output=True, check=False, env={"LC_ALL": "C"})  # noqa: TID251  # 3 ms
    state, _, started = result.stdout.decode().strip().partition(" ")
    if not started or state.startswith("Z"):
        return None
    return time.mktime(time.strptime(started.strip(), "%a %b %d %H:%M:%S %Y"))
