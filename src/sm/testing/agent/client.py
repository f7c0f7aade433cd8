"""The terminal's side: what each key does, what is shown, and what is handed to the worker when.

Everything here runs in the terminal's thread, but for the methods of Stage.
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
from sm.testing.agent.keys import Decoder, Event, KeyPress, TextBurst
from sm.testing.agent.loop import Cancel, Loop
from sm.testing.agent.mind import mind_from
from sm.testing.agent.paint import Below, Dialog, ScriptedScreen, box_below, dialog_below, output_lines
from sm.testing.agent.settings import Start
from sm.testing.agent.turns import Queued, Worker

Json: TypeAlias = dict[str, Any]
Job: TypeAlias = "tuple[str, Callable[[], None]]"

COMMAND = re.compile(r"/([A-Za-z][\w:-]*)(?: .*)?", re.DOTALL)
KNOWN = frozenset({"clear", "compact", "exit", "quit"})
TWICE = 1.0
"""Seconds within which a second Ctrl-C ends the client, and a second Escape opens the menu."""
DEAF = 0.15
"""Seconds in which a new dialog takes no answer but Escape (client 2.1.328: Enter lost after 0.1, taken after 0.2)."""
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
class Open:
    """A dialog on the screen and what its answer does."""

    dialog: Dialog
    answer: Callable[[int | None], None]
    """Called with the choice, None for Escape."""
    since: float = field(default_factory=time.monotonic)


@dataclass(slots=True)
class ScriptedClient:
    start: Start
    terminal: int = 0
    loop: Loop = field(default_factory=Loop)
    box: ScriptedBox = field(default_factory=ScriptedBox)
    worker: Worker = field(init=False)
    screen: ScriptedScreen = field(init=False)
    busy: bool = True
    in_turn: bool = False
    ended: int | None = None
    """The exit code, once it is to leave."""
    queued: deque[Queued] = field(default_factory=deque)
    opened: Open | None = None
    _jobs: queue.SimpleQueue[Callable[[], None]] = field(default_factory=queue.SimpleQueue)
    _decoder: Decoder = field(default_factory=Decoder)
    _last: dict[str, float] = field(default_factory=dict)
    """When a text burst, a Ctrl-C or an Escape last came."""
    _chord: bool = False
    """True after Ctrl-X."""
    _hurries: bool = False
    """Ctrl-X Ctrl-S was pressed while the hooks still judged what is queued."""
    _output: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.worker = Worker(self.start, self.loop, self, mind_from(os.environ))
        self.screen = ScriptedScreen(self.terminal)

    # Life.

    def run(self) -> int:
        """Serve the terminal until the client is to end; return its exit code."""
        self.screen.measure()
        self._catch_signals()
        threading.Thread(target=self._work, daemon=True).start()
        if self.start.trusted:
            self._begin()
        else:
            self.opened = Open(TRUST, self._trust)
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
            if self.opened is None or self.opened.dialog.title != TRUST.title:  # before trust no hook fires
                self.worker.end(reason)

    def _begin(self) -> None:
        self._print(("", " Claude Code (scripted)", f" {self.start.directory}"))
        self._do(self.worker.begin)
        if self.start.prompt:
            self.queued.append(Queued(self.start.prompt))

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

    def _twice(self, what: str) -> bool:
        now, before = time.monotonic(), self._last.get(what, float("-inf"))
        self._last[what] = now
        return now - before < TWICE

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
        if not clears:  # /clear gives the draft back once the new conversation is there
            self.box.give_back()
        if not self.busy:
            self._run(Queued(text))
            return
        prompt = Queued(text)
        self.queued.append(prompt)
        if self.in_turn and not shell and COMMAND.fullmatch(text) is None:
            threading.Thread(target=self._check, args=(prompt,), daemon=True).start()

    def _check(self, prompt: Queued) -> None:
        """The hooks see a queued prompt at once, not when it is read."""
        outcome = self.worker.check(prompt.text)
        if outcome.blocks and prompt in self.queued:
            self.queued.remove(prompt)
            self.worker.refuse(prompt.text, outcome)
        prompt.outcome = outcome
        if self._hurries:
            self.loop.post(self._send_now)

    def _run(self, prompt: Queued) -> None:
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
        elif name in KNOWN:
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
        """Ctrl-X Ctrl-S: what is queued is read at once if the model is speaking, else at the next tool boundary.

        Pressed while the hooks still judge it, it works once they have (2.1.328).
        """
        judged = any(prompt.outcome is not None for prompt in self.queued)
        self._hurries = bool(self.queued) and not judged
        if judged:
            self.worker.asking.call()

    def _control_c(self) -> None:
        again = self._twice("C-c")
        if self.in_turn:
            self.worker.cancel.call()
        elif again:
            self._leave("prompt_input_exit", 0)
        elif not self.box.empty:
            self.box.take()
        else:
            self.box.notice = "Press Ctrl-C again to exit"

    def _escape(self) -> None:
        again = self._twice("Escape")
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
        self.worker.state.write(self.worker.talk.id, "waiting", waiting_for)
        self.opened = Open(dialog, answer)

    def _close(self) -> None:
        self.opened = None
        self.worker.state.write(self.worker.talk.id, "busy" if self.busy else "idle")

    def _answer(self, opened: Open, event: Event) -> None:
        count = len(opened.dialog.choices)
        name = event.name if isinstance(event, KeyPress) else event.text
        chosen = opened.dialog.chosen
        if name in {"Up", "Down"}:
            chosen = (chosen + (1 if name == "Down" else -1)) % count
            self.opened = replace(opened, dialog=replace(opened.dialog, chosen=chosen))
        elif name == "Escape":
            opened.answer(None)
        elif time.monotonic() - opened.since < DEAF:
            pass
        elif name == "Enter" or name.endswith("\n"):  # whatever was typed before it is lost
            opened.answer(chosen)
        elif name.isdigit() and 0 < int(name) <= count:
            opened.answer(int(name) - 1)

    # The screen.

    def _below(self) -> Below:
        if self.opened is not None:
            return dialog_below(self.screen, self.opened.dialog)
        queued = tuple(prompt.text for prompt in self.queued)
        return box_below(self.screen, self.box, busy=self.in_turn, queued=queued if self.in_turn else ())

    def _draw(self) -> None:
        output, self._output = tuple(self._output), []
        self.screen.show(self._below(), output)

    def _print(self, lines: tuple[str, ...]) -> None:
        self._output.extend(lines)

    def _resized(self) -> None:
        self.screen.measure()
        self.screen.repaint(self._below())

    # What the worker asks, from its own thread.

    def say(self, text: str, sign: str = "●") -> None:
        self.loop.post(lambda: self._print(output_lines(text, self.screen.width, sign)))

    def cleared(self) -> None:
        def clear() -> None:
            self._output.clear()
            self._print(("", "❯ /clear"))
            self.box.give_back()
            self.screen.repaint(self._below(), forget=True)

        self.loop.post(clear)

    def put_back(self, text: str) -> None:
        def put() -> None:
            self.box.text = text + self.box.text

        self.loop.post(put)

    def take_prompts(self) -> list[Queued]:
        """The prompts the hooks have seen; commands stay until the turn's end."""
        taken = [prompt for prompt in list(self.queued) if prompt.outcome is not None]
        for prompt in taken:
            self.queued.remove(prompt)
        return taken

    def permitted(self, tool: str, given: Json, cancel: Cancel) -> bool:
        answered = threading.Event()
        choices: list[int | None] = []

        def answer(choice: int | None) -> None:
            choices.append(choice)
            self._close()
            answered.set()

        dialog = Dialog(f"{tool} command", (f" {_asked(given)}", "", " Do you want to proceed?"), ("Yes", "No"))
        threading.Thread(target=self.worker.ask_hooks, args=(tool, given), daemon=True).start()
        self.loop.later(0.01, lambda: self.worker.state.write(self.worker.talk.id, "waiting", "permission prompt"))
        self.loop.later(self.start.flags.dialog_delay, lambda: self._open(dialog, "permission prompt", answer))
        with cancel.undoing(answered.set):
            answered.wait()
        return choices[:1] == [0]

    def wake(self, text: str) -> None:
        """Start a turn that nobody typed: a background task or a hook has something to say."""
        said = text if text.startswith("<task-notification>") else REWAKE.format(text)

        def start() -> None:
            prompt = Queued(said)
            if self.busy:
                self.queued.append(prompt)
                if self.in_turn:
                    threading.Thread(target=self._check, args=(prompt,), daemon=True).start()
            else:
                self._run(prompt)

        self.loop.post(start)


def _asked(given: Json) -> str:
    return str(given.get("command") or given.get("file_path") or given)[:200]
