"""Text of agents and clients as it is shown: in one line, with nothing in it that would act on a terminal."""

from __future__ import annotations


def plain(text: str) -> str:
    """Return a text in one line: characters that would move the cursor or turn the writing direction become `?`."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else "?" for character in text)
