"""The real Codex in a pane of its own tmux, against the scripted model; its hooks are recorded, and heard in order."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from sm.clock import SystemClock
from sm.core.ports.provider import ReadyOptions
from sm.providers.codex import hooks, options
from sm.providers.codex.tui import launch
from sm.providers.codex.tui.driver import TuiDriver
from sm.providers.codex.tui.input_box import InputBox
from sm.providers.codex.tui.screen import read_box
from sm.providers.codex.tui.state import TuiStates
from sm.testing.model import ScriptedModel
from sm.testing.offline import offline_codex_env
from sm.testing.scenario import Scenario
from sm.tmux.adapter import TmuxPane
from sm.tmux.client import TmuxClient, TmuxServerSettings
from sm.tmux.panes import NewPane, PaneOperations, Program

CODEX = Path(__file__).parents[2] / "clients" / "codex" / "node_modules" / ".bin" / "codex"
RECORDER = """
import os, sys
data = sys.stdin.buffer.read()
log = os.open(os.environ["RECORD"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
os.write(log, data.strip() + b"\\n")
reply = os.environ["RECORD"] + ".reply"
sys.stdout.write(open(reply).read() if os.path.exists(reply) else "{}")
"""
PATIENCE = 30.0
never = lambda: False


@dataclass
class CodexTui:
    script: Scenario
    arguments: tuple[str, ...] = ("-s", "read-only", "-a", "on-request")
    trusted: bool = True
    repository: bool = False
    folder: str = "project"
    held: list[str] = field(default_factory=list)
    """What the last wait of the driver reported."""
    heard: list[hooks.HookPayload] = field(default_factory=list)

    async def __aenter__(self) -> Self:
        self.root = Path(tempfile.mkdtemp(prefix="sm-codex-"))
        self.project = self.root / self.folder
        self.project.mkdir(parents=True)
        if self.repository:
            (self.project / ".git").mkdir()
            (self.project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
            (self.project / ".git" / "objects").mkdir()
            (self.project / ".git" / "refs").mkdir()
        self.recorder = self.root / self.folder / "a 'hook' of \"mine\".py"
        self.recorder.write_text(RECORDER)
        self.record = self.root / "hooks.jsonl"
        self.record.touch()
        self.model = ScriptedModel(self.script)
        await self.model.__aenter__()
        self.env = offline_codex_env(self.root / "home", self.model.url, self.project, trusted=self.trusted)
        self.env["RECORD"] = str(self.record)
        self.tmux = TmuxClient(TmuxServerSettings(self.root / "s", self.env, umask=0o022, reply_timeout=60.0))
        await self.tmux.__aenter__()
        self.panes = PaneOperations(self.tmux)
        self.states = TuiStates()
        self.read = self.record.open("rb")
        return self

    async def __aexit__(self, *problem: object) -> None:
        server = self.tmux.identity
        with suppress(Exception):
            for facts in await self.panes.list():
                await self.panes.kill(facts.pane_id)
        await self.tmux.__aexit__(None, None, None)
        if server is not None:
            with suppress(ProcessLookupError):
                os.kill(server.pid, signal.SIGKILL)
        await self.model.__aexit__(None, None, None)
        self.read.close()
        shutil.rmtree(self.root, ignore_errors=True)

    @property
    def config(self) -> Path:
        return Path(self.env["CODEX_HOME"])

    async def start(self, *, resume: str | None = None, prompt: str | None = None) -> None:
        command = launch.HookCommand(sys.executable, str(self.recorder))
        tools = options.ToolServer(sys.executable, ("-c", "pass"))
        settings = launch.hooks(str(command)) + options.configured(disable_paste_burst=True)
        del tools
        argv = launch.argv((str(CODEX),), settings, self.arguments, resume=resume, prompt=prompt)
        program = Program(argv, self.project, self.env, self.root / "log")
        created = await self.panes.create(NewPane("0a1b2c3d", "codex", program))
        self.id, self.pid = created.pane_id, created.pid
        self.pane = TmuxPane(self.panes, self.id, SystemClock())
        self.driver = TuiDriver(InputBox(self.pane, self.state, never))

    # --- what is seen -----------------------------------------------------------------------------------------------

    def hear(self) -> None:
        for line in self.read:
            payload = hooks.parse(line)
            self.heard.append(payload)
            self.states.hear(payload, SystemClock().now())

    def state(self):
        self.hear()
        return self.states.client_state(str(self.config), self.pid)

    def events(self, name: str) -> list[hooks.HookPayload]:
        self.hear()
        return [payload for payload in self.heard if payload.hook_event_name == name]

    @property
    def prompts(self) -> list[str | None]:
        return [payload.prompt for payload in self.events("UserPromptSubmit")]

    async def box(self):
        view = await self.pane.look()
        return read_box(view.lines, view.cursor)

    async def screen(self) -> str:
        return (await self.panes.snapshot(self.id)).text

    async def until(self, holds, what: str):
        """Wait for a condition, which may be a coroutine function."""
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    found = holds()
                    found = await found if asyncio.iscoroutine(found) else found
                    if found:
                        return found
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"not seen: {what}\n{await self.screen()}") from None

    async def shows(self, text: str) -> None:
        async def seen():
            return text in await self.screen()

        await self.until(seen, text)

    async def is_in_state(self, activity) -> None:
        await self.until(lambda: (found := self.state()) and found.activity is activity, activity)

    # --- what is done -----------------------------------------------------------------------------------------------

    async def ready(self, *own: str, within: float = PATIENCE, leave=never, **wait) -> bool:
        self.held.clear()
        try:
            async with asyncio.timeout(within):
                return await self.driver.ready(ReadyOptions(own, **wait), self.held.append, leave)
        except TimeoutError:
            return False

    async def prompted(self, text: str) -> None:
        """Have a prompt submitted, and wait until its turn is over."""
        before = len(self.events("Stop"))
        assert await self.ready(), self.held
        refused = await self.driver.prompt(text, never)
        assert refused is None, (refused, await self.screen())
        await self.until(lambda: len(self.events("Stop")) > before, f"the end of {text!r}")

    async def cleared(self) -> None:
        """Begin a new thread, as the files show it."""
        old = self.state().conversation
        assert await self.ready("/clear"), self.held
        refused = await self.driver.clear(never)
        assert refused is None, (refused, await self.screen())
        await self.until(lambda: self.state() and self.state().conversation != old, "a new thread")

    async def type(self, text: str) -> None:
        """As the user does it."""
        for number, line in enumerate(text.split("\n")):
            if number:
                await self.panes.press(self.id, "C-j")
            await self.tmux.command("send-keys", "-t", self.id, "-l", "--", line)

        async def shown():
            box = await self.box()
            return box is not None and box.holds(text)

        await self.until(shown, text)

    def reply(self, value: dict | None) -> None:
        """What every hook answers from now on."""
        path = Path(f"{self.record}.reply")
        if value is None:
            path.unlink(missing_ok=True)
        else:
            path.write_text(json.dumps(value))
