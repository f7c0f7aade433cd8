"""A whole `sm` of its own for a test: server, tmux, client configuration, scripted model; nothing shared, all ended.

Every environment is built from an allow-list, never from the shell the tests run in. `client` is the executable that
sessions run: the pinned real client, or the scripted agent.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from sm.client import Client, UnavailableError
from sm.core.events import AWAITED
from sm.lock import running_server
from sm.paths import TMUX_SOCKET, SmHome, read_token
from sm.testing.model import ScriptedModel
from sm.testing.offline import offline_client_env, offline_codex_env
from sm.testing.scenario import Scenario
from sm.tmux.names import socket_path
from tests.cli import warm

ROOT = Path(__file__).resolve().parents[2]
PINNED = ROOT / "clients" / "node_modules" / ".bin" / "claude"
REAL_CLIENT = Path(os.environ.get("SM_TESTED_CLIENT") or PINNED)
"""`make soak` tries the tests of the matrix on other versions too."""
CODEX = ROOT / "clients" / "codex" / "node_modules" / ".bin" / "codex"
ALLOWED = ("PATH", "LANG", "LC_ALL", "TZ")
PATIENCE = 60.0
"""Seconds: a client that asks whether its directory is trusted is reported after 40 s where ten processes wait for two
processors."""
SHORT_LIVED = {
    "BUN_JSC_numberOfGCMarkers": "1",
    "BUN_JSC_useConcurrentGC": "0",
    "BUN_GC_TIMER_DISABLE": "1",
    "BUN_JSC_useDFGJIT": "0",
}
"""A client of a test lives for seconds: collecting its garbage in one thread, and only when its heap is full, and
leaving its code to the first compiler saves a quarter of the processor time of a start with a turn (2.1.328: 2.2 s)."""
driver = "auto"
"""What drives the clients of a test that does not say it in its configuration; see conftest.py."""
provider = "claude"
"""Whose clients they are, where a test does not say it."""
SERVER = [sys.executable, "-m", "sm", "server", "run"]


CODEX_BOX = "Ask Codex to do anything"
COMPACTS_EARLY = ("-c", f"model_auto_compact_token_limit={67_000 * 244_800 // 167_000}")
"""Codex compacts at the same share of what it can hold as Claude Code with a window of 100,000 tokens."""


def processes_below(pid: int) -> list[int]:
    """The processes that one has started, and those that these have, and so on."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [process for child in map(int, children) for process in (child, *processes_below(child))]


def default_provider() -> str:
    return provider


