"""What `sm` leaves in a project: two documents under `.sm/`, which git must not pick up.

They are listed in the repository's own `info/exclude`, which is no tracked file; `.gitignore` is the project's.
"""

from __future__ import annotations

import os
from pathlib import Path

DOCUMENTS = ("**/.sm/handoff.md", "**/.sm/continue-prompt.md")
POINTER = "gitdir: "


def keep_out_of_git(directory: Path) -> None:
    """List the documents in the exclude file of the repository around the directory, if any. OSError if it can't."""
    repository = git_directory(directory)
    if repository is None:
        return
    exclude = repository / "info" / "exclude"
    known = exclude.read_text(encoding="utf-8", errors="surrogateescape") if exclude.exists() else ""
    missing = [pattern for pattern in DOCUMENTS if pattern not in known.splitlines()]
    if not missing:
        return
    exclude.parent.mkdir(exist_ok=True)
    separator = "" if not known or known.endswith("\n") else "\n"
    with exclude.open("a", encoding="utf-8") as file:
        file.write(separator + "".join(f"{pattern}\n" for pattern in missing))


def git_directory(directory: Path) -> Path | None:
    """The repository's common directory: of a worktree that of the main one, where git reads `info/exclude`."""
    place = Path(os.path.realpath(directory))
    found = next((one / ".git" for one in (place, *place.parents) if (one / ".git").exists()), None)
    if found is None or found.is_dir():
        return found
    text = found.read_text(encoding="utf-8", errors="surrogateescape").strip()
    if not text.startswith(POINTER):
        return None
    own = found.parent / text.removeprefix(POINTER)
    common = own / "commondir"
    return own / common.read_text(encoding="utf-8").strip() if common.exists() else own
