"""A person's own terminal: the client as they start it, on a pseudo-terminal, without `sm`."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self

from tests.cli import warm
from tests.e2e.people import client_state
from tests.e2e.rig import PATIENCE, REAL_CLIENT, Rig

ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])|─+")


def sm(rig: Rig, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command of the person, in the environment that their client has."""
    env = {**rig.server_env(), **rig.env, "HOME": str(rig.root / "home")}
    return warm.shared().completed(warm.request_for(arguments, env, rig.project), "")


@dataclass
class Terminal:
    rig: Rig
    arguments: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    master: int = -1
    seen: bytearray = field(default_factory=bytearray)
    process: subprocess.Popen[bytes] = field(init=False)

    async def __aenter__(self) -> Self:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        command = [str(REAL_CLIENT), "--model", self.rig.model_name, *self.arguments]
        env = {"TERM": "xterm-256color", **self.rig.env, **self.env}
        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, env=env, cwd=self.rig.project, start_new_session=True
        )
        os.close(slave)
        threading.Thread(target=self._drain, daemon=True).start()
        await self.idle()
        return self

    def _drain(self) -> None:
        with suppress(OSError):
            while piece := os.read(self.master, 1 << 16):
                self.seen += piece

    @property
    def text(self) -> str:
        """What has been written to the terminal, without its escape sequences: good enough to look for words."""
        return ESCAPES.sub(" ", bytes(self.seen).decode("utf-8", "replace"))

    async def idle(self) -> None:
        await self.rig.until(lambda: client_state(self.rig).get("status") == "idle", "the person's client is idle")

    async def submit(self, text: str) -> None:
        """Type a line and send it; sent again where the client took the key for part of a paste."""
        os.write(self.master, text.encode())
        await asyncio.sleep(0.3)
        os.write(self.master, b"\r")

    async def shows(self, text: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while text not in self.text:
            assert time.monotonic() < deadline, f"never {text!r} in {self.text[-3000:]}"
            await asyncio.sleep(0.05)

    async def __aexit__(self, *problem: object) -> None:
        if problem[0] is not None:
            sys.stderr.write(f"--- terminal\n{self.text[-3000:]}\n")
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                await asyncio.to_thread(self.process.wait, 5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        os.close(self.master)
