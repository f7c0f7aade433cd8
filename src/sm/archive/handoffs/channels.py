"""Which project a directory belongs to, however it is written: links, letter case, composed or decomposed letters.

A channel's name is the repository's root as the file system itself spells it, so that every spelling of one place gives
one channel, and no two places share one. Worktrees belong to their repository: git's common directory decides.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable, Mapping
from pathlib import Path

from sm.archive.handoffs.project_directory import git_directory, git_entry, own_directory, text_of
from sm.core.model.channel import channel_of

RESPELLINGS: tuple[Callable[[str], str], ...] = (
    str.swapcase,
    lambda name: unicodedata.normalize("NFC", name),
    lambda name: unicodedata.normalize("NFD", name),
)
"""Spellings that some file systems do not tell apart."""


def channel_at(directory: str, channels: Mapping[str, str]) -> str:
    """Return a directory's channel: that of the longest configured path around it, else its repository, else itself."""
    place = Path(spelled(directory))
    return channel_of(str(place), _as_spelled(channels), repository_root(place))


def _as_spelled(channels: Mapping[str, str]) -> dict[str, str]:
    """Return the configured paths as the file system spells them; one that does not exist stays as it is written."""
    return {spelled(os.path.expanduser(path)): name for path, name in channels.items()}  # noqa: PTH111  # plain text


def spelled(path: str) -> str:
    """Return the path without links, each part as its directory lists it; what does not exist stays as it is."""
    parts = Path(os.path.realpath(path)).parts
    place = Path(parts[0])
    for part in parts[1:]:
        place /= _listed(place, part)
    return str(place)


def _listed(parent: Path, name: str) -> str:
    """Return the name under which a directory lists an entry. Looked up only where another spelling finds it too."""
    try:
        found = (parent / name).stat(follow_symlinks=False)
        others = {respell(name) for respell in RESPELLINGS} - {name}
        if not any(_is_same_file(parent / other, found) for other in others):
            return name
        names = os.listdir(parent)  # noqa: PTH208  # names alone
        if name in names:
            return name
        return next((name for name in names if _is_same_file(parent / name, found)), name)
    except OSError:
        return name


def _is_same_file(path: Path, found: os.stat_result) -> bool:
    try:
        other = path.stat(follow_symlinks=False)
    except OSError:
        return False
    return (other.st_dev, other.st_ino) == (found.st_dev, found.st_ino)


def belongs_to(own: Path, other: Path) -> bool:
    """Whether a directory is in another one, or in the same repository or another worktree of it."""
    try:
        place = Path(os.path.realpath(other))
    except (OSError, ValueError):  # NUL, or links in a circle
        return False
    if place.is_relative_to(os.path.realpath(own)):
        return True
    root = repository_root(own)
    return root is not None and root == repository_root(place)


def repository_root(directory: Path) -> str | None:
    """Return the root of the repository around a directory: where its `.git` is, else (bare, submodule) the repository.

    A worktree whose repository is gone is its own root.
    """
    entry = git_entry(directory)
    if entry is None:
        return None
    place = Path(os.path.realpath(git_directory(directory) or entry))
    return spelled(str(place.parent if place.name == ".git" else place))


def work_tree(directory: str) -> str | None:
    """Return the root of the work tree around a directory; None outside of any."""
    entry = git_entry(Path(directory))
    return None if entry is None else str(entry.parent)


BRANCH_PREFIX = "ref: refs/heads/"
SHORT_COMMIT_CHARS = 12


def branch_at(directory: str) -> str:
    """Return what is checked out in the work tree around a directory: a branch, or the beginning of a commit's id."""
    entry = git_entry(Path(directory))
    try:
        head = text_of(own_directory(entry) / "HEAD").strip() if entry is not None else ""
    except OSError:
        return ""
    if head.startswith(BRANCH_PREFIX):
        branch = head.removeprefix(BRANCH_PREFIX)
        return "" if branch == ".invalid" else branch  # a repository whose branches are in tables
    return head[:SHORT_COMMIT_CHARS] if head.isalnum() else ""
