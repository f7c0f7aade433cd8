"""Reads files that others may have put where we look: regular ones only, up to a bound, and waiting for nobody."""

from __future__ import annotations

import errno
import os
import stat

TYPE_CHECKING = False  # `typing` costs 3 ms, and agents' commands load this
if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

PIECE = 1 << 16
# Without O_NONBLOCK a FIFO would hold us until somebody writes to it; a terminal must not become ours.
READING = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
PASSING = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""How a directory is opened on the way to a file: a link is refused."""


def read_regular(path: Path, most: int) -> tuple[bytes, os.stat_result]:
    """The content, and whose file it is; OSError for whatever else it is, and for one larger than `most` bytes."""
    return _content(path, *_opened(path), most)


def read_in_place(path: Path, most: int) -> tuple[bytes, os.stat_result]:
    """The same of a path that is resolved already: OSError where any part of it is a link by now."""
    return _content(path, *_checked(path, _reached(path)), most)


def _content(path: Path, descriptor: int, found: os.stat_result, most: int) -> tuple[bytes, os.stat_result]:
    try:
        content = _read(descriptor, most) if found.st_size <= most else None
    finally:
        os.close(descriptor)
    if content is None or len(content) > most:
        raise OSError(errno.EFBIG, f"Larger than {most:,} bytes", str(path))
    return content, found


def open_regular(path: Path) -> BinaryIO:
    """To be read piece by piece; OSError for whatever is no regular file."""
    return os.fdopen(_opened(path)[0], "rb")


def _opened(path: Path) -> tuple[int, os.stat_result]:
    try:
        return _checked(path, os.open(path, READING))
    except ValueError:
        raise OSError(errno.EINVAL, "No file can have that name", str(path)) from None


def _reached(path: Path) -> int:
    """A descriptor of the file, opened part by part from the root: nothing on the way can have become a link."""
    place = os.open("/", PASSING)
    try:
        for part in path.parts[1:-1]:
            inner = os.open(part, PASSING, dir_fd=place)
            os.close(place)
            place = inner
        found = os.stat(path.name or ".", dir_fd=place, follow_symlinks=False)
        if stat.S_ISCHR(found.st_mode) or stat.S_ISBLK(found.st_mode):  # to open a device may be to use it
            raise OSError(errno.EINVAL, "Not a regular file", str(path))
        return os.open(path.name or ".", READING | os.O_NOFOLLOW, dir_fd=place)
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


def _read(descriptor: int, most: int) -> bytes:
    """Up to one byte more than `most`; the size of a file that grows, or of one in /proc, says nothing."""
    content = b""
    while len(content) <= most and (piece := os.read(descriptor, PIECE)):
        content += piece
    return content
