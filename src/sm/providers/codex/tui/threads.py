"""Which threads of Codex a process has open, and which of them its user sees (Codex 0.171.0).

There is no state file. A process that has a thread open holds `CODEX_HOME/thread-writer-locks/<thread>.lock`, from the
moment the thread begins or is resumed, before there is a rollout; the lock file is made each time, and taken away
when the thread is unloaded, a minute after it was left. So the newest lock is the thread that is shown, unless it is a
subagent's, whose rollout names another thread as its session.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from sm.core.ports.provider import RunningClient
from sm.processes import started_with, terminal
from sm.providers import jsonl
from sm.providers.codex.files import HEAD_BYTES, ID, OWNER, thread_of

LOCKS = "thread-writer-locks"
SUFFIX = ".lock"
SERVERS = {
    "--managed-daemon": "the Codex server that the user's clients share; codex app-server daemon stop ends it",
    "app-server": "a Codex app-server",
}
"""By an argument: what the process is that holds a thread for other clients."""


@dataclass(frozen=True, slots=True)
class OpenThread:
    id: str
    since: float
    """When this process opened it, UTC seconds."""
    rollout: Path | None
    """None before its first prompt."""


def client_process(config: Path, pid: int) -> int | None:
    """Return the client itself: the command of an npm package is a program that starts it. None while it has no thread.

    So it is before it is up, and while it asks something before that, as whether a folder is trusted.
    """
    return next((found for found in (pid, *children(pid)) if open_threads(config, found)), None)


def open_threads(config: Path, pid: int) -> list[OpenThread]:
    """Return the threads that a process has open, subagents' among them, the oldest lock first."""
    locks = f"{os.path.realpath(config)}/{LOCKS}/"
    held: list[str] = []
    rollouts: dict[str, Path] = {}
    for target in _opened(pid):
        if target.startswith(locks) and target.endswith(SUFFIX):
            held.append(target)
        elif target.endswith(".jsonl") and (thread := thread_of(path := Path(target))):
            rollouts[thread] = max(path, rollouts.get(thread, path), key=lambda found: found.stem[-36:])
    found = []
    for lock in held:
        with suppress(OSError):  # it was left in this moment
            thread = lock[len(locks) : -len(SUFFIX)]
            found.append(OpenThread(thread, os.stat(lock).st_mtime, rollouts.get(thread)))  # noqa: PTH116  # 1 µs
    return sorted(found, key=lambda thread: thread.since)


def is_subagents(thread: OpenThread) -> bool:
    if thread.rollout is None:
        return False
    try:
        return _session_of(thread.rollout) != thread.id
    except LookupError:
        return False


@lru_cache(maxsize=1024)
def _session_of(rollout: Path) -> str:
    """The thread that the user began; LookupError as long as the first record is being written."""
    try:
        with jsonl.opened(rollout) as fd:
            found = OWNER.search(os.pread(fd, HEAD_BYTES, 0))
    except (OSError, ValueError) as problem:
        raise LookupError(rollout) from problem
    if found is None:
        raise LookupError(rollout)
    return found[1].decode()


def running(config: Path, conversation: str) -> RunningClient | None:
    """The process that holds the lock of a thread; one that serves other clients is named as such."""
    if not ID.fullmatch(conversation):
        return None
    lock = Path(os.path.realpath(config)) / LOCKS / f"{conversation}{SUFFIX}"
    try:
        inode = lock.stat().st_ino
    except OSError:
        return None
    for pid in _holders(inode):
        if str(lock) in set(_opened(pid)):
            _, arguments = started_with(pid)
            server = next((words for argument, words in SERVERS.items() if argument in arguments), "")
            return RunningClient(pid, server or terminal(pid))
    return None


def _holders(inode: int) -> Iterator[int]:
    """The processes with a lock on a file of that number, of whatever file system."""
    with suppress(OSError):
        for line in Path("/proc/locks").read_text().splitlines():
            fields = line.split()
            if "->" not in fields and fields[5].rpartition(":")[2] == str(inode) and fields[4].isdecimal():
                yield int(fields[4])


def _opened(pid: int) -> Iterator[str]:
    folder = f"/proc/{pid}/fd"
    try:
        numbers = os.listdir(folder)  # noqa: PTH208  # a quarter of the time
    except OSError:
        return
    for number in numbers:
        with suppress(OSError):
            yield os.readlink(f"{folder}/{number}")  # noqa: PTH115  # as above


def changed(config: str) -> float:
    """Return when a thread was opened or left last, by any client: a look at one file. 0 without any."""
    try:
        return os.stat(f"{config}/{LOCKS}").st_mtime  # noqa: PTH116  # as above
    except OSError:
        return 0.0


def children(pid: int) -> list[int]:
    """Return the processes that any thread of a process has started."""
    found: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                found += map(int, (task / "children").read_text().split())
    return found
