"""What git says about a project: branch, uncommitted changes, latest commits. It may say nothing; it never holds us up.

Nothing of the repository's own configuration is run, no lock is taken, and each question has its time.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from sm.digest.document import Repository

SECONDS = 2.0
"""For each of the three questions; a status over millions of files does not come back in that time."""
MOST_OUTPUT = 256 * 1024
COMMITS = 5
SAFE = (
    "--no-pager",
    "--no-optional-locks",
    "--literal-pathspecs",
    *("-c", "core.fsmonitor=false"),
    *("-c", f"core.hooksPath={os.devnull}"),
    *("-c", "core.quotePath=false"),
    *("-c", "log.showSignature=false"),
    *("-c", "status.submoduleSummary=false"),
    *("-c", "submodule.recurse=false"),
)
KEPT = ("PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR")
OWN = {"LC_ALL": "C.UTF-8", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1"}
MOVED = "RC"
"""Renamed, copied."""
SLOW = "git did not answer in time, so what is not committed is unknown"


def repository(directory: str) -> Repository:
    """What git tells of the work tree around the directory; empty where there is none."""
    git = shutil.which("git")
    if git is None or not os.path.isdir(directory):  # noqa: PTH112  # False, not an error, for a path with NUL
        return Repository()
    branch = _asked(git, directory, "symbolic-ref", "--short", "-q", "HEAD")
    status = _asked(git, directory, "status", "--porcelain=v1", "-z", "--ignore-submodules=all", "--no-ahead-behind")
    if status is None and branch is None:
        return Repository()
    commits = _asked(git, directory, "log", f"-{COMMITS}", "--format=%h %s", "--no-decorate")
    return Repository(
        branch=(branch or "").strip(),
        status=tuple(_entries(status or "")),
        commits=tuple((commits or "").splitlines()),
        problem=SLOW if status is None else "",
    )


def _entries(status: str) -> Iterator[str]:
    """What git says of each path, in one line. Names come as they are; a moved one is followed by its old name."""
    fields = iter(status.split("\0"))
    for field in fields:
        if not field:
            continue
        shown = field if field[0] not in MOVED else f"{field[:3]}{next(fields, '')} -> {field[3:]}"
        yield "".join(one if one.isprintable() else "?" for one in shown)


def _asked(git: str, directory: str, *question: str) -> str | None:
    """The answer; None if there is none, or not in time."""
    environment = {name: os.environ[name] for name in KEPT if name in os.environ} | OWN
    try:
        with subprocess.Popen(
            [git, *SAFE, *question],
            cwd=Path(directory),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process:
            try:
                output, _ = process.communicate(timeout=SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                return None
    except OSError:
        return None
    return output[:MOST_OUTPUT].decode("utf-8", "replace") if process.returncode == 0 else None
