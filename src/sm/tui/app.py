"""The live screen: what it follows, what it says of a server that is gone, and what each key opens."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

from textual.app import App
from textual.filter import LineFilter
from textual.screen import Screen

from sm.client import Client
from sm.clock import Clock, SystemClock
from sm.fleet import KnownRows, rows, title
from sm.plain_marks import in_cells
from sm.tui.actions import SessionActions
from sm.tui.commands.terminal import CommandTerminal, OwnTerminal
from sm.tui.look import CSS, THEME, PlainMarks
from sm.tui.main_screen import MainScreen
from sm.tui.server.follower import Follower, Picture
from sm.tui.server.requests import SeenEvent
from sm.tui.text import duration

TICK_S = 1.0
WAITING = "waiting for the server"


class Dashboard(SessionActions):
    CSS = CSS
    ENABLE_COMMAND_PALETTE = False
    TITLE = "sm"

    def __init__(
        self,
        connect: Callable[[], Client | None],
        clock: Clock | None = None,
        terminal: CommandTerminal | None = None,
        *,
        ascii_only: bool = False,
    ) -> None:
        super().__init__(ansi_color="NO_COLOR" in os.environ)  # only then Textual leaves out every colour
        self.terminal = terminal or OwnTerminal()
        self.register_theme(THEME)
        self.theme = THEME.name
        self.clock = clock or SystemClock()
        self.follower = Follower(connect, self.clock, self._show, self._lose, self._happened)
        self.main = MainScreen()
        self.lost: str | None = WAITING
        """Why the server cannot be asked; None while it answers."""
        self.lost_at = self.clock.now()
        self._drawn = float("-inf")
        self._rows: KnownRows = {}
        self._own_filters = (PlainMarks(),) if ascii_only else ()

    def get_line_filters(self) -> Sequence[LineFilter]:
        return [*super().get_line_filters(), *self._own_filters]

    def get_default_screen(self) -> Screen[None]:
        return self.main

    def on_mount(self) -> None:
        self.run_worker(self.follower.follow())
        self.set_interval(TICK_S, self._tick)

    def _show(self, picture: Picture) -> None:
        if self.lost is not None:
            self.lost = None
            self.main.lose("")
        self._drawn = time.monotonic()
        shown = rows(picture.sessions, picture.asks, picture.costs, self._rows)
        self.main.show(shown, picture.at)
        self._name_terminal(f"sm: {title(shown)}")

    def _lose(self, why: str) -> None:
        if self.lost is None:
            self.lost_at = self.clock.now()
        self.lost = why
        self._say_lost()

    def _say_lost(self) -> None:
        at = self.follower.picture.at
        if self.lost is None:
            return
        if not at:
            self.main.lose(f"{self.lost}: no picture yet (: server start)")
            return
        now = self.clock.now()
        self.main.lose(f"{self.lost} since {duration(now - self.lost_at)}: last picture {duration(now - at)} old")
        self._name_terminal(f"sm: {self.lost}")

    def _tick(self) -> None:
        """Let ages count on between two pictures; without a server the last picture stays as it is."""
        if self.lost is not None:
            self._say_lost()
        elif time.monotonic() >= self._drawn + TICK_S:
            self.main.count_on(self.clock.now())

    def _happened(self, event: SeenEvent) -> None:
        """Pass an event on to the page that is open."""
        follows = getattr(self.screen, "happened", None)
        if follows is not None:
            follows(event)

    def _name_terminal(self, words: str) -> None:
        """Give the terminal its title, where there is a terminal."""
        if words != self.title:
            self.set_reactive(App.title, words)  # nothing on the screen shows it: drawn again, all of it would be
            if self._driver is not None and not self.is_headless:
                self._driver.write(f"\x1b]2;{in_cells(words) if self._own_filters else words}\x07")
