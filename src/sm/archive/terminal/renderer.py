"""Renders a terminal's bytes as the text that was readable: one pass, bounded memory, pieces of any size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from sm.archive.redaction.redact import IsOwnToken, LineRedactor, no_own_tokens
from sm.archive.terminal.contexts import ContextStart
from sm.archive.terminal.emulator import Emulator
from sm.archive.terminal.repaints import RepaintFilter

MAX_BLANK_LINES = 2
"""In a row; more are dropped."""


@dataclass(slots=True)
class Renderer:
    """Takes bytes, returns redacted lines."""

    is_own_token: IsOwnToken = no_own_tokens
    terminal: Emulator = field(default_factory=Emulator)
    repaints: RepaintFilter = field(default_factory=RepaintFilter)
    redactor: LineRedactor = field(init=False)
    blanks: int = MAX_BLANK_LINES
    """Empty lines since the last other one; as if many came first, so that no text begins with one."""

    def __post_init__(self) -> None:
        self.redactor = LineRedactor(self.is_own_token)

    def feed(self, data: bytes) -> list[str]:
        return self._spaced(self.redactor.take(self.repaints.take(self.terminal.feed(data))))

    def start_context(self, *, wiped: bool) -> list[str]:
        """Begin another context; return what is left of the old one: what the screen shows, and what was held back.

        A screen that is not wiped stays: what does not change on it is not painted again.
        """
        lines = self.redactor.take([*self.repaints.take(self.terminal.shown()), *self.repaints.end()])
        lines += self.redactor.end()
        self.repaints = RepaintFilter()
        if wiped:
            self.terminal.rows.clear()
        return self._spaced(lines)

    def end(self) -> list[str]:
        """Return what is left at the end of the bytes."""
        return self.start_context(wiped=True)

    def _spaced(self, lines: list[str]) -> list[str]:
        kept = []
        for line in lines:
            self.blanks = 0 if line else self.blanks + 1
            if self.blanks <= MAX_BLANK_LINES:
                kept.append(line)
        return kept


def rendered(
    chunks: Iterable[bytes],
    is_own_token: IsOwnToken = no_own_tokens,
    *,
    position: int = 0,
    starts: Sequence[ContextStart] = (),
    start: int = 0,
) -> Iterator[str]:
    """Render a log's bytes, which begin at `position`; leave out lines before `start`, which is that or a context's."""
    renderer = Renderer(is_own_token)
    for data, context_start in _parts(chunks, position, starts):
        lines = renderer.feed(data)
        if context_start is not None:
            lines += renderer.start_context(wiped=context_start.wiped)
        if position >= start:
            yield from lines
        position += len(data)
    yield from renderer.end()


def _parts(
    chunks: Iterable[bytes], position: int, starts: Sequence[ContextStart]
) -> Iterator[tuple[bytes, ContextStart | None]]:
    """Cut the bytes where contexts start; return each part, and the start that follows it."""
    left = [context_start for context_start in starts if context_start.position > position]
    for chunk in chunks:
        data = chunk
        while left and position + len(data) >= left[0].position:
            context_start = left.pop(0)
            size = context_start.position - position
            yield data[:size], context_start
            position, data = position + size, data[size:]
        yield data, None
        position += len(data)
