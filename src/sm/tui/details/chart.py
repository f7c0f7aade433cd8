"""The chart of a context over time, in characters: a column for each span of time, a mark below where one falls."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from rich.style import Style
from rich.text import Text

from sm.tui.details.history import SIGNS, ChartContent, ChartReading, ChartSign
from sm.tui.look import LEVEL_STYLES, QUIET_STYLE
from sm.tui.text import date_and_time, time_of_day

HEIGHT = 8
EIGHTHS = " ▁▂▃▄▅▆▇█"
DAY_S = 86_400.0
AXIS = 5
"""Columns of the percentages at the left."""


def chart(found: ChartContent, width: int, warning: float | None, critical: float | None) -> Text:
    """Return the lines of the chart; `warning` and `critical` are drawn as lines across it."""
    shown = Text(no_wrap=True, end="")
    if not found.readings:
        return shown.append("no reading of its context yet", QUIET_STYLE)
    columns = max(10, width - AXIS)
    span = _span(found)
    levels = _levels(found.readings, span, columns)
    for row in range(HEIGHT, 0, -1):
        floor, top = 100 * (row - 1) / HEIGHT, 100 * row / HEIGHT
        shown.append(f"{top:3.0f}% ", QUIET_STYLE)
        line = next((mark for at, mark in ((warning, "╌"), (critical, "━")) if at and floor <= at < top), " ")
        for percent in levels:
            shown.append(*_cell(percent, floor, line, warning, critical))
        shown.append("\n")
    shown.append(" " * AXIS + _signs(found.marks, span, columns) + "\n")
    first, last = (_time(at, span[1] - span[0]) for at in span)
    shown.append(" " * AXIS + first + last.rjust(max(len(last) + 1, columns - len(first))) + "\n", QUIET_STYLE)
    legend = "   ".join(f"{sign} {words}" for sign, words in SIGNS.items())
    return shown.append(" " * AXIS + legend, QUIET_STYLE)


def _time(at: float, length: float) -> str:
    """Return the time of day; of a longer life the date with it."""
    return time_of_day(at) if length < DAY_S else date_and_time(at)


def _span(found: ChartContent) -> tuple[float, float]:
    times = [reading.at for reading in found.readings]  # out of order where a clock was set back
    return min(times), max(*times, min(times) + 1.0)


def _place(at: float, span: tuple[float, float], columns: int) -> int:
    return max(0, min(columns - 1, int((at - span[0]) / (span[1] - span[0]) * (columns - 1))))


def _levels(readings: Sequence[ChartReading], span: tuple[float, float], columns: int) -> list[float | None]:
    """Return how full it was in each column: the most there, else as it was before."""
    levels: list[float | None] = [None] * columns
    for reading in readings:
        place = _place(reading.at, span, columns)
        levels[place] = max(reading.percent, levels[place] or 0.0)
    for before, after in pairwise(range(columns)):
        if levels[after] is None:
            levels[after] = levels[before]
    return levels


def _cell(
    percent: float | None, floor: float, line: str, warning: float | None, critical: float | None
) -> tuple[str, Style]:
    filled = 0 if percent is None else max(0, min(8, round((percent - floor) / (100 / HEIGHT) * 8)))
    if not filled:
        return line, QUIET_STYLE
    level = "critical" if critical and (percent or 0) >= critical else "ok"
    level = "warning" if level == "ok" and warning and (percent or 0) >= warning else level
    return EIGHTHS[filled], LEVEL_STYLES[level]


def _signs(marks: Sequence[ChartSign], span: tuple[float, float], columns: int) -> str:
    line = [" "] * columns
    for mark in marks:
        if span[0] <= mark.at <= span[1] + 1:
            line[_place(mark.at, span, columns)] = mark.sign
    return "".join(line)
