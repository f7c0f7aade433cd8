"""What each mark is in ASCII: of states, gauges, charts, frames, and of text that was cut."""

from __future__ import annotations

import unicodedata

CELLS = {
    "?": "?", "!": "!", "✗": "x", "⋯": ".", "~": "~", "‖": "=", "○": "o", "◌": "+", "●": "*", "↻": "@", "·": "-",
    "█": "#", "░": ".", "╎": ":", "┃": "|", "╌": "-", "━": "=", "▁": ".", "▂": ".", "▃": ".", "▄": ":", "▅": ":",
    "▆": ":", "▇": "#", "≈": "%", "└": "`", "│": "|", "─": "-", "╭": "+", "╮": "+", "╰": "+", "╯": "+", "✓": "+",
    "…": "~", "→": ">", "↑": "^", "↓": "v", "—": "-", "–": "-", "’": "'", "“": '"', "”": '"', "≤": "<",
    "≥": ">", "×": "x",
    "❯": ">", "⎿": "`", "✻": "*", "✶": "*", "✳": "*", "✽": "*", "✢": "*", "⏸": "=", "═": "=", "║": "|",
    "┌": "+", "┐": "+", "┘": "+", "├": "+", "┤": "+", "┬": "+", "┴": "+", "┼": "+",
}  # fmt: skip
"""Each takes one column, as the mark does.

The first line has the states (`fleet.MARKS`), each another one; the last two are of clients' screens.
"""
WORDS = CELLS | {"…": "...", "→": "->", "≤": "<=", "≥": ">=", "✓": "ok", "·": "."}
"""In running text, where nothing is below one another."""


def in_words(text: str) -> str:
    """Return running text with plain marks; all else stays."""
    return text if text.isascii() else "".join(WORDS.get(character, character) for character in text)


def in_cells(text: str) -> str:
    """Return a text in ASCII."""
    return text if text.isascii() else "".join(_cell(character) for character in text)


def marks_in_cells(text: str) -> str:
    """Return a text with plain marks; all else stays."""
    return text if text.isascii() else "".join(CELLS.get(character, character) for character in text)


def _cell(character: str) -> str:
    return CELLS.get(character) or (character if character.isascii() else "?" * columns_of(character))


def columns_of(character: str) -> int:
    """Return the columns that a terminal gives a character: two if it is wide, none if it joins the one before."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
