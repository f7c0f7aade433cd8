"""What a session's line says, cell by cell, and which cells a width has room for: the least important go first.

A state has a mark, a word, and how long it has lasted; a context has a gauge with both thresholds in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rich.segment import Segment
from rich.style import Style

from sm.cli.format import tokens
from sm.cli.tables import display_width, shortened
from sm.fleet import UNKNOWN, Row
from sm.tui.look import BOLD_STYLE, LEVEL_STYLES, PLAIN_STYLE, QUIET_STYLE, state_style
from sm.tui.text import about, dollars

GAP = 2
MIN_NAME, MAX_NAME = 10, 28
MIN_WORDS, GOOD_WORDS = 18, 30
"""Why it is in its state matters more than all columns after it: they are there once it has this room."""
GAUGE_CELLS = 10
BRANCH_MARK = "└ "
DRIVERS = {"mod": "plugin", "keys": "keys"}
WHOLE_DRIVERS = {"mod": "its plugin", "keys": "keys"}
Cell = list[tuple[str, Style]]


@dataclass(frozen=True, slots=True)
class FleetColumn:
    head: str
    width: int
    cell: Callable[[Row, float], Cell]
    """What it says of a session at a moment (UTC seconds)."""
    rank: int = 0
    """A column of rank 0 always stays; of the others the highest rank is left out first."""


LEVEL_MARKS = {"ok": "  ", "warning": "! ", "critical": "!!"}


def gauge(row: Row, cells: int = GAUGE_CELLS) -> Cell:
    """Return the gauge of a context: full cells, and in the empty ones the thresholds that are still ahead."""
    if row.percent is None:
        return [((tokens(row.tokens) if row.tokens is not None else UNKNOWN).ljust(cells + 7), QUIET_STYLE)]
    filled = max(0, min(cells, round(row.percent / 100 * cells)))
    empty = ["░"] * (cells - filled)
    for share, mark in ((row.warning_percent, "╎"), (row.critical_percent, "┃")):
        place = max(0, int((share or 0) / 100 * cells) - filled)
        if share and share > row.percent and place < len(empty):
            empty[place] = mark
    style = LEVEL_STYLES[row.level]
    words = f"{row.percent:4.0f}%{LEVEL_MARKS[row.level]}"
    return [("█" * filled, style), ("".join(empty), QUIET_STYLE), (words, style)]


def _gauge(row: Row, _: float) -> Cell:
    return gauge(row)


def _name(row: Row, _: float) -> Cell:
    branch = "  " * (row.depth - 1) + BRANCH_MARK if row.depth else ""
    return [(branch, QUIET_STYLE), (row.name, BOLD_STYLE if row.needs_user else PLAIN_STYLE)]


def _state(row: Row, now: float) -> Cell:
    style = state_style(row.state, strong=row.needs_user)
    return [(f"{row.mark} {row.state}", style), (f" {about(row.since, now)}", style if row.needs_user else QUIET_STYLE)]


def _words(row: Row, _: float) -> Cell:
    """Return why it is in its state, and what its agent said last."""
    said = f"“{row.said}”" if row.said else ""
    why = [(row.why, PLAIN_STYLE)] if row.why else []
    return [*why, *([("  " if why else "", PLAIN_STYLE), (said, QUIET_STYLE)] if said else [])]


def _evidence(row: Row, now: float) -> Cell:
    age = about(row.seen, now)
    return [(f"{age} ago: {row.evidence}" if age and row.evidence else row.evidence, QUIET_STYLE)]


def _client(row: Row, _: float) -> Cell:
    return [(client_name(row), QUIET_STYLE)]


def client_name(row: Row) -> str:
    """Return client and model; of a model that has the client's name, that alone."""
    model = row.model or ""
    return model if model.startswith(row.provider) else f"{row.provider} {model}".rstrip()


def _of(text: Callable[[Row], object]) -> Callable[[Row, float], Cell]:
    return lambda row, _: [(str(text(row)), QUIET_STYLE)]


WORDS = "WHY · SAID"
COLUMNS = (
    FleetColumn("NAME", MIN_NAME, _name),
    FleetColumn("STATE", 18, _state),
    FleetColumn("CONTEXT", GAUGE_CELLS + 7, _gauge),
    FleetColumn("TURNS", 5, _of(lambda row: "" if row.turns_left is None else f"~{row.turns_left}"), rank=3),
    FleetColumn(WORDS, GOOD_WORDS, _words, rank=1),
    FleetColumn("EVIDENCE", 38, _evidence, rank=6),
    FleetColumn("COST", 8, _of(lambda row: dollars(row.usd)), rank=2),
    FleetColumn("ROT", 3, _of(lambda row: row.rotations or ""), rank=5),
    FleetColumn("MSG", 3, _of(lambda row: row.queued or ""), rank=4),
    FleetColumn("LIMIT", 16, _of(lambda row: row.limit), rank=7),
    FleetColumn("BRANCH", 14, _of(lambda row: row.branch or ""), rank=8),
    FleetColumn("CLIENT", 20, _client, rank=9),
    FleetColumn("DRIVER", 6, _of(lambda row: DRIVERS.get(row.driver, row.driver)), rank=11),
    FleetColumn("RUN", 14, _of(lambda row: row.attempt or ""), rank=10),
)


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns that a width has room for, and how wide each is."""

    columns: tuple[tuple[FleetColumn, int], ...]

    def head(self) -> str:
        return (" " * GAP).join(shortened(column.head, width).ljust(width) for column, width in self.columns)

    def line(self, row: Row, now: float) -> list[Segment]:
        segments: list[Segment] = []
        for column, width in self.columns:
            segments += [*_fitted(column.cell(row, now), width), Segment(" " * GAP, PLAIN_STYLE)]
        return segments[:-1]


def layout(shown: Sequence[Row], room: int) -> Layout:
    """Leave out columns until the others fit, then shorten the names; what room is left goes to the words."""
    kept = [column for column in COLUMNS if not _is_empty(column, shown)]
    longest = max((display_width(row.name) + 2 * row.depth for row in shown), default=MIN_NAME)
    kept[0] = replace(kept[0], width=max(MIN_NAME, min(MAX_NAME, longest)))
    while (over := _total(kept) - room) > 0 and any(column.rank for column in kept):
        last = max(kept, key=lambda column: column.rank)
        kept.remove(last)
        if last.head == WORDS and over <= GOOD_WORDS - MIN_WORDS:
            kept.append(replace(last, width=GOOD_WORDS - over))
    rest = room - _total(kept)
    grown = {"NAME": max(MIN_NAME - kept[0].width, min(0, rest)), WORDS: max(0, rest)}
    return Layout(tuple((column, column.width + grown.get(column.head, 0)) for column in kept))


def _is_empty(column: FleetColumn, shown: Sequence[Row]) -> bool:
    """Whether an optional column says nothing of any session."""
    return (
        column.rank > 0
        and column.head != WORDS
        and not any(text.strip() for row in shown for text, _ in column.cell(row, 0.0))
    )


def _total(columns: Sequence[FleetColumn]) -> int:
    return sum(column.width + GAP for column in columns) - GAP


def _fitted(cell: Cell, width: int) -> list[Segment]:
    """Return a cell as wide as its column, shortened at its end."""
    segments, left = [], width
    for text, style in cell:
        shown = shortened(text, left) if left else ""
        segments.append(Segment(shown, style))
        left -= display_width(shown)
        if shown != text:
            break
    return [*segments, Segment(" " * max(0, left), PLAIN_STYLE)]
