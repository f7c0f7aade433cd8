"""The lines of YAML above a Markdown text: read, and changed in one value while every other byte stays.

A change is checked before anybody writes it: read again, the new text has the new value, and all else as it was.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from sm.runner.issues.yaml_nodes import Node, YamlError, entries, word

BOM = "\ufeff"
_FENCE = re.compile(r"(?:---|\.\.\.)[ \t]*\r?")


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """Where it is in its text. Without one all three are the place where it would begin."""

    start: int
    """Of the first line of YAML."""
    end: int
    """Of the line that ends it."""
    body: int
    """Of the text below it."""
    values: dict[str, Node] = field(default_factory=dict)

    def span(self, key: str) -> tuple[int, int]:
        """Return where a value is in the text."""
        node = self.values[key]
        return self.start + node.start_mark.index, self.start + node.end_mark.index


def front_matter(text: str) -> FrontMatter:
    """Find and read it; YamlError if it does not end or is not a list of keys."""
    begin = len(BOM) if text.startswith(BOM) else 0
    first = _line_end(text, begin)
    if text[begin:first].rstrip() != "---":
        return FrontMatter(begin, begin, begin)
    place = first
    while place < len(text):
        end = _line_end(text, place)
        if _FENCE.fullmatch(text[place:end].removesuffix("\n")):
            return FrontMatter(first, place, end, entries(text[first:place], first_line=2))
        place = end
    raise YamlError("its front matter does not end: a line `---` is missing below it")


def _line_end(text: str, place: int) -> int:
    """Return the place behind the line break."""
    found = text.find("\n", place)
    return len(text) if found < 0 else found + 1


def with_value(text: str, key: str, value: str) -> str:
    """Return the text with this one value changed, or its line added; YamlError where that cannot be done safely."""
    found = front_matter(text)
    changed = _replaced(text, found, key, value) if key in found.values else _added(text, found, key, value)
    again = front_matter(changed)
    if word(again.values[key], key) != value or _others(changed, again, key) != _others(text, found, key):
        raise YamlError(f"{key} cannot be changed without changing more: write it as a line `{key}: {value}`")
    return changed


def _others(text: str, found: FrontMatter, key: str) -> tuple[list[tuple[str, str]], str]:
    """Return every other value as it is written, and the text below."""
    spans = {name: found.span(name) for name in found.values if name != key}
    return [(name, text[slice(*span)].rstrip()) for name, span in spans.items()], text[found.body :]


def _replaced(text: str, found: FrontMatter, key: str, value: str) -> str:
    start, end = found.span(key)
    old = text[start:end]
    rest = old[len(old.rstrip()) :]  # a block of text ends behind its line break
    gap = " " if start == end and text[start - 1 : start] == ":" else ""
    return text[:start] + gap + value + rest + text[end:]


def _added(text: str, found: FrontMatter, key: str, value: str) -> str:
    newline = line_break(text)
    if found.body == found.start:
        return f"{text[: found.start]}---{newline}{key}: {value}{newline}---{newline}{text[found.start :]}"
    first = next(iter(found.values.values()), None)
    indent = _indent(text, found) if first is not None else ""
    return f"{text[: found.end]}{indent}{key}: {value}{newline}{text[found.end :]}"


def _indent(text: str, found: FrontMatter) -> str:
    """Return the blanks before the keys: those of the first line that is no comment."""
    lines = (line for line in text[found.start : found.end].split("\n") if line.strip() and line.strip()[0] != "#")
    line = next(lines, "")
    return line[: len(line) - len(line.lstrip())]


def line_break(text: str) -> str:
    """Return the text's own kind of line break."""
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"
