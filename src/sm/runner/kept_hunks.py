"""Whether a branch still has every hunk that its target has gained since the work on it began.

A merge can drop hunks without a conflict: one by the strategy `ours`, one whose conflict was resolved by taking a side
whole, a commit on top of the target with the files of before. The graph of git shows none of that, so that lines are
compared: what the target has gained, and what the branch changes of it, both in the line numbers of the target. Of a
line that both have changed, each word that the target has gained has to be among those that take its place.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from sm.runner.git import git

OPTIONS = ("-U0", "--text", "--no-ext-diff", "--no-textconv", "--no-color", "--find-renames")
PREFIXES = ("--src-prefix=a/", "--dst-prefix=b/")
_FILE = re.compile(r"^diff --git .*$", re.MULTILINE)
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_WORD = re.compile(r"\w+|[^\w\s]")


@dataclass(slots=True)
class Hunk:
    old: range
    """Numbers of lines; an empty one begins with the line that it is before."""
    new: range
    removed: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)


@dataclass(slots=True)
class FileHunks:
    old: str = ""
    """The path as git writes it; empty where the file is not there before."""
    new: str = ""
    hunks: list[Hunk] = field(default_factory=list)


def dropped(directory: str | Path, base: str, target: str, head: str) -> tuple[str, ...]:
    """Return the files of which `head`, which has `target` in its history, lacks what that has gained since `base`."""
    gained = {change.new or change.old: change for change in _changes(directory, base, target)}
    if not gained:
        return ()
    found = {
        path
        for change in _changes(directory, target, head)
        if (path := change.old or change.new) in gained and _drops(gained[path], change)
    }
    return tuple(sorted(found))


def _drops(gained: FileHunks, later: FileHunks) -> bool:
    return any(_takes_back(hunk, other) for hunk in gained.hunks for other in later.hunks)


def _takes_back(gained: Hunk, later: Hunk) -> bool:
    """Whether a later hunk takes words away that the other has gained, or has all lines again that that has removed."""
    if not _meet(gained.new, later.old):
        return False
    touched = [line for number, line in zip(gained.new, gained.added, strict=True) if number in later.old]
    lost = _words(touched) - _words(gained.removed) - _words(later.added)
    gone = _lines(gained.removed) - _lines(gained.added)
    return bool(lost) or (bool(gone) and not gone - _lines(later.added))


def _meet(one: range, other: range) -> bool:
    """Whether they have a line in common, or one of them is empty and at an edge of the other or in it."""
    if one and other:
        return one.start < other.stop and other.start < one.stop
    return one.start <= other.stop and other.start <= one.stop


def _words(lines: Iterable[str]) -> Counter[str]:
    return Counter(word for line in lines for word in _WORD.findall(line))


def _lines(lines: Iterable[str]) -> Counter[str]:
    """Return the lines that say something: a bracket alone does not."""
    return Counter(line.strip() for line in lines if re.search(r"\w", line))


def _changes(directory: str | Path, one: str, other: str) -> list[FileHunks]:
    """Return what differs between two commits, by file; bytes that are no text count as lines too."""
    parts = _FILE.split(git(directory, "diff", *OPTIONS, *PREFIXES, one, other))
    return [_change(part.split("\n")) for part in parts[1:]]


def _change(lines: Iterable[str]) -> FileHunks:
    found = FileHunks()
    for line in lines:
        head = _HUNK.match(line)
        if head is not None:
            found.hunks.append(Hunk(_numbers(head[1], head[2]), _numbers(head[3], head[4])))
        elif not found.hunks:
            _read_path(found, line)
        elif line.startswith("-"):
            found.hunks[-1].removed.append(line[1:])
        elif line.startswith("+"):
            found.hunks[-1].added.append(line[1:])
    return found


def _numbers(start: str, count: str | None) -> range:
    first, number = int(start), 1 if count is None else int(count)
    return range(first, first + number) if number else range(first + 1, first + 1)


def _read_path(found: FileHunks, line: str) -> None:
    """Take a path from a line of a file's head: a tab ends one with blanks, and one with odd characters is quoted."""
    path = line[4:].rstrip("\t")
    plain = f'"{path[3:]}' if path.startswith('"') else path[2:]
    if line.startswith("--- ") and path != "/dev/null":
        found.old = plain
    elif line.startswith("+++ ") and path != "/dev/null":
        found.new = plain
