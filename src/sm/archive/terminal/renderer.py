"""A terminal's bytes as the text a person would have seen: one pass, bounded memory, any piece size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sm.archive.redaction.redact import Known, LineRedactor, nothing_known
from sm.archive.terminal.emulator import Emulator
from sm.archive.terminal.repaints import Repaints

BLANKS = 2
"""Empty lines in a row that are kept."""


class ContextStart(NamedTuple):
    """Where another context begins."""

    position: int
    wiped: bool
    """The screen is wiped there."""


@dataclass(slots=True)
class Rendering:
    """Bytes in, redacted lines out."""

    known: Known = nothing_known
    terminal: Emulator = field(default_factory=Emulator)
    repaints: Repaints = field(default_factory=Repaints)
    redactor: LineRedactor = field(init=False)
    blanks: int = BLANKS
    """Empty lines since the last other one; none come first."""

    def __post_init__(self) -> None:
        self.redactor = LineRedactor(self.known)

    def feed(self, data: bytes) -> list[str]:
        return self._spaced(self.redactor.take(self.repaints.take(self.terminal.feed(data))))

    def turn(self, *, wiped: bool) -> list[str]:
        """Another context begins: what the screen shows, and what was held back, is the old one's.

        A screen that is not wiped goes on as it is: what stays the same on it is not painted again.
        """
        lines = self.redactor.take([*self.repaints.take(self.terminal.shown()), *self.repaints.end()])
        lines += self.redactor.end()
        self.repaints = Repaints()
        if wiped:
            self.terminal.rows.clear()
        return self._spaced(lines)

    def end(self) -> list[str]:
        """Nothing more will come."""
        return self.turn(wiped=True)

    def _spaced(self, lines: list[str]) -> list[str]:
        kept = []
        for line in lines:
            self.blanks = 0 if line else self.blanks + 1
            if self.blanks <= BLANKS:
                kept.append(line)
        return kept


def rendered(
    chunks: Iterable[bytes],
    known: Known = nothing_known,
    *,
    position: int = 0,
    turns: Sequence[ContextStart] = (),
    start: int = 0,
) -> Iterator[str]:
    """The lines of a log's bytes from a position on; what is before `start`, which is that or a turn, is left out."""
    rendering = Rendering(known)
    for data, turned in _parts(chunks, position, turns):
        lines = rendering.feed(data)
        if turned is not None:
            lines += rendering.turn(wiped=turned.wiped)
        if position >= start:
            yield from lines
        position += len(data)
    yield from rendering.end()


def _parts(
    chunks: Iterable[bytes], position: int, turns: Sequence[ContextStart]
) -> Iterator[tuple[bytes, ContextStart | None]]:
    """The bytes in parts that go over no turn, and the turn that follows."""
    left = [turn for turn in turns if turn.position > position]
    for chunk in chunks:
        data = chunk
        while left and position + len(data) >= left[0].position:
            turn = left.pop(0)
            size = turn.position - position
            yield data[:size], turn
            position, data = position + size, data[size:]
        yield data, None
        position += len(data)
