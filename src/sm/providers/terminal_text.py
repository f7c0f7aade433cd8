"""The text of a captured screen: its lines with escape sequences, the style of each part, and columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from unicodedata import combining, east_asian_width

ESCAPE = re.compile(r"\x1b\[([0-9;:]*)([A-Za-z])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][A-Z0-9]")


def undecorated(line: str) -> str:
    return ESCAPE.sub("", line)


def squeezed(text: str) -> str:
    return "".join(text.split())


def cut(line: str, columns: int) -> str:
    """The part of a line that takes up so many columns; blanks that a capture leaves out at its end are there."""
    for number, character in enumerate(line):
        wide = 0 if combining(character) else 2 if east_asian_width(character) in "WF" else 1
        if columns < wide:
            return line[:number]
        columns -= wide
    return line + " " * columns


@dataclass(frozen=True, slots=True)
class Style:
    bold: bool = False
    dim: bool = False
    reverse: bool = False


PLAIN = Style()


@dataclass(frozen=True, slots=True)
class Run:
    """Text between two escape sequences."""

    text: str
    style: Style


def styled_lines(lines: Iterable[str]) -> list[list[Run]]:
    """Return the runs of each line of a screen: as tmux captures it, a style lasts until another one is set."""
    found, style = [], PLAIN
    for line in lines:
        found.append([*runs(line, style)])
        for match in ESCAPE.finditer(line):
            if match.group(2) == "m":
                style = _styled(style, match.group(1))
    return found


def runs(line: str, style: Style = PLAIN) -> Iterator[Run]:
    at = 0
    for match in ESCAPE.finditer(line):
        if match.start() > at:
            yield Run(line[at : match.start()], style)
        at = match.end()
        if match.group(2) == "m":
            style = _styled(style, match.group(1))
    if at < len(line):
        yield Run(line[at:], style)


def _styled(style: Style, parameters: str) -> Style:
    codes = iter(parameters.split(";"))
    for code in codes:
        if code in COLOURS:  # what follows is a colour's number, not an attribute
            for _ in range({"5": 1, "2": 3}.get(next(codes, ""), 0)):
                next(codes, "")
        elif code in STYLES:
            style = STYLES[code](style)
    return style


COLOURS = frozenset({"38", "48", "58"})
STYLES: dict[str, Callable[[Style], Style]] = {
    "": lambda _: PLAIN,
    "0": lambda _: PLAIN,
    "1": lambda style: replace(style, bold=True),
    "2": lambda style: replace(style, dim=True),
    "22": lambda style: replace(style, bold=False, dim=False),
    "7": lambda style: replace(style, reverse=True),
    "27": lambda style: replace(style, reverse=False),
}
"""The attributes that matter here; 1 (bold) does not end 2."""
