"""The file that takes everything a terminal shows, from its first byte on."""

from __future__ import annotations

import os
import re
import shlex
from typing import TYPE_CHECKING

from sm.tmux.names import literal_time

if TYPE_CHECKING:
    from pathlib import Path

    from sm.tmux.client import Command

_PASTE_MODE = re.compile(rb"\x1b\[\?(?:\d+;)*2004(?:;\d+)*([hl])|\x1bc")
_LONGEST_PASTE_MODE = 64
_CHUNK = 1 << 18
_SCANNED = 8 << 20


def create_log(log: Path) -> None:
    """Make it ours before tmux's child writes to it with the person's umask."""
    os.close(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600))


def log_command(target: str, log: Path) -> Command:
    """Without `-o`, which switches a running log off."""
    return ("pipe-pane", "-t", target, literal_time(f"exec cat >> {shlex.quote(os.fspath(log))}"))


def paste_mode(log: Path) -> bool | None:
    """Whether the application has bracketed paste on; None if the mark is not in the last megabytes.

    tmux 3.3a keeps the mode but has no format for it. The log runs a moment behind the screen.
    """
    with log.open("rb") as stream:
        size = end = stream.seek(0, os.SEEK_END)
        tail = b""
        while end > max(0, size - _SCANNED):
            start = max(0, end - _CHUNK)
            stream.seek(start)
            tail = stream.read(end - start) + tail[:_LONGEST_PASTE_MODE]
            marks = _PASTE_MODE.findall(tail)
            if marks:
                return bool(marks[-1] == b"h")
            end = start
    return None if end else False
