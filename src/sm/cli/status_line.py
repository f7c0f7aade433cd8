"""`sm statusline`: what the client runs after every reply to fill its status line.

Reads the client's status on standard input, tells the server of the window and gets the session back in the same
request, and prints one line below what the person's own command prints. Without a server the client's own numbers do.
No command parser and nothing that costs: the client may run it several times a second.
"""

from __future__ import annotations

import json
import os

from sm import hook
from sm.cli.descriptions import plain
from sm.cli.format import bar, show, tokens

TYPE_CHECKING = False  # `typing` costs 3 ms
if TYPE_CHECKING:
    import subprocess
    from typing import Any

PATIENCE = 0.3
"""Seconds for the server."""
STEP = 0.05
"""Seconds between two looks whether the user's own command has ended."""
PERSONS_PATIENCE = 5.0
"""Seconds for the person's own command."""
RESERVE = 33_000
"""Tokens below the window at which the client compacts; `providers.claude.windows` tells why."""
MAX_COUNT = 1 << 53
"""A larger number is no count of tokens."""
COLOURS = {"warning": "33", "critical": "31"}
HTTP_OK = 200


AGENTS_SHELL = "_agent"
"""How AI_AGENT ends in a command of the client's agent; in its status line it ends with `_harness` (2.1.328)."""


def main(arguments: list[str]) -> int:
    options = dict(zip(arguments[::2], arguments[1::2], strict=False))
    if options and called_by_agent():
        return refused(next(iter(options)))
    payload = given()
    own = started(options["--then"]) if "--then" in options else None
    status = decoded(payload)
    line = shown(status, asked(payload, options))
    lines = [*(finished(own, payload) if own else []), line]
    show("\n".join(lines))
    return 0


def called_by_agent() -> bool:
    inside = bool(os.environ.get("CLAUDE_SESSION_MANAGER_ID"))
    return inside and os.environ.get("AI_AGENT", "").endswith(AGENTS_SHELL)


def refused(option: str) -> int:
    from sm.cli.format import fail  # noqa: PLC0415
    from sm.cli.options import not_for_agents  # noqa: PLC0415  # click, which no status line waits for

    return fail(not_for_agents(option).refused, as_json=False)


def given() -> bytes:
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


# --- the person's own command ---------------------------------------------------------------------------------------


def started(command: str) -> subprocess.Popen[bytes] | None:
    """It runs while the server is asked, through a shell as the client would run it, and gets the same input."""
    import subprocess  # noqa: PLC0415  # 10 ms that a line of ours alone does without

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
    """What it prints until it ends; a process that it leaves behind may keep the pipe open for ever."""
    import subprocess  # noqa: PLC0415  # is there already

    given: bytes | None = payload
    ended = False
    for _ in range(round(PERSONS_PATIENCE / STEP)):
        try:
            return process.communicate(given, STEP)[0]
        except subprocess.TimeoutExpired as late:
            given = None
            if ended:
                return late.output or b""
            ended = process.poll() is not None  # what it wrote last is read in one more step
    process.kill()
    return b""


def finished(process: subprocess.Popen[bytes], payload: bytes) -> list[str]:
    output = output_of(process, payload)
    return output.decode("utf-8", "replace").rstrip("\n").split("\n") if output.strip() else []


# --- the server -----------------------------------------------------------------------------------------------------


def asked(payload: bytes, options: dict[str, str]) -> dict[str, Any] | None:
    """The session that this client is, None if nobody knows it."""
    found = reach(options)
    if found is None or not payload:
        return None
    address, token = found
    try:
        request = hook.request_bytes("POST", "/status/claude", token, payload)
        status, content = hook.exchange(address, request, PATIENCE)
        view = json.loads(content)
    except (OSError, ValueError, RecursionError):
        return None
    return view if status == HTTP_OK and isinstance(view, dict) else None


def reach(options: dict[str, str]) -> tuple[str, str] | None:
    """Address and token: the session's own inside one, else those that `sm setup` named, else by SM_HOME."""
    if os.environ.get("SM_SESSION_TOKEN"):
        return os.environ.get("SM_URL", ""), os.environ["SM_SESSION_TOKEN"]
    if "--server" not in options:
        return announced()
    try:
        descriptor = os.open(options.get("--token", ""), os.O_RDONLY | os.O_CLOEXEC)
        return options["--server"], os.read(descriptor, 4096).decode("ascii").strip()
    except (OSError, ValueError):
        return None


def announced() -> tuple[str, str] | None:
    from sm.core.errors import SmError  # noqa: PLC0415  # only where the person wrote the command themselves
    from sm.lock import running_server  # noqa: PLC0415
    from sm.paths import locate_home, read_token  # noqa: PLC0415

    try:
        record = running_server(locate_home(os.environ))
        token = read_token(locate_home(os.environ)) if record else None
    except (SmError, OSError):
        return None
    return (record.url, token) if record and token else None


# --- the line -------------------------------------------------------------------------------------------------------


def shown(status: dict[str, Any], view: dict[str, Any] | None) -> str:
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
    """From the client's own numbers; null and 0 are unknown."""
    told = status.get("context_window")
    window = told.get("context_window_size") if isinstance(told, dict) else None
    used = told.get("total_input_tokens") if isinstance(told, dict) else None
    if not isinstance(used, int) or not 0 < used <= MAX_COUNT:
        return {}
    if not isinstance(window, int) or not RESERVE < window <= MAX_COUNT:
        return {"tokens": used}
    return {"tokens": used, "usable": window - RESERVE, "percent": 100 * used / (window - RESERVE)}


def coloured(line: str, code: str | None) -> str:
    """The client shows colours, though standard output is a pipe."""
    return f"\x1b[{code}m{line}\x1b[0m" if code and not os.environ.get("NO_COLOR") else line
