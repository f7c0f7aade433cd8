"""A checklist, as TODO.md: each item with a box is an issue.

Its id is made of its words, so that it stays the same whatever is ticked, moved or added; an item that begins with an
id, as `FEAT-012: …`, has that one. Marking an item changes the one character in its box: `x` done, `-` closed without
being done, `/` in progress, `?` needs the user, `!` blocked. An item with items below it is done once all of them are.
"""

from __future__ import annotations

import hashlib
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sm.core.errors import error
from sm.runner.issues.edit import edit, read_text
from sm.runner.issues.front_matter import line_break
from sm.runner.issues.issue import (
    DEFAULT_PRIORITY,
    TYPES,
    Issue,
    IssueList,
    IssueProblem,
    IssueStatus,
    IssueType,
    priority_of,
    unique_part,
)
from sm.runner.issues.named_files import named_files
from sm.runner.issues.notes import ANSWER_HEAD, note_head, quoted

NAMES = ("TODO.md", "todo.md", "Todo.md")
MARKS = {
    IssueStatus.OPEN: " ",
    IssueStatus.DONE: "x",
    IssueStatus.CLOSED: "-",
    IssueStatus.IN_PROGRESS: "/",
    IssueStatus.NEEDS_YOU: "?",
    IssueStatus.BLOCKED: "!",
}
_STATUSES = {**{mark: status for status, mark in MARKS.items()}, "X": IssueStatus.DONE}
_ITEM = re.compile(r"([ \t]*)((?:[-*+]|\d{1,9}[.)])[ \t]+)\[(.)\][ \t]+(\S.*)")
_FENCE = re.compile(r"[ \t]*(```|~~~)")
_HEADING = re.compile(r"#{1,6}[ \t]")
_HEAD = re.compile(rf"(?:[(\[]?(P\d)[)\]]?:?[ \t]+)?(?:({TYPES})-(\d{{1,18}})\b:?[ \t]*)?", re.IGNORECASE)
"""What an item may begin with: its priority, and an id."""
ID_DIGITS = 8


@dataclass(slots=True)
class _Box:
    """An item as it is read from the lines."""

    line: int
    indent: int
    width: int
    """Of what is before its words, so that lines below can begin where they do."""
    mark: str
    words: str
    id: str = ""
    end: int = 0
    """Behind its own last line."""
    own: list[str] = field(default_factory=list)
    """The lines below it that belong to it."""
    parent: _Box | None = None
    has_items: bool = False


class TodoSource:
    """One file."""

    def __init__(self, path: Path) -> None:
        self._path = path.resolve()
        self._name = path.name

    def list(self) -> IssueList:
        try:
            boxes = _boxes(read_text(self._path))
        except ValueError as problem:
            raise error("bad_issue", f"{self._name}: {problem}", "save the file as UTF-8") from problem
        found = [self._issue(box, number) for number, box in enumerate(boxes, 1)]
        twice = {part for part, count in Counter(unique_part(box.id) for box in boxes).items() if count > 1}
        issues = tuple(one for one in found if isinstance(one, Issue) and unique_part(one.id) not in twice)
        problems = tuple(one for one in found if isinstance(one, IssueProblem))
        return IssueList(issues, (*self._duplicates(boxes, twice), *problems))

    def read(self, issue: str) -> Issue:
        return self.list().find(issue)

    def set_status(self, issue: str, status: IssueStatus, note: str = "") -> None:
        head = "" if status.is_over or not note.strip() else note_head(status)
        self._edit(issue, lambda _: status, head, note)

    def answer(self, issue: str, text: str) -> None:
        self._edit(issue, lambda old: IssueStatus.OPEN if old.waits_for_answer else old, ANSWER_HEAD, text)

    def _edit(self, issue: str, becomes: Callable[[IssueStatus], IssueStatus], head: str, note: str) -> None:
        known = self.read(issue).id

        def change(text: str) -> str:
            box = next((box for box in _boxes(text) if box.id == known), None)
            if box is None or box.mark not in _STATUSES:
                raise error("no_issue", f"{known} is gone from {self._name}", "sm issues list shows the issues")
            lines = _lines(text)
            before = _STATUSES[box.mark]
            after = becomes(before)
            if after is not before:
                lines[box.line] = _marked(lines[box.line], MARKS[after])
            return "".join(_noted(lines, box, head, note, line_break(text)) if head else lines)

        edit(self._path, self._path.parent, change)

    def _issue(self, box: _Box, number: int) -> Issue | IssueProblem:
        place = f"{self._name}:{box.line + 1}"
        if box.mark not in _STATUSES:
            boxes = ", ".join(f"[{mark}]" for mark in MARKS.values())
            return IssueProblem(place, f"box [{box.mark}]: accepted are {boxes}", (box.id,))
        head = _HEAD.match(box.words)
        assert head is not None
        try:
            priority = priority_of(head[1]) if head[1] else DEFAULT_PRIORITY
        except ValueError as problem:
            return IssueProblem(place, str(problem), (box.id,))
        text = "\n".join((box.words, textwrap.dedent("\n".join(box.own)))).strip()
        return Issue(
            id=box.id,
            type=IssueType.EPIC if box.has_items else IssueType(head[2].upper()) if head[2] else IssueType.TASK,
            priority=priority,
            number=number,
            title=box.words[head.end() :] or box.words,
            status=_STATUSES[box.mark],
            place=place,
            parent=box.parent.id if box.parent else "",
            files=named_files(text),
            text=text,
        )

    def _duplicates(self, boxes: Sequence[_Box], twice: set[str]) -> Iterator[IssueProblem]:
        for part in sorted(twice):
            same = [box for box in boxes if unique_part(box.id) == part]
            places = " and ".join(f"{self._name}:{box.line + 1}" for box in same)
            message = f"number {part} is used twice: {places}; give one of them another"
            yield IssueProblem("", message, tuple(dict.fromkeys(box.id for box in same)))


