"""Decodes what the terminal sends into keys, typed text and pastes.

Text and its Enter in one read are one burst: the Enter becomes a line end (client 2.1.328: 15 of 15 with 600 bytes).
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import TypeAlias

PASTE_START, PASTE_END = "\x1b[200~", "\x1b[201~"
SEQUENCE = re.compile(r"\x1b(?:\[[0-9;?<>=]*[ -/]*[@-~]|O[A-Za-z])")
UNFINISHED = re.compile(r"\x1b(?:\[[0-9;?<>=]*|O)$")
CONTROL = {
    "\r": "Enter",
    "\x7f": "BSpace",
    "\x08": "BSpace",
    "\x03": "C-c",
    "\x04": "C-d",
    "\x13": "C-s",
    "\x15": "C-u",
    "\x18": "C-x",
    "\x1b": "Escape",
}
SEQUENCES = {"\x1b[A": "Up", "\x1b[B": "Down", "\x1b[C": "Right", "\x1b[D": "Left"}
PIECES = re.compile(r"\x1b(?:\[[0-9;?<>=]*[ -/]*[@-~]|O[A-Za-z])|[\x00-\x09\x0b-\x1f\x7f]|[^\x00-\x09\x0b-\x1f\x7f]+")
BURST = re.compile(r"[^\x00-\x1f\x7f][^\x00-\x08\x0b\x0c\x0e-\x1f\x7f]*\r[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f]*")


@dataclass(frozen=True, slots=True)
class KeyPress:
    name: str


@dataclass(frozen=True, slots=True)
class TextBurst:
    """One burst of text, typed or pasted."""

    text: str
    pasted: bool = False


Event: TypeAlias = KeyPress | TextBurst


class KeyDecoder:
    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._rest = ""

    def feed(self, data: bytes) -> list[Event]:
        text, self._rest = self._rest + self._decode(data), ""
        events: list[Event] = []
        while text:
            before, start, after = text.partition(PASTE_START)
            pasted, end, text = after.partition(PASTE_END)
            events += self._typed(before)
            if start and not end:  # the rest of the paste is still to come
                self._rest, text = start + after, ""
            elif start:
                events.append(TextBurst(_lines(pasted), pasted=True))
        return events

    def _typed(self, text: str) -> list[Event]:
        if unfinished := UNFINISHED.search(text):
            text, self._rest = text[: unfinished.start()], unfinished[0]
        if BURST.fullmatch(text):
            return [TextBurst(_lines(text))]
        return [_event(piece) for piece in PIECES.findall(text)]


def _event(piece: str) -> Event:
    if piece in CONTROL:
        return KeyPress(CONTROL[piece])
    if SEQUENCE.fullmatch(piece):
        return KeyPress(SEQUENCES.get(piece, "ignored"))
    return TextBurst(piece) if piece.isprintable() or "\n" in piece else KeyPress("ignored")


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
