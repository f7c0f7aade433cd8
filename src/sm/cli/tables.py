"""Tables that fit the terminal: leaves columns out, the least important first, then shortens the first one."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sm.cli.format import coloured, fitting
from sm.plain_marks import columns_of

UNLIMITED = 10_000
GAP = 2
MIN_FIRST_COLUMNS = 8
MIN_WORDS_COLUMNS = 16


@dataclass(frozen=True, slots=True)
class Column:
    head: str
    cells: Sequence[str]
    rank: int = 0
    """A column of rank 0 always stays; of the others the highest rank is left out first."""
    colours: Sequence[str | None] = ()
    """The colour of each cell."""
    shrinks: bool = False
    """Its text is shortened before a column is left out."""

    @property
    def width(self) -> int:
        return max(display_width(cell) for cell in (self.head, *self.cells))

    @property
    def min_width(self) -> int:
        return min(self.width, MIN_WORDS_COLUMNS) if self.shrinks else self.width

    def line(self, row: int, width: int) -> str:
        cell = self.head if row < 0 else self.cells[row]
        padded = cell + " " * (width - display_width(cell))
        return coloured(padded, self.colours[row]) if row >= 0 and self.colours else padded


def terminal_width() -> int:
    """Return the columns of the terminal; UNLIMITED for a pipe."""
    given = os.environ.get("COLUMNS", "")
    if given.isascii() and given.isdigit() and int(given[:9]) > 0:
        return int(given[:9])
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or UNLIMITED
    except (OSError, ValueError, AttributeError):
        return UNLIMITED


def table(columns: Sequence[Column], room: int) -> str:
    """Return the lines of a table, each column as wide as its longest cell; without rows the heads alone."""
    kept = list(columns)
    while _width([column.min_width for column in kept]) > room and any(column.rank for column in kept):
        kept.remove(max(kept, key=lambda column: column.rank))
    widths = [column.width for column in kept]
    for number, column in sorted(enumerate(kept), key=lambda numbered: not numbered[1].shrinks):
        least = column.min_width if column.shrinks else MIN_FIRST_COLUMNS if number == 0 else column.width
        widths[number] -= max(0, min(_width(widths) - room, widths[number] - least))
    marked = fitting(sys.stdout)
    kept = [
        replace(column, cells=[marked(shortened(cell, width)) for cell in column.cells])
        for column, width in zip(kept, widths, strict=True)
    ]
    rows = range(-1, len(kept[0].cells))
    lines = (
        (" " * GAP).join(column.line(row, width) for column, width in zip(kept, widths, strict=True)) for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)


def _width(widths: Sequence[int]) -> int:
    return sum(width + GAP for width in widths) - GAP


def display_width(text: str) -> int:
    """Return the terminal cells of a text: two for a wide character, none for a combining one."""
    if text.isascii():
        return len(text)
    return sum(map(columns_of, text))


def shortened(text: str, width: int) -> str:
    if display_width(text) <= width:
        return text
    kept = ""
    for character in text:
        if display_width(kept + character) >= width:
            break
        kept += character
    return f"{kept}…"
