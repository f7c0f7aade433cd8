"""What every dialog and every page over the list has: plain text, requests whose refusal it shows, a key to leave."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import Any, ClassVar, TypeVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from sm.core.errors import SmError
from sm.tui.look import PLAIN_STYLE
from sm.tui.server.requests import Api
from sm.tui.text import one_line

Reach = Callable[[], Api]
"""Returns the server; SmError while it does not answer."""
Result = TypeVar("Result")


def plain_text(lines: Iterable[str]) -> Text:
    """Return lines as they are: a bracket in them is a bracket."""
    return Text("\n".join(lines), style=PLAIN_STYLE, end="", no_wrap=False)


class ServerDialog(ModalScreen[Result]):
    """A dialog; with `wide` a page."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", show=False, priority=True),
        Binding("up", "scroll(-0.2)", show=False),
        Binding("down", "scroll(0.2)", show=False),
        Binding("pageup", "scroll(-1)", show=False),
        Binding("pagedown", "scroll(1)", show=False),
    ]
    AUTO_FOCUS = ""  # a line that is not shown would take the keys
    wide = False
    hint = "Esc leaves"

    def __init__(self, reach: Reach, head: str) -> None:
        super().__init__()
        self.reach, self.head = reach, one_line(head)

    def compose(self) -> ComposeResult:
        with Vertical(classes="box wide" if self.wide else "box"):
            yield Static(Text(self.head), classes="head", markup=False, id="head")
            with VerticalScroll(classes="body", can_focus=False, id="body"):
                yield from self.body()
            yield from self.foot()
            yield Static("", classes="problem", markup=False, id="problem")
            yield Static(Text(self.hint), classes="hint", markup=False, id="hint")

    def body(self) -> Iterable[Static]:
        """Yield what scrolls."""
        return ()

    def foot(self) -> ComposeResult:
        """Yield what stays below it, as an input line."""
        return ()

    def action_leave(self) -> None:
        self.dismiss(None)

    def action_scroll(self, pages: float) -> None:
        found = self.query_one("#body", VerticalScroll)
        found.scroll_relative(y=pages * max(1, found.size.height - 1), animate=False)

    def put(self, name: str, content: Text) -> None:
        """Show a text in one of its parts, unless the page has been left by then."""
        for part in self.query(f"#{name}").results(Static):
            part.update(content)

    def say(self, hint: str) -> None:
        self.put("hint", Text(hint))

    def refuse(self, words: str) -> None:
        """Show why something was not done; nothing with an empty text."""
        self.put("problem", Text(words))
        self.query("#problem").set(display=bool(words))

    def read_again(self, work: Callable[[], Coroutine[Any, Any, None]]) -> bool:
        """Begin to read what the dialog shows; False while the last reading is not done."""
        if any(worker.is_running for worker in self.workers if worker.node is self):
            return False
        self.run_worker(work())
        return True

    async def called(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401  # JSON
        """Return the answer of the server; None if it refused, which is shown then."""
        self.refuse("")
        try:
            return await self.reach().call(method, path, body)
        except SmError as problem:
            self.refuse(refusal_words(problem))
            return None


def refusal_words(problem: SmError) -> str:
    """Return an error and what to do, in one line."""
    refused = problem.refused
    message = refused.message.removeprefix("Error: ")
    return one_line(f"{message} ({refused.hint})" if refused.hint else message)
