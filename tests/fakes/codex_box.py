"""An input box like Codex's, in memory: takes text, keeps what was cut last, trims what it submits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sm.core.events import Activity
from sm.core.ports.panes import Key, View
from sm.core.ports.provider import ClientState
from sm.testing.agent.box import columns

SIGN = "\x1b[1m\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}\x1b[0m "
FOLDED = 1_000
"""Characters of a paste above which it is shown as one piece."""


@dataclass
class FakeCodexBox:
    text: str = ""
    cut: str = ""
    sent: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    activity: Activity = Activity.IDLE
    detail: str = ""
    covered: bool = False
    """Another view shows instead of the box."""
    elsewhere: bool = False
    """The box shows, and something else has the cursor."""
    working: bool = False
    """The screen says that a turn runs."""
    queued: bool = False
    drops: bool = False
    """A turn runs all the same: a command is dropped."""
    deaf_to: frozenset[str] = frozenset()
    typed_ago: float | None = None
    height: int = 24
    folded: str | None = None
    looks: int = 0
    dropped: int = 0
    before_look: Callable[[FakeCodexBox], None] = lambda _: None
    """What happens in the world before each look."""
    after_paste: Callable[[FakeCodexBox], None] = lambda _: None

    def client_state(self) -> ClientState | None:
        return ClientState(self.activity, self.detail, "c")

    async def look(self) -> View:
        self.looks += 1
        self.before_look(self)
        if self.covered:
            lines = ("a dialog", "\x1b[1;7m\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} 1. Yes", *[""] * self.height)
            return View(lines[: self.height], (80, self.height - 1), dead=False, typed_ago=self.typed_ago)
        shown = f"[Pasted Content {len(self.folded)} chars]" if self.folded is not None else self.text
        first, *rest = shown.split("\n")
        above = ["\N{BULLET} Working (3s \N{BULLET} esc to interrupt)"] if self.working else []
        above += ["\N{BULLET} Queued follow-up inputs"] if self.queued else []
        above += ["\N{BLACK SQUARE} '/clear' is disabled while a task is in progress."] * self.dropped
        lines = (*above, f"{SIGN}{first}", *(f"  {line}" for line in rest), "", "  a-model", "  ? for shortcuts")
        lines += ("",) * (self.height - len(lines))
        if self.elsewhere:
            return View(lines, (80, self.height - 1), dead=False, typed_ago=self.typed_ago)
        cursor = (2 + columns(shown.rpartition("\n")[2]), len(above) + shown.count("\n"))
        return View(lines, cursor, dead=False, typed_ago=self.typed_ago)

    async def paste(self, text: str) -> None:
        self.keys.append(f"paste {text}")
        if not self.covered:
            self.type(text)
        self.after_paste(self)

    def type(self, text: str) -> None:
        if len(text) > FOLDED and not self.text:
            self.folded = text
        self.text += text

    async def press(self, key: str, times: int = 1) -> None:
        self.keys.append(key)
        if key in self.deaf_to or self.covered:
            return
        if key == Key.BACKSPACE:
            self.text = "" if self.folded is not None else self.text[: max(0, len(self.text) - times)]
            self.folded = None
        elif key == "C-y":
            self.text += self.cut
        elif key == Key.ENTER and self.text:
            self._enter()

    def _enter(self) -> None:
        text, self.text, self.folded = self.text.strip(), "", None
        if self.drops and text.startswith("/"):
            self.dropped += 1
        else:
            self.sent.append(text)

    async def chord(self, keys: tuple[str, ...]) -> None:
        self.keys.append(" ".join(keys))
        if not self.covered and not self.deaf_to & {*keys}:
            before, newline, line = self.text.rpartition("\n")
            self.cut, self.text = line, before + newline

    async def history(self) -> str:
        return ""

    async def printed(self) -> list[str]:
        return []
