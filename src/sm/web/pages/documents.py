"""A session's handoff documents as a chain, and what changed from one to another."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sm.core.model.history import Document

MAX_LINES = 4_000
"""Of each document in a difference."""


@dataclass(frozen=True, slots=True)
class Link:
    """A document with its neighbours in the chain."""

    id: str
    created: float
    state: str
    previous: str | None
    following: str | None


def chain(documents: Sequence[Document]) -> list[Link]:
    """Return the newest first."""
    ordered = sorted(documents, key=lambda document: (document.created, document.id))
    ids = [document.id for document in ordered]
    before, after = [None, *ids[:-1]], [*ids[1:], None]
    links = zip(ordered, before, after, strict=False)  # without any document the neighbours still have an end
    return [Link(each.id, each.created, each.state, previous, following) for each, previous, following in links][::-1]


def difference(older: str, newer: str) -> list[tuple[str, str]]:
    """Return the lines of a unified difference, each with its kind: `add`, `del`, `at` or empty."""
    before, after = older.splitlines()[:MAX_LINES], newer.splitlines()[:MAX_LINES]
    return list(_lines(list(difflib.unified_diff(before, after, lineterm="", n=3))[2:]))


def _lines(lines: list[str]) -> Iterator[tuple[str, str]]:
    kinds = {"+": "add", "-": "del", "@": "at"}
    for line in lines:
        yield kinds.get(line[:1], ""), line
