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


def read_regular(path: Path, most: int) -> tuple[bytes, os.stat_result]:
    """The content, and whose file it is; OSError for whatever else it is, and for one larger than `most` bytes."""
    descriptor, found = _opened(path)
    try:
        content = _read(descriptor, most) if found.st_size <= most else None
    finally:
        os.close(descriptor)
    if content is None or len(content) > most:
        raise OSError(errno.EFBIG, f"Is larger than {most:,} bytes", str(path))
    return content, found


def open_regular(path: Path) -> BinaryIO:
    """To be read piece by piece; OSError for whatever is no regular file."""
    return os.fdopen(_opened(path)[0], "rb")


def _opened(path: Path) -> tuple[int, os.stat_result]:
    try:
        # Without O_NONBLOCK a FIFO would hold us until somebody writes to it; a terminal must not become ours.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except ValueError:
        raise OSError(errno.EINVAL, "No file can have that name", str(path)) from None
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        if stat.S_ISDIR(found.st_mode):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        raise OSError(errno.EINVAL, "Is no regular file", str(path))
    return descriptor, found


def _read(descriptor: int, most: int) -> bytes:
    """Up to one byte more than `most`; the size of a file that grows, or of one in /proc, says nothing."""
    content = b""
    while len(content) <= most and (piece := os.read(descriptor, PIECE)):
        content += piece
    return content
