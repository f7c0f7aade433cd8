"""HTTP client of the command line: one request for each call, errors as `SmError`, imports no HTTP library."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

from sm import hook
from sm.core.errors import Refused, SmError, error

TIMEOUT_S = 30.0
SUCCESS_STATUSES = range(200, 300)
UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class UnavailableError(SmError):
    """No server answers."""

    def __init__(self, problem: str = "") -> None:
        advice = tool_hint() or "sm server start"
        hint = advice if not problem else f"{advice} ({problem})"
        super().__init__(Refused("unavailable", "Error: Session manager unavailable", hint))


@dataclass(frozen=True, slots=True)
class Client:
    address: str
    """`http://HOST:PORT`, or `unix:PATH`."""
    token: str

    def call(self, method: str, path: str, body: object = None, *, timeout: float = TIMEOUT_S) -> Any:  # noqa: ANN401  # JSON
        payload = b"" if body is None else json.dumps(body, ensure_ascii=False).encode()
        request = hook.request_bytes(method, path, self.token, payload, f"X-SM-Pid: {os.getpid()}\r\n")
        try:
            status, content = hook.exchange(self.address, request, timeout)
        except (OSError, ValueError) as problem:
            raise UnavailableError(str(problem)) from problem
        return answered(self.address, status, content)


def answered(address: str, status: int, content: bytes) -> Any:  # noqa: ANN401  # JSON
    """Decode an answer; SmError if it refuses, or is not from an sm server."""
    try:
        answer = json.loads(content) if content else None
    except (ValueError, RecursionError):
        raise error("foreign_server", f"Something else answers at {address}", "sm doctor") from None
    if status not in SUCCESS_STATUSES:
        raise SmError(_refusal(status, answer))
    return answer


def _refusal(status: int, answer: object) -> Refused:
    if isinstance(answer, dict) and "code" in answer:
        return Refused(str(answer["code"]), str(answer.get("error", "")), str(answer.get("hint", "")))
    return Refused("foreign_server", f"Unexpected answer ({status})", "sm doctor")


def session_path(session: str, suffix: str = "") -> str:
    """Return the route of a session, whatever its name."""
    if not session or "/" in session:  # no name, and would be another route
        raise error("not_found", f"Session {session!r} not found", "sm list shows the sessions")
    return f"/sessions/{quoted(session)}{suffix}"


def message_path(message: str) -> str:
    if not message or "/" in message:
        raise error("not_found", f"Message {message!r} not found", "sm send prints the id of what it sent")
    return f"/messages/{quoted(message)}"


def ask_path(ask: str) -> str:
    if not ask or "/" in ask:
        raise error("not_found", f"Ask {ask!r} not found", "sm asks lists them")
    return f"/asks/{quoted(ask)}"


def quoted(text: str) -> str:
    """Quote text as one part of a route (`urllib.parse.quote` costs 5 ms)."""
    return "".join(chr(c) if c in UNRESERVED else f"%{c:02X}" for c in text.encode("utf-8", "replace"))


def tool_hint() -> str:
    """Return what an agent is to use instead, where a sandbox keeps the commands of its shell from every server.

    The variables are Codex's: its sandbox on Linux sets the first one, and each of its shells the last one (0.171.0).
    The second one is in its program, and was not seen set. A shell has the session's token unless a filter of the
    user's configuration leaves it out.
    """
    is_sandboxed = any(os.environ.get(name) for name in ("CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_SANDBOX"))
    without_token = "CODEX_THREAD_ID" in os.environ and not os.environ.get("SM_SESSION_TOKEN")
    if not inside_session() or not (is_sandboxed or without_token):
        return ""
    return "this shell cannot reach sm: use the tool sm of the MCP server sm (mcp__sm), or its tool handoff"


def inside_session() -> str | None:
    """Return the id of the session this process runs in."""
    return os.environ.get("CLAUDE_SESSION_MANAGER_ID") or None


def session_client() -> Client:
    """Return the client of a command inside a session: with its own token, never the user's."""
    url, token = os.environ.get("SM_URL"), os.environ.get("SM_SESSION_TOKEN")
    if not url or not token:
        raise UnavailableError("SM_URL or SM_SESSION_TOKEN is not set")
    return Client(url, token)
