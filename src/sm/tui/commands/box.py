"""The line for any command of `sm`: it runs as a process of its own, and what it prints is shown as it comes.

A command that takes over the terminal gets it, and the screen comes back when it has ended.
"""

from __future__ import annotations

import shlex
from asyncio.subprocess import Process
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.suggester import SuggestFromList
from textual.widgets import Input, Static

from sm.cli.app import COMMANDS
from sm.tui.commands.child import end, started
from sm.tui.dialogs.box import Reach, ServerDialog, plain_text
from sm.tui.text import lines

MAX_LINES = 5_000
MAX_LINE_BYTES = 1 << 20
IN_TERMINAL = frozenset({"attach", "new", "run", "resume"})
OPEN_ALREADY = frozenset({"watch"})
Outside = Callable[[Sequence[str]], None]


class CommandBox(ServerDialog[None]):
    wide = True
    hint = "Enter runs it · → completes · ↑ ↓ scroll · Esc ends it, and leaves"

    def __init__(self, reach: Reach, outside: Outside) -> None:
        super().__init__(reach, "Any sm command, as in a shell: list --all · config show · server start")
        self.outside = outside
        self.printed: deque[str] = deque(maxlen=MAX_LINES)
        self.running: Process | None = None

    def body(self) -> Iterable[Static]:
        yield Static("", id="output", markup=False)

    def foot(self) -> ComposeResult:
        yield Input(placeholder="sm …", id="line", suggester=SuggestFromList(sorted(COMMANDS)))

    def on_mount(self) -> None:
        self.query_one("#line", Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        try:
            words = shlex.split(event.value)
        except ValueError as problem:
            self.refuse(f"{problem}: close the quotation")
            return
        words = words[1:] if words[:1] == ["sm"] else words
        if not words or self.running is not None:
            return
        self.refuse("")
        if words[0] in OPEN_ALREADY:
            self.refuse("it is open: Esc leads back to it")
        elif words[0] in IN_TERMINAL and "--help" not in words:
            self.outside(words)
        else:
            event.input.value = ""
            self.run_worker(self._run(words))

    async def _run(self, words: list[str]) -> None:
        self.printed.append(f"$ sm {shlex.join(words)}")
        self._draw()
        self.running = await started(words, max(40, self.size.width - 6))
        try:
            assert self.running.stdout is not None
            while content := await self.running.stdout.read(MAX_LINE_BYTES):
                self.printed += lines(content.decode(errors="replace").rstrip("\n"))
                self._draw()
            code = await self.running.wait()
        finally:
            process, self.running = self.running, None
            await end(process)
        self.printed += [*([f"exit code {code}"] if code else []), ""]
        self._draw()

    def _draw(self) -> None:
        if self.is_attached:
            self.put("output", plain_text(self.printed))
            self.query_one("#body", VerticalScroll).scroll_end(animate=False)

    def action_leave(self) -> None:
        """End the command that runs; without one leave."""
        if self.running is not None:
            self.workers.cancel_node(self)
        else:
            self.dismiss(None)
