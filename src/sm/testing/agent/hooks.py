"""Runs hooks: which of the settings' hooks an event matches, how they are run, and what their answers mean.

Matching hooks run in parallel. A hook that fails has no effect; only exit 2 and a JSON answer have one.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from sm.testing.agent.loop import Cancellation

Json: TypeAlias = dict[str, Any]

WITHOUT_HTTP = frozenset({"SessionStart", "Setup"})
"""http hooks do not fire for these (2.1.328)."""
PLAIN_OUTPUT = frozenset({"SessionStart", "UserPromptSubmit"})
"""Events whose command hooks add plain output to the context."""
VARIABLE = re.compile(r"\$(?:\{([A-Z][A-Z0-9_]*)\}|([A-Z][A-Z0-9_]*))")
DEFAULT_TIMEOUT_S = 60.0
BLOCKING_EXIT_CODE = 2
"""A command hook blocks by this exit code."""


@dataclass(slots=True)
class HookOutcome:
    """The answers of all hooks of one event together."""

    contexts: list[str] = field(default_factory=list)
    blocks: list[str] = field(default_factory=list)
    ends_turn: bool = False

    def add(self, event: str, answer: Json) -> None:
        specific = answer.get("hookSpecificOutput") or {}
        context = specific.get("additionalContext")
        if isinstance(context, str) and context:
            self.contexts.append(f"{event} hook additional context: {context}")
        if answer.get("decision") == "block":
            self.blocks.append(str(answer.get("reason", "")))
        self.ends_turn = self.ends_turn or answer.get("continue") is False


@dataclass(slots=True)
class HookRunner:
    groups: Json
    """The settings' `hooks`."""
    environment: Callable[[], dict[str, str]]
    directory: str
    rewake: Callable[[str], None]
    """Called with the output of an asyncRewake hook that ended with exit 2."""

    def fire(
        self, payload: Json, *, subject: str = "", cancel: Cancellation | None = None, timeout: float = 0
    ) -> HookOutcome:
        """Run an event's hooks; return their answers once all have ended, or after `timeout` seconds (0: none)."""
        event = payload["hook_event_name"]
        outcome = HookOutcome()
        encoded = json.dumps(payload).encode()
        jobs = [
            threading.Thread(target=self._run, args=(hook, event, subject, encoded, outcome), daemon=True)
            for hook in self.matching(event, subject)
        ]
        for job in jobs:
            job.start()
        _join(jobs, cancel, timeout)
        return outcome

    def matching(self, event: str, subject: str) -> list[Json]:
        groups = [group for group in self.groups.get(event, []) if _matches(group.get("matcher"), subject)]
        return [hook for group in groups for hook in group.get("hooks", ()) if _usable(hook, event)]

    def _run(self, hook: Json, event: str, subject: str, payload: bytes, outcome: HookOutcome) -> None:
        label = f"{event}:{subject}" if subject else event
        if hook["type"] == "http":
            outcome.add(label, _posted(hook, payload, self.environment()))
        elif hook.get("asyncRewake"):
            threading.Thread(target=self._sleeper, args=(hook, payload), daemon=True).start()
        else:
            code, out, err = self._command(hook, payload)
            _note_command(outcome, label, event, (code, out, err))

    def _sleeper(self, hook: Json, payload: bytes) -> None:
        code, out, err = self._command(hook, payload)
        if code == BLOCKING_EXIT_CODE:
            self.rewake(err or out)

    def _command(self, hook: Json, payload: bytes) -> tuple[int, str, str]:
        arguments = hook.get("args")
        command = [hook["command"], *arguments] if arguments is not None else ["/bin/sh", "-c", hook["command"]]
        try:
            process = subprocess.Popen(
                command,
                cwd=self.directory,
                env=self.environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        except OSError:
            return 127, "", ""
        with process:
            try:
                out, err = process.communicate(payload + b"\n", float(hook.get("timeout", DEFAULT_TIMEOUT_S)))
            except subprocess.TimeoutExpired:
                process.kill()
                return -1, "", ""
        return process.returncode, out.decode(errors="replace").strip(), err.decode(errors="replace").strip()


def _join(jobs: list[threading.Thread], cancel: Cancellation | None, timeout: float) -> None:
    if cancel is None:
        for job in jobs:
            job.join(timeout or None)
        return
    over = threading.Event()

    def watch() -> None:
        for job in jobs:
            job.join()
        over.set()

    with cancel.on_cancel(over.set):
        if jobs:
            threading.Thread(target=watch, daemon=True).start()
            over.wait()


def _usable(hook: Json, event: str) -> bool:
    return hook.get("type") == "command" or (hook.get("type") == "http" and event not in WITHOUT_HTTP)


def _matches(matcher: str | None, subject: str) -> bool:
    return matcher in {None, "", "*"} or re.fullmatch(str(matcher), subject) is not None


def _note_command(outcome: HookOutcome, label: str, event: str, ended: tuple[int, str, str]) -> None:
    code, out, err = ended
    if code == BLOCKING_EXIT_CODE:
        outcome.blocks.append(err)
    elif code == 0 and out.startswith("{"):
        outcome.add(label, _decoded(out.encode()))
    elif code == 0 and out and event in PLAIN_OUTPUT:
        outcome.contexts.append(f"{label} hook success: {out}")


def _decoded(body: bytes) -> Json:
    try:
        answer = json.loads(body)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}


