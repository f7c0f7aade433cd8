"""An input box like Claude Code's, in memory: takes text, keeps one stash, gives it back after a submission."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sm.core.events import Activity
from sm.core.ports import Key, View, Witness

RULE = "─" * 60


@dataclass
class FakeBox:
    text: str = ""
    stash: str = ""
    sent: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    activity: Activity = Activity.IDLE
    detail: str = ""
    covered: bool = False
    """Another view shows instead of the box."""
    queued: bool = False
    typed_ago: float | None = None
    deaf_to: frozenset[str] = frozenset()
    """Keys that do nothing here, as a person may have bound them otherwise."""
    before_look: Callable[[FakeBox], None] = lambda _: None
    """What happens in the world before each look."""
    after_paste: Callable[[FakeBox], None] = lambda _: None
    looks: int = 0

    def witness(self) -> Witness | None:
        return Witness(self.activity, self.detail, "c")

    async def look(self) -> View:
        self.looks += 1
        self.before_look(self)
        if self.covered:
            return View(("a dialog", RULE, " 1. Yes"), (0, 2), dead=False, typed_ago=self.typed_ago)
        first, *rest = self.text.split("\n")
        body = [f"❯\N{NO-BREAK SPACE}{first}", *(f"  {line}" for line in rest)]
        above = ["  ⎿  Queued · ctrl+x ctrl+s to send now"] if self.queued else []
        footer = "  manual mode    draft stashed" if self.stash else "  manual mode"
        lines = (*above, RULE, *body, RULE, footer)
        cursor = (2 + len(self.text.rpartition("\n")[2]), len(above) + len(body))
        return View(lines, cursor, dead=False, typed_ago=self.typed_ago)

    async def paste(self, text: str) -> None:
        self.keys.append(f"paste {text}")
        if not self.covered:
            self.text += text
        self.after_paste(self)

    async def press(self, key: str, times: int = 1) -> None:
        self.keys.append(key)
        if key in self.deaf_to or self.covered:
            return
        if key == Key.BACKSPACE:
            self.text = self.text[: len(self.text) - times] if times <= len(self.text) else ""
        elif key == Key.STASH and (self.text.strip() or not self.text):
            self.text, self.stash = (self.stash, "") if not self.text else ("", self.text)
        elif key == Key.ENTER and self.text:
            self.sent.append(self.text)
            self.text, self.stash = self.stash, ""

    async def chord(self, keys: tuple[str, ...]) -> None:
        self.keys.append(" ".join(keys))
        self.queued = False

    async def history(self) -> str:
        return ""
