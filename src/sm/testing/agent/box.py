"""The input box: its text, its stashed draft, and the prompt that the model gets."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field

MAX_PLAIN_CHARS = 800
MAX_PLAIN_LINES = 3
COLLAPSED = re.compile(r"\[Pasted text #(\d+)(?: \+\d+ lines)?\]")
BREAK = re.compile(r" +|[^ ]+")


@dataclass(slots=True)
class ScriptedBox:
    """The cursor is always at the end of the text."""

    text: str = ""
    shell: bool = False
    """What is typed would be run as a shell command."""
    stash: str | None = None
    notice: str = ""
    _pastes: dict[str, str] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        return not self.text and not self.shell

    def insert(self, burst: str) -> None:
        if self.empty and burst.startswith("!"):
            self.shell, burst = True, burst[1:]
        lines = burst.count("\n")
        if len(burst) > MAX_PLAIN_CHARS or lines >= MAX_PLAIN_LINES:
            burst = self._collapsed(burst, lines)
        self.text += burst

    def _collapsed(self, burst: str, lines: int) -> str:
        number = str(len(self._pastes) + 1)
        self._pastes[number] = burst
        return f"[Pasted text #{number} +{lines} lines]" if lines else f"[Pasted text #{number}]"

    def backspace(self) -> None:
        if not self.text:
            self.shell = False
        collapsed = next((found for found in COLLAPSED.finditer(self.text) if found.end() == len(self.text)), None)
        self.text = self.text[: collapsed.start()] if collapsed else self.text[:-1]

    def delete_line(self, width: int) -> None:
        """Ctrl-U: the line as the screen wraps it (client 2.1.328), or the line end before an empty one."""
        last = wrapped(self.text, width)[-1]
        self.text = self.text[: -len(last)] if last else self.text[:-1]

    def toggle_stash(self) -> None:
        if self.text:
            self.stash, self.text, self.notice = self.text, "", ""
        elif self.stash is not None:
            self.restore_stash()

    def restore_stash(self) -> None:
        """Put the stashed draft into the box, as every submission does."""
        if self.stash is not None:
            self.text, self.stash, self.notice = self.stash, None, "draft restored"

    def take(self) -> str:
        """Empty the box and return its text, pastes in full."""
        text, self.text, self.shell, self.notice = self.text, "", False, ""
        return COLLAPSED.sub(self._paste, text)

    def _paste(self, match: re.Match[str]) -> str:
        content = self._pastes.get(match[1])
        if content is None:
            return match[0]
        name = os.urandom(2).hex()
        return f'\n\n<pasted_content id="{name}">\n{content}\n</pasted_content id="{name}">\n\n'


def wrapped(text: str, width: int) -> list[str]:
    """Return the text's lines as the box shows them: broken between words, long words anywhere."""
    return [piece for line in text.split("\n") for piece in _wrapped_line(line, max(width, 1))]


def _wrapped_line(line: str, width: int) -> list[str]:
    rows, row = [], ""
    for word in BREAK.findall(line):
        if _starts_a_row(row, word, width):
            rows.append(row)
            row = ""
        row += word
        while columns(row.rstrip()) > width:
            cut = fitting(row, width)
            rows.append(row[:cut])
            row = row[cut:]
    return [*rows, row]


def _starts_a_row(row: str, word: str, width: int) -> bool:
    """Whether a word goes to the next row: not a long one that needs no more breaks where it is (client 2.1.328)."""
    left, wide = width - columns(row), columns(word)
    if not row or word.isspace() or wide <= left:
        return False
    return wide <= width or (wide - 1) // width < 1 + (wide - left - 1) // width


def fitting(text: str, width: int) -> int:
    """Return how many of the text's characters fit into that many columns; at least one."""
    used = 0
    for number, character in enumerate(text):
        used += columns(character)
        if used > width:
            return max(number, 1)
    return len(text)


def columns(text: str) -> int:
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width  # noqa: PLC0415  # seldom needed, and 1 MB

    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)
