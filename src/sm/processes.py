"""What the system knows of a process: whether it runs, its parents and children; and how they are ended."""

from __future__ import annotations

import fcntl
import os
import termios
from collections.abc import Iterable
from contextlib import suppress
from enum import Enum
from pathlib import Path

PROC = Path("/proc")


class RunState(Enum):
    RUNNING = "running"
    STOPPED = "stopped"
    """A signal, as of Ctrl-Z, keeps it from running; unknown without /proc."""
    GONE = "gone"


def run_state(pid: int) -> RunState:
    """Return what the process does now; a zombie is gone."""
    fields = _fields(pid)
    if fields:
        return STATES.get(fields[0], RunState.RUNNING)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return RunState.GONE
    except PermissionError:
        return RunState.RUNNING
    return RunState.RUNNING


STATES = {b"Z": RunState.GONE, b"T": RunState.STOPPED, b"t": RunState.STOPPED}
"""By the letter of proc(5)."""


def alive(pid: int) -> bool:
    return run_state(pid) is not RunState.GONE


def start_time(pid: int) -> str:
    """Return when the process started, in the system's form: with its pid that identifies it. Empty if it is gone."""
    fields = _fields(pid)
    if fields:
        return fields[START_TIME_FIELD].decode()
    if PROC.joinpath("self").exists():
        return ""
    return _ps(pid, "lstart=")


def terminal(pid: int) -> str:
    """Return the terminal of the process, as `/dev/pts/3`; empty if it has none."""
    if not PROC.joinpath("self").exists():
        found = _ps(pid, "tty=")
        return f"/dev/{found}" if found.strip("?-") else ""
    for number in range(3):
        with suppress(OSError):
            target = str(Path(f"/proc/{pid}/fd/{number}").readlink())
            if target.startswith(TERMINAL_PREFIXES):
                return target
    return ""


def last_key_in(tty: str) -> float | None:
    """Return when a key of that terminal was last read, UTC seconds, to 8 s (the kernel's own caution)."""
    try:
        return os.stat(tty).st_atime  # noqa: PTH116  # 10 µs
    except OSError:
        return None


def is_read_out(tty: str) -> bool:
    """Whether the processes at that terminal have read all that was typed there; True where that is unknown."""
    try:
        descriptor = os.open(tty, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return True
    try:
        return not any(fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)))
    except OSError:
        return True
    finally:
        os.close(descriptor)


TERMINAL_PREFIXES = ("/dev/pts/", "/dev/tty")


def _ps(pid: int, what: str) -> str:
    """Query ps, where /proc is missing, as on macOS; once per client, never on a hook.

    In the form of the client's own files (2.1.328).
    """
    import subprocess  # noqa: PLC0415  # 10 ms, needed here only

    env = {**os.environ, "LC_ALL": "C", "TZ": "UTC"}
    command = ["/bin/ps", "-o", what, "-p", str(pid)]
    asked = subprocess.run(command, capture_output=True, check=False, env=env)  # noqa: TID251
    return asked.stdout.decode("ascii", "replace").strip()


START_TIME_FIELD = 19
"""Index in proc(5)'s stat, counted from the state: the 22nd field."""


def is_same_and_alive(pid: int, since: str) -> bool:
    """Whether exactly that process runs: another may have its pid now."""
    return alive(pid) and (not since or start_time(pid) == since)


def descends_from(pid: int, ancestor: int) -> bool:
    """Whether `pid` is that process or one below it. True without /proc, as on macOS."""
    if not PROC.joinpath("self").exists():
        return True
    while pid > 1:
        if pid == ancestor:
            return True
        pid = parent(pid)
    return False


def descendants(pid: int) -> list[int]:
    """Return children, their children and so on, parents first; empty without /proc."""
    children: dict[int, list[int]] = {}
    for number in _all():
        children.setdefault(parent(number), []).append(number)
    found: list[int] = []
    waiting = [pid]
    while waiting:
        fresh = children.get(waiting.pop(0), [])
        found.extend(fresh)
        waiting.extend(fresh)
    return found


def pids_with_variable(variable: str, value: str) -> list[int]:
    """Return processes of this user that were started with that in their environment, whatever their parent is now."""
    wanted = f"{variable}={value}".encode()
    return [pid for pid in _all() if wanted in _environment(pid)]


def started_with(pid: int) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return environment and arguments of a process of this user; empty without /proc."""
    pairs = (os.fsdecode(pair).partition("=") for pair in _environment(pid))
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[1:-1]
    except OSError:
        arguments = []
    return {name: value for name, _, value in pairs if name}, tuple(map(os.fsdecode, arguments))


def holds_socket(pid: int, inode: str) -> bool:
    """Whether the process has that socket open; False if it is gone or another user's."""
    try:
        return any(str(entry.readlink()) == f"socket:[{inode}]" for entry in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False


def signal_all(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def parent(pid: int) -> int:
    """Return the parent's pid, 0 if the process is gone."""
    fields = _fields(pid)
    return int(fields[1]) if len(fields) > 1 else 0


def _all() -> list[int]:
    try:
        return [int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit()]
    except OSError:
        return []


def _fields(pid: int) -> list[bytes]:
    """Return state, parent, … of proc(5)'s stat: the fields after the name, which may contain any character."""
    try:
        return read_small_file(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    except OSError:
        return []


def read_small_file(path: str) -> bytes:
    """Return at most 64 KiB. 800 small files a second are read for a hundred clients: `open` would double the cost."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 1 << 16)
    finally:
        os.close(descriptor)
