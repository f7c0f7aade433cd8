"""Turns a terminal's bytes into the lines that were readable in it, in the order in which they left the screen.

A line is finished when it scrolls off, or when the whole screen is wiped. Until then it may be painted over, so a
spinner or a progress bar leaves its last frame alone. The log does not say how large the terminal was. Its width does
not matter: clients wrap by themselves, and a line that tmux wrapped reads better whole. Each wipe shows its height: the
Claude client (2.1.328) clears and repaints on `/clear` and whenever the size has changed, row by row.
(pyte 0.8.2, of 2023, was measured at 0.6 MB/s; this takes 8.)
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

from sm.archive.terminal.repaints import WIPE

DEFAULT_HEIGHT = 50
"""Rows of a pane to which no terminal has been attached (`tmux.client.Size`)."""
MIN_HEIGHT = 4
"""A wipe of fewer rows does not show the height."""
MAX_HEIGHT = 1_000
"""Rows."""
MAX_COLUMNS = 2_000
"""A longer line continues as the next one: a line of megabytes must not be held whole."""
MAX_SEQUENCE_CHARS = 1 << 16
"""An escape sequence that is longer is none."""

TOKEN = re.compile(
    r"(?P<text>[^\x00-\x1f\x7f-\x9f]+)"
    r"|\x1b\[(?P<given>[0-?]*)[ -/]*(?P<final>[@-~])"
    r"|(?P<control>[\b\t\n\x0b\x0c\r])"
    r"|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b(?P<escape>[ -/]*[0-~])"
)
"""Everything else is a control character that shows nothing."""
INCOMPLETE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b\x9c]*\x1b?|[ -/]*)?\Z")
PLAIN = re.compile("[\x20-\u02ff\u2010-\u2027\u2030-\u205e\u2070-\u20cf\u2100-\u2319\u2500-\u25fc\u2700-\u2704]+")
"""Characters of one cell each; others are looked up one by one."""

Cells = list[str]
"""A cell each; the second one of a wide character is empty."""


@lru_cache(maxsize=4096)
def cells_of(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


@dataclass(slots=True)
class Emulator:
    """A screen; takes bytes in pieces of any size."""

    height: int = DEFAULT_HEIGHT
    rows: list[Cells] = field(default_factory=list)
    """The screen from its top, as far as it was written to."""
    x: int = 0
    y: int = 0
    saved: tuple[int, int] = (0, 0)
    region: tuple[int, int] | None = None
    """First and last row that scroll, if not all do."""
    homed: bool = False
    """The cursor was moved to the top and nothing was written since: what is erased now is a wipe."""
    wiped: int = 0
    """Rows erased by the current wipe."""
    undecoded: bytes = b""
    unread: str = ""
    finished: list[str] = field(default_factory=list)

    def feed(self, data: bytes) -> list[str]:
        """Return the lines that are finished by now, and WIPE where a screen was wiped."""
        text, used = codecs.utf_8_decode(self.undecoded + data, "replace", False)  # noqa: FBT003  # positional only
        self.undecoded = (self.undecoded + data)[used:]
        text = self.unread + text
        rest = INCOMPLETE.search(text, max(0, len(text) - MAX_SEQUENCE_CHARS))
        self.unread = rest[0] if rest else ""
        for token in TOKEN.finditer(text, 0, rest.start() if rest else len(text)):
            self._apply(token)
        return self._take_finished()

    def shown(self) -> list[str]:
        """Return what the screen shows now; it stays."""
        lines = [line_of(row) for row in self.rows]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    def _take_finished(self) -> list[str]:
        lines, self.finished = self.finished, []
        return lines

    def _apply(self, token: re.Match[str]) -> None:
        kind = token.lastgroup
        if kind == "text":
            self._write(token["text"])
        elif kind == "final":
            function = CSI.get(token["final"])
            if function is not None:
                function(self, _parameters(token["given"]))
        elif kind == "control":
            CONTROL[token["control"]](self)
        elif kind == "escape" and token["escape"] in ESCAPE:
            ESCAPE[token["escape"]](self)

    # --- writing ----------------------------------------------------------------------------------------------------

    def _row(self) -> Cells:
        while len(self.rows) <= self.y:
            self.rows.append([])
        return self.rows[self.y]

    def _write(self, text: str) -> None:
        self._begin_writing()
        while len(text) > (room := MAX_COLUMNS - self.x):
            self._put(text[: max(0, room)])
            text = text[max(0, room) :]
            self._line_feed()
            self.x = 0
        self._put(text)

    def _put(self, text: str) -> None:
        row = self._row()
        if len(row) < self.x:
            row.extend(" " * (self.x - len(row)))
        if PLAIN.fullmatch(text):
            end = self.x + len(text)
            row[self.x : end] = text
            self.x = end
            return
        for character in text:
            self._put_one(row, character)

    def _put_one(self, row: Cells, character: str) -> None:
        width = cells_of(character)
        if width == 0:
            at = self.x - 1 if self.x > 1 and not row[self.x - 1] else self.x
            if at > 0:
                row[at - 1] += character
            return
        cells = [character, ""][:width]
        row[self.x : self.x + width] = cells
        self.x += width

    def _begin_writing(self) -> None:
        if self.wiped >= MIN_HEIGHT:
            self.height = min(self.wiped, MAX_HEIGHT)
        self.homed, self.wiped = False, 0

    def _line_feed(self) -> None:
        first, last = self.region or (0, self.height - 1)
        if self.y != last:
            self.y = min(self.y + 1, self.height - 1)
            return
        self._row()
        row = self.rows.pop(first)
        self.rows.insert(last, [])
        if first == 0:
            self._finish(row)

    def _finish(self, row: Cells) -> None:
        self.finished.append(line_of(row))

    def _flush(self) -> None:
        """Finish all lines of the screen; empty rows at its end were never written to."""
        lines = self.shown()
        self.finished += [*lines, WIPE] if lines else []
        self.rows = []

    # --- moving -----------------------------------------------------------------------------------------------------

    def move(self, x: int, y: int) -> None:
        self.x = max(0, min(x, MAX_COLUMNS - 1))
        self.y = max(0, min(y, self.height - 1))

    def position_cursor(self, parameters: list[int]) -> None:
        row, column = _parameter(parameters, 0, 1), _parameter(parameters, 1, 1)
        if (row, column) == (1, 1):
            self.homed = True
        self.move(column - 1, row - 1)

    def set_scroll_region(self, parameters: list[int]) -> None:
        first, last = _parameter(parameters, 0, 1) - 1, _parameter(parameters, 1, self.height) - 1
        whole = first <= 0 and last >= self.height - 1
        self.region = None if whole or first >= last else (first, min(last, self.height - 1))
        self.move(0, 0)

    def save(self) -> None:
        self.saved = (self.x, self.y)

    def restore(self) -> None:
        self.move(*self.saved)

    # --- erasing ----------------------------------------------------------------------------------------------------

    def erase_line(self, parameters: list[int]) -> None:
        how = _parameter(parameters, 0, 0)
        if how == 2 and self.homed:  # noqa: PLR2004  # the whole line
            self.wiped += 1
            self._flush()
        if self.y >= len(self.rows):
            return
        row = self.rows[self.y]
        if how != 1:
            del row[self.x if how == 0 else 0 :]
        if how == 1:
            row[: self.x + 1] = " " * min(self.x + 1, len(row))

    def erase_screen(self, parameters: list[int]) -> None:
        how = _parameter(parameters, 0, 0)
        if how > 1 or (how == 0 and self.homed):
            self._flush()
        elif how == 0:
            del self.rows[self.y + 1 :]
            self.erase_line([0])
        else:
            self.rows[: self.y] = [[] for _ in self.rows[: self.y]]
            self.erase_line([1])

    # --- shifting ---------------------------------------------------------------------------------------------------

    def insert_lines(self, parameters: list[int]) -> None:
        last = (self.region or (0, self.height - 1))[1]
        self._row()
        for _ in range(min(_parameter(parameters, 0, 1), self.height)):
            self.rows.insert(self.y, [])
            del self.rows[last + 1 : last + 2]

    def delete_lines(self, parameters: list[int]) -> None:
        last = (self.region or (0, self.height - 1))[1]
        for _ in range(min(_parameter(parameters, 0, 1), self.height)):
            if self.y < len(self.rows):
                del self.rows[self.y]
            if last < len(self.rows):
                self.rows.insert(last, [])

    def scroll_up(self, parameters: list[int]) -> None:
        y, self.y = self.y, (self.region or (0, self.height - 1))[1]
        for _ in range(min(_parameter(parameters, 0, 1), self.height)):
            self._line_feed()
        self.y = y

    def reverse_line_feed(self) -> None:
        first, last = self.region or (0, self.height - 1)
        if self.y != first:
            self.y = max(0, self.y - 1)
            return
        self._row()
        self.rows.insert(first, [])
        del self.rows[last + 1 : last + 2]

    def insert_cells(self, parameters: list[int]) -> None:
        self._row()[self.x : self.x] = " " * min(_parameter(parameters, 0, 1), MAX_COLUMNS)

    def delete_cells(self, parameters: list[int]) -> None:
        del self._row()[self.x : self.x + _parameter(parameters, 0, 1)]

    def erase_cells(self, parameters: list[int]) -> None:
        row = self._row()
        end = min(len(row), self.x + _parameter(parameters, 0, 1))
        row[self.x : end] = " " * max(0, end - self.x)


def line_of(row: Cells) -> str:
    return "".join(row).replace("\xa0", " ").rstrip()


def _parameters(parameters: str) -> list[int]:
    """Parse a sequence's parameters; one that is missing or private is -1."""
    return [int(part) if part.isdigit() and len(part) < 6 else -1 for part in parameters.split(";")]  # noqa: PLR2004


