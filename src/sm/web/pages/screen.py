"""The live terminal: what a pane shows, line by line, and the keys of a user who has unlocked it.

A browser's terminal gets lines of a screen that tmux has drawn, never what a program wrote: of escape sequences those
for colours and fonts alone. So nothing that an agent prints can set a title or the clipboard, open a link, ask the
terminal for an answer that would come back as typed text, or leave it in another mode.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence

import msgspec

from sm.core.ports.panes import Pane, PaneError, View

COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f]).*?(?:\x07|\x1b\\|\x9c|\Z)"
    r"|\x1b[ -/]*[0-~]"
    r"|[\x00-\x1a\x1c-\x1f\x7f-\x9f]"
    r"|\x1b",
    re.DOTALL,
)
"""Control sequences, strings for the terminal with all that they hold, other escapes, control characters."""
LOOK_INTERVAL_S = 0.1
IDLE_INTERVAL_S = 0.4
"""Between two looks at a screen that has not changed for QUIET_LOOKS."""
QUIET_LOOKS = 20
BEAT_LOOKS = 10
MAX_LINE_CHARS = 8_000
MAX_LINES = 500


class ScreenChange(msgspec.Struct, omit_defaults=True):
    """What of a screen is new."""

    lines: dict[int, str]
    """By number from 0: the whole line."""
    cursor: tuple[int, int]
    size: tuple[int, int]
    """Columns and rows."""
    dead: bool = False
    """The process in the pane has ended."""


def harmless(line: str) -> str:
    """Return a line of the screen with colours and fonts, and nothing else that a terminal acts on."""
    return SEQUENCE.sub(lambda found: found[0] if COLOUR.fullmatch(found[0]) else "", line)[:MAX_LINE_CHARS]


def screen_of(view: View, shown: Sequence[str]) -> tuple[ScreenChange, list[str]]:
    """Return what differs from the lines that are shown, and the lines of now."""
    lines = [harmless(line) for line in view.lines[:MAX_LINES]]
    now, old = [*lines, *[""] * (len(shown) - len(lines))], [*shown, *[""] * (len(lines) - len(shown))]
    new = {number: line for number, (line, before) in enumerate(zip(now, old, strict=True)) if line != before}
    return ScreenChange(new, view.cursor, (view.size[0], max(view.size[1], 1)), dead=view.dead), lines


async def screens(pane: Pane) -> AsyncIterator[ScreenChange | None]:
    """Yield the screen and from then on what changes of it; None now and then where nothing does."""
    shown: list[str] = []
    last: tuple[object, ...] | None = None
    quiet = 0
    while True:
        try:
            view = await pane.look()
        except PaneError:
            return
        screen, shown = screen_of(view, shown if last is None or last[1] == view.size else [])
        now = (view.cursor, view.size, view.dead)
        if screen.lines or now != last:
            last, quiet = now, 0
            yield screen
        else:
            quiet += 1
            if quiet % BEAT_LOOKS == 0:
                yield None
        await asyncio.sleep(LOOK_INTERVAL_S if quiet < QUIET_LOOKS else IDLE_INTERVAL_S)
