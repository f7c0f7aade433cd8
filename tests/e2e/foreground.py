"""A person who runs `sm run` in a terminal of their own, and what that terminal has got."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import re
import shlex
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

from tests.e2e.rig import PATIENCE, Rig

TAKES_TERMINAL = (
    "import fcntl,os,sys,termios; os.setsid(); fcntl.ioctl(0,termios.TIOCSCTTY,0); os.execv(sys.argv[1],sys.argv[1:])"
)
"""A shell of a new terminal does this: the terminal becomes the controlling one, and we its foreground group."""


@dataclass
class Terminal:
    rig: Rig
    arguments: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    columns: int = 120
    master: int = -1
    slave: int = -1
    got: bytearray = field(default_factory=bytearray)
    process: subprocess.Popen[bytes] = field(init=False)
    before: list[Any] = field(init=False)

    def __enter__(self) -> Self:
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, self.columns, 0, 0))
        self.before = termios.tcgetattr(self.slave)
        own = {"SM_HOME": str(self.rig.home.root), "SM_CONFIG": str(self.rig.config_file)}
        env = {**self.rig.env, **own, "TERM": "xterm-256color", **self.env}
        self.process = subprocess.Popen(
            [sys.executable, "-c", TAKES_TERMINAL, *self.program()],
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            env=env,
            cwd=self.rig.project,
        )
        threading.Thread(target=self._drain, daemon=True).start()
        return self

    def program(self) -> list[str]:
        """What the terminal is opened with."""
        return self.command

    @property
    def command(self) -> list[str]:
        assert self.rig.client is not None
        run = ["-m", "sm", "run", "--client", self.rig.client, *self.options, "--", *self.arguments]
        return [sys.executable, *run]

    def _drain(self) -> None:
        with suppress(OSError):
            while True:
                self.got.extend(os.read(self.master, 1 << 16))

    def __exit__(self, *problem: object) -> None:
        if problem[0] is not None:
            sys.stderr.write(f"--- terminal\n{bytes(self.got[-3000:])!r}\n")
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.slave)
        os.close(self.master)

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    async def quit(self) -> int:
        """Press Ctrl-C until the client is gone: one alone only makes it ask."""
        while self.process.poll() is None:
            self.type("\x03")
            await asyncio.sleep(0.15)
        return await self.ended()

    async def ended(self) -> int:
        return await asyncio.wait_for(asyncio.to_thread(self.process.wait), PATIENCE)

    async def session(self, besides: str = "") -> str:
        """The id of the session, once its client is known to the server."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            found = [view for view in await self.rig.ask("GET", "/sessions") if view["foreground"] and view["pid"]]
            ours = [str(view["id"]) for view in found if view["id"] != besides]
            if ours:
                return ours[0]
            await asyncio.sleep(0.05)
        raise AssertionError(f"no session: {self.plain}")

    @property
    def modes(self) -> list[Any]:
        return termios.tcgetattr(self.slave)

    @property
    def plain(self) -> str:
        """What came, without colours, with jumps of the cursor as blanks."""
        text = self.got.decode("utf-8", "replace")
        return _plain(text)

    def plain_since(self, byte: int) -> str:
        return _plain(self.got[byte:].decode("utf-8", "replace"))

    def resize(self, columns: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))

    def erased(self, words: str) -> bool:
        """Whether the line with these words was taken back from the terminal right after it came."""
        _, _, after = self.got.decode("utf-8", "replace").partition(words)
        return re.match(r"\x1b\[22m\s+(\x1b\[[0-9?]*[mhl])*\r\x1b\[3A\x1b\[J", after) is not None

    @property
    def switched_off(self) -> bool:
        """Whether every mode that a client had switched on was switched off again."""
        text = self.got.decode("utf-8", "replace")
        return all(text.rfind(f"\x1b[?{mode}l") > text.rfind(f"\x1b[?{mode}h") for mode in MODES)


def _plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\s", " ", re.sub(r"\x1b\[[0-9;]*m", "", text))


class Shell(Terminal):
    """The same as a job of an interactive shell, which tells its exit code."""

    def program(self) -> list[str]:
        return ["/bin/bash", "--norc", "--noprofile", "-i"]

    def __enter__(self) -> Self:
        super().__enter__()
        self.type(f"{shlex.join(self.command)}; echo code=$?\r")
        return self

    async def leave(self) -> None:
        """Press Ctrl-C until the client is gone."""
        deadline = time.monotonic() + PATIENCE
        while not re.search(r"code=\d", self.plain.rpartition("code=$?")[2]):
            assert time.monotonic() < deadline, "the client is still there"
            self.type("\x03")
            await asyncio.sleep(0.15)


BY_KEYS = '[claude]\ndriver = "keys"\n'
"""No plugin in the client: it is ended and started again."""
MODES = ("1000", "1002", "1003", "1004", "1006", "1049", "2004", "2031")


async def answered(rig: Rig, session: str) -> dict[str, Any]:
    """Wait until the first prompt has its answer: before it is submitted the client is idle as well."""
    await rig.wait_event(session, "TurnEnded")
    return await rig.wait_status(session, "idle")
