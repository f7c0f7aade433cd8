"""Reads a project's branch, uncommitted changes and latest commits from git; empty where git does not answer in time.

No program that the repository's own configuration names is run, no lock is taken, and each command has a timeout.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from sm.digest.document import Repository

GIT_TIMEOUT_S = 2.0
"""For each of the three commands; a status over millions of files takes longer."""
MAX_OUTPUT_BYTES = 256 * 1024
MAX_COMMITS = 5
SAFE_OPTIONS = (
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
INHERITED_VARIABLES = ("PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR")
FIXED_VARIABLES = {"LC_ALL": "C.UTF-8", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1"}
MOVED_STATUSES = "RC"
"""Renamed, copied."""
TIMED_OUT = "git did not answer in time, so what is not committed is unknown"


def repository(directory: str) -> Repository:
    """Return what git says about the work tree around the directory; empty outside of any."""
    git = shutil.which("git")
    if git is None or not os.path.isdir(directory):  # noqa: PTH112  # False, not an error, for a path with NUL
        return Repository()
    branch = _git_output(git, directory, "symbolic-ref", "--short", "-q", "HEAD")
    status = _git_output(
        git, directory, "status", "--porcelain=v1", "-z", "--ignore-submodules=all", "--no-ahead-behind"
    )
    if status is None and branch is None:
        return Repository()
    commits = _git_output(git, directory, "log", f"-{MAX_COMMITS}", "--format=%h %s", "--no-decorate")
    return Repository(
        branch=(branch or "").strip(),
        status=tuple(_entries(status or "")),
        commits=tuple((commits or "").splitlines()),
        problem=TIMED_OUT if status is None else "",
    )


def _entries(status: str) -> Iterator[str]:
    """Return a line for each path. With -z names are not quoted, and a moved file is followed by its old name."""
    fields = iter(status.split("\0"))
    for field in fields:
        if not field:
            continue
        shown = field if field[0] not in MOVED_STATUSES else f"{field[:3]}{next(fields, '')} -> {field[3:]}"
        yield "".join(character if character.isprintable() else "?" for character in shown)


def _git_output(git: str, directory: str, *question: str) -> str | None:
    """Return the output; None if git fails or does not answer in time."""
    environment = {name: os.environ[name] for name in INHERITED_VARIABLES if name in os.environ} | FIXED_VARIABLES
    try:
        with subprocess.Popen(
            [git, *SAFE_OPTIONS, *question],
            cwd=Path(directory),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process:
            try:
                output, _ = process.communicate(timeout=GIT_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                return None
    except OSError:
        return None
    return output[:MAX_OUTPUT_BYTES].decode("utf-8", "replace") if process.returncode == 0 else None
