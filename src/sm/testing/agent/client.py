"""The terminal's side: what each key does, what is shown, and which work the worker thread gets.

Everything here runs in the terminal's thread, except for the methods of TurnUi.
"""

from __future__ import annotations

import os
import queue
import re
import signal
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from sm.testing.agent.box import ScriptedBox
from sm.testing.agent.keys import Event, KeyDecoder, KeyPress, TextBurst
from sm.testing.agent.loop import Cancellation, TerminalLoop
from sm.testing.agent.model_client import model_client_from
from sm.testing.agent.screen import BottomArea, Dialog, ScriptedScreen, box_area, dialog_area, output_lines
from sm.testing.agent.settings import StartOptions
from sm.testing.agent.turns import QueuedPrompt, TurnRunner

Json: TypeAlias = dict[str, Any]
Job: TypeAlias = "tuple[str, Callable[[], None]]"

COMMAND = re.compile(r"/([A-Za-z][\w:-]*)(?: .*)?", re.DOTALL)
KNOWN_COMMANDS = frozenset({"clear", "compact", "exit", "quit"})
DOUBLE_PRESS_S = 1.0
"""A second Ctrl-C within that time ends the client, and a second Escape opens the menu."""
DIALOG_DEAF_S = 0.15
"""A new dialog takes no answer but Escape for that long (client 2.1.328: Enter lost after 0.1, taken after 0.2)."""
TRUST = Dialog(
    "Accessing workspace:",
    (" Quick safety check: Is this a project you trust?",),
    ("Yes, I trust this folder", "No, exit"),
    1,
)
REWIND = Dialog("Rewind", (" Restore the conversation to the point before…",), ("(current)",))
REWAKE = """<system-reminder>
[SYSTEM NOTIFICATION - NOT USER INPUT]
This is an automated notification. It is NOT a message from the user.
</system-reminder>
<task-notification>
<summary>Stop hook feedback</summary>
Stop hook blocking error: {}
</task-notification>"""


@dataclass(slots=True)
class OpenDialog:
    """A dialog on the screen and what its answer does."""

    dialog: Dialog
    answer: Callable[[int | None], None]
    """Called with the choice, None for Escape."""
    since: float = field(default_factory=time.monotonic)