def _lines(text: str) -> list[str]:
    """Split at line feeds alone, and keep them."""
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines


def _boxes(text: str) -> list[_Box]:
    """Return the items of a checklist, with ids, in the order of their lines. What is in a fence is text."""
    boxes: list[_Box] = []
    open_boxes: list[_Box] = []
    fence = ""
    for number, line in enumerate(text.split("\n")):
        plain = line.rstrip("\r")
        mark = _FENCE.match(plain)
        if mark and (not fence or mark[1] == fence):
            fence = "" if fence else mark[1]
        item = None if fence or mark else _ITEM.fullmatch(plain)
        indent = _indent(plain)
        if item is not None:
            open_boxes = [box for box in open_boxes if box.indent < indent]
            box = _Box(number, indent, indent + len(item[2]), item[3], item[4].strip(), end=number + 1)
            if open_boxes:
                box.parent = open_boxes[-1]
                box.parent.has_items = True
            open_boxes.append(box)
            boxes.append(box)
        elif plain.strip():
            open_boxes = [] if _HEADING.match(plain) else [box for box in open_boxes if box.indent < indent]
            _take(open_boxes, boxes, plain, number)
        elif open_boxes and open_boxes[-1] is boxes[-1]:
            boxes[-1].own.append("")
    return _with_ids(boxes)


def _take(open_boxes: Sequence[_Box], boxes: Sequence[_Box], line: str, number: int) -> None:
    """Give a line to the item that it is below, unless items of that one have come before it."""
    if open_boxes and open_boxes[-1] is boxes[-1]:
        open_boxes[-1].own.append(line.expandtabs(4))
        open_boxes[-1].end = number + 1


def _indent(line: str) -> int:
    expanded = line.expandtabs(4)
    return len(expanded) - len(expanded.lstrip())


def _with_ids(boxes: list[_Box]) -> list[_Box]:
    """Give each item its id: of the same words the second and later ones have their number in it too."""
    seen: Counter[str] = Counter()
    for box in boxes:
        head = _HEAD.match(box.words)
        if head and head[2]:
            box.id = f"{head[2].upper()}-{head[3]}"
            continue
        above = f"{box.parent.words}\0" if box.parent else ""
        words = " ".join(f"{above}{box.words}".split())
        known = f"TODO-{hashlib.sha256(words.encode()).hexdigest()[:ID_DIGITS]}"
        seen[known] += 1
        box.id = known if seen[known] == 1 else f"{known}-{seen[known]}"
    return boxes


def _marked(line: str, mark: str) -> str:
    place = line.index("[") + 1
    return f"{line[:place]}{mark}{line[place + 1 :]}"


def _noted(lines: list[str], box: _Box, head: str, note: str, newline: str) -> list[str]:
    """Add a quoted note below an item's own lines; nothing where it is the last of them already."""
    blank = " " * box.width
    added = [f"{blank}{line}{newline}" for line in (f"**{head}**", *quoted(note))]
    if [line.rstrip() for line in lines[box.end - len(added) : box.end]] == [line.rstrip() for line in added]:
        return lines
    before = lines[: box.end]
    if before[-1] and not before[-1].endswith("\n"):
        before[-1] += newline
    return [*before, *added, *lines[box.end :]]
