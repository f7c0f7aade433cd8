"""Which files an issue names, and which issues name the same ones: those do not run at the same time.

A path that is taken for one by mistake costs a wait, one that is missed a conflict: in doubt it is a path.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import combinations

from sm.runner.issues.issue import Issue

_TICKED = re.compile(r"`([^`\s]{1,300})`")
_PLAIN = re.compile(r"(?<![^\s(\[\"'])[^\s()\[\]\"'`<>]{1,300}")
_LINE_NUMBER = re.compile(r"(?::\d{1,9}(?:-\d{1,9})?){1,2}")
_NAME = re.compile(r"[\w.@+~-]*\.[A-Za-z]\w{0,9}")
"""A file's name with its ending."""
_PART = re.compile(r"[\w.@+~ -]+")
MAX_FILES = 200


def named_files(text: str) -> tuple[str, ...]:
    """Return the paths in a text: with a directory anywhere, a bare name only in backticks. In their order."""
    found = [path for part in _TICKED.findall(text) if (path := _path(part)) and (_is_file(path) or "/" in path)]
    found += [path for part in _PLAIN.findall(_TICKED.sub(" ", text)) if "/" in part and (path := _file_in_words(part))]
    return tuple(dict.fromkeys(found))[:MAX_FILES]


def _file_in_words(part: str) -> str:
    path = _path(part.rstrip(".,;:!?"))
    return path if path.endswith("/") or _is_file(path) else ""


def _is_file(path: str) -> bool:
    return _NAME.fullmatch(path.rpartition("/")[2]) is not None


def _path(part: str) -> str:
    """Return a path relative to the project; empty for anything else."""
    begin = part.find(":")
    if begin > 0 and _LINE_NUMBER.fullmatch(part[begin:]):
        part = part[:begin]
    path = part.partition("#")[0]
    while path.startswith("./"):
        path = path[2:]
    parts = path.rstrip("/").split("/")
    sound = all(_PART.fullmatch(name) and name.strip(".") for name in parts)
    return path if sound and not path.startswith(("/", "~")) else ""


def given_files(paths: Iterable[str]) -> tuple[str, ...]:
    """Return paths that somebody has listed, in the form of those found in a text."""
    return tuple(dict.fromkeys(path for given in paths if (path := _path(given))))


def overlapping(one: Issue, other: Issue) -> tuple[str, ...]:
    """Return the paths of the first that the second names too: the same one, a directory of it, or its bare name."""
    return tuple(path for path in one.files if any(_meet(path, theirs) for theirs in other.files))


def _meet(path: str, other: str) -> bool:
    one, two = path.rstrip("/").casefold(), other.rstrip("/").casefold()
    if one == two or one.startswith(f"{two}/") or two.startswith(f"{one}/"):
        return True
    return ("/" not in one and two.endswith(f"/{one}")) or ("/" not in two and one.endswith(f"/{two}"))


def same_files(issues: Sequence[Issue]) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """Return each pair of ids that name the same files, with these."""
    found = ((one.id, other.id, overlapping(one, other)) for one, other in combinations(issues, 2))
    return tuple(pair for pair in found if pair[2])
