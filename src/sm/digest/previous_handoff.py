"""Lines of an earlier handoff that still hold: goals, rules and decisions, which the user may never repeat."""

from __future__ import annotations

import re
from collections.abc import Iterator

HEADING = re.compile(r"^\s*(?:#{1,6}\s+(.+?)|\*\*([^*]+)\*\*:?)\s*$")
LASTING_HEADING = re.compile(
    r"intent|goal|objective|purpose|request|constraint|rule|requirement|decision|decided|handoff before|other agents|"
    r"ziel|vorgabe|\bplan\b|"
    r"entscheidung|objectif|contrainte|décision|目的|制約|決定|目标|约束|决定",
    re.IGNORECASE,
)
NOISE = re.compile(r"^(?:<!--|```|\||-{3,}|\[cut here)")
LATEST = " (the latest)"
"""Our mark for the latest request; a request of an older document is not the latest any more."""
MAX_FIRST_LINES = 12
"""Taken from a document without such headings."""
MAX_LINE_CHARS = 400


def lasting_lines(document: str) -> Iterator[str]:
    """Return lines that still hold, each with its heading."""
    found = {said: title for title, said in _under_headings(document)}  # a message and the rule in it are one line
    lines = [said if "handoff before" in title.casefold() else f"{title}: {said}" for said, title in found.items()]
    yield from lines or [_plain(line) for line in document.splitlines() if _has_content(line)][:MAX_FIRST_LINES]


def _under_headings(document: str) -> Iterator[tuple[str, str]]:
    title = ""
    for line in document.splitlines():
        heading = HEADING.match(line)
        if heading:
            title = (heading[1] or heading[2]).strip()
        elif LASTING_HEADING.search(title) and _has_content(line):
            yield title, _plain(line).removesuffix(LATEST)


def _has_content(line: str) -> bool:
    text = line.strip()
    return bool(text) and text != "None" and not NOISE.match(text) and not text.endswith(":")


def _plain(line: str) -> str:
    return re.sub(r"^\s*(?:[-*+•]|\d+[.)]|>)\s+", "", line).strip()[:MAX_LINE_CHARS]
