"""What a person does at a session's terminal, and what they see there."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import pty
import shlex
import struct
import subprocess
import termios
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

from sm.paths import TMUX_SOCKET
from sm.providers.claude.keys.screen import Box, read_box
from sm.testing.request import Request, ToolResult
from sm.testing.scenario import Call, Say, Scenario, Step, TooLong, Turn, scenario
from sm.tmux.names import socket_path
from tests.e2e import rig as rigs
from tests.e2e.rig import Rig

DOCUMENT = "# Handoff\nThe goal is G.\nNext step: N.\n"
WROTE = Call("Write", file_path=".sm/handoff.md", content=DOCUMENT)
HANDED_OFF = Call("Bash", command="sm handoff .sm/handoff.md")
AWOKE = "continue from where you left off"
GOES_ON = Turn(AWOKE, steps=[Say("Going on.")])
SLOW = Say("Handed off.", delay=2.0)
"""Leaves a person time to do something between `sm handoff` and the turn's end."""


FULL = {"claude": 167_000, "codex": 244_800}
"""Tokens at which the client compacts, in its usual window."""


def client_of_test() -> str:
    return "codex" if rigs.default_provider().startswith("codex") else "claude"


def in_terminal() -> bool:
    return rigs.default_provider() == "codex-tui"


def sized(tokens: int) -> int:
    """Return the size of a context that is as full in the test's client as one of so many tokens in Claude Code."""
    return tokens * FULL[client_of_test()] // FULL["claude"]


DIALOG = {"claude": "Do you want to proceed?", "codex": "Would you like to run the following command?"}
SHELL = {"claude": "Bash", "codex": "exec_command"}


def dialog() -> str:
    """Return what the client's dialog asks before it runs a command."""
    return DIALOG[client_of_test()]


def shell() -> str:
    """Return the name of the client's tool that runs a command; hooks of Codex give it the name of Claude Code's."""
    return "Bash" if in_terminal() else SHELL[client_of_test()]


def shelled(command: str) -> str:
    """Return a command as the client asks for it: Codex's app-server names the shell that is to run it."""
    return command if client_of_test() == "claude" or in_terminal() else f"/bin/bash -lc {shlex.quote(command)}"


def unsandboxed() -> tuple[str, ...]:
    """Return the arguments with which the client's agent runs commands as its user would, and asks nobody."""
    return () if client_of_test() == "claude" else ("--yolo",)


def question_tool() -> tuple[str, ...]:
    """Return the arguments with which the client's agent has a tool to ask a question in every mode."""
    return () if client_of_test() == "claude" else ("--enable", "default_mode_request_user_input")


def refused_for_length(*after: Step) -> tuple[Step, ...]:
    """Return the steps after which the client goes on with no prompt, the context is so full."""
    if client_of_test() == "codex":
        return (TooLong(),)
    return Call("Bash", command="sm context").but(context=199_000), *after


def reason_read(result: ToolResult, request: Request) -> str:
    """Return where an agent reads why its call was denied: the answer that Codex takes has no room for it."""
    return result.text if client_of_test() == "claude" else request.context_text


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


def read_at_wake(view: dict[str, Any], path: str) -> str:
    """Return the file that a woken agent is told to read: the tool of Codex's agent hands off the text of its file."""
    return str(view["handoff"]["copy"] if view["provider"].startswith("codex") else path)


def person_settings(rig: Rig, **settings: object) -> None:
    """Write the person's own client settings; the rig's are the manual permission mode and nothing else."""
    (rig.root / "home" / ".claude" / "settings.json").write_text(json.dumps(settings))


def look(rig: Rig, session: str) -> Box | None:
    pane = rig.pane(session)
    x, y = map(int, rig.tmux("display-message", "-p", "-t", pane, "#{cursor_x} #{cursor_y}").split())
    lines = rig.tmux("capture-pane", "-p", "-e", "-t", pane).split("\n")[:-1]
    return read_box(tuple(lines), (x, y))


CODEX_SIGN, CODEX_GHOST = "\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} ", "Ask Codex to do anything"


def codex_box_text(screen: str) -> str | None:
    """Return what is in Codex's box: from its lowest sign on, up to a line without indent or an empty one (0.171.0)."""
    lines = screen.split("\n")
    top = max((number for number, line in enumerate(lines) if f"{line} ".startswith(CODEX_SIGN)), default=None)
    if top is None:
        return None
    more = itertools.takewhile(lambda line: line.startswith("  ") and line.strip(), lines[top + 1 :])
    text = "\n".join(line[2:].rstrip() for line in (lines[top], *more))
    return "" if text == CODEX_GHOST else text


def box_text(rig: Rig, session: str) -> str | None:
    if rig.codex:
        return codex_box_text(rig.screen(session))
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
