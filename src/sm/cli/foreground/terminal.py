"""Restores the user's terminal after a client that ran in it, whatever modes that left on."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import termios
from collections.abc import Iterator, Sequence
from typing import Any

MODES_OFF = (
    "\x1b[?1006l\x1b[?1003l\x1b[?1002l\x1b[?1000l\x1b[?1016l"  # mouse
    "\x1b[?1004l\x1b[?2031l\x1b[?2004l\x1b[<u\x1b[>4m"  # focus, colour scheme, paste, keyboard protocols
    "\x1b[?1049l\x1b7\x1b[r\x1b8\x1b[?7h\x1b[?25h\x1b[0m\x1b(B\x0f"  # screen, margins, wrapping, cursor, colours
    "\x1b]0;\x07"
)
"""Sent by a client that ends normally (2.1.328); a killed one leaves all these modes on."""


class UserTerminal:
    def __init__(self) -> None:
        self.modes: list[Any] | None = None
        with contextlib.suppress(termios.error):
            self.modes = termios.tcgetattr(sys.stdin)

    def restore(self, *, killed: bool) -> None:
        """Restore the line modes; after a killed client also switch off the modes that it had switched on."""
        with contextlib.suppress(termios.error, OSError), _unstopped():
            if self.modes is not None:
                termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self.modes)
            if killed:
                os.write(sys.stdout.fileno(), MODES_OFF.encode())

    def erase(self, lines: Sequence[str]) -> None:
        """Erase the last lines that the client printed; the cursor is below them."""
        with contextlib.suppress(OSError), _unstopped():
            columns = os.get_terminal_size(sys.stdout.fileno()).columns
            rows = sum(1 + max(0, len(line) - 1) // max(1, columns) for line in lines)
            os.write(sys.stdout.fileno(), f"\r\x1b[{rows}A\x1b[J".encode())


@contextlib.contextmanager
def _unstopped() -> Iterator[None]:
    """Ignore SIGTTOU: writing to a terminal that belongs to another job must not stop this process."""
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGTTOU, before)
