"""Which files may be handed off, and what is read of them.

A path is resolved once, checked, and opened part by part without following a link, so that what was checked is what is
read. An agent hands off files of its own directory; a secret of `sm` is always refused.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sm.archive.handoffs.channels import repository_root
from sm.archive.redaction.redact import IsOwnToken
from sm.core.errors import SmError, error
from sm.core.model.handoff import MAX_BYTES, head_field, split_head
from sm.files import read_in_place

MTIME_TOLERANCE_S = 2.0
"""Seconds by which a file may be older than its conversation: file systems round."""
DOCUMENT_DIRECTORY = ".sm"
"""The directory of documents in a project."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file that is to be handed off."""

    text: str
    """Without our head lines, which a copy that is handed off again has."""
    mtime: float
    now: float
    """When it was read, by the clock of its file system."""
    conversation: str = ""
    """The one it was written in, where its head lines tell."""

    def written(self, at: float) -> float:
        """Return when it was last written, by our clock, which says `at`.

        Its age is taken by the file system's clock alone, which may differ from ours. Where that clock was set forward
        after the write, the file looks older than it is; its stamp was right when it was made.
        """
        return max(at - (self.now - self.mtime), self.mtime)


def resolved(path: Path) -> Path:
    try:
        return Path(os.path.realpath(path))
    except ValueError:  # NUL
        return path


def is_at_hand(place: Path, directory: str) -> bool:
    """Whether a resolved path is in the session's directory, or a document of its repository or of a worktree of it."""
    own = Path(os.path.realpath(directory))
    if place.is_relative_to(own):
        return True
    if place.parent.name != DOCUMENT_DIRECTORY:
        return False
    root = repository_root(own)
    return root is not None and repository_root(place.parent.parent) == root


def outside(path: Path, directory: str, own: str) -> SmError:
    return error(
        "file_unfit",
        f"Cannot hand off {path}: it is outside this session's directory {directory}",
        f"write the document to {own}, or pass it on standard input: sm handoff -",
    )


def read_source(path: Path, secrets: Sequence[Path], is_own_token: IsOwnToken) -> SourceFile:
    """Return what a file holds; SmError with the reason if it cannot be handed off."""
    place = resolved(path)
    try:
        content, found = read_in_place(place, MAX_BYTES)
    except FileNotFoundError:
        raise error("file_not_found", f"File not found: {path}", "write the handoff document first") from None
    except (OSError, ValueError) as problem:
        words = (getattr(problem, "strerror", None) or "no file can have that name").lower()
        raise _unfit(path, words if words.startswith("is ") else f"cannot be read ({words})") from problem
    if found.st_uid != os.getuid():
        raise _unfit(path, "belongs to another user")
    if not content.strip():
        raise _unfit(path, "is empty")
    text = content.decode("utf-8", "replace")
    if _is_one_of(found, secrets) or is_own_token(text.strip()):
        raise _unfit(path, "is a secret of sm")
    return SourceFile(split_head(text)[1], found.st_mtime, _now_at(place.parent), head_field(text, "SESSION"))


def _unfit(path: Path, reason: str) -> SmError:
    return error("file_unfit", f"Cannot hand off {path}: it {reason}", "write the document to a plain file of yours")


def _is_one_of(found: os.stat_result, secrets: Sequence[Path]) -> bool:
    """Compares inodes: a hard link has another name."""
    return any(
        (status.st_dev, status.st_ino) == (found.st_dev, found.st_ino) for status in map(_stat, secrets) if status
    )


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def _now_at(directory: Path) -> float:
    """Return the time by the clock that stamps files there: that of a file without a name, which is gone at once."""
    try:
        descriptor = os.open(directory, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    except (OSError, AttributeError):  # a file system, or a system, without such files
        return time.time()  # noqa: TID251  # a file's time is the machine's
    try:
        return os.fstat(descriptor).st_mtime
    finally:
        os.close(descriptor)


def check_age(path: Path, written: float, started: float) -> None:
    """Refuse a file from before the conversation: it cannot say what happened in it."""
    if written + MTIME_TOLERANCE_S < started:
        age = f"{started - written:,.0f} s before this conversation began"
        raise error("file_old", f"Cannot hand off {path}: it was last written {age}", "write the document again")
