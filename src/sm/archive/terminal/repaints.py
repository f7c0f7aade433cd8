"""Drops those of a terminal's lines that were only painted again.

After a wipe the client repaints what the screen had shown, wrapped again if the width has changed. Lines after a wipe
are therefore held while they repeat what came before it, whatever their wrapping; if they repeat it to its end, but for
the input box below, they are dropped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

WIPE = "\f"
"""Separates the lines of two screens."""
NO_TEXT = re.compile(r"[\s\u2500-\u257f]+")
"""White space and lines of boxes: they depend on the width."""
KEY_CHARS = 24
"""By which the beginning of a repaint is found in what was shown before; fewer match by chance."""
MAX_BOX_CHARS = 400
"""Of the input box and the lines below it: they change while the rest is repainted as it was."""
REMEMBERED_CHARS = 16_000


@dataclass(slots=True)
class RepaintFilter:
    shown: str = ""
    """The newest text passed on, without what depends on the width."""
    held: list[str] = field(default_factory=list)
    text: str = ""
    """The held lines' text."""
    place: int | None = None
    """Where in `shown` the held text was found."""
    comparing: bool = False

    def take(self, lines: list[str]) -> list[str]:
        kept: list[str] = []
        for line in lines:
            if line == WIPE:
                kept += self._settled()
                self.comparing = True
            elif self.comparing:
                kept += self._compared(line)
            else:
                kept += self._passed([line])
        return kept

    def end(self) -> list[str]:
        return self._settled()

    def _compared(self, line: str) -> list[str]:
        self.held.append(line)
        before = len(self.text)
        self.text += NO_TEXT.sub("", line)
        if len(self.text) == before or (self.place is None and len(self.text) < KEY_CHARS):
            return []
        if self.place is None:
            self.place = _found(self.shown, self.text[:KEY_CHARS])
            before = 0
        if self.place is not None and self.shown.startswith(self.text[before:], self.place + before):
            return []
        return self._settled()

    def _settled(self) -> list[str]:
        """Decide on the held lines: drop those that repeat the end of what was shown, pass the rest on."""
        held, place = self.held, self.place
        self.held, self.text, self.place, self.comparing = [], "", None, False
        if place is None:
            return self._passed(held)
        repeated, at = 0, place
        for line in held:
            text = NO_TEXT.sub("", line)
            if not self.shown.startswith(text, at):
                break
            repeated, at = repeated + 1, at + len(text)
        if len(self.shown) - at > MAX_BOX_CHARS:
            return self._passed(held)
        self.shown = self.shown[:at]
        return self._passed(held[repeated:])

    def _passed(self, lines: list[str]) -> list[str]:
        if lines:
            self.shown = (self.shown + NO_TEXT.sub("", "".join(lines)))[-REMEMBERED_CHARS:]
        return lines


def _found(shown: str, key: str) -> int | None:
    place = shown.rfind(key)
    return None if place < 0 else place
