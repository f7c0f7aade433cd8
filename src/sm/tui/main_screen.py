"""The list on the screen with what is around it: the counts, the filter, the chosen session, and a lost server."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from rich.text import Text
from textual.app import ComposeResult
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import Input, Static

from sm.fleet import Row, title
from sm.tui.keys import main_bindings, main_hint
from sm.tui.look import GOOD, PLAIN_STYLE, QUIET_STYLE, WARN, state_style
from sm.tui.sessions.cells import WHOLE_DRIVERS, client_name, gauge
from sm.tui.sessions.session_list import SessionList
from sm.tui.text import about, dollars, one_line

SAID_S = 8.0


class MainScreen(Screen[None]):
    AUTO_FOCUS = ""
    BINDINGS = main_bindings()

    def __init__(self) -> None:
        super().__init__()
        self.rows: tuple[Row, ...] = ()
        self.words: tuple[str, ...] = ()
        """A session is shown if each of these is in one of its texts."""
        self._said: Timer | None = None
        self._parts: dict[str, Text] = {}

    def compose(self) -> ComposeResult:
        yield Static("", id="title", markup=False)
        yield Static("", id="lost", markup=False)
        yield Input(placeholder="filter: words of name, state, branch, directory…", id="filter")
        yield SessionList()
        yield Static("", id="chosen", markup=False)
        yield Static("", id="said", markup=False)
        yield Static("", id="keys", markup=False)

    def on_mount(self) -> None:
        self.list.focus()

    def on_resize(self) -> None:
        self.query_one("#keys", Static).update(Text(main_hint(self.size.width - 2), no_wrap=True))

    @property
    def list(self) -> SessionList:
        return self.query_one(SessionList)

    @property
    def chosen(self) -> Row | None:
        return self.list.chosen

    def row(self, session: str) -> Row | None:
        return next((row for row in self.rows if row.id == session), None)

    def has_children(self, session: str) -> bool:
        """Whether the row below it is one of its children."""
        return any(above.id == session and below.depth > above.depth for above, below in pairwise(self.rows))

    def show(self, shown: Sequence[Row], now: float) -> None:
        self.rows, self.list.now = tuple(shown), now
        self._show_filtered()

    def count_on(self, now: float) -> None:
        """Show for how long all has been so by now."""
        self.list.count_on(now)

    def _show_filtered(self) -> None:
        kept = [row for row in self.rows if all(word in searched(row) for word in self.words)]
        self.list.empty = "no session has these words: Esc shows all" if self.words else SessionList.EMPTY
        self.list.show(kept)
        line = Text(title(self.rows), no_wrap=True)
        if self.words:
            line.append(f"   {len(kept)} of {len(self.rows)}: {' '.join(self.words)}", QUIET_STYLE)
        self._put("title", line)

    def lose(self, words: str) -> None:
        """Say over the last picture that it is an old one; an empty text takes that back."""
        shown = self.query_one("#lost", Static)
        shown.update(Text(words))
        shown.display = bool(words)
        self.list.mark_old(old=bool(words))

    def say(self, words: str, *, warns: bool) -> None:
        """Say for a while what came of a key."""
        shown = self.query_one("#said", Static)
        shown.update(Text(f"{'!' if warns else '✓'} {words}", WARN if warns else GOOD))
        shown.display = True
        if self._said is not None:
            self._said.stop()
        self._said = self.set_timer(SAID_S, self._end_said)

    def _end_said(self) -> None:
        self.query_one("#said", Static).display = False

    def ask_filter(self) -> None:
        found = self.query_one("#filter", Input)
        found.display = True
        found.focus()

    def end_filter(self, *, clear: bool) -> None:
        found = self.query_one("#filter", Input)
        if clear:
            found.value = ""
        found.display = bool(found.value)
        self.list.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        self.words = tuple(event.value.casefold().split())
        self._show_filtered()

    def on_input_submitted(self) -> None:
        self.end_filter(clear=False)

    def on_session_list_chosen(self) -> None:
        row = self.chosen
        self._put("chosen", Text("") if row is None else described(row, self.list.now))

    def _put(self, name: str, content: Text) -> None:
        """Draw a part of fixed size again if it says something else."""
        if self._parts.get(name) != content:
            self._parts[name] = content
            self.query_one(f"#{name}", Static).update(content, layout=False)


def searched(row: Row) -> str:
    """Return the text of a row that a filter looks in."""
    parts = (row.name, row.id, row.state, row.why, row.provider, row.model, row.branch, row.dir, row.said, row.attempt)
    return " ".join(part for part in parts if part).casefold()


def described(row: Row, now: float) -> Text:
    """Return four lines about a session: state with its evidence, context and client, place, last words."""
    shown = Text(no_wrap=True, overflow="ellipsis", style=PLAIN_STYLE)
    shown.append(f"{row.mark} {row.state} {about(row.since, now)}".rstrip(), state_style(row.state, strong=True))
    shown.append(f" · {row.why}" if row.why else "")
    seen = f"{row.evidence}, {about(row.seen, now)} ago" if row.seen is not None else row.evidence
    shown.append(f" · {seen}" if seen else "", QUIET_STYLE)
    shown.append("\n")
    for text, style in gauge(row):
        shown.append(text, style)
    turns = "" if row.turns_left is None else f"about {row.turns_left} turns left"
    waits = "1 message waits" if row.queued == 1 else f"{row.queued} messages wait"
    rest = (
        turns,
        "1 handoff" if row.rotations == 1 else f"{row.rotations or 0} handoffs",
        waits if row.queued else "",
        dollars(row.usd),
    )
    shown.append(f" {joined(rest)}\n", QUIET_STYLE)
    driver = f"driven by {WHOLE_DRIVERS.get(row.driver, row.driver)}" if row.driver else ""
    client = (row.name, client_name(row), driver, row.branch, row.dir, row.attempt)
    shown.append(f"{joined(client)}\n", QUIET_STYLE)
    if row.limit:
        shown.append(f"{row.limit}  ", WARN)
    shown.append(f"“{row.said}”" if row.said else "")
    return shown


def joined(parts: Sequence[str | None]) -> str:
    return " · ".join(one_line(part) for part in parts if part)
