"""Changes a text file that people and other programs change too: whole or not at all, one change after the other.

The lock is the kernel's, on the directory: it leaves no file in the repository, and ends with the process that has it.
Whoever comes second waits. An editor knows nothing of it: a file that has changed in between is read again.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from sm.core.errors import error
from sm.files import read_in_place
from sm.lock import NO_LOCK_ERRORS
from sm.paths import atomic_write

MAX_FILE_BYTES = 1 << 20
LOCK_TIMEOUT_S = 60.0
"""For changes that take milliseconds each."""
RETRY_DELAY_S = 0.02
TRIES = 20
"""For a file that somebody else keeps writing."""


def read_text(path: Path) -> str:
    """Return the text with its own line breaks; OSError, or ValueError with the line that is not UTF-8."""
    return _decoded(read_in_place(path, MAX_FILE_BYTES)[0])


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as problem:
        line = content[: problem.start].count(b"\n") + 1
        raise ValueError(f"line {line} is not UTF-8") from problem


def edit(path: Path, root: Path, change: Callable[[str], str]) -> None:
    """Write what `change` makes of the text, under the lock of `root`. Same text: nothing is written."""
    with _locked(root):
        for _ in range(TRIES):
            content, before = read_in_place(path, MAX_FILE_BYTES)
            text = _decoded(content)
            changed = change(text)
            if changed == text:
                return
            if _is_same(path, before):
                _remove_leftovers(path.parent)
                atomic_write(path, changed.encode(), stat.S_IMODE(before.st_mode))
                return
            time.sleep(RETRY_DELAY_S)
    raise error("issues_busy", f"Another program keeps writing {path}", "try again once it is done")


def _is_same(path: Path, before: os.stat_result) -> bool:
    now = path.lstat()
    return (now.st_ino, now.st_size, now.st_mtime_ns) == (before.st_ino, before.st_size, before.st_mtime_ns)


def _remove_leftovers(directory: Path) -> None:
    """Remove what a process has left that was killed while it wrote: under the lock none is in use."""
    for path in directory.glob(f".tmp-{'[0-9a-f]' * 16}"):
        with contextlib.suppress(OSError):
            path.unlink()


@contextlib.contextmanager
def _locked(directory: Path) -> Iterator[None]:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _lock(descriptor, directory)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, directory: Path) -> None:
    until = time.monotonic() + LOCK_TIMEOUT_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                message = f"Another process has had the lock of {directory} for {LOCK_TIMEOUT_S:.0f} s"
                raise error("issues_busy", message, "end it, then try again") from None
            time.sleep(RETRY_DELAY_S)
        except OSError as problem:
            if problem.errno not in NO_LOCK_ERRORS:
                raise
            return  # a file system without locks, as some over a network
        else:
            return
