"""The handoff documents of a session, the newest first: each from the context before, and what it changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar
from urllib.parse import urlencode

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from sm.client import quoted
from sm.fleet import Row
from sm.tui.dialogs.box import Reach, ServerDialog, plain_text
from sm.tui.documents.difference import difference
from sm.tui.look import PLAIN_STYLE, QUIET_STYLE
from sm.tui.main_screen import joined
from sm.tui.text import duration, lines

View = dict[str, Any]


class DocumentsBox(ServerDialog[None]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "leave", show=False),
        Binding("d", "compare", show=False),
        Binding("x", "mark", show=False),
        Binding("c", "channel", show=False),
        Binding("pageup", "scroll(-1)", show=False, priority=True),
        Binding("pagedown", "scroll(1)", show=False, priority=True),
    ]
    wide = True
    hint = (
        "↑ ↓ choose · d difference to the one before · x marks the one to compare with · c whole project · Esc leaves"
    )

    def __init__(self, reach: Reach, row: Row, now: Callable[[], float]) -> None:
        super().__init__(reach, f"Documents of {row.name}")
        self.row, self.now = row, now
        self.every: list[View] = []
        """Of the project, the newest first."""
        self.documents: dict[str, str] = {}
        self.compares = False
        self.marked: str | None = None
        self.whole_channel = False

    @property
    def chain(self) -> list[View]:
        """Return the documents that are listed."""
        own = self.row.id
        return [view for view in self.every if self.whole_channel or own in {view["session"], view["held_by"]}]

    def compose(self) -> ComposeResult:
        yield from super().compose()

    def body(self) -> list[Static]:
        return [Static("", id="document", markup=False)]

    def foot(self) -> ComposeResult:
        yield OptionList(id="chain", markup=False)

    def on_mount(self) -> None:
        self.query_one("#chain", OptionList).focus()
        self.run_worker(self._read())

    async def _read(self) -> None:
        found = await self.called("GET", f"/handoffs?{urlencode({'dir': self.row.dir})}")
        if found is not None and self.is_attached:
            self.every = found
            self._list()

    def _list(self) -> None:
        shown = self.query_one("#chain", OptionList)
        at = shown.highlighted or 0
        shown.clear_options()
        shown.add_options([Option(self._line(view), id=view["id"]) for view in self.chain])
        if self.chain:
            shown.highlighted = min(at, len(self.chain) - 1)
        else:
            self.put("document", Text("no document yet: h hands off", QUIET_STYLE))

    def _line(self, view: View) -> Text:
        mark = "x" if view["id"] == self.marked else " "
        shown = Text(f"{mark} {view['id']} ", PLAIN_STYLE, no_wrap=True)
        age = duration(self.now() - view["created"])
        return shown.append(joined((f"{age} ago", view["state"], view["type"], view["reason"])), QUIET_STYLE)

    def on_option_list_option_highlighted(self) -> None:
        self._show()

    def action_compare(self) -> None:
        self.compares = not self.compares
        self._show()

    def action_mark(self) -> None:
        chosen = self._chosen()
        if chosen is not None:
            self.marked = None if chosen["id"] == self.marked else chosen["id"]
            self._list()

    def action_channel(self) -> None:
        self.whole_channel = not self.whole_channel
        self._list()

    def _chosen(self) -> View | None:
        at = self.query_one("#chain", OptionList).highlighted
        return self.chain[at] if at is not None and at < len(self.chain) else None

    def _show(self) -> None:
        self.run_worker(self._show_chosen(), exclusive=True, group="document")

    async def _show_chosen(self) -> None:
        chosen = self._chosen()
        if chosen is None:
            return
        other = self._other(chosen) if self.compares else None
        after = await self._document(chosen["id"])
        before = await self._document(other) if other is not None else None
        if after is None or not self.is_attached:
            return
        head = Text()
        if self.compares and before is not None:
            head.append(f"difference from {other} to {chosen['id']}\n\n", QUIET_STYLE)
            content = difference(before, after)
        elif self.compares:
            content = Text("it is the first one of the chain", QUIET_STYLE)
        else:
            content = plain_text(lines(after))
        self.put("document", head.append_text(content))
        self.query_one("#body", VerticalScroll).scroll_home(animate=False)

    def _other(self, chosen: View) -> str | None:
        """Return the document to compare with: the marked one, else the one before it in the chain."""
        if self.marked is not None and self.marked != chosen["id"]:
            return self.marked
        older = [view["id"] for view in self.chain if view["created"] < chosen["created"] or view["id"] < chosen["id"]]
        return older[0] if older else None

    async def _document(self, handoff: str) -> str | None:
        if handoff not in self.documents:
            found = await self.called("GET", f"/handoffs/{quoted(handoff)}")
            if found is None:
                return None
            self.documents[handoff] = found["document"]
        return self.documents[handoff]
