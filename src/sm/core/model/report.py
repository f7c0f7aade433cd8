"""What a session says of itself, and how words of one agent may stand in a text that another one reads.

Quoted words are one line between quotation marks, bounded, with nothing in them that could pass for a frame of `sm`'s,
a tag of the client's, or an end of the quotation.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

LONGEST = 300
"""Characters of a self-report."""
QUOTED = 200
"""Characters of another agent's words in a notice: with the rest it still fits what is typed in one go."""
_HARMLESS = str.maketrans({'"': "'", "<": "(", ">": ")", "[": "(", "]": ")", "\\": "/"})


@dataclass(frozen=True, slots=True)
class Report:
    text: str
    at: float
    """UTC, seconds since the epoch."""
    done: bool = False
    """The agent has declared its task complete, and no other task has begun."""


def one_line(text: str, most: int = LONGEST) -> str:
    """The text in one line, without what a terminal or a composer would act on, cut at `most` characters."""
    plain = "".join(character if character.isprintable() else " " for character in unicodedata.normalize("NFC", text))
    joined = " ".join(plain.split())
    return joined if len(joined) <= most else f"{joined[: most - 1].rstrip()}…"


def quoted(text: str) -> str:
    return f'"{one_line(text, QUOTED).translate(_HARMLESS)}"'
