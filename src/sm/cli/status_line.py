"""`sm statusline`: run by the client after every reply to fill its status line.

Reads the client's status on standard input, reports the window to the server and gets the session in the same request,
and prints one line below the output of the user's own command. Without a server it shows the client's own numbers. It
uses no command parser and no slow import: the client may run it several times a second.
"""

from __future__ import annotations

import json
import os

from sm import hook
from sm.cli.format import bar, show, tokens
from sm.plain_text import plain

TYPE_CHECKING = False  # `typing` costs 3 ms
if TYPE_CHECKING:
    import subprocess
    from typing import Any

SERVER_TIMEOUT_S = 0.3
"""For the server."""
POLL_INTERVAL_S = 0.05
"""Between two checks whether the user's own command has ended."""
COMMAND_TIMEOUT_S = 5.0
"""For the user's own command."""
COMPACT_RESERVE_TOKENS = 33_000
"""The client compacts that far below the window; why: `providers.claude.windows`."""
MAX_COUNT = 1 << 53
"""A larger number is no count of tokens."""
COLOURS = {"warning": "33", "critical": "31"}
HTTP_OK = 200


AGENT_SHELL_SUFFIX = "_agent"
"""The end of AI_AGENT in a command of the client's agent; in its status line it ends with `_harness` (2.1.328)."""


def main(arguments: list[str]) -> int:
    options = dict(zip(arguments[::2], arguments[1::2], strict=False))
    if options and called_by_agent():
        return refused(next(iter(options)))
    payload = read_stdin()
    own = start_command(options["--then"]) if "--then" in options else None
    status = decoded(payload)
    line = status_text(status, session_view(payload, options))
    lines = [*(command_lines(own, payload) if own else []), line]
    show("\n".join(lines))
    return 0


def called_by_agent() -> bool:
    inside = bool(os.environ.get("CLAUDE_SESSION_MANAGER_ID"))
    return inside and os.environ.get("AI_AGENT", "").endswith(AGENT_SHELL_SUFFIX)


def refused(option: str) -> int:
    from sm.cli.format import fail  # noqa: PLC0415
    from sm.cli.options import not_for_agents  # noqa: PLC0415  # imports click, for an error only

    return fail(not_for_agents(option).refused, as_json=False)


def read_stdin() -> bytes:
    try:
        return hook.read_payload(0)
    except OSError:  # started with standard input closed, or with a directory as it
        return b""


def decoded(payload: bytes) -> dict[str, Any]:
    try:
        status = json.loads(payload)
    except (ValueError, RecursionError):
        return {}
    return status if isinstance(status, dict) else {}


# --- the user's own command -----------------------------------------------------------------------------------------


