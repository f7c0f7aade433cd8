"""Which parts of a document that is too long for a reply are the most useful to an agent that continues from it.

A Markdown document is taken apart at its headings: what to do next first, then goal, decisions and what went wrong,
then the rest, each in the document's own order. A document without headings is cut at a line end.
"""

from __future__ import annotations

import itertools
import re

_MARK = re.compile(r"^(?:(```|~~~)|#{1,6}[ \t]+\S)", re.MULTILINE)
"""A heading, or the fence of a code block, in which `#` begins a comment."""
USEFUL = (
    re.compile(r"next|resum|todo|open|remain|pending|block|current|now\b", re.IGNORECASE),
    re.compile(r"goal|intent|task|request|decision|constraint|rule|gotcha|warning|error|important", re.IGNORECASE),
)
"""Words of a heading that say what its part is good for, the most useful first."""
LEFT_OUT = "[left out: {}]"
CUT = "\n[…]\n"
MIN_PART = 200
"""Characters below which a piece of a part is not worth giving."""


def excerpt(text: str, room: int) -> str:
    """At most `room` characters of `text`: the most useful parts, in their order, and the names of those left out."""
    parts = _parts(text)
    if len(parts) == 1:
        return cut_at_line_end(text, room)
    names = {number: LEFT_OUT.format(_title(part)) + "\n" for number, part in enumerate(parts)}
    room -= sum(map(len, names.values()))
    if room < MIN_PART:
        return cut_at_line_end(text, room + sum(map(len, names.values())))
    kept: dict[int, str] = {}
    for number in sorted(names, key=lambda part: (_rank(parts[part], part), part)):
        part = parts[number]
        space = room + len(names[number])
        if len(part) > space:  # half of what is left, so that the next in rank are heard as well
            part = cut_at_line_end(part, space // 2) + CUT if space >= MIN_PART else ""
        if part:
            kept[number] = part
            room = space - len(part)
    return "".join(kept.get(number, names[number]) for number in names).rstrip("\n")


def _parts(text: str) -> list[str]:
    """Cut the document before each heading outside of code blocks; the text before the first is a part as well."""
    marks, fenced = [0], False
    for found in _MARK.finditer(text):
        if found[1]:
            fenced = not fenced
        elif not fenced and found.start() > 0:
            marks.append(found.start())
    marks.append(len(text))
    return [text[begin:end] for begin, end in itertools.pairwise(marks) if end > begin]


def _title(part: str) -> str:
    return part.lstrip().partition("\n")[0].strip("# \t")[:60]


def _rank(part: str, number: int) -> int:
    if number == 0:
        return 0  # what the document begins with says what it is about
    title = _title(part)
    return next((rank for rank, words in enumerate(USEFUL) if words.search(title)), len(USEFUL))


def cut_at_line_end(text: str, room: int) -> str:
    cut = text[: max(0, room)]
    line_end = cut.rfind("\n")
    return cut[:line_end] if line_end > len(cut) // 2 else cut