def _parameter(parameters: list[int], index: int, default: int) -> int:
    value = parameters[index] if index < len(parameters) else -1
    return value if value > 0 else default


def _cursor_move(columns: int, rows: int) -> Callable[[Emulator, list[int]], None]:
    def function(screen: Emulator, parameters: list[int]) -> None:
        count = _parameter(parameters, 0, 1)
        screen.move(screen.x + columns * count, screen.y + rows * count)

    return function


CSI: dict[str, Callable[[Emulator, list[int]], None]] = {
    "A": _cursor_move(0, -1),
    "B": _cursor_move(0, 1),
    "C": _cursor_move(1, 0),
    "D": _cursor_move(-1, 0),
    "E": lambda screen, parameters: screen.move(0, screen.y + _parameter(parameters, 0, 1)),
    "F": lambda screen, parameters: screen.move(0, screen.y - _parameter(parameters, 0, 1)),
    "G": lambda screen, parameters: screen.move(_parameter(parameters, 0, 1) - 1, screen.y),
    "`": lambda screen, parameters: screen.move(_parameter(parameters, 0, 1) - 1, screen.y),
    "d": lambda screen, parameters: screen.move(screen.x, _parameter(parameters, 0, 1) - 1),
    "H": Emulator.position_cursor,
    "f": Emulator.position_cursor,
    "J": Emulator.erase_screen,
    "K": Emulator.erase_line,
    "L": Emulator.insert_lines,
    "M": Emulator.delete_lines,
    "P": Emulator.delete_cells,
    "@": Emulator.insert_cells,
    "X": Emulator.erase_cells,
    "S": Emulator.scroll_up,
    "r": Emulator.set_scroll_region,
    "s": lambda screen, _: screen.save(),
}


def _carriage_return(screen: Emulator) -> None:
    screen.x = 0


def _backspace(screen: Emulator) -> None:
    screen.move(screen.x - 1, screen.y)


def _tab(screen: Emulator) -> None:
    screen.move(screen.x - screen.x % 8 + 8, screen.y)


CONTROL: dict[str, Callable[[Emulator], None]] = {
    "\r": _carriage_return,
    "\n": Emulator._line_feed,  # noqa: SLF001  # the class's own table
    "\x0b": Emulator._line_feed,  # noqa: SLF001
    "\x0c": Emulator._line_feed,  # noqa: SLF001
    "\b": _backspace,
    "\t": _tab,
}
ESCAPE: dict[str, Callable[[Emulator], None]] = {
    "7": Emulator.save,
    "8": Emulator.restore,
    "M": Emulator.reverse_line_feed,
    "D": Emulator._line_feed,  # noqa: SLF001
    "c": Emulator._flush,  # noqa: SLF001
}
