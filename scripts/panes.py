"""A terminal for pictures: tmux on a socket of its own, with a program in each pane, and what its window shows."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.ansi import AnsiDecoder
from rich.style import Style
from rich.text import Text

BIN = Path(__file__).resolve().parent.parent / ".venv" / "bin"
BORDER = Style(color="bright_black")
PATIENCE_S = 90.0
INTERVAL_S = 0.1


@dataclass(frozen=True, slots=True)
class Window:
    socket: Path
    columns: int
    rows: int

    def tmux(self, *words: str) -> str:
        command = ["tmux", "-S", str(self.socket), "-f", os.devnull, *words]
        return subprocess.run(
            command, check=True, capture_output=True, text=True, env=environment(self.socket.parent)
        ).stdout

    def split(self, rows: int, *command: str, **env: str) -> None:
        """Give a program a pane of that many rows below the others; it closes with it."""
        self.tmux("split-window", "-d", "-v", "-l", str(rows), *started(self.socket.parent, *command, **env))

    def press(self, *keys: str) -> None:
        self.tmux("send-keys", "-t", ":.0", *keys)

    def screen(self) -> list[Text]:
        """Return the lines of the window with their colours."""
        lines = [Text()] * self.rows
        for pane in self.tmux("list-panes", "-F", "#{pane_id} #{pane_top}").splitlines():
            name, top = pane.split()
            captured = self.tmux("capture-pane", "-p", "-e", "-N", "-t", name).removesuffix("\n")
            colours = AnsiDecoder()  # what a line sets holds for the next one too
            shown = [colours.decode_line(line) for line in captured.split("\n")]
            lines[int(top) : int(top) + len(shown)] = shown
            if int(top):
                lines[int(top) - 1] = Text().append("─" * self.columns, BORDER)
        return lines[: self.rows]

    def until(self, words: str) -> list[Text]:
        """Wait until the window shows these words; return its lines."""
        end = time.monotonic() + PATIENCE_S
        while not shows(lines := self.screen(), words):
            if time.monotonic() > end:
                raise TimeoutError(f"the terminal did not show: {words}\n" + "\n".join(line.plain for line in lines))
            time.sleep(INTERVAL_S)
        return lines


def shows(screen: Sequence[Text], words: str) -> bool:
    return any(words in line.plain for line in screen)


def environment(home: Path, **more: str) -> dict[str, str]:
    """Return all that a program gets: nothing of this shell but its PATH."""
    path = f"{BIN}:{os.environ['PATH']}"
    return {
        "PATH": path,
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "TERM": "tmux-256color",
        "COLORTERM": "truecolor",
        **more,
    }


def started(home: Path, *command: str, **env: str) -> list[str]:
    return ["env", "-i", *(f"{name}={value}" for name, value in environment(home, **env).items()), *command]


@contextmanager
def window(found: Window, *command: str, **env: str) -> Iterator[Window]:
    """Run a program in a window; all of it ends with this."""
    size = ("-x", str(found.columns), "-y", str(found.rows))
    found.tmux("new-session", "-d", *size, *started(found.socket.parent, *command, **env))
    try:
        found.tmux("set-option", "-g", "status", "off")
        yield found
    finally:
        subprocess.run(["tmux", "-S", str(found.socket), "kill-server"], check=False, capture_output=True)