def _posted(hook: Json, payload: bytes, environment: Mapping[str, str]) -> Json:
    allowed = set(hook.get("allowedEnvVars") or ())

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        return environment.get(name, "") if name in allowed else ""

    headers = {name: VARIABLE.sub(value, text) for name, text in (hook.get("headers") or {}).items()}
    with suppress(OSError, ValueError):  # no server, no answer in time: the turn continues (2.1.328)
        status, body = post(hook["url"], payload, headers, float(hook.get("timeout", DEFAULT_TIMEOUT_S)))
        return _decoded(body) if status < 300 else {}  # noqa: PLR2004  # HTTP's successes
    return {}


def post(
    url: str, body: bytes, headers: Mapping[str, str], timeout: float | None, cancel: Cancellation | None = None
) -> tuple[int, bytes]:
    """POST JSON to an http URL; return status and body. OSError or ValueError if it fails, InterruptedTurn on cancel.

    Written by hand, since http.client alone would cost an agent 3 MB.
    """
    cancel = cancel or Cancellation()
    host, _, path = url.removeprefix("http://").partition("/")
    name, _, port = host.partition(":")
    sent = {"Host": host, "Content-Type": "application/json", "Content-Length": str(len(body)), "Connection": "close"}
    head = "".join(f"{key}: {text}\r\n" for key, text in {**sent, **headers}.items())
    connection = socket.create_connection((name, int(port or 80)), timeout)
    with connection, cancel.on_cancel(partial(_hang_up, connection)):
        connection.sendall(f"POST /{path} HTTP/1.1\r\n{head}\r\n".encode() + body)
        answer = b""
        while not _complete(answer) and (piece := connection.recv(1 << 16)):
            answer += piece
    top, _, content = answer.partition(b"\r\n\r\n")
    return int(top.split(b" ", 2)[1]), content


def _hang_up(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _complete(answer: bytes) -> bool:
    head, end, body = answer.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
    return bool(end and length and len(body) >= int(length[1]))


def child_environment(session: str, directory: str) -> dict[str, str]:
    """Return the environment of hooks and of the Bash tool."""
    return {
        **os.environ,
        "CLAUDE_PROJECT_DIR": directory,
        "CLAUDE_CODE_SESSION_ID": session,
        "CLAUDE_PID": str(os.getpid()),
        "CLAUDECODE": "1",
        "CLAUDE_CODE_ENTRYPOINT": "cli",
        "CLAUDE_CODE_CHILD_SESSION": "1",
    }
