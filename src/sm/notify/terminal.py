"""The user's terminals that show a pane of `sm`, whichever session: a desktop notification by OSC 9 or OSC 777.

The sequence is written to the terminal itself, past tmux: in one write, which the kernel does not mix with another one.
Terminals ignore a sequence that they do not know.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from sm.core.model.notification import UserNotification
from sm.core.model.report import one_line
from sm.core.ports.notifier import ChannelError, OutOfReachError
from sm.core.ports.panes import PaneError, Terminal

MAX_SHOWN_CHARS = 300
WITHIN_ANOTHER = ("tmux", "screen")
"""How TERM begins in a terminal within another tmux, which passes a sequence on only in this form."""


@dataclass(frozen=True, slots=True)
class TerminalChannel:
    form: str
    """`osc9` or `osc777`."""
    terminals: Callable[[], Awaitable[list[Terminal]]]

    @property
    def name(self) -> str:
        return f"terminal ({self.form})"

    async def send(self, sent: UserNotification) -> None:
        """Reach at least one terminal; with none attached, OutOfReachError."""
        try:
            found = await self.terminals()
        except PaneError as problem:
            raise ChannelError(f"tmux does not answer: {problem}") from problem
        terminals = {terminal.tty: terminal for terminal in found}.values()
        reached = [terminal for terminal in terminals if _write(terminal.tty, sequence(self.form, sent, terminal.term))]
        if not reached:
            raise OutOfReachError("no terminal is attached to a session of sm")


def sequence(form: str, sent: UserNotification, term: str = "") -> bytes:
    """Return what the terminal shows; nothing in the texts ends the sequence or begins another one."""
    title, text = one_line(sent.title, MAX_SHOWN_CHARS), one_line(sent.text, MAX_SHOWN_CHARS)
    if form == "osc777":
        body = f"777;notify;{title.replace(';', ',')};{text.replace(';', ',')}"
    else:
        body = "9;" + ". ".join(part for part in (title, text) if part)
    plain = f"\x1b]{body}\x07"
    wrapped = "\x1bPtmux;" + plain.replace("\x1b", "\x1b\x1b") + "\x1b\\" if term.startswith(WITHIN_ANOTHER) else plain
    return wrapped.encode()


def _write(tty: str, what: bytes) -> bool:
    """Write to a terminal of this user without waiting for it; False if that is not possible."""
    with suppress(OSError):
        descriptor = os.open(tty, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            found = os.fstat(descriptor)
            own = stat.S_ISCHR(found.st_mode) and found.st_uid == os.getuid() and os.isatty(descriptor)
            return own and os.write(descriptor, what) == len(what)
        finally:
            os.close(descriptor)
    return False
