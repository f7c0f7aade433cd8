"""The difference between two documents, line by line: its sign says the same as its colour."""

from __future__ import annotations

import difflib

from rich.text import Text

from sm.tui.look import BAD, GOOD, PLAIN_STYLE, QUIET_STYLE
from sm.tui.text import lines

CONTEXT_LINES = 2
COLOURS = {"+": GOOD, "-": BAD}


def difference(before: str, after: str) -> Text:
    """Return what the second has more and less than the first."""
    shown = Text(style=PLAIN_STYLE, end="")
    found = list(difflib.unified_diff(lines(before), lines(after), lineterm="", n=CONTEXT_LINES))[2:]
    if not found:
        return shown.append("no difference", QUIET_STYLE)
    for line in found:
        style = QUIET_STYLE if line.startswith("@@") else COLOURS.get(line[:1], PLAIN_STYLE)
        shown.append("⋯\n" if line.startswith("@@") else f"{line}\n", style)
    return shown
