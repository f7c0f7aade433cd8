"""Where in a terminal's log each context begins, and when it showed what.

The client tells that it leaves a conversation just before it repaints (2.1.328: within 1 KB). Where it then wipes the
screen, the next context begins with the wipe. A short conversation's screen it paints over instead, row by row, and
what stays the same is not sent again: then the screen has to be painted from an earlier wipe on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from sm.archive.terminal.segments import LogSegment, read_bytes
from sm.core.model.history import Context, Past, Stretch

NEAR = 1 << 13
"""Bytes after the client's word in which its wipe is looked for."""
WIPE = re.compile(rb"\x1b\[(?:1;1)?H\x1b\[(?:2K|[023]?J)|\x1b\[[23]J")
"""The first bytes of a wipe."""


@dataclass(frozen=True, slots=True)
class Beginning:
    position: int
    wiped: bool = True
    """The screen is empty there."""


def contexts_of(past: Past) -> tuple[Context, ...]:
    """The session's contexts; a session of whose start nothing was noted has had one."""
    return past.contexts or (Context(1, "", None, past.last_activity, 0),)


def beginnings(past: Past, log: Path) -> tuple[Beginning, ...]:
    """Where each context begins; the first one takes all that came before the next."""
    return (Beginning(0), *(beginning_near(log, one.log_start) for one in contexts_of(past)[1:]))


def beginning_near(log: Path, position: int) -> Beginning:
    data = b"".join(read_bytes(log, position, position + NEAR))
    wipe = WIPE.search(data)
    return Beginning(position + wipe.start()) if wipe else Beginning(position, wiped=False)


def stretches(past: Past, starts: tuple[Beginning, ...], end: int) -> list[Stretch]:
    """All contexts in their order, the last one up to `end`."""
    contexts = contexts_of(past)
    paint, found = 0, []
    for context, (start, following) in zip(contexts, pairwise((*starts, None)), strict=True):
        assert start is not None
        paint = start.position if start.wiped else paint
        stop = max(end, start.position) if following is None else following.position
        found.append(Stretch(context, start.position, stop, paint, closed=following is not None))
    return found


class Times:
    """When a terminal showed what: between the times that are known, as its bytes are spread."""

    def __init__(self, stretch: Stretch, pieces: list[LogSegment]) -> None:
        self._known = [(stretch.start, stretch.context.started)]
        for piece in pieces:
            if stretch.start < piece.end:
                self._known.append((piece.end, max(piece.written, self._known[-1][1])))

    def at(self, position: int) -> float:
        before = self._known[0]
        for known in self._known:
            if known[0] >= position:
                share = (position - before[0]) / max(1, known[0] - before[0])
                return before[1] + share * (known[1] - before[1])
            before = known
        return before[1]
