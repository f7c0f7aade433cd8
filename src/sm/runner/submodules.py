"""Submodules in worktrees: each worktree has repositories of its own for them, which end with it."""

from __future__ import annotations

from pathlib import Path

from sm.runner.git import answer, git, paths

GITLINK = "160000"


def fill(tree: Path) -> None:
    """Check out the submodules of a new worktree; those that are there stay as they are."""
    if (tree / ".gitmodules").is_file() and any(line.startswith("-") for line in _states(tree)):
        git(tree, "submodule", "--quiet", "update", "--init", "--recursive")


def are_filled(tree: Path) -> bool:
    return (tree / ".gitmodules").is_file() and any(not line.startswith("-") for line in _states(tree))


def _states(tree: Path) -> list[str]:
    return (answer(tree, "submodule", "status") or "").splitlines()


def changed(tree: str, base: str, head: str) -> list[str]:
    """Return the submodules that differ between two commits: the commits of theirs are in this worktree alone."""
    found = iter(paths(tree, "diff", "--raw", "-z", "--no-renames", "--no-abbrev", "--no-ext-diff", base, head))
    return [path for modes, path in zip(found, found, strict=True) if GITLINK in modes.lstrip(":").split(" ")[:2]]
