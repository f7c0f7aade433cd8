"""Sends a message to a session: its text, and how urgent it is."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import TextArea

from sm.client import session_path
from sm.fleet import Row
from sm.tui.dialogs.box import Reach, ServerDialog

MODES = {
    "sequential": "at the end of its turn",
    "important": "at the next tool call of its turn",
    "steer": "at the next tool call; fails if it is not working",
    "urgent": "now: interrupts its reply",
}


class Draft(TextArea):
    """Enter sends, Ctrl-J begins a line; what is pasted keeps its lines."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "send", show=False, priority=True),
        Binding("ctrl+j", "break_line", show=False, priority=True),
    ]

    class Sent(Message):
        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def action_send(self) -> None:
        self.post_message(self.Sent(self.text))

    def action_break_line(self) -> None:
        self.insert("\n")


class MessageBox(ServerDialog[str]):
    """Closes with what to say of the message that was queued."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("tab", "mode", show=False, priority=True)]

    def __init__(self, reach: Reach, row: Row) -> None:
        super().__init__(reach, f"Message to {row.name}")
        self.row, self.mode = row, 0

    def foot(self) -> ComposeResult:
        yield Draft(id="draft", soft_wrap=True, highlight_cursor_line=False)

    def on_mount(self) -> None:
        self.query_one(Draft).focus()
        self._say_mode()

    def _say_mode(self) -> None:
        name = [*MODES][self.mode]
        self.say(f"Enter sends it: {name}, {MODES[name]} · Tab changes that · Ctrl-J new line · Esc leaves")

    def action_mode(self) -> None:
        self.mode = (self.mode + 1) % len(MODES)
        self._say_mode()

    def on_draft_sent(self, event: Draft.Sent) -> None:
        if event.text.strip():
            self.run_worker(self._send(event.text), exclusive=True)
        else:
            self.refuse("the message is empty")

    async def _send(self, text: str) -> None:
        body = {"text": text, "mode": [*MODES][self.mode]}
        sent = await self.called("POST", session_path(self.row.id, "/messages"), body)
        if sent is not None:
            self.dismiss(f"{sent['state']}: message {sent['id']} to {self.row.name}; i shows its receipt")
