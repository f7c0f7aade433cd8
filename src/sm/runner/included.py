"""`.worktreeinclude`: files that git ignores, and that a worktree needs all the same, as a local configuration.

Each line is a pattern as in .gitignore. What it names is copied only where git ignores it too: it can be in no commit.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from sm.core.errors import error
from sm.runner.git import git, paths

NAME = ".worktreeinclude"
LISTED = ("ls-files", "-z", "--others", "--ignored")
TEMPORARY = "sm-include.tmp"


def include(top: Path, tree: Path) -> None:
    """Copy what it names from the main checkout to a worktree, where that has nothing of the name."""
    patterns = top / NAME
    if patterns.is_symlink() or not patterns.is_file():
        return
    ignored = set(paths(top, *LISTED, "--exclude-standard"))
    temporary = Path(tree, git(tree, "rev-parse", "--git-dir").strip(), TEMPORARY)
    for path in paths(top, *LISTED, f"--exclude-from={patterns}"):
        if path in ignored and not path.endswith("/"):
            _copy(top / path, tree / path, tree, temporary)


def _copy(source: Path, wanted: Path, tree: Path, temporary: Path) -> None:
    """Copy one file, or a link as a link, so that it is there whole or not at all."""
    if os.path.lexists(wanted):
        return
    above = next(parent for parent in wanted.parents if os.path.lexists(parent))
    if not above.resolve().is_relative_to(tree.resolve()):
        hint = f"remove the link, or the line of {NAME} that names it"
        raise error("file_unusable", f"{wanted} is reached by a link out of its worktree", hint)
    wanted.parent.mkdir(parents=True, exist_ok=True)
    temporary.unlink(missing_ok=True)
    shutil.copy2(source, temporary, follow_symlinks=False)
    shutil.move(temporary, wanted)