@dataclass(slots=True)
class ScriptedClient:
    start: StartOptions
    terminal: int = 0
    loop: TerminalLoop = field(default_factory=TerminalLoop)
    box: ScriptedBox = field(default_factory=ScriptedBox)
    worker: TurnRunner = field(init=False)
    screen: ScriptedScreen = field(init=False)
    busy: bool = True
    in_turn: bool = False
    ended: int | None = None
    """The exit code, once the client is to end."""
    queued: deque[QueuedPrompt] = field(default_factory=deque)
    opened: OpenDialog | None = None
    _jobs: queue.SimpleQueue[Callable[[], None]] = field(default_factory=queue.SimpleQueue)
    _decoder: KeyDecoder = field(default_factory=KeyDecoder)
    _last: dict[str, float] = field(default_factory=dict)
    """When the last text burst, Ctrl-C or Escape came."""
    _chord: bool = False
    """True after Ctrl-X."""
    _send_when_judged: bool = False
    """Ctrl-X Ctrl-S was pressed before the hooks had judged the queued prompts."""
    _output: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.worker = TurnRunner(self.start, self.loop, self, model_client_from(os.environ))
        self.screen = ScriptedScreen(self.terminal)

    # Start and end.

    def run(self) -> int:
        """Serve the terminal until the client is to end; return its exit code."""
        self.screen.measure()
        self._catch_signals()
        threading.Thread(target=self._work, daemon=True).start()
        if self.start.trusted:
            self._begin()
        else:
            self.opened = OpenDialog(TRUST, self._trust)
        while self.ended is None:
            self._draw()
            data = self.loop.step(self.terminal)
            if data == b"":
                self._leave("other", 129)
            for event in self._decoder.feed(data or b""):
                self._take(event)
        return self.ended

    def _catch_signals(self) -> None:
        for number, code in ((signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 0)):
            if number == signal.SIGTERM and self.start.flags.ignore_sigterm:
                signal.signal(number, signal.SIG_IGN)
                continue
            signal.signal(number, lambda *_, code=code: self.loop.post(lambda: self._leave("other", code)))
        signal.signal(signal.SIGWINCH, lambda *_: self.loop.post(self._resized))

    def _leave(self, reason: str, code: int) -> None:
        if self.ended is None:
            self.ended = code
            if self.opened is None or self.opened.dialog.title != TRUST.title:  # before trust no hook runs
                self.worker.end(reason)

    def _begin(self) -> None:
        self._print(("", " Claude Code (scripted)", f" {self.start.directory}"))
        self._do(self.worker.begin)
        if self.start.prompt:
            self.queued.append(QueuedPrompt(self.start.prompt))

    def _trust(self, choice: int | None) -> None:
        if choice == 0:
            self.opened = None
            self._begin()
        else:
            self._leave("other", 1)

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            job()
            self.loop.post(self._finished)

    def _do(self, job: Callable[[], None], *, turn: bool = False) -> None:
        self.busy, self.in_turn = True, turn
        self._jobs.put(job)

    def _finished(self) -> None:
        self.busy = self.in_turn = False
        if self.queued:
            self._run(self.queued.popleft())

    # Keys.

    def _take(self, event: Event) -> None:
        if self.opened is not None:
            self._answer(self.opened, event)
        elif isinstance(event, TextBurst):
            self._last["text"] = time.monotonic()
            self.box.insert(event.text)
        elif action := self._actions().get(event.name):
            action()
        self._chord = event == KeyPress("C-x")

    def _actions(self) -> dict[str, Callable[[], None]]:
        return {
            "Enter": self._enter,
            "BSpace": self.box.backspace,
            "C-s": self._stash,
            "C-u": lambda: self.box.delete_line(self.screen.box_width()),
            "C-c": self._control_c,
            "Escape": self._escape,
            "Up": self._take_back,
        }

    def _is_double_press(self, what: str) -> bool:
        now, before = time.monotonic(), self._last.get(what, float("-inf"))
        self._last[what] = now
        return now - before < DOUBLE_PRESS_S

    def _enter(self) -> None:
        if time.monotonic() - self._last.get("text", float("-inf")) < self.start.flags.drop_enter:
            self._last["text"] = float("-inf")  # only the first one is lost
        elif self.box.text.endswith("\\"):
            self.box.text = self.box.text[:-1] + "\n"
        elif self.box.text.strip():
            self._submit()

    def _submit(self) -> None:
        shell, text = self.box.shell, self.box.take().strip("\n") if not self.box.shell else "!" + self.box.take()
        clears = text.split(" ", 1)[0] == "/clear"
        if not clears:  # /clear restores the draft once the new conversation exists
            self.box.restore_stash()
        if not self.busy:
            self._run(QueuedPrompt(text))
            return
        prompt = QueuedPrompt(text)
        self.queued.append(prompt)
        if self.in_turn and not shell and COMMAND.fullmatch(text) is None:
            threading.Thread(target=self._check, args=(prompt,), daemon=True).start()

    def _check(self, prompt: QueuedPrompt) -> None:
        """Ask the hooks about a queued prompt: they see it at once, not when the model gets it."""
        outcome = self.worker.check(prompt.text)
        if outcome.blocks and prompt in self.queued:
            self.queued.remove(prompt)
            self.worker.refuse(prompt.text, outcome)
        prompt.outcome = outcome
        if self._send_when_judged:
            self.loop.post(self._send_now)

    def _run(self, prompt: QueuedPrompt) -> None:
        text = prompt.text
        if text.startswith("!"):
            self._do(lambda: self.worker.shell(text[1:]), turn=True)
        elif text.strip() == "exit":
            self._leave("prompt_input_exit", 0)
        elif match := COMMAND.fullmatch(text.strip()):
            self._command(match[1])
        else:
            self._do(lambda: self.worker.submit(prompt), turn=True)

    def _command(self, name: str) -> None:
        if name == "clear":
            self._do(self.worker.clear)
        elif name == "compact":
            self._do(self.worker.compact, turn=True)
        elif name in KNOWN_COMMANDS:
            self._leave("prompt_input_exit", 0)
        else:
            self._print(output_lines(f"Unknown command: /{name}", self.screen.width, "⎿"))
            self._finished()

    def _stash(self) -> None:
        if self._chord:
            self._send_now()
        else:
            self.box.toggle_stash()

    def _send_now(self) -> None:
        """Ctrl-X Ctrl-S: the model gets what is queued at once if it is replying, else at the next tool boundary.

        Pressed before the hooks have judged it, it works once they have (2.1.328).
        """
        judged = any(prompt.outcome is not None for prompt in self.queued)
        self._send_when_judged = bool(self.queued) and not judged
        if judged:
            self.worker.request_cancel.call()

    def _control_c(self) -> None:
        again = self._is_double_press("C-c")
        if self.in_turn:
            self.worker.cancel.call()
        elif again:
            self._leave("prompt_input_exit", 0)
        elif not self.box.empty:
            self.box.take()
        else:
            self.box.notice = "Press Ctrl-C again to exit"

    def _escape(self) -> None:
        again = self._is_double_press("Escape")
        if self.in_turn:
            self._last.pop("Escape", None)
            self.worker.cancel.call()
        elif again and not self.box.empty:
            self.box.take()
        elif again:
            self._open(REWIND, "dialog open", lambda _: self._close())

    def _take_back(self) -> None:
        if self.queued and self.box.empty:
            self.box.insert("\n".join(prompt.text for prompt in self.queued))
            self.queued.clear()

    # Dialogs.

    def _open(self, dialog: Dialog, waiting_for: str, answer: Callable[[int | None], None]) -> None:
        self.worker.state.write(self.worker.conversation.id, "waiting", waiting_for)
        self.opened = OpenDialog(dialog, answer)

    def _close(self) -> None:
        self.opened = None
        self.worker.state.write(self.worker.conversation.id, "busy" if self.busy else "idle")

    def _answer(self, opened: OpenDialog, event: Event) -> None:
        count = len(opened.dialog.choices)
        name = event.name if isinstance(event, KeyPress) else event.text
        chosen = opened.dialog.chosen
        if name in {"Up", "Down"}:
            chosen = (chosen + (1 if name == "Down" else -1)) % count
            self.opened = replace(opened, dialog=replace(opened.dialog, chosen=chosen))
        elif name == "Escape":
            opened.answer(None)
        elif time.monotonic() - opened.since < DIALOG_DEAF_S:
            pass
        elif name == "Enter" or name.endswith("\n"):  # text typed before it is lost
            opened.answer(chosen)
        elif name.isdigit() and 0 < int(name) <= count:
            opened.answer(int(name) - 1)

    # The screen.

    def _bottom_area(self) -> BottomArea:
        if self.opened is not None:
            return dialog_area(self.screen, self.opened.dialog)
        queued = tuple(prompt.text for prompt in self.queued)
        return box_area(self.screen, self.box, busy=self.in_turn, queued=queued if self.in_turn else ())

    def _draw(self) -> None:
        output, self._output = tuple(self._output), []
        self.screen.show(self._bottom_area(), output)

    def _print(self, lines: tuple[str, ...]) -> None:
        self._output.extend(lines)

    def _resized(self) -> None:
        self.screen.measure()
        self.screen.repaint(self._bottom_area())

    # TurnUi: called from the worker's thread.

    def say(self, text: str, sign: str = "●") -> None:
        self.loop.post(lambda: self._print(output_lines(text, self.screen.width, sign)))

    def cleared(self) -> None:
        def clear() -> None:
            self._output.clear()
            self._print(("", "❯ /clear"))
            self.box.restore_stash()
            self.screen.repaint(self._bottom_area(), forget=True)

        self.loop.post(clear)

    def put_back(self, text: str) -> None:
        def put() -> None:
            self.box.text = text + self.box.text

        self.loop.post(put)

    def take_prompts(self) -> list[QueuedPrompt]:
        """Remove and return the prompts that the hooks have judged; commands stay until the turn's end."""
        taken = [prompt for prompt in list(self.queued) if prompt.outcome is not None]
        for prompt in taken:
            self.queued.remove(prompt)
        return taken

    def permitted(self, tool: str, given: Json, cancel: Cancellation) -> bool:
        answered = threading.Event()
        choices: list[int | None] = []

        def answer(choice: int | None) -> None:
            choices.append(choice)
            self._close()
            answered.set()

        dialog = Dialog(f"{tool} command", (f" {_call_summary(given)}", "", " Do you want to proceed?"), ("Yes", "No"))
        threading.Thread(target=self.worker.ask_hooks, args=(tool, given), daemon=True).start()
        self.loop.later(
            0.01, lambda: self.worker.state.write(self.worker.conversation.id, "waiting", "permission prompt")
        )
        self.loop.later(self.start.flags.dialog_delay, lambda: self._open(dialog, "permission prompt", answer))
        with cancel.on_cancel(answered.set):
            answered.wait()
        return choices[:1] == [0]

    def wake(self, text: str) -> None:
        """Start a turn without the user: a background task or a hook reports something."""
        said = text if text.startswith("<task-notification>") else REWAKE.format(text)

        def start() -> None:
            prompt = QueuedPrompt(said)
            if self.busy:
                self.queued.append(prompt)
                if self.in_turn:
                    threading.Thread(target=self._check, args=(prompt,), daemon=True).start()
            else:
                self._run(prompt)

        self.loop.post(start)


def _call_summary(given: Json) -> str:
    return str(given.get("command") or given.get("file_path") or given)[:200]
