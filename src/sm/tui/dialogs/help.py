"""The keys, each with what it does, and what the marks of the list mean."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table
from textual.widgets import Static

from sm.tui.dialogs.box import Reach, ServerDialog, plain_text
from sm.tui.keys import KEYS, LEGEND, MOVES
from sm.tui.look import HEAD_STYLE, PLAIN_STYLE


class HelpBox(ServerDialog[None]):
    hint = "↑ ↓ scroll · Esc leaves"

    def __init__(self, reach: Reach) -> None:
        super().__init__(reach, "Keys")

    def body(self) -> Iterable[Static]:
        yield Static(plain_text([MOVES, ""]), markup=False)
        yield Static(_explained((key.shown, key.words) for key in KEYS))
        yield Static(plain_text(["", "In the list:"]), markup=False)
        yield Static(_explained(LEGEND))


def _explained(rows: Iterable[tuple[str, str]]) -> Table:
    """Return names with their words beside them, wrapped below one another."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style=HEAD_STYLE, no_wrap=True, min_width=max(len(name) for name, _ in LEGEND))
    table.add_column(style=PLAIN_STYLE)
    for name, words in rows:
        table.add_row(name, words)
    return table
