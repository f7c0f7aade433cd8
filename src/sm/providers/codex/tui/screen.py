"""What a Codex screen shows of its input box (Codex 0.171.0). Read from the bottom up: output can look like anything.

The box begins with the lowest line whose first character is the client's sign, bold and alone, or `!` in shell mode:
before what was submitted the blank behind the sign is bold too, and the chosen line of a dialog is reversed. It ends
above the blank line before the status lines, or with the cursor's line. A text that is higher than the screen shows
only its end. Grey ghost text (dim, SGR 2) is no content. Of the rest of the screen no more is believed than that
nothing may be typed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from sm.providers.terminal_text import Run, cut, squeezed, styled_lines, undecorated

SHELL_SIGN = "!"
SIGNS = ("\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}", SHELL_SIGN)
INDENT = "  "
PASTED = re.compile(r"\[Pasted Content (\d+) chars\](?: #\d+)?")
"""What the box shows of a paste of more than 1,000 characters; it counts code points, and is submitted whole."""
WORKING = re.compile(r"[•◦] .{1,200}?\(\w[\w ]{0,30}s • esc to interrupt\)")
QUEUED = ("• Messages to be submitted after next tool call", "• Queued follow-up inputs")
DISABLED = "■ '{}' is disabled while a task is in progress."
"""A command that comes while a turn runs is dropped, and its text is gone."""
NEAR = 40
"""Lines above the box in which the client says what it does; what waits for the turn's end is shown between."""


@dataclass(frozen=True, slots=True)
class TuiBox:
    """The input box. `text` is what the user or `sm` put in, lines as wrapped on the screen."""

    text: str
    cursor_inside: bool
    """False while something else takes the keys."""
    shell_mode: bool = False
    """The box runs what is typed as a shell command."""
    working: bool = False
    """The screen says that a turn runs."""
    queued: bool = False
    """Something typed during the turn waits to be submitted."""
    clipped: bool = False
    """It is as high as the screen: the beginning of the text is out of sight."""
    blanks: int = 0
    """How many blanks and line ends are before the cursor, where nothing else is in the box."""
    front: str = field(default="", compare=False)
    """What is before the cursor."""

    @property
    def empty(self) -> bool:
        return not self.text and not self.blanks

    def holds(self, text: str) -> bool:
        """Return whether exactly `text` is in the box; where the screen wrapped or trimmed it is no difference."""
        pasted = PASTED.fullmatch(self.text.strip())
        if pasted is not None:
            return int(pasted[1]) == len(text)
        shown = squeezed(self.text)
        return squeezed(text).endswith(shown) if self.clipped and shown else squeezed(text) == shown

    def begins_with(self, text: str) -> bool:
        """Return whether `text` is in the box, and something behind it."""
        return squeezed(self.text).startswith(squeezed(text))

    def ends_with(self, text: str) -> bool:
        return squeezed(self.text).endswith(squeezed(text))

    @property
    def at_end(self) -> bool:
        """Whether the cursor is behind all of the text."""
        return squeezed(self.front) == squeezed(self.text)

    @property
    def folded(self) -> bool:
        """Whether a paste is shown as one piece, which one key removes."""
        return PASTED.search(self.text) is not None


def read_box(lines: tuple[str, ...], cursor: tuple[int, int]) -> TuiBox | None:
    """Return the box, or None if the screen shows none: a dialog, a viewer, a menu, a client that is starting."""
    plain = [undecorated(line).rstrip() for line in lines]
    styled = styled_lines(lines)
    top = next((number for number in range(len(lines) - 1, -1, -1) if _is_prompt(styled[number])), None)
    if top is None:
        return None
    bottom = _bottom(plain, top, cursor[1])
    rows = [
        _content(styled[top])[len(INDENT) :],
        *(_content(row).removeprefix(INDENT) for row in styled[top + 1 : bottom]),
    ]
    text = "\n".join(rows).rstrip()
    within = top <= cursor[1] < bottom and cursor[0] >= len(INDENT)
    front = _front(rows, cursor[0] - len(INDENT), cursor[1] - top) if within else ""
    above = plain[max(0, top - NEAR) : top]
    return TuiBox(
        text,
        cursor_inside=within,
        shell_mode=plain[top].startswith(SHELL_SIGN),
        working=any(map(WORKING.match, above)),
        queued=any(line.startswith(QUEUED) for line in above),
        clipped=not any(above) and not any(plain[bottom:]),
        blanks=0 if text or not within else len(front),
        front=front,
    )


def refusals(lines: tuple[str, ...], command: str) -> int:
    """Return how often the screen says that a command was not taken because a turn ran."""
    said = DISABLED.format(command)
    return sum(undecorated(line).startswith(said) for line in lines)


def _is_prompt(line: list[Run]) -> bool:
    if not line or line[0].text not in SIGNS:
        return False
    sign = line[0].style
    alone = len(line) == 1 or (line[1].text.startswith(" ") and not line[1].style.bold)
    return alone and sign.bold and not (sign.dim or sign.reverse)


def _bottom(plain: list[str], top: int, cursor: int) -> int:
    """The line after the box's last one: the status lines are the screen's last lines with text, if there are any."""
    end = next((number for number in range(len(plain) - 1, top, -1) if plain[number]), top) + 1
    if cursor == end - 1:
        return end
    return next((number for number in range(end - 1, top, -1) if not plain[number]), end)


def _content(line: list[Run]) -> str:
    return "".join(run.text for run in line if not run.style.dim)


def _front(rows: list[str], column: int, row: int) -> str:
    rows = [*rows, *[""] * (row + 1 - len(rows))]
    return "\n".join([*rows[:row], cut(rows[row], column)])