def codex_arguments(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Return a start's arguments for Codex: its sandbox allows what those of Claude Code name one by one."""
    if "--allowedTools" in arguments:
        return ()
    return COMPACTS_EARLY if arguments == ("--autocompact", "100k") else arguments


@dataclass
class Rig:
    script: Scenario
    client: str | None = str(REAL_CLIENT)
    """None for the configured one."""
    model_name: str = "claude-sonnet-4-5"
    config: str = ""
    """Text of sm's configuration file."""
    trusted: bool = True
    guarded: bool = False
    """Keep the session from rotating without end, as by default; most tests rotate small contexts in which nothing is
    done."""
    provider: str = ""
    """Of sessions that name none; empty for the module's."""
    as_installed: bool = False
    """Start the server by its command; otherwise it is forked from a process that has `sm` loaded."""
    root: Path = field(init=False)
    model: ScriptedModel = field(init=False)
    server: subprocess.Popen[bytes] | warm.Forked | None = None
    env: dict[str, str] = field(default_factory=dict)

    async def __aenter__(self) -> Self:
        self.root = Path(tempfile.mkdtemp(prefix="sm-e2e-"))  # short: a socket path has 107 bytes
        self.project.mkdir()
        self.config_file.write_text(self.config)
        self.model = ScriptedModel(self.script)
        await self.model.__aenter__()
        self.env = offline_client_env(self.root / "home", self.model.url, self.project, trusted=self.trusted)
        self.env |= offline_codex_env(self.root / "home", self.model.url, self.project, trusted=self.trusted)
        self.env |= SHORT_LIVED
        await self.start_server()
        return self

    def use_scripted_agent(self) -> None:
        """Run the stand-in instead of the real client; it asks the same scripted model."""
        wrapper = self.root / "claude"
        wrapper.write_text(f'#!/bin/sh\nexec {sys.executable} -m sm.testing.agent "$@"\n')
        wrapper.chmod(0o700)
        self.client = str(wrapper)

    async def __aexit__(self, *problem: object) -> None:
        if self.server is not None and self.server.poll() is None:
            os.kill(self.server.pid, signal.SIGCONT)
            self.server.terminate()
            try:
                await asyncio.to_thread(self.server.wait, 10)
            except subprocess.TimeoutExpired:
                self.server.kill()
                self.server.wait()
        started_by_a_command = running_server(self.home)  # after the test had killed ours
        if started_by_a_command is not None:
            os.kill(started_by_a_command.pid, signal.SIGKILL)
        self.tmux("kill-server")
        self._end_leftovers()
        await self.model.__aexit__(None, None, None)
        if problem[0] is not None:
            self.report()
        shutil.rmtree(self.root, ignore_errors=True)

    def _end_leftovers(self) -> None:
        """What a test that kills or stops something may have left: processes that name this rig's directory."""
        mark = str(self.root).encode()
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and any(mark in (entry / name).read_bytes() for name in ("cmdline", "environ")):
                    os.kill(int(entry.name), signal.SIGKILL)
            except OSError:
                continue

    def report(self) -> None:
        """What a failed test leaves to read."""
        for path in (self.home.server_log, self.root / "server.err"):
            if path.exists():
                sys.stderr.write(f"--- {path.name}\n{path.read_text(errors='replace')[-6000:]}\n")

    # --- places -------------------------------------------------------------------------------------------------

    @property
    def codex(self) -> bool:
        """Whether its sessions are of Codex, where they do not say it."""
        return (self.provider or provider).startswith("codex")

    @property
    def terminal(self) -> bool:
        """Whether they are of Codex driven by keys in its terminal interface."""
        return (self.provider or provider) == "codex-tui"

    @property
    def project(self) -> Path:
        return self.root / "project"

    @property
    def home(self) -> SmHome:
        return SmHome(self.root / "state")

    @property
    def config_file(self) -> Path:
        return self.root / "config.toml"

    # --- the server ---------------------------------------------------------------------------------------------

    def server_env(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ALLOWED if name in os.environ}
        own = {"HOME": str(self.root / "home"), "SM_HOME": str(self.home.root), "SM_CONFIG": str(self.config_file)}
        unguarded = {} if self.guarded else {"SM_HANDOFF_MIN_GROWTH": "0", "SM_HANDOFF_MAX_WITHOUT_PROGRESS": "0"}
        chosen = {} if "driver =" in self.config else {"SM_CLAUDE_DRIVER": driver}
        return {**kept, "TERM": "xterm-256color", "SM_DEBUG": "1", **own, **unguarded, **chosen}

    def server_command(self) -> list[str] | None:
        """The program to start; None for a fork."""
        return SERVER if self.as_installed else None

    async def start_server(self) -> None:
        command, env = self.server_command(), self.server_env()
        with (self.root / "server.err").open("ab") as errors, Path(os.devnull).open("rb") as nothing:
            if command is None:
                streams = (nothing.fileno(), errors.fileno(), errors.fileno())
                self.server = warm.shared().start(warm.request_for(("server", "run"), env, "/"), *streams)
            else:
                self.server = subprocess.Popen(command, env=env, stdin=nothing, stdout=errors, stderr=errors, cwd="/")
        await self.until(lambda: running_server(self.home) is not None and self._answers(), "the server answers")

    def _answers(self) -> bool:
        try:
            self.call("GET", "/health", timeout=1.0)
        except UnavailableError:
            return False
        return True

    async def kill_server(self) -> None:
        assert self.server is not None
        self.server.kill()
        await asyncio.to_thread(self.server.wait)

    def call(self, method: str, path: str, body: object = None, *, timeout: float = 30.0) -> Any:
        record = running_server(self.home)
        if record is None:
            raise UnavailableError
        return Client(record.url, read_token(self.home) or "").call(method, path, body, timeout=timeout)

    async def ask(self, method: str, path: str, body: object = None) -> Any:
        return await asyncio.to_thread(self.call, method, path, body)

    def sm(self, *arguments: str, words: str = "") -> subprocess.CompletedProcess[str]:
        """A command of the person's, in a shell outside every session."""
        return warm.shared().completed(warm.request_for(arguments, self.server_env(), self.project), words)

    # --- sessions -----------------------------------------------------------------------------------------------

    async def new(
        self, prompt: str | None = None, *arguments: str, name: str = "a", provider: str = "", **env: str
    ) -> str:
        name_of = provider or self.provider or default_provider()
        client, model = self.client, self.model_name or None
        if name_of.startswith("codex"):
            client, model, arguments = str(CODEX), None, codex_arguments(arguments)
        body = {
            "dir": str(self.project),
            "env": {**self.env, **env},
            "name": name,
            "model": model,
            "prompt": prompt,
            "arguments": list(arguments),
            "command": client,
            "provider": name_of,
        }
        return str((await self.ask("POST", "/sessions", body))["id"])

    async def begun(self, prompt: str, *arguments: str, **env: str) -> str:
        """A session whose plugin has said hello, or does not come, before its user types the first prompt."""
        session = await self.new(None, *arguments, **env)
        await self.wait_view(session, lambda view: view["status"] == "idle" and view["driver_note"] != AWAITED, "up")
        if self.codex:  # what comes before its box is there counts as pasted, the Enter too (0.171.0)
            await self.wait_screen(session, CODEX_BOX)
        self.type(session, prompt)
        await self.until(lambda: prompt in self.screen(session), "typed")
        self.press(session, "Enter")
        return session

    async def look(self, path: str) -> Any:
        """A GET of a server that lives, though a busy machine may have made it close its port for a moment."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return await self.ask("GET", path)
            except UnavailableError:
                if self.server is None or self.server.poll() is not None or time.monotonic() > deadline:
                    raise
            await asyncio.sleep(0.05)

    async def view(self, session: str) -> dict[str, Any]:
        return dict(await self.look(f"/sessions/{session}"))

    async def events(self, session: str, kind: str | None = None) -> list[dict[str, Any]]:
        found = (await self.look(f"/sessions/{session}/events?lines=100000"))["events"]
        return [event for event in found if kind in (None, event["kind"])]

    async def recorded(self, where: str) -> None:
        """Return as soon as there is such an event; a poll of the file, since an HTTP request would come too late."""
        deadline = time.monotonic() + PATIENCE
        with closing(sqlite3.connect(f"file:{self.home.database}?mode=ro", uri=True)) as connection:
            while not connection.execute(f"SELECT 1 FROM events WHERE {where}").fetchone():  # noqa: S608  # a test's own
                assert time.monotonic() < deadline, f"never {where}"
                await asyncio.sleep(0.001)

    async def wait_event(self, session: str, kind: str, count: int = 1, **data: object) -> dict[str, Any]:
        """The `count`-th event of that kind whose data holds `data`."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            matching = [e for e in await self.events(session, kind) if data.items() <= e["data"].items()]
            if len(matching) >= count:
                return matching[count - 1]
            await asyncio.sleep(0.05)
        kinds = [event["kind"] for event in await self.events(session)]
        raise AssertionError(f"no {kind} {data}: {kinds}\n{self.screen(session)}")

    async def wait_view(self, session: str, expected: Callable[[dict[str, Any]], bool], what: str) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE
        view: dict[str, Any] = {}
        while time.monotonic() < deadline:
            view = await self.view(session)
            if expected(view):
                return view
            await asyncio.sleep(0.05)
        raise AssertionError(f"never {what}: {json.dumps(view, indent=1)}\n{self.screen(session)}")

    async def wait_status(self, session: str, status: str) -> dict[str, Any]:
        return await self.wait_view(session, lambda view: view["status"] == status, status)

    async def wait_phase(self, session: str, phase: str) -> dict[str, Any]:
        return await self.wait_view(session, lambda view: view["handoff"]["phase"] == phase, f"in phase {phase}")

    async def until(self, expected: Callable[[], bool], what: str, patience: float = PATIENCE) -> None:
        deadline = time.monotonic() + patience
        while not await asyncio.to_thread(expected):
            assert time.monotonic() < deadline, f"never: {what}"
            await asyncio.sleep(0.05)

    async def token(self, session: str) -> str:
        """The session's own, as its client has it in its environment."""
        pid, found = (await self.view(session))["pid"], list[bytes]()

        def given() -> bool:
            variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            found[:] = [variable[17:] for variable in variables if variable.startswith(b"SM_SESSION_TOKEN=")]
            return found != []

        await self.until(given, "the token in the environment of a client that may have been forked just now")
        return found[0].decode()

    async def ask_as(self, session: str, method: str, path: str, body: object = None) -> Any:
        """What a command inside the session asks."""
        return await (await self.asking_as(session))(method, path, body)

    async def asking_as(self, session: str) -> Callable[..., Awaitable[Any]]:
        record = running_server(self.home)
        assert record is not None
        client = Client(record.url, await self.token(session))
        return lambda *request: asyncio.to_thread(client.call, *request)

    async def say(self, sender: str, target: str, text: str, **options: object) -> str:
        """Send a message from one session to another; its id."""
        body = {"text": text, **options}
        return str((await self.ask_as(sender, "POST", f"/sessions/{target}/messages", body))["id"])

    # --- the terminal -------------------------------------------------------------------------------------------

    def tmux(self, *arguments: str) -> str:
        socket = str(socket_path(self.home.root, TMUX_SOCKET))
        found = subprocess.run(["tmux", "-S", socket, *arguments], capture_output=True, text=True, check=False)
        return found.stdout

    def pane(self, session: str) -> str:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:  # tmux 3.3a lists nothing at all now and then, as a terminal leaves it
            rows = self.tmux("list-panes", "-a", "-F", "#{@sm_session} #{pane_id}").split("\n")
            if found := [row.split()[1] for row in rows if row.startswith(session)]:
                return found[0]
        raise AssertionError(f"no pane of {session}")

    def screen(self, session: str) -> str:
        if session not in self.tmux("list-panes", "-a", "-F", "#{@sm_session}"):
            return "(no pane)"
        return self.tmux("capture-pane", "-p", "-t", self.pane(session))

    def type(self, session: str, text: str) -> None:
        self.tmux("send-keys", "-t", self.pane(session), "-l", "--", text)

    def press(self, session: str, *keys: str) -> None:
        self.tmux("send-keys", "-t", self.pane(session), *keys)

    async def wait_screen(self, session: str, text: str) -> None:
        await self.until(lambda: text in self.screen(session), f"{text!r} on the screen of\n{self.screen(session)}")

    async def kill_client(self, session: str, number: signal.Signals = signal.SIGKILL) -> None:
        """End what the client is: Codex's own process is below its wrapper in Node."""
        view = await self.view(session)
        inside = processes_below(view["pid"]) if view["provider"].startswith("codex") else []
        for process in (view["pid"], *inside):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)
