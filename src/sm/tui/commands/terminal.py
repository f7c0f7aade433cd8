"""A command that has the terminal to itself while the screen waits."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import Protocol

from sm.tui.commands.child import argv


class CommandTerminal(Protocol):
    def run(self, arguments: Sequence[str]) -> None:
        """Run a command of sm in the terminal, and return once the screen may have it back."""


class OwnTerminal:
    def run(self, arguments: Sequence[str]) -> None:
        """After a failure the user reads why before the screen covers it."""
        ended = subprocess.run(argv(arguments), check=False)  # noqa: TID251  # the screen waits for it
        if ended.returncode:
            try:
                input(f"exit code {ended.returncode}; Enter leads back to sm watch ")
            except (EOFError, KeyboardInterrupt):
                return
