"""What changes in the main checkout while an agent works in its worktree: by the user, or by an agent that left it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from sm.runner.git import git, paths
from sm.runner.merges import TRAILER, is_protected, named
from sm.runner.outcome import Workplace

MAX_FILES = 2_000
"""Of those that are not committed: a checkout with more is not looked at."""
MAX_COMMITS = 3


def uncommitted(top: Path, protected: Collection[str]) -> dict[str, str]:
    """Return the files that are changed or not tracked, each with what is another once it is written again."""
    entries = paths(top, "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all")
    found = [(entry[:2], entry[3:]) for entry in entries if not is_protected(entry[3:], protected)]
    return {path: f"{code} {_stamp(top / path)}" for code, path in found} if len(found) <= MAX_FILES else {}


def _stamp(path: Path) -> str:
    try:
        found = path.lstat()
    except OSError:
        return ""
    return f"{found.st_size} {found.st_mtime_ns}"


def remarks(top: Path, place: Workplace, before: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    """Return what the user should know: it is theirs, or an agent's that has left its worktree. Nothing is undone."""
    changed = [path for path, stamp in now.items() if before.get(path) != stamp]
    found = [f"changed in {top} at the same time, by you or by an agent: {named(changed)}"] if changed else []
    commits = _foreign_commits(top, place)
    if commits:
        more = f" and {len(commits) - MAX_COMMITS} more" if len(commits) > MAX_COMMITS else ""
        shown = ", ".join(commits[:MAX_COMMITS])
        found.append(f"committed on {place.target} at the same time, by you or by an agent: {shown}{more}")
    return tuple(found)


def _foreign_commits(top: Path, place: Workplace) -> list[str]:
    """Return the commits of the target since the work began that carry no mark of a run."""
    form = f"--format=%h%x00%(trailers:key={TRAILER},valueonly,separator=%x2C)"
    lines = git(top, "log", "--first-parent", form, f"{place.base}..refs/heads/{place.target}").splitlines()
    return [line.partition("\0")[0] for line in lines if not line.partition("\0")[2].strip()]
