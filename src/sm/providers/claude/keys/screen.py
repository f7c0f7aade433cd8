"""What a Claude Code screen shows of its input box. Read from the bottom up, since output above can look like anything.

The box is between the screen's last two rules, its first line is `❯` and a no-break space. Grey ghost text (dim,
SGR 2) is no content. No other part of the screen is trusted for more than saying that nothing may be typed: a
dialog is known by the client's state file (`state.py`). All of it was seen on 2.1.328.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field

from sm.providers.terminal_text import PLAIN, Run, Style, cut, runs, squeezed, undecorated

RULE = re.compile(r"^─{10,}\s*$")
TITLED_RULE = re.compile(r"^─* .+ ─$")
"""The upper rule of a session that the user has named; in a narrow terminal a long name leaves nothing on its left."""
PROMPT = "❯\N{NO-BREAK SPACE}"
SHELL_PROMPT = "!\N{NO-BREAK SPACE}"
SIGNS = (PROMPT, SHELL_PROMPT)
ECHO = "❯ "
"""Before what was submitted, with a plain space."""
UNKNOWN = "● Unknown command: "
ARGUMENTS = "● Args from unknown skill: "
STASHED = "draft stashed"
QUEUED = re.compile(r"^  ⎿  Queued · ")
QUEUE_HINT = "Press up to edit queued messages"
SUSPENDED = "Claude Code is suspended"
INDENT = "  "


@dataclass(frozen=True, slots=True)
class Box:
    """The input box. `text` is what the user or `sm` put in, lines as wrapped on the screen."""

    text: str
    stashed: bool
    cursor_inside: bool
    """False while another part of the screen takes the keys, as the search of earlier prompts."""
    shell_mode: bool
    """The box runs what is typed as a shell command."""
    blanks: int = 0
    """How many blanks and line ends are before the cursor, where nothing else is in the box."""
    queued: bool = False
    """Something typed during the turn waits for its end: a prompt, or a command that will open a dialog."""
    front: str = field(default="", compare=False)
    """What is before the cursor, blanks and all."""

    @property
    def empty(self) -> bool:
        return not self.text and not self.blanks

    def holds(self, text: str) -> bool:
        """Return whether exactly `text` is in the box; where the screen wrapped or trimmed it is no difference."""
        return squeezed(self.text) == squeezed(text)

    def ends_with(self, text: str) -> bool:
        return squeezed(self.text).endswith(squeezed(text))

    def behind(self, text: str) -> str:
        """Return what is behind `text` at the box's beginning."""
        rest = iter(self.text)
        for _ in squeezed(text):
            next((character for character in rest if not character.isspace()), "")
        return "".join(rest)

    def begins_with(self, text: str) -> bool:
        return squeezed(self.text).startswith(squeezed(text))


def read_box(lines: tuple[str, ...], cursor: tuple[int, int]) -> Box | None:
    """Return the box, or None if the screen shows none: a dialog, a viewer, a menu, a client that is starting."""
    plain = [undecorated(line) for line in lines]
    edges = _edges(plain)
    if edges is None:
        return None
    top, bottom = edges
    inside = [without_ghost(line) for line in lines[top + 1 : bottom]]
    first, *rest = inside
    rows = [first[len(PROMPT) :], *(line.removeprefix(INDENT) for line in rest)]
    text = "\n".join(rows)
    within = top < cursor[1] < bottom
    passed = [*rows[: cursor[1] - top - 1], cut(rows[cursor[1] - top - 1], cursor[0] - len(PROMPT))] if within else []
    return Box(
        text=text.rstrip(),
        stashed=any(STASHED in line for line in plain[bottom + 1 :]),
        cursor_inside=within,
        blanks=0 if text.strip() or not within else _blanks(cursor[0] - len(PROMPT), cursor[1] - top - 1),
        queued=QUEUE_HINT in plain[top + 1] or any(map(QUEUED.match, plain[:top])),
        shell_mode=plain[top + 1].startswith(SHELL_PROMPT),
        front="\n".join(passed),
    )


def suspended(lines: tuple[str, ...]) -> bool:
    """True if the last words on the screen are those with which the client stops for Ctrl-Z: it draws no box then."""
    words = [plain for line in lines if (plain := undecorated(line).strip())]
    return any(line.startswith(SUSPENDED) for line in words[-2:])


def _edges(plain: list[str]) -> tuple[int, int] | None:
    """The numbers of the two rules: the screen's last one, and the one above the nearest prompt sign over it."""
    bottom = next((number for number in range(len(plain) - 1, -1, -1) if RULE.match(plain[number])), 0)
    first = next((number for number in range(bottom - 1, 0, -1) if plain[number].startswith(SIGNS)), 0)
    if first == 0 or any(map(RULE.match, plain[first:bottom])):
        return None
    above = plain[first - 1]
    return (first - 1, bottom) if RULE.match(above) or TITLED_RULE.match(above) else None


def _blanks(columns: int, rows: int) -> int:
    return max(0, columns) + max(0, rows)


@dataclass(frozen=True, slots=True)
class CommandEcho:
    """How the client took a command: with what behind it, and whether that made it one that does not exist."""

    words: str
    unknown: bool = False


def echoes(lines: tuple[str, ...], command: str) -> list[CommandEcho]:
    """Return how the client took a command each time the screen shows it, from the top."""
    plain = [undecorated(line).rstrip() for line in lines]
    found = (_taken(plain[number:], command) for number in range(len(plain)))
    return [echo for echo in found if echo is not None]


def _taken(plain: list[str], command: str) -> CommandEcho | None:
    line = plain[0]
    if f"{line} ".startswith(f"{ECHO}{command} "):
        return CommandEcho(_whole(plain, f"{ECHO}{command}"))
    if not line.startswith(f"{UNKNOWN}{command}"):
        return None
    word = line.removeprefix(f"{UNKNOWN}{command}").partition(". Did you mean ")[0]
    rest = list(itertools.dropwhile(lambda line: not line, plain[1:]))
    more = _whole(rest, ARGUMENTS) if rest and rest[0].startswith(ARGUMENTS) else ""
    return CommandEcho(f"{word} {more}".rstrip(), unknown=True)


def _whole(plain: list[str], head: str) -> str:
    more = itertools.takewhile(lambda line: line.startswith(INDENT) and line.strip(), plain[1:])
    return "\n".join([plain[0].removeprefix(head), *(line.removeprefix(INDENT) for line in more)]).rstrip()


def without_ghost(line: str) -> str:
    """Return a line's text without escape sequences and without what the client only suggests.

    A suggestion is dim, but for its first character under the cursor.
    """
    parts = [*runs(line), Run("", PLAIN)]
    return "".join(run.text for run, after in itertools.pairwise(parts) if not _suggested(run.style, after.style))


def _suggested(style: Style, after: Style) -> bool:
    return style.dim or (style.reverse and after.dim)
