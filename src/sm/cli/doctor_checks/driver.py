"""Checks what drives the clients: the plugin in them, or keys in its place."""

from __future__ import annotations

from typing import Any

from sm.cli.doctor_checks.finding import FAIL, OK, WARN, Finding, Surroundings
from sm.client import Client, UnavailableError, inside_session
from sm.core.errors import SmError
from sm.core.events import AWAITED
from sm.fleet import ENDED_STATUSES
from sm.lock import running_server
from sm.paths import read_token
from sm.plain_text import plain
from sm.providers.claude.installed import too_old

TIMEOUT_S = 3.0


def driver(where: Surroundings) -> Finding:
    chosen = where.settings.claude.driver if where.settings is not None else "auto"
    if chosen == "keys":
        return Finding(OK, "keys, as claude.driver says")
    reason = too_old(where.client, where.environ.get("PATH", ""))
    if reason:
        if chosen == "mod":
            return Finding(FAIL, reason, 'update Claude Code, or set claude.driver = "auto"')
        return Finding(WARN, reason, "update Claude Code; until then sm presses keys")
    without = _without_plugin(where)
    if without:
        hint = "sm attach shows what the client says about plugins; sm restore starts an ended one again"
        return Finding(WARN, "; ".join(without), hint)
    return Finding(OK, "the plugin in the client" + ("" if chosen == "mod" else ", and keys where it does not answer"))


def _without_plugin(where: Surroundings) -> list[str]:
    """Return which running sessions have no plugin, and why."""
    return [
        f"{plain(session['name'])}: {plain(session['driver_note'])}"
        for session in sessions_of(where)
        if session["driver_note"] not in {"", AWAITED} and session["status"] not in ENDED_STATUSES
    ]


def sessions_of(where: Surroundings) -> list[dict[str, Any]]:
    """Return the sessions of the server, if one runs and answers the user."""
    record, token = running_server(where.home), read_token(where.home)
    if inside_session() is not None or record is None or token is None:
        return []
    try:
        found = Client(record.url, token).call("GET", "/sessions", timeout=TIMEOUT_S)
    except (UnavailableError, SmError):
        return []  # the check of the server says why
    return list(found)
