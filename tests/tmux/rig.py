"""A private tmux server with programs in it, as the tests of this folder use it."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

from sm.tmux.client import TmuxClient, TmuxServerSettings
from sm.tmux.panes import NewPane, PaneOperations, Program

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
    while not (  # what is waited for happens in other processes
        result := await found if asyncio.iscoroutine(found := holds()) else found
    ):
        await asyncio.sleep(0.01)
    return result


@dataclass
class Rig:
    home: Path
    settings: TmuxServerSettings
    client: TmuxClient
    restarts: list = field(default_factory=list)

    @property
    def panes(self) -> PaneOperations:
        return PaneOperations(self.client)

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
        log = self.home / f"{session_id}.log"
        await until(lambda: b"READY" in log.read_bytes())
        return pane, received

    async def shows(self, pane, text):
        async def seen():
            return text in (await self.panes.snapshot(pane.pane_id, history=True)).text

        await until(seen)

    async def received(self, recorder, expected):
        """Exactly these bytes: `|` is typed behind them, so that anything in between would show."""
        pane, received = recorder
        await self.client.command("send-keys", "-t", pane.pane_id, "-l", "|")
        await until(lambda: received.read_bytes().endswith(b"|"))
        assert received.read_bytes() == expected + b"|"
