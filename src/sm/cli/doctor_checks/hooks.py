"""Checks whether hooks may run, and whether a hook gets its answer."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from sm import hook
from sm.cli.doctor_checks.finding import FAIL, OK, WARN, Finding, ProgramResult, Surroundings, run_program, short_list
from sm.lock import running_server
from sm.paths import HOOK_SOCKET
from sm.providers.claude.launch import config_directory, hook_policy
from sm.providers.claude.user_settings import entries
from sm.tmux.names import SocketPathError, socket_path

PROBE = b'{"hook_event_name": "Notification", "session_id": "doctor", "message": "a probe of sm doctor"}'


def allowed(where: Surroundings) -> Finding:
    """Check the client's settings: the managed ones, the project's, the user's."""
    record = running_server(where.home)
    url = record.url if record else "http://127.0.0.1:1"
    policy = hook_policy(config_directory(where.environ), where.directory, url)
    if policy.disabled_by is not None:
        hint = "take disableAllHooks or allowManagedHooksOnly out of that file"
        return Finding(FAIL, f"all hooks are switched off by {policy.disabled_by}", hint)
    if policy.http_refused_by is not None:
        return Finding(OK, f"http hooks are refused by {policy.http_refused_by}; sm uses command hooks instead")
    return Finding(OK, "the client's settings allow them")


def answering(where: Surroundings) -> Finding:
    """Run hook.py as the client does: whatever happens, its answer is exactly one JSON object."""
    record = running_server(where.home)
    if record is None:
        return _run(where, {"SM_URL": "http://127.0.0.1:1"}, "no server runs")
    over_tcp = _run(where, {"SM_URL": record.url}, "")
    if over_tcp.level != OK:
        return over_tcp
    try:
        socket = socket_path(where.home.root, HOOK_SOCKET)
    except SocketPathError as problem:
        return Finding(FAIL, str(problem), "choose a shorter SM_HOME")
    over_unix = _run(where, {"SM_URL": record.url, "SM_SOCKET": f"unix:{socket}"}, "")
    return over_tcp if over_unix.level == OK else over_unix


def _run(where: Surroundings, reach: dict[str, str], absent: str) -> Finding:
    environ = {"PATH": where.environ.get("PATH", ""), "SM_SESSION_TOKEN": "doctor", **reach}
    began = time.monotonic()
    answer = run_program([sys.executable, "-I", "-S", hook.__file__, "claude"], environ, stdin=PROBE)
    if isinstance(answer, Finding):
        return answer
    milliseconds = (time.monotonic() - began) * 1000
    if answer.code or not one_object(answer.output):
        return Finding(FAIL, f"hook.py does not answer with one JSON object: {answer.output[:80]!r}", "reinstall sm")
    if absent:
        return Finding(OK, f"hook.py answers in {milliseconds:.0f} ms; not tried through a server: {absent}")
    return _reached(answer, milliseconds, reach)


def _reached(answer: ProgramResult, milliseconds: float, reach: dict[str, str]) -> Finding:
    address = reach.get("SM_SOCKET") or reach["SM_URL"]
    if answer.errors.strip():
        words = answer.errors.strip().removeprefix("sm hook: ")
        return Finding(FAIL, f"hooks do not reach the server at {address}: {words}", "sm server restart")
    level = OK if milliseconds < SLOW_MS else WARN
    return Finding(level, f"hook.py reaches the server and answers in {milliseconds:.0f} ms")


SLOW_MS = 1000.0


def own_sessions(where: Surroundings) -> Finding:
    """Check whether sessions that the user starts without `sm` are measured, by hooks that can still run."""
    path = config_directory(where.environ) / "settings.json"
    try:
        settings = entries.loaded(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        settings = {}
    except (ValueError, RecursionError) as problem:
        refused = entries.refused(str(path), problem).refused
        return Finding(WARN, refused.message, refused.hint)
    ours = entries.our_hooks(settings)
    if not ours:
        return Finding(OK, "sessions started without sm are not measured; sm setup changes that")
    gone = {place for entry in ours for place in (entry["command"], entry["args"][2]) if not Path(place).exists()}
    if gone:
        return Finding(FAIL, f"{path} runs {short_list(sorted(gone))}, which is gone", "sm setup")
    return Finding(OK, "sessions started without sm are measured")


def one_object(output: str) -> bool:
    try:
        return isinstance(json.loads(output), dict)
    except (ValueError, RecursionError):
        return False
