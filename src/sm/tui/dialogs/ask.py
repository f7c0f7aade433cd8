"""Answers what a client asks: allow, deny with a reason, always; each question by its options or in own words.

The answer is to the ask whose words are shown, by its id, and to nothing that has come since.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input, Static

from sm.client import ask_path
from sm.core.errors import SmError
from sm.core.rules.session.status import ASKS
from sm.tui.dialogs.box import Reach, ServerDialog, plain_text
from sm.tui.server.requests import SeenEvent
from sm.tui.text import lines, one_line

View = dict[str, Any]
KEYS_FOR = {"permission": "y allow · n deny", "plan": "y approve · n send it back"}


def _asks(kind: str, tool: str) -> str:
    """Return that it asks, and for what: as for a permission, with the tool."""
    return next((words for known, words in ASKS.items() if known == kind), f"asks for permission: {tool}")


class AskBox(ServerDialog[str]):
    """Closes with what to say of the answer that was given."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "allow(False)", show=False),
        Binding("Y", "allow(True)", show=False),
        Binding("n", "deny", show=False),
    ]

    def __init__(self, reach: Reach, view: View, more: int = 0) -> None:
        """`more`: how many others the session asks."""
        who = " (a subagent)" if view["agent"] else ""
        rest = f" · {more} more after it" if more else ""
        super().__init__(reach, f"{view['name']}{who} {_asks(view['kind'], view['tool'])}{rest}")
        self.view = view
        self.answers: list[str | int | list[int]] = []
        """Those to the questions before the one that is shown."""

    @property
    def is_open(self) -> bool:
        return bool(self.view["state"] == "open")

    def body(self) -> Iterable[Static]:
        yield Static("", id="asked", markup=False)

    def foot(self) -> ComposeResult:
        yield Input(id="line")

    def on_mount(self) -> None:
        line = self.query_one("#line", Input)
        line.display = bool(self.view["questions"])
        if line.display:
            line.placeholder = "numbers of options (1 or 1,3), or your own words"
            line.focus()
        self._draw()

    def _draw(self) -> None:
        self.put("asked", plain_text(asked_lines(self.view, len(self.answers))))
        if not self.is_open:
            self.say(f"it is over ({one_line(self.view['reason'] or self.view['state'])}) · Esc leaves")
        elif self.view["questions"]:
            self.say("Enter answers · Esc leaves it open")
        else:
            lasting = " · Y allow, now and always" if self.view["always"] else ""
            self.say(f"{KEYS_FOR.get(self.view['kind'], KEYS_FOR['permission'])}{lasting} · Esc leaves it open")

    def happened(self, event: SeenEvent) -> None:
        if event.session == self.view["session"] and event.kind.startswith("Ask"):
            self.run_worker(self._read_again(), exclusive=True, group="read")

    async def _read_again(self) -> None:
        found = await self.called("GET", ask_path(self.view["id"]))
        if found is not None and self.is_attached:
            self.view = found
            self._draw()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        del parameters
        return not (action in {"allow", "deny"} and (self.view["questions"] or not self.is_open))

    def action_allow(self, always: bool) -> None:  # noqa: FBT001  # how Textual calls an action
        if always and not self.view["always"]:
            self.refuse("it cannot be allowed for always: y allows it once")
            return
        self._answer({"decision": "allow", "always": always})

    def action_deny(self) -> None:
        line = self.query_one("#line", Input)
        line.placeholder = "why, for the agent to read; may be empty"
        line.display = True
        line.focus()
        self.say("Enter denies · Esc leaves it open")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if not self.is_open:
            return
        if not self.view["questions"]:
            self._answer({"decision": "deny", "text": event.value})
            return
        question = self.view["questions"][len(self.answers)]
        try:
            self.answers.append(chosen(question, event.value))
        except ValueError as problem:
            self.refuse(str(problem))
            return
        self.refuse("")
        event.input.value = ""
        if len(self.answers) < len(self.view["questions"]):
            self._draw()
        else:
            self._answer({"decision": "answer", "answers": self.answers})

    def _answer(self, body: dict[str, object]) -> None:
        self.run_worker(self._send(body), exclusive=True, group="answer")

    async def _send(self, body: dict[str, object]) -> None:
        found = await self.called("POST", ask_path(self.view["id"]), body)
        if found is None:
            self.answers = []
            await self._read_state()
            return
        words = {"allow": "allowed", "deny": "denied"}.get(found["decision"], found["state"])
        self.dismiss(f"{words}: {found['name']}, {found['tool']}")

    async def _read_state(self) -> None:
        """After a refusal: show what the ask is now, and leave the refusal as it is."""
        with suppress(SmError):
            self.view = await self.reach().get(ask_path(self.view["id"]))
        if self.is_attached:
            self._draw()


def chosen(question: View, text: str) -> str | int | list[int]:
    """Return the answer that a line means: numbers of options, else own words; ValueError for neither."""
    text = text.strip()
    if not text:
        raise ValueError("the answer is empty")
    parts = [part.strip() for part in text.split(",")]
    count = len(question["options"])
    if not count or not all(part.isascii() and part.isdigit() for part in parts):
        return text
    numbers = [int(part) for part in parts]
    if not all(1 <= number <= count for number in numbers) or len(set(numbers)) < len(numbers):
        raise ValueError(f"options have the numbers 1 to {count}, each once")
    if len(numbers) > 1 and not question["several"]:
        raise ValueError("only one option may be chosen")
    return numbers


def asked_lines(view: View, number: int) -> Iterator[str]:
    """Yield what an ask says: the question of that number with its options, or all that the tool was given."""
    if view["reason"]:
        yield one_line(view["reason"])
    if view["questions"]:
        count = len(view["questions"])
        question = view["questions"][min(number, count - 1)]
        yield from ([f"question {number + 1} of {count}"] if count > 1 else [])
        yield from lines(question["text"])
        for at, option in enumerate(question["options"], start=1):
            about = f" - {one_line(option['description'])}" if option["description"] else ""
            yield f"{at}. {one_line(option['label'])}{about}"
        yield from (["(more than one may be chosen: 1,3)"] if question["several"] else [])
        return
    for name, value in view["input"].items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        first, *rest = lines(text)
        yield f"{one_line(name)}: {first}"
        yield from (f"  {line}" for line in rest)
    for words in view["always"]:
        yield f"always: from then on it {one_line(words)}"
