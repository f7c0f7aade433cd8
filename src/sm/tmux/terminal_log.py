"""The file that takes everything a terminal shows, from its first byte on.

Rotating the log puts a new file in its place. The writer opens the file again every READS_PER_OPENING
reads and so follows by itself, with no byte lost: a second `pipe-pane` discards what tmux has not yet written (3.3a).
"""

from __future__ import annotations

import errno
import os
import re
import shlex
from typing import TYPE_CHECKING

from sm.tmux.names import literal_time

if TYPE_CHECKING:
    from pathlib import Path

    from sm.tmux.client import Command

_PASTE_MODE = re.compile(rb"\x1b\[\?(?:\d+;)*2004(?:;\d+)*([hl])|\x1bc")
_MAX_PASTE_MODE_BYTES = 64
_CHUNK_BYTES = 1 << 18
_MAX_SCANNED_BYTES = 8 << 20
READS_PER_OPENING = 256
"""At most 64 KiB each: so much may still go into a log that was rotated."""
_WRITER = (
    "umask 077; while said=$(LC_ALL=C dd bs=65536 count={writes} 2>&1 >>{log}); do"
    " read=${{said%% records in*}}; read=${{read##*[!0-9+]}};"
    " [ $((${{read%+*}} + ${{read#*+}})) = {writes} ] || exit; done"
)
"""POSIX `dd` writes what each read returned and reads nothing beyond `count`. It prints `WHOLE+PARTIAL records in`: if
that is less than `count`, the pipe has ended."""


def create_log(log: Path) -> None:
    """Create the log with mode 0600 before tmux's child writes to it with the user's umask."""
    os.close(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600))


GAP = b"\r\n[sm: a part of what the terminal showed is missing here: this log could not be written]\r\n"


def mark_gap(log: Path) -> None:
    """Note in the log that something is missing; OSError while it cannot be written, as on a full disk."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        if os.write(descriptor, GAP) < len(GAP):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(descriptor)


def log_command(target: str, log: Path) -> Command:
    """Return the command that logs a pane; without `-o`, which switches a running log off."""
    writer = _WRITER.format(writes=READS_PER_OPENING, log=shlex.quote(os.fspath(log)))
    return ("pipe-pane", "-t", target, literal_time(writer))


def paste_mode(log: Path) -> bool | None:
    """Whether the application has bracketed paste on; None if the mark is not in the last megabytes of the log.

    tmux 3.3a keeps the mode but has no format for it. The log runs a moment behind the screen.
    """
    with log.open("rb") as stream:
        size = end = stream.seek(0, os.SEEK_END)
        tail = b""
        while end > max(0, size - _MAX_SCANNED_BYTES):
            start = max(0, end - _CHUNK_BYTES)
            stream.seek(start)
            tail = stream.read(end - start) + tail[:_MAX_PASTE_MODE_BYTES]
            marks = _PASTE_MODE.findall(tail)
            if marks:
                return bool(marks[-1] == b"h")
            end = start
    older = end or any(log.parent.glob(f"{log.name}.*"))
    return None if older else False
