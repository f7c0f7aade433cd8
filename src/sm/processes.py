"""What the system knows of a process: whether it runs, what started it, what it has started; and how all of it ends."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")


def alive(pid: int) -> bool:
    """True while the process runs; one that has ended and waits to be collected does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    fields = _fields(pid)
    return not fields or fields[0] != b"Z"


def stopped(pid: int) -> bool:
    """True while a signal, as Ctrl-Z sends one, keeps the process from running; False where there is no /proc."""
    return _fields(pid)[:1] in ([b"T"], [b"t"])


def born(pid: int) -> str:
    """When the process started, as the system tells: with its pid that names exactly one. Empty if it is gone."""
    fields = _fields(pid)
    if fields:
        return fields[STARTED].decode()
    if PROC.joinpath("self").exists():
        return ""
    return _asked_of_ps(pid, "lstart=")


def terminal(pid: int) -> str:
    """The terminal of the process, as `/dev/pts/3`; empty if it has none."""
    if not PROC.joinpath("self").exists():
        found = _asked_of_ps(pid, "tty=")
        return f"/dev/{found}" if found.strip("?-") else ""
    for number in range(3):
        with suppress(OSError):
            target = str(Path(f"/proc/{pid}/fd/{number}").readlink())
            if target.startswith(TERMINALS):
                return target
    return ""


TERMINALS = ("/dev/pts/", "/dev/tty")


def _asked_of_ps(pid: int, what: str) -> str:
    """Where there is no /proc, as on macOS; once per client, never on a hook.

    In the words of the client's own files (2.1.328).
    """
    import subprocess  # noqa: PLC0415  # 10 ms that only this needs

    env = {**os.environ, "LC_ALL": "C", "TZ": "UTC"}
    command = ["/bin/ps", "-o", what, "-p", str(pid)]
    asked = subprocess.run(command, capture_output=True, check=False, env=env)  # noqa: TID251
    return asked.stdout.decode("ascii", "replace").strip()


STARTED = 19
"""Of proc(5)'s stat, counted from the state: the 22nd field."""


def runs(pid: int, since: str) -> bool:
    """True while exactly that process runs: another may have got its number."""
    return alive(pid) and (not since or born(pid) == since)


def descends_from(pid: int, ancestor: int) -> bool:
    """True if `pid` is that process or one below it. Without /proc, as on macOS, everything may be."""
    if not PROC.joinpath("self").exists():
        return True
    while pid > 1:
        if pid == ancestor:
            return True
        pid = parent(pid)
    return False


def descendants(pid: int) -> list[int]:
    """Children, their children and so on, parents first; empty without /proc."""
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


def carrying(variable: str, value: str) -> list[int]:
    """Processes of ours that were started with that in their environment, whoever their parent is by now."""
    wanted = f"{variable}={value}".encode()
    return [pid for pid in _all() if wanted in _environment(pid)]


def started_with(pid: int) -> tuple[dict[str, str], tuple[str, ...]]:
    """Environment and arguments of a process of ours; empty without /proc."""
    pairs = (os.fsdecode(one).partition("=") for one in _environment(pid))
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[1:-1]
    except OSError:
        arguments = []
    return {name: value for name, _, value in pairs if name}, tuple(map(os.fsdecode, arguments))


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
    """The parent's pid, 0 if the process is gone."""
    fields = _fields(pid)
    return int(fields[1]) if len(fields) > 1 else 0


def _all() -> list[int]:
    try:
        return [int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit()]
    except OSError:
        return []


def _fields(pid: int) -> list[bytes]:
    """State, parent, … of proc(5)'s stat, behind the name, which may hold anything."""
    try:
        return start_of_file(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    except OSError:
        return []


def start_of_file(path: str) -> bytes:
    """At most 64 KiB. The watch reads 800 small files a second for a hundred clients: `open` would double the cost."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 1 << 16)
    finally:
        os.close(descriptor)
