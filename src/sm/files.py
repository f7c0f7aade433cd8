"""Reads files that another user may have put there: regular ones only, up to a size, and never blocking."""

from __future__ import annotations

import errno
import os
import stat

TYPE_CHECKING = False  # `typing` costs 3 ms, and agents' commands load this
if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

CHUNK_BYTES = 1 << 16
# Without O_NONBLOCK a FIFO would block until its first writer; a terminal must not become ours.
FILE_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
DIRECTORY_FLAGS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""For a directory on the path of a file: a link is refused."""


def is_git_entry(entry: Path) -> bool:
    """Return whether git stops its search upwards at this `.git`: at a file, or at a directory with a HEAD.

    An empty one is left by the sandbox of Codex in each directory that may be written, `/tmp` among them (0.171.0).
    """
    try:
        return entry.is_file() or (entry / "HEAD").exists()
    except OSError:
        return False


def read_regular(path: Path, max_bytes: int) -> tuple[bytes, os.stat_result]:
    """Return the content and the file's status; OSError if it is no regular file, or larger than `max_bytes`."""
    return _content(path, *_opened(path), max_bytes)


def read_in_place(path: Path, max_bytes: int) -> tuple[bytes, os.stat_result]:
    """Read a file by its resolved path, as `read_regular` does; OSError if any part of the path is a link now."""
    return _content(path, *_checked(path, _open_by_parts(path)), max_bytes)


def _content(path: Path, descriptor: int, found: os.stat_result, max_bytes: int) -> tuple[bytes, os.stat_result]:
    try:
        content = _read(descriptor, max_bytes) if found.st_size <= max_bytes else None
    finally:
        os.close(descriptor)
    if content is None or len(content) > max_bytes:
        raise OSError(errno.EFBIG, f"Larger than {max_bytes:,} bytes", str(path))
    return content, found


def open_regular(path: Path) -> BinaryIO:
    """Open a file to be read in pieces; OSError if it is no regular file."""
    return os.fdopen(_opened(path)[0], "rb")


def _opened(path: Path) -> tuple[int, os.stat_result]:
    try:
        return _checked(path, os.open(path, FILE_FLAGS))
    except ValueError:
        raise OSError(errno.EINVAL, "No file can have that name", str(path)) from None


def _open_by_parts(path: Path) -> int:
    """Return a descriptor of the file, opened part by part from the root, so that no part can be a link."""
    place = os.open("/", DIRECTORY_FLAGS)
    try:
        for part in path.parts[1:-1]:
            inner = os.open(part, DIRECTORY_FLAGS, dir_fd=place)
            os.close(place)
            place = inner
        found = os.stat(path.name or ".", dir_fd=place, follow_symlinks=False)
        if stat.S_ISCHR(found.st_mode) or stat.S_ISBLK(found.st_mode):  # to open a device may be to use it
            raise OSError(errno.EINVAL, "Not a regular file", str(path))
        return os.open(path.name or ".", FILE_FLAGS | os.O_NOFOLLOW, dir_fd=place)
    finally:
        os.close(place)


def _checked(path: Path, descriptor: int) -> tuple[int, os.stat_result]:
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        if stat.S_ISDIR(found.st_mode):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        raise OSError(errno.EINVAL, "Not a regular file", str(path))
    return descriptor, found


def _read(descriptor: int, max_bytes: int) -> bytes:
    """Read up to one byte more than `max_bytes`; the size of a file that grows, or of one in /proc, is unreliable."""
    content = b""
    while len(content) <= max_bytes and (piece := os.read(descriptor, CHUNK_BYTES)):
        content += piece
    return content
