"""The page of the search: hits with what was searched for marked in their lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sm.core.model.history import Hit


@dataclass(frozen=True, slots=True)
class ShownHit:
    at: float
    session: str
    name: str | None
    context: int | None
    kind: str
    pieces: list[tuple[bool, str]]
    """The line in order, each piece with whether it is marked."""


def shown_hit(hit: Hit, name: str | None) -> ShownHit:
    return ShownHit(hit.at, hit.session, name, hit.context, hit.kind, list(_pieces(hit)))


def _pieces(hit: Hit) -> Iterator[tuple[bool, str]]:
    position = 0
    for start, end in hit.marks:
        if start >= position:
            yield False, hit.line[position:start]
            yield True, hit.line[start:end]
            position = end
    yield False, hit.line[position:]