def start_command(command: str) -> subprocess.Popen[bytes] | None:
    """Start the command through a shell, as the client would; it runs during the request to the server."""
    import subprocess  # noqa: PLC0415  # 10 ms, not needed for our own line alone

    try:
        return subprocess.Popen(
            ["/bin/sh", "-c", command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except OSError:
        return None


def output_of(process: subprocess.Popen[bytes], payload: bytes) -> bytes:
    """Return its output until it ends; a process that it leaves behind may keep the pipe open for ever."""
    import subprocess  # noqa: PLC0415  # imported already

    read_stdin: bytes | None = payload
    ended = False
    for _ in range(round(COMMAND_TIMEOUT_S / POLL_INTERVAL_S)):
        try:
            return process.communicate(read_stdin, POLL_INTERVAL_S)[0]
        except subprocess.TimeoutExpired as late:
            read_stdin = None
            if ended:
                return late.output or b""
            ended = process.poll() is not None  # one more step reads its last output
    process.kill()
    return b""


def command_lines(process: subprocess.Popen[bytes], payload: bytes) -> list[str]:
    output = output_of(process, payload)
    return output.decode("utf-8", "replace").rstrip("\n").split("\n") if output.strip() else []


# --- the server -----------------------------------------------------------------------------------------------------


def session_view(payload: bytes, options: dict[str, str]) -> dict[str, Any] | None:
    """Return the view of this client's session; None if the server does not know it."""
    found = address_and_token(options)
    if found is None or not payload:
        return None
    address, token = found
    try:
        request = hook.request_bytes("POST", "/status/claude", token, payload)
        status, content = hook.exchange(address, request, SERVER_TIMEOUT_S)
        view = json.loads(content)
    except (OSError, ValueError, RecursionError):
        return None
    return view if status == HTTP_OK and isinstance(view, dict) else None


def address_and_token(options: dict[str, str]) -> tuple[str, str] | None:
    """Return address and token: the session's own inside one, else those of `sm setup`, else by SM_HOME."""
    if os.environ.get("SM_SESSION_TOKEN"):
        return os.environ.get("SM_URL", ""), os.environ["SM_SESSION_TOKEN"]
    if os.environ.get("CLAUDE_SESSION_MANAGER_ID"):
        return None  # in a session, and its token was left out of this environment: never the user's instead
    if "--server" not in options:
        return from_home()
    try:
        descriptor = os.open(options.get("--token", ""), os.O_RDONLY | os.O_CLOEXEC)
        return options["--server"], os.read(descriptor, 4096).decode("ascii").strip()
    except (OSError, ValueError):
        return None


def from_home() -> tuple[str, str] | None:
    from sm.core.errors import SmError  # noqa: PLC0415  # only where the user wrote the command themselves
    from sm.lock import running_server  # noqa: PLC0415
    from sm.paths import locate_home, read_token  # noqa: PLC0415

    try:
        record = running_server(locate_home(os.environ))
        token = read_token(locate_home(os.environ)) if record else None
    except (SmError, OSError):
        return None
    return (record.url, token) if record and token else None


# --- the line -------------------------------------------------------------------------------------------------------


def status_text(status: dict[str, Any], view: dict[str, Any] | None) -> str:
    context = view["context"] if view and view["context"].get("tokens") is not None else own_context(status)
    percent = context.get("percent")
    size = context.get("projected") or context.get("tokens")
    parts = [project(status), bar(percent)]
    if size is None:
        parts.append("context unknown")
    else:
        share = f"{percent:.0f}% " if percent is not None else ""
        limit = f"/{tokens(context['usable'])}" if context.get("usable") else ""
        parts.append(f"{share}{tokens(size)}{limit}")
    phase = view["handoff"].get("phase") if view else None
    if phase is not None:
        parts.append(f"handoff {phase}")
    return coloured(" ".join(plain(part) for part in parts), COLOURS.get(context.get("level", "")))


def project(status: dict[str, Any]) -> str:
    workspace = status.get("workspace") if isinstance(status.get("workspace"), dict) else None
    place = (workspace or {}).get("project_dir") or status.get("cwd") or ""
    return os.path.basename(str(place).rstrip("/")) or "sm"  # noqa: PTH119  # pathlib costs 10 ms


def own_context(status: dict[str, Any]) -> dict[str, Any]:
    """Return a context from the client's own numbers; null and 0 are unknown."""
    told = status.get("context_window")
    window = told.get("context_window_size") if isinstance(told, dict) else None
    used = told.get("total_input_tokens") if isinstance(told, dict) else None
    if not isinstance(used, int) or not 0 < used <= MAX_COUNT:
        return {}
    if not isinstance(window, int) or not COMPACT_RESERVE_TOKENS < window <= MAX_COUNT:
        return {"tokens": used}
    return {
        "tokens": used,
        "usable": window - COMPACT_RESERVE_TOKENS,
        "percent": 100 * used / (window - COMPACT_RESERVE_TOKENS),
    }


def coloured(line: str, code: str | None) -> str:
    """Return the line in colour: the client shows colours, though standard output is a pipe."""
    return f"\x1b[{code}m{line}\x1b[0m" if code and not os.environ.get("NO_COLOR") else line
