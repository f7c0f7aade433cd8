"""Runs git: as a list of arguments, in a directory that is named, without a question to anybody.

Git locks a file by another beside it, and gives up at once where that is there. It is there while another git works, as
the user's own, or one whose runner was killed: that is waited for. One that is older than the machine's last start is
what a power cut has left, and is removed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from pathlib import Path

from sm.clock import started_at
from sm.core.errors import error

GIT_TIMEOUT_S = 300.0
"""A checkout of a large repository takes its time."""
OPTIONS = (
    "--literal-pathspecs",
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.quotePath=false"),
    *("-c", "log.showSignature=false"),
)
"""A path is never a pattern, and output does not depend on the user's configuration."""
VARIABLES = {"LC_ALL": "C.UTF-8", "GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": "true", "GIT_MERGE_AUTOEDIT": "no"}
MAX_SHOWN = 300
"""Characters of what git has said that an error repeats."""
LOCKED = re.compile(rb"Unable to create '(.+\.lock)': File exists")
LOCK_TIMEOUT_S, LOCK_INTERVAL_S = 20.0, 0.2
"""For what git itself does under a lock; an editor that a commit has open holds one for longer."""


def git(directory: str | Path, *arguments: str) -> str:
    """Return the output; SmError with git's own words if it fails."""
    done = _run(directory, arguments)
    if done.returncode:
        words = os.fsdecode(done.stderr or done.stdout).strip()[-MAX_SHOWN:]
        raise error("git_failed", f"git {arguments[0]} failed in {directory}: {words}", "the branch is as it was")
    return os.fsdecode(done.stdout)


def answer(directory: str | Path, *arguments: str) -> str | None:
    """Return the output without the line's end; None if git says no."""
    done = _run(directory, arguments)
    return None if done.returncode else os.fsdecode(done.stdout).rstrip("\n")


def paths(directory: str | Path, *arguments: str) -> tuple[str, ...]:
    """Return the paths that a command lists with -z."""
    return tuple(path for path in git(directory, *arguments).split("\0") if path)


def _run(directory: str | Path, arguments: tuple[str, ...]) -> subprocess.CompletedProcess[bytes]:
    """Return what git has answered, once no other git holds a lock that it needs."""
    for _ in range(int(LOCK_TIMEOUT_S / LOCK_INTERVAL_S)):
        done = _once(directory, arguments)
        locked = LOCKED.search(done.stderr) if done.returncode else None
        if locked is None:
            return done
        lock = Path(os.fsdecode(locked[1]))
        if not _removed_as_left(lock):
            time.sleep(LOCK_INTERVAL_S)  # no loop runs here
    hint = f"it is tried again; where no git and no editor of a commit is open there: rm '{lock}'"
    raise error("git_locked", f"another git holds {lock}", hint)


def _removed_as_left(lock: Path) -> bool:
    try:
        left = lock.stat().st_mtime < started_at()
    except FileNotFoundError:
        return True
    if left:
        lock.unlink(missing_ok=True)
    return left


def _once(directory: str | Path, arguments: tuple[str, ...]) -> subprocess.CompletedProcess[bytes]:
    program = shutil.which("git")
    if program is None:
        raise error("no_repository", "git is not on PATH", "install git")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        return subprocess.run(  # noqa: TID251  # no loop runs here
            [program, "-C", str(directory), *OPTIONS, *arguments],
            env={**kept, **VARIABLES},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=GIT_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        raise error("git_failed", f"git {arguments[0]} took too long in {directory}", "try again") from None
