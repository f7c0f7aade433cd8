"""Searches terminals, transcripts and documents of all sessions; a hit leads to its session."""

from __future__ import annotations

from typing import Any, ClassVar
from urllib.parse import urlencode

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from sm.tui.dialogs.box import Reach, ServerDialog
from sm.tui.look import ACCENT, PLAIN_STYLE, QUIET_STYLE
from sm.tui.text import lines, one_line, time_of_day

MAX_HITS = 100
View = dict[str, Any]


class SearchBox(ServerDialog[str]):
    """Closes with the id of the session to show."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("tab", "other", show=False, priority=True)]
    wide = True
    hint = "Enter searches · ↓ to the hits · Enter there shows its session · Esc leaves"

    def __init__(self, reach: Reach) -> None:
        super().__init__(reach, "Search all contexts of all sessions")
        self.hits: list[View] = []

    def body(self) -> list[OptionList]:  # type: ignore[override]
        return [OptionList(id="hits", markup=False)]

    def foot(self) -> ComposeResult:
        yield Input(placeholder="words", id="line")

    def on_mount(self) -> None:
        self.query_one("#line", Input).focus()

    def action_other(self) -> None:
        line, hits = self.query_one("#line", Input), self.query_one("#hits", OptionList)
        (hits if line.has_focus else line).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if event.value.strip():
            self.run_worker(self._search(event.value), exclusive=True)

    async def _search(self, words: str) -> None:
        found = await self.called("GET", f"/search?{urlencode({'q': words, 'limit': MAX_HITS})}")
        if found is None or not self.is_attached:
            return
        self.hits = found
        shown = self.query_one("#hits", OptionList)
        shown.clear_options()
        shown.add_options([Option(hit_text(hit), id=str(number)) for number, hit in enumerate(found)])
        self.say(f"{len(found)} hits · {self.hint}" if found else f"no hit · {self.hint}")
        if found:
            shown.highlighted = 0
            shown.focus()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self.hits[event.option_index]["session"])


def hit_text(hit: View) -> Text:
    """Return where a hit is, and its line with the words marked; a line with escape sequences has none marked."""
    context = f" context {hit['context']}" if hit["context"] is not None else ""
    head = one_line(f"{hit['name'] or hit['session']}{context} · {hit['kind']} · {time_of_day(hit['at'])}")
    shown = Text(f"{head}\n", QUIET_STYLE, no_wrap=False)
    line = Text(" ".join(lines(hit["line"])), PLAIN_STYLE)
    if line.plain == hit["line"]:
        for begin, end in hit["marks"]:
            line.stylize(f"bold {ACCENT}", begin, end)
    return shown.append_text(line)
