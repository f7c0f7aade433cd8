"""What of an earlier handoff still holds: goals, rules and decisions, for the person may never repeat them."""

from __future__ import annotations

import re
from collections.abc import Iterator

HEADING = re.compile(r"^\s*(?:#{1,6}\s+(.+?)|\*\*([^*]+)\*\*:?)\s*$")
LASTING = re.compile(
    r"intent|goal|objective|purpose|request|constraint|rule|requirement|decision|decided|handoff before|other agents|"
    r"ziel|vorgabe|\bplan\b|"
    r"entscheidung|objectif|contrainte|décision|目的|制約|決定|目标|约束|决定",
    re.IGNORECASE,
)
NOISE = re.compile(r"^(?:<!--|```|\||-{3,}|\[cut here)")
LATEST = " (the latest)"
"""What a document of ours says of a request; of an older document's it is no longer so."""
FIRST_LINES = 12
"""Of a document without such headings."""
LONGEST = 400


def lasting(document: str) -> Iterator[str]:
    """Lines that still hold, each with the heading it stood under."""
    found = {said: title for title, said in _under_headings(document)}  # a message and the rule in it are one line
    lines = [said if "handoff before" in title.casefold() else f"{title}: {said}" for said, title in found.items()]
    yield from lines or [_plain(line) for line in document.splitlines() if _tells(line)][:FIRST_LINES]


def _under_headings(document: str) -> Iterator[tuple[str, str]]:
    title = ""
    for line in document.splitlines():
        heading = HEADING.match(line)
        if heading:
            title = (heading[1] or heading[2]).strip()
        elif LASTING.search(title) and _tells(line):
            yield title, _plain(line).removesuffix(LATEST)


def _tells(line: str) -> bool:
    text = line.strip()
    return bool(text) and text != "None" and not NOISE.match(text) and not text.endswith(":")


def _plain(line: str) -> str:
    return re.sub(r"^\s*(?:[-*+•]|\d+[.)]|>)\s+", "", line).strip()[:LONGEST]
