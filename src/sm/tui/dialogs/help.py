"""The keys, each with what it does."""

from __future__ import annotations

from collections.abc import Iterable

from textual.widgets import Static

from sm.tui.dialogs.box import Reach, ServerDialog, plain_text
from sm.tui.keys import help_lines


class HelpBox(ServerDialog[None]):
    def __init__(self, reach: Reach) -> None:
        super().__init__(reach, "Keys")

    def body(self) -> Iterable[Static]:
        yield Static(plain_text(help_lines()), markup=False)
