"""Changes a JSON document as text: what is not changed keeps every byte.

A value that is added takes its white space from what is next to it, so that a file keeps its style: indentation of
any width, tabs, CRLF, one line. Taking out is the reverse of adding.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

BLANK = re.compile(r"[ \t\r\n]*")
BLANKS = " \t\r\n"
STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
SCALAR = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s,\]}]+', re.DOTALL)
FIRST_INDENT = re.compile(r"\{[ \t]*\r?\n([ \t]+)")


@dataclass(frozen=True, slots=True)
class Node:
    """Where a value is."""

    start: int
    end: int
    children: tuple[Member, ...] = ()

    def member(self, key: str) -> Member | None:
        """The one that counts: of two with the same key the last."""
        return next((child for child in reversed(self.children) if child.key == key), None)


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an object, from its key on, or an item of an array."""

    start: int
    node: Node
    key: str | None = None


def parse(text: str) -> Node:
    """The places in a document that is known to be valid."""
    return _value(text, _skip(text, 0))


def at(node: Node, path: tuple[str | int, ...]) -> Node:
    """The value at a path that is known to exist."""
    for step in path:
        child = node.member(step) if isinstance(step, str) else node.children[step]
        assert child is not None
        node = child.node
    return node


def _skip(text: str, place: int) -> int:
    return _end(BLANK, text, place)


def _end(pattern: re.Pattern[str], text: str, place: int) -> int:
    match = pattern.match(text, place)
    assert match is not None
    return match.end()


def _value(text: str, start: int) -> Node:
    if text[start] not in "{[":
        return Node(start, _end(SCALAR, text, start))
    children = tuple(_children(text, start))
    end = _skip(text, children[-1].node.end if children else start + 1)
    return Node(start, end + 1, children)


def _children(text: str, opening: int) -> Iterator[Member]:
    place = _skip(text, opening + 1)
    while text[place] not in "}]":
        start, key = place, None
        if text[opening] == "{":
            end = _end(STRING, text, place)
            key = json.loads(text[place:end])
            place = _skip(text, _skip(text, end) + 1)
        node = _value(text, place)
        yield Member(start, node, key)
        place = _skip(text, node.end)
        place = _skip(text, place + 1) if text[place] == "," else place


def added(text: str, path: tuple[str | int, ...], value: Any, key: str | None = None) -> str:  # noqa: ANN401  # JSON
    """The text with `value` as the last member or item of the container at `path`."""
    root = parse(text)
    container = at(root, path)
    name = "" if key is None else json.dumps(key, ensure_ascii=False) + ": "
    if container.children:
        last = container.children[-1]
        gap = _blank_before(text, last.start)
        return text[: last.node.end] + "," + gap + name + _written(text, value, gap) + text[last.node.end :]
    flat = container is not root and "\n" not in text[root.start : root.end]
    outer = "" if flat else _newline(text) + _indentation(text, container.start)
    gap = "" if flat else outer + _unit(text)
    inside = gap + name + _written(text, value, gap) + outer
    return text[: container.start + 1] + inside + text[container.end - 1 :]


def removed(text: str, path: tuple[str | int, ...]) -> str:
    """The text without the member or item at `path`."""
    container = at(parse(text), path[:-1])
    step = path[-1]
    child = container.member(step) if isinstance(step, str) else container.children[step]
    assert child is not None
    number = container.children.index(child)
    if number:
        return text[: container.children[number - 1].node.end] + text[child.node.end :]
    if len(container.children) > 1:
        return text[: child.start] + text[container.children[1].start :]
    return text[: container.start + 1] + text[container.end - 1 :]


def replaced(text: str, path: tuple[str | int, ...], value: Any) -> str:  # noqa: ANN401  # JSON
    """The text with another scalar at `path`."""
    node = at(parse(text), path)
    return text[: node.start] + json.dumps(value, ensure_ascii=False) + text[node.end :]


def _written(text: str, value: Any, gap: str) -> str:  # noqa: ANN401  # JSON
    if "\n" not in gap:
        return json.dumps(value, ensure_ascii=False)
    line = _newline(text) + gap.rpartition("\n")[2]
    return json.dumps(value, ensure_ascii=False, indent=_unit(text)).replace("\n", line)


def _blank_before(text: str, place: int) -> str:
    return text[len(text[:place].rstrip(BLANKS)) : place]


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _indentation(text: str, place: int) -> str:
    """Of the line that holds the place."""
    line = text[text.rfind("\n", 0, place) + 1 : place]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str) -> str:
    found = FIRST_INDENT.search(text)
    return found.group(1) if found else "  "
