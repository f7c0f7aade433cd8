"""Shows a session's pane as it changes, without attaching to it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from sm.client import session_path
from sm.fleet import Row
from sm.tui.dialogs.box import Reach, ServerDialog, plain_text
from sm.tui.text import lines

LINES = 300
INTERVAL_S = 0.7
RULE = re.compile(r"\s*([\u2500-\u259f_-])\1*\s*")  # box drawing, block elements
"""A line across a pane; one that is wider than this page would be wrapped into several."""


class PeekBox(ServerDialog[str]):
    """Closes with `attach` if the user wants to continue there."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "leave", show=False),
        Binding("q", "leave", show=False),
        Binding("enter", "attach", show=False),
    ]
    wide = True
    hint = "live · ↑ ↓ PgUp PgDn scroll · Enter attaches · Esc leaves"

    def __init__(self, reach: Reach, row: Row) -> None:
        super().__init__(reach, f"{row.name}: {row.mark} {row.state}")
        self.row = row
        self.text: str | None = None

    def body(self) -> Iterable[Static]:
        yield Static("", id="pane", markup=False)

    def on_mount(self) -> None:
        self._begin()
        self.set_interval(INTERVAL_S, self._begin)

    def _begin(self) -> None:
        self.read_again(self._read)

    async def _read(self) -> None:
        found = await self.called("GET", session_path(self.row.id, f"/output?lines={LINES}"))
        if found is None or not self.is_attached or found["text"] == self.text:
            return
        self.text = found["text"]
        place = self.query_one("#body", VerticalScroll)
        at_end = place.is_vertical_scroll_end
        room = place.scrollable_content_region.width
        self.put("pane", plain_text(line[:room] if RULE.fullmatch(line) else line for line in lines(found["text"])))
        if at_end:
            place.scroll_end(animate=False)

    def action_attach(self) -> None:
        self.dismiss("attach")
