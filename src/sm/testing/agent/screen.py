"""Draws on the main screen: output scrolls up, below it is the input box or a dialog.

Colours and signs are those of client 2.1.328 in its dark theme, where an adapter may read them.
"""

from __future__ import annotations

import os
import shutil
from collections import deque
from dataclasses import dataclass, field

from sm.testing.agent.box import ScriptedBox, columns, fitting, wrapped

NBSP = "\N{NO-BREAK SPACE}"
RESET, DIM, GREY, RULE_COLOUR, DIALOG_COLOUR, SHELL_COLOUR = (
    "\x1b[0m",
    "\x1b[2m",
    "\x1b[38;5;246m",
    "\x1b[38;5;244m",
    "\x1b[38;5;153m",
    "\x1b[38;5;211m",
)
MODES_ON = "\x1b[?2004h\x1b[?25h"
MODES_OFF = "\x1b[?2004l\x1b[?25h\x1b[0m"
MARGIN_COLUMNS = 4
"""Columns of the screen that the box's text does not use."""
QUEUED_GHOST = "Press up to edit queued messages"
MAX_KEPT_LINES = 200


@dataclass(frozen=True, slots=True)
class Dialog:
    title: str
    lines: tuple[str, ...]
    choices: tuple[str, ...]
    chosen: int = 0

    def rows(self) -> list[str]:
        marks = ["❯" if number == self.chosen else " " for number in range(len(self.choices))]
        choices = [
            f" {mark} {number}. {text}"
            for number, (mark, text) in enumerate(zip(marks, self.choices, strict=True), start=1)
        ]
        return ["", f" {self.title}", "", *self.lines, "", *choices, "", f"{GREY} Esc to cancel{RESET}"]


@dataclass(frozen=True, slots=True)
class BottomArea:
    """The rows below the output, and the cursor in them."""

    rows: tuple[str, ...]
    row: int
    column: int


@dataclass(slots=True)
class ScriptedScreen:
    terminal: int
    width: int = 80
    height: int = 24
    _row: int = 0
    """The row of the bottom area in which the cursor is."""
    _shown: BottomArea | None = None
    _output: deque[str] = field(default_factory=lambda: deque(maxlen=MAX_KEPT_LINES))

    def measure(self) -> None:
        try:
            self.width, self.height = os.get_terminal_size(self.terminal)
        except OSError:
            self.width, self.height = shutil.get_terminal_size()

    def show(self, bottom: BottomArea, output: tuple[str, ...] = ()) -> None:
        if bottom == self._shown and not output:
            return
        self._output.extend(output)
        up = f"\x1b[{self._row}A" if self._row else ""
        self._write(f"{up}\r\x1b[J" + "".join(f"{line}{RESET}\r\n" for line in output), bottom)

    def repaint(self, bottom: BottomArea, *, forget: bool = False) -> None:
        """Draw everything again, as after a change of size; with `forget` without the earlier output."""
        if forget:
            self._output.clear()
        kept = list(self._output)[-self.height :]
        self._write("\x1b[H\x1b[2J" + "".join(f"{line}{RESET}\r\n" for line in kept), bottom)

    def _write(self, before: str, bottom: BottomArea) -> None:
        up = len(bottom.rows) - 1 - bottom.row
        back = f"\x1b[{up}A" if up else ""
        right = f"\x1b[{bottom.column}C" if bottom.column else ""
        drawn = "\r\n".join(f"{row}{RESET}" for row in bottom.rows)
        write_all(self.terminal, f"{before}{drawn}{back}\r{right}".encode())
        self._shown, self._row = bottom, bottom.row

    def box_width(self) -> int:
        return self.width - MARGIN_COLUMNS


def box_area(screen: ScriptedScreen, box: ScriptedBox, *, busy: bool, queued: tuple[str, ...] = ()) -> BottomArea:
    """Return the box between its rules, with queued prompts above and the footer below it."""
    rows = wrapped(box.text, screen.box_width())[-max(screen.height - 8, 1) :]
    sign = f"{SHELL_COLOUR}!" if box.shell else f"{GREY if busy else ''}❯"
    ghost = f"{DIM}{QUEUED_GHOST}" if queued and box.empty else ""
    inside = [f"{sign}{NBSP}{RESET}{rows[0]}{ghost}", *(f"  {row}" for row in rows[1:])]
    above = [f"{GREY}❯ {text.splitlines()[0][: screen.width - 4]}" for text in queued if text]
    above += [f"{GREY}  ⎿  Queued · ctrl+x ctrl+s to send now"] if queued else []
    above = ["", *above] if above else [""]
    rule = f"{SHELL_COLOUR if box.shell else RULE_COLOUR}{'─' * screen.width}"
    shown = (*above, rule, *inside, rule, footer(screen, box, busy=busy))
    return BottomArea(shown, len(above) + len(rows), min(2 + columns(rows[-1]), screen.width - 1))


def footer(screen: ScriptedScreen, box: ScriptedBox, *, busy: bool) -> str:
    left = "  ! for shell mode" if box.shell else "  ⏸ manual mode on"
    if box.empty:
        left += " · esc to interrupt" if busy else " · ? for shortcuts"
    right = "draft stashed" if box.stash is not None else box.notice
    gap = max(screen.width - columns(left) - len(right) - 2, 1)
    return f"{GREY}{left}{' ' * gap}{right}" if right else f"{GREY}{left}"


def dialog_area(screen: ScriptedScreen, dialog: Dialog) -> BottomArea:
    rows = tuple(row[: fitting(row, screen.width)] if "\x1b" not in row else row for row in dialog.rows())
    marked = next((number for number, row in enumerate(rows) if row.startswith(" ❯ ")), 0)
    return BottomArea((f"{DIALOG_COLOUR}{'─' * screen.width}", *rows), marked + 1, 1)


def output_lines(text: str, width: int, sign: str = "●", indent: str = "  ") -> tuple[str, ...]:
    """Return a message's lines in the output: a sign in the first one, the others indented."""
    lines = [piece for line in text.split("\n") for piece in wrapped(line, width - len(indent) - 2)]
    return ("", f"{sign} {lines[0]}", *(f"{indent}{line}" for line in lines[1:]))


def write_all(descriptor: int, data: bytes) -> None:
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except OSError:
        pass  # the terminal is gone; the loop ends with it
