"""What a person does at a session's terminal, and what they see there."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import subprocess
import termios
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

from sm.paths import TMUX_SOCKET
from sm.providers.claude.keys.screen import Box, read_box
from sm.testing.request import Request
from sm.testing.scenario import Call, Say, Scenario, Step, Turn, scenario
from sm.tmux.names import socket_path
from tests.e2e.rig import Rig

DOCUMENT = "# Handoff\nThe goal is G.\nNext step: N.\n"
WROTE = Call("Write", file_path=".sm/handoff.md", content=DOCUMENT)
HANDED_OFF = Call("Bash", command="sm handoff .sm/handoff.md")
AWOKE = "continue from where you left off"
GOES_ON = Turn(AWOKE, steps=[Say("Going on.")])
SLOW = Say("Handed off.", delay=2.0)
"""Leaves a person time to do something between `sm handoff` and the turn's end."""


def hands_off(*steps: Step, turns: tuple[Turn, ...] = ()) -> Scenario:
    """An agent that writes its document, hands off, goes on with `steps` and continues when it is woken."""
    last = steps or (Say("Handed off."),)
    return scenario(Turn("hand off", steps=[WROTE, HANDED_OFF, *last]), GOES_ON, *turns, otherwise=Say("ok"))


def woken(request: Request) -> bool:
    return AWOKE in request.user_text


async def wake_request(rig: Rig, within: float = 30.0) -> Request:
    """The first request of the new context: it must hold the wake prompt alone, and the document."""
    request = await rig.model.wait_for(woken, within=within)
    prompt, _, background = request.user_text.strip().partition("\n")
    assert prompt.startswith("Read ")
    assert prompt.endswith(f" and {AWOKE}.")
    assert not background or background.startswith("Still running in the background: ")
    assert DOCUMENT.strip() in request.all_text
    return request


def person_settings(rig: Rig, **settings: object) -> None:
    """Write the person's own client settings; the rig's are the manual permission mode and nothing else."""
    (rig.root / "home" / ".claude" / "settings.json").write_text(json.dumps(settings))


def look(rig: Rig, session: str) -> Box | None:
    pane = rig.pane(session)
    x, y = map(int, rig.tmux("display-message", "-p", "-t", pane, "#{cursor_x} #{cursor_y}").split())
    lines = rig.tmux("capture-pane", "-p", "-e", "-t", pane).split("\n")[:-1]
    return read_box(tuple(lines), (x, y))


def box_text(rig: Rig, session: str) -> str | None:
    box = look(rig, session)
    return None if box is None else box.text


async def box_shows(rig: Rig, session: str, text: str) -> None:
    await rig.until(lambda: box_text(rig, session) == text, f"{text!r} in the box")


def paste(rig: Rig, session: str, text: str) -> None:
    rig.tmux("set-buffer", "-b", "person", "--", text)
    rig.tmux("paste-buffer", "-p", "-d", "-b", "person", "-t", rig.pane(session))


async def submit(rig: Rig, session: str, text: str) -> None:
    rig.type(session, text)
    await box_shows(rig, session, text)
    rig.press(session, "Enter")


def client_state(rig: Rig) -> dict[str, Any]:
    files = list((rig.root / "home" / ".claude" / "sessions").glob("*.json"))
    with suppress(OSError, ValueError):
        return dict(json.loads(files[0].read_text())) if files else {}
    return {}


CODEX_WORDS = {"idle": "idle", "busy": "working", "waiting": "waiting"}


async def client_is(rig: Rig, status: str) -> None:
    """The client itself says so; what Codex says comes by its connection, and shows in its session."""
    if rig.codex:
        wanted = CODEX_WORDS[status]
        await rig.until(lambda: wanted in [view["status"] for view in rig.call("GET", "/sessions")], f"{wanted} shown")
        return
    await rig.until(lambda: client_state(rig).get("status") == status, f"the client says {status}: {client_state(rig)}")


async def held(rig: Rig, session: str, *, because: str) -> dict[str, Any]:
    """Wait until the rotation says that it waits for that."""
    return await rig.wait_view(session, lambda view: because in str(view["handoff"].get("note")), f"held by {because}")


@dataclass
class Person:
    """A second terminal, attached to a session's pane as `sm attach` does it."""

    rig: Rig
    session: str
    master: int = -1
    process: subprocess.Popen[bytes] = field(init=False)

    def __enter__(self) -> Self:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        socket = str(socket_path(self.rig.home.root, TMUX_SOCKET))
        command = ["tmux", "-S", socket, "attach-session", "-t", self.rig.pane(self.session)]
        env = {"TERM": "xterm-256color", "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, env=env, start_new_session=True
        )
        os.close(slave)
        threading.Thread(target=self._drain, daemon=True).start()
        return self

    def _drain(self) -> None:
        with suppress(OSError):
            while os.read(self.master, 1 << 16):
                pass

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.master)
