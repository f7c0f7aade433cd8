"""An input box like Claude Code's, in memory: takes text, keeps one stash, gives it back after a submission."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sm.core.events import Activity
from sm.core.ports.panes import Key, View
from sm.core.ports.provider import ClientState
from sm.providers.claude.keys.driver import STASH
from sm.testing.agent.box import columns

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
    height: int = 24
    """Lines of the terminal, where another view covers it."""
    queued: bool = False
    typed_ago: float | None = None
    deaf_to: frozenset[str] = frozenset()
    """Keys that do nothing here, as a person may have bound them otherwise."""
    before_look: Callable[[FakeBox], None] = lambda _: None
    """What happens in the world before each look."""
    after_paste: Callable[[FakeBox], None] = lambda _: None
    looks: int = 0
    behind: int = 0
    """Characters behind the cursor."""
    reads: bool = True
    """False for a client that gets no processor: what is typed waits in its terminal."""
    unread: list[Callable[[], object]] = field(default_factory=list)

    def client_state(self) -> ClientState | None:
        return ClientState(self.activity, self.detail, "c")

    async def look(self) -> View:
        self.looks += 1
        self.before_look(self)
        if self.covered:
            lines = ("a dialog", RULE, " 1. Yes", *[""] * self.height)[: self.height]
            return View(lines, (0, 2), dead=False, typed_ago=self.typed_ago, behind=bool(self.unread))
        first, *rest = self.text.split("\n")
        body = [f"❯\N{NO-BREAK SPACE}{first}", *(f"  {line}" for line in rest)]
        above = [f"❯ {line}" for text in self.sent for line in text.split("\n")]
        above += ["  ⎿  Queued · ctrl+x ctrl+s to send now"] if self.queued else []
        footer = "  manual mode    draft stashed" if self.stash else "  manual mode"
        lines = (*above, RULE, *body, RULE, footer)
        front = self.text[: len(self.text) - self.behind]
        cursor = (2 + columns(front.rpartition("\n")[2]), len(above) + 1 + front.count("\n"))
        return View(lines, cursor, dead=False, typed_ago=self.typed_ago, behind=bool(self.unread))

    async def paste(self, text: str) -> None:
        self.keys.append(f"paste {text}")
        self._typed(lambda: None if self.covered else self.type(text))
        self.after_paste(self)

    def _typed(self, take: Callable[[], object]) -> None:
        self.unread.append(take)
        if self.reads:
            self.read()

    def read(self) -> None:
        """Take in order what was typed."""
        while self.unread:
            self.unread.pop(0)()

    def type(self, text: str) -> None:
        at = len(self.text) - self.behind
        self.text = self.text[:at] + text + self.text[at:]

    async def press(self, key: str, times: int = 1) -> None:
        self.keys.append(key)
        self._typed(lambda: self._pressed(key, times))

    def _pressed(self, key: str, times: int) -> None:
        if key in self.deaf_to or self.covered:
            return
        if key == Key.BACKSPACE:
            at = len(self.text) - self.behind
            self.text = self.text[: max(0, at - times)] + self.text[at:]
        elif key == Key.LEFT:
            assert self.text, "in an empty box it opens another view"
            self.behind = min(len(self.text), self.behind + times)
        elif key == STASH and (self.text.strip() or not self.text):
            self.text, self.stash, self.behind = (self.stash, "", 0) if not self.text else ("", self.text, 0)
        elif key == Key.ENTER and self.text:
            self.sent.append(self.text)
            self.text, self.stash, self.behind = self.stash, "", 0

    async def chord(self, keys: tuple[str, ...]) -> None:
        self.keys.append(" ".join(keys))
        self.queued = False

    async def history(self) -> str:
        return ""
