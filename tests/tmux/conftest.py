"""A real tmux on a private socket for each test, ended by its process id."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sm.tmux.client import ServerSettings, TmuxClient
from sm.tmux.panes import NewPane, Panes, Program

ENVIRONMENT = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "LC_ALL") if name in os.environ}

RECORDER = """
import os, sys, termios, tty
tty.setraw(0)
target = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.write(1, sys.argv[2].encode().decode("unicode_escape").encode() + b"READY")
while data := os.read(0, 65536):
    os.write(target, data)
"""


async def until(holds):
    """Wait for a condition; only the time limit of the test ends a wait in vain."""
    while not (result := await holds() if asyncio.iscoroutinefunction(holds) else holds()):
        await asyncio.sleep(0.01)
    return result


@dataclass
class Rig:
    home: Path
    settings: ServerSettings
    client: TmuxClient
    restarts: list = field(default_factory=list)

    @property
    def panes(self) -> Panes:
        return Panes(self.client)

    def program(self, *argv, directory=None, log="log", **environment) -> Program:
        return Program(argv, directory or self.home, ENVIRONMENT | environment, self.home / log)

    async def start(self, *argv, name="agent", session_id="0a1b2c3d", **rest):
        program = self.program(*argv, **{"log": f"{session_id}.log", **rest})
        return await self.panes.create(NewPane(session_id, name, program))

    async def recorder(self, *, bracketed=True, session_id="0a1b2c3d"):
        """A program that records what is typed: its pane, and the file."""
        received = self.home / f"{session_id}.received"
        mode = "\\x1b[?2004h" if bracketed else ""
        pane = await self.start(sys.executable, "-c", RECORDER, str(received), mode, session_id=session_id)
        await self.shows(pane, "READY")
        return pane, received

    async def shows(self, pane, text):
        async def seen():
            return text in (await self.panes.snapshot(pane.pane_id, history=True)).text

        await until(seen)

    async def received(self, file, expected):
        """Exactly these bytes, and then nothing but the mark that follows them."""
        await until(lambda: len(file.read_bytes()) >= len(expected))
        assert file.read_bytes() == expected


@pytest.fixture
async def rig():
    home = Path(tempfile.mkdtemp(prefix="sm-"))
    settings = ServerSettings(home / "s", ENVIRONMENT, umask=0o022)
    restarts, servers = [], []
    client = TmuxClient(settings, on_restart=restarts.append)
    try:
        async with client:
            yield Rig(home, settings, client, restarts)
    finally:
        servers = {identity.pid for identity in [client.identity, *restarts] if identity}
        for pid in servers:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(home)
