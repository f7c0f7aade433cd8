"""Names of sessions inside tmux, text that tmux must not expand, and the path of its socket.

A name that the user chose never reaches tmux as it is: session names come from `session_name` alone, and text that tmux
would expand goes through `literal` (formats) or `literal_time` (formats after strftime) first.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from pathlib import Path

ANCHOR = "anchor"
"""Session that keeps the connection attached. `session_name` always contains a hyphen, so no agent's has this name."""

MAX_SOCKET_PATH = 100
"""Bytes. sun_path holds 107 on Linux (measured) and 103 on macOS."""

_MAX_SLUG = 40


class SocketPathError(Exception):
    """No usable path for the socket; the message says which, and why."""


def session_name(name: str, session_id: str) -> str:
    """Return a name that the user recognises, made unique by the id: two names that map alike share no session."""
    slug = re.sub(r"[^A-Za-z0-9_-]+", "_", name)[:_MAX_SLUG].strip("-_")
    return f"{slug or 'sm'}-{session_id}"


def literal(text: str) -> str:
    """Escape text so that tmux's format expansion returns it unchanged.

    `##` is `#`, except that tmux leaves every run of `#` before a `[` alone (style marks; measured on 3.3a).
    """
    return re.sub(r"#+(?!\[|#)", lambda run: run[0] * 2, text)


def literal_time(text: str) -> str:
    """The same where tmux first applies strftime, as in `pipe-pane` and `display-message`."""
    return literal(text).replace("%", "%%")


def socket_path(home: Path, name: str) -> Path:
    """Return `home/name`, or where that is too long for a socket a path in a private directory below the temporary one.

    The second depends on TMPDIR: ask the running server for its path instead of computing it again.
    """
    path = home / name
    if len(os.fsencode(path)) <= MAX_SOCKET_PATH:
        _make_private(home)
        return path
    digest = hashlib.sha256(os.fsencode(home.absolute())).hexdigest()[:8]
    directory = Path(tempfile.gettempdir()) / f"sm-{os.getuid()}-{digest}"
    path = directory / name
    if (length := len(os.fsencode(path))) > MAX_SOCKET_PATH:
        raise SocketPathError(
            f"{path} has {length} bytes, a socket path at most {MAX_SOCKET_PATH}; set a shorter TMPDIR"
        )
    _make_private(directory)
    return path


def _make_private(directory: Path) -> None:
    """Make the directory private; its owner could replace our socket."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = directory.lstat()
    if directory.is_symlink() or status.st_uid != os.getuid():
        raise SocketPathError(f"{directory} belongs to another user; remove it or choose another SM_HOME")
    if status.st_mode & 0o077:
        directory.chmod(0o700)
