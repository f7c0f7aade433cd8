"""Where in a terminal's log each context begins, and when it was written.

The client reports that it leaves a conversation just before it repaints (2.1.328: within 1 KB). Where it then wipes the
screen, the next context begins with the wipe. It paints over the screen of a short conversation instead, row by row,
and does not send again what stays the same: then the screen has to be painted from an earlier wipe on.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from sm.archive.terminal.segments import LogSegment, read_bytes
from sm.core.model.history import Context, LogRange, SessionHistory

WIPE_WINDOW_BYTES = 1 << 13
"""Bytes after the client's report in which its wipe is searched."""
WIPE = re.compile(rb"\x1b\[(?:1;1)?H\x1b\[(?:2K|[023]?J)|\x1b\[[23]J")
"""The first bytes of a wipe."""


class ContextStart(NamedTuple):
    """Where a context begins in a log."""

    position: int
    wiped: bool = True
    """The screen is wiped there."""


def contexts_of(history: SessionHistory) -> tuple[Context, ...]:
    """Return the session's contexts; a session whose start was not recorded has had one."""
    return history.contexts or (Context(1, "", None, history.last_activity, 0),)


def context_starts(history: SessionHistory, log: Path) -> tuple[ContextStart, ...]:
    """Return where each context begins; the first one has all that came before the next."""
    return (ContextStart(0), *(start_near(log, context.log_start) for context in contexts_of(history)[1:]))


def start_near(log: Path, position: int) -> ContextStart:
    data = b"".join(read_bytes(log, position, position + WIPE_WINDOW_BYTES))
    wipe = WIPE.search(data)
    return ContextStart(position + wipe.start()) if wipe else ContextStart(position, wiped=False)


def log_ranges(history: SessionHistory, starts: tuple[ContextStart, ...], end: int) -> list[LogRange]:
    """Return the range of each context, in their order, the last one up to `end`."""
    contexts = contexts_of(history)
    paint, found = 0, []
    for context, (start, following) in zip(contexts, pairwise((*starts, None)), strict=True):
        assert start is not None
        paint = start.position if start.wiped else paint
        stop = max(end, start.position) if following is None else following.position
        found.append(LogRange(context, start.position, stop, paint, closed=following is not None))
    return found


class LogTimes:
    """When a position of a log was written: interpolated between the times that are known."""

    def __init__(self, log_range: LogRange, segments: list[LogSegment]) -> None:
        self._known = [(log_range.start, log_range.context.started)]
        for segment in segments:
            if log_range.start < segment.end:
                self._known.append((segment.end, max(segment.written, self._known[-1][1])))

    def at(self, position: int) -> float:
        before = self._known[0]
        for known in self._known:
            if known[0] >= position:
                share = (position - before[0]) / max(1, known[0] - before[0])
                return before[1] + share * (known[1] - before[1])
            before = known
        return before[1]
