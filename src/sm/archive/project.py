"""What `sm` leaves in a project: three documents under `.sm/`, which git must not pick up.

They are listed in the repository's own `info/exclude`, which is no tracked file; `.gitignore` is the project's.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from sm.files import read_regular

DOCUMENTS = ("**/.sm/handoff.md", "**/.sm/handoff-auto.md", "**/.sm/continue-prompt.md")
CONTINUATION_PROMPTS = (".sm/continue-prompt.md", ".ll/ll-continue-prompt.md")
"""The last is another tool's."""
FOUND_IN_PROJECT = (".sm/handoff.md", *CONTINUATION_PROMPTS)
"""Where a person or an agent may have left a document."""
POINTER = "gitdir: "
GIT_TIMEOUT = 2.0
MAX_BYTES = 1 << 20
CAREFUL = ("-c", "core.fsmonitor=false", "--no-optional-locks")
"""A repository may name a program as its fsmonitor, which would be run."""


def keep_out_of_git(directory: Path) -> None:
    """List the documents in the exclude file of the repository around the directory, if any. OSError if it can't."""
    repository = git_directory(directory)
    if repository is None:
        return
    exclude = repository / "info" / "exclude"
    known = _text(exclude) if os.path.lexists(exclude) else ""
    missing = [pattern for pattern in DOCUMENTS if pattern not in known.splitlines()]
    if not missing:
        return
    exclude.parent.mkdir(exist_ok=True)
    separator = "" if not known or known.endswith("\n") else "\n"
    with exclude.open("a", encoding="utf-8") as file:
        file.write(separator + "".join(f"{pattern}\n" for pattern in missing))


def is_tracked(path: Path) -> bool:
    """Whether git tracks a file. False where git cannot tell; never called on the event loop."""
    if git_directory(path.parent) is None:
        return False
    command = ["git", *CAREFUL, "ls-files", "--error-unmatch", "--", path.name]
    try:
        asked = subprocess.run(  # noqa: TID251  # in a thread
            command, cwd=path.parent, capture_output=True, timeout=GIT_TIMEOUT, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return asked.returncode == 0


def git_directory(directory: Path) -> Path | None:
    """The repository's common directory: of a worktree that of the main one, where git reads `info/exclude`."""
    entry = git_entry(directory)
    return None if entry is None else _repository(entry)


def git_entry(directory: Path) -> Path | None:
    """The `.git` that git would go by in the directory."""
    place = Path(os.path.realpath(directory))
    return next((one / ".git" for one in (place, *place.parents) if _is_entry(one / ".git")), None)


def _is_entry(entry: Path) -> bool:
    """Whether git goes no further up: at a file, or at a directory with a HEAD."""
    try:
        return entry.is_file() or (entry / "HEAD").exists()
    except OSError:
        return False


def _repository(entry: Path) -> Path | None:
    """The common directory that a `.git` stands for; None for a file that leads nowhere, as git cannot follow it."""
    try:
        if entry.is_dir():
            return entry
        text = _text(entry).strip()
        if not text.startswith(POINTER):
            return None
        own = entry.parent / text.removeprefix(POINTER)
        common = own / "commondir"
        found = own / _text(common).strip() if common.exists() else own
        return found if (found / "HEAD").exists() else None
    except OSError:
        return None


def _text(path: Path) -> str:
    return read_regular(path, MAX_BYTES)[0].decode("utf-8", "surrogateescape")
