"""Which project a handoff belongs to: the longest configured path that holds the directory, else its repository.

A directory without a repository is a project of its own: the next one has nothing to do with it.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

SLUG_LENGTH = 40


def channel_of(directory: str, channels: Mapping[str, str], repository: str | None) -> str:
    """Return the channel's name; `repository` is the root of the repository the directory is in, if any.

    A path that is written in other Unicode than the directory's counts as well, after one that is written the same.
    """
    holding = [path for path in channels if _holds(path, directory)]
    if holding:
        return channels[max(holding, key=lambda path: (len(PurePosixPath(path).parts), directory.startswith(path)))]
    return repository if repository is not None else directory


@dataclass(frozen=True, slots=True)
class Location:
    """Where a session works: two worktrees of one repository are one project and two locations."""

    directory: str
    branch: str = ""

    def differs(self, other: Location) -> bool:
        """A branch that is not known differs from none."""
        known = bool(self.branch and other.branch)
        return self.directory != other.directory or (known and self.branch != other.branch)

    @property
    def said(self) -> str:
        return f"{self.directory} (branch {self.branch})" if self.branch else self.directory


def _holds(path: str, directory: str) -> bool:
    place = PurePosixPath(unicodedata.normalize("NFC", directory))
    return place.is_relative_to(unicodedata.normalize("NFC", path))


def channel_directory(channel: str) -> str:
    """A directory name that no two channels share: what it is called, and a hash of the whole."""
    tail = channel.rstrip("/").rpartition("/")[2]
    slug = re.sub(r"[^A-Za-z0-9]+", "-", tail).strip("-")[:SLUG_LENGTH] or "channel"
    return f"{slug}-{hashlib.sha256(channel.encode('utf-8', 'replace')).hexdigest()[:8]}"
