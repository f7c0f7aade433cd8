"""A session's self-report, and how words of one agent are quoted in a text that another one reads.

Quoted words are one line between quotation marks, bounded, with nothing in them that could pass for a frame of `sm`'s,
a tag of the client's, or an end of the quotation.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

MAX_REPORT_CHARS = 300
"""Of a self-report."""
MAX_QUOTED_CHARS = 200
"""Of another agent's words in a notice, which then still fits what is typed in one go."""
_HARMLESS = str.maketrans({'"': "'", "<": "(", ">": ")", "[": "(", "]": ")", "\\": "/"})


@dataclass(frozen=True, slots=True)
class Report:
    text: str
    at: float
    """UTC, seconds since the epoch."""
    done: bool = False
    """The agent has declared its task complete, and no other task has begun."""


def one_line(text: str, max_chars: int = MAX_REPORT_CHARS) -> str:
    """Return the text in one line, cut at `max_chars`, without characters that a terminal or a composer acts on."""
    plain = "".join(character if character.isprintable() else " " for character in unicodedata.normalize("NFC", text))
    joined = " ".join(plain.split())
    return joined if len(joined) <= max_chars else f"{joined[: max_chars - 1].rstrip()}…"


def quoted(text: str, max_chars: int = MAX_QUOTED_CHARS) -> str:
    return f'"{one_line(text, max_chars).translate(_HARMLESS)}"'
