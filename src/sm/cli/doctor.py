"""`sm doctor`: checks what sm needs, and says what to do about each problem."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable
from pathlib import Path

import click

from sm import settings
from sm.cli.doctor_checks import conversations, disk, hooks, host, logout, mounts, place, programs
from sm.cli.doctor_checks.driver import driver
from sm.cli.doctor_checks.finding import FAIL, OK, WARN, Finding, Surroundings
from sm.cli.format import coloured, emit_json, show
from sm.cli.options import UserOption, json_option
from sm.cli.tables import terminal_width
from sm.core.errors import SmError
from sm.paths import locate_home
from sm.plain_text import plain

CHECKS: dict[str, Callable[[Surroundings], Finding]] = {
    "tmux": programs.tmux,
    "client": programs.client,
    "codex": programs.codex,
    "driver": driver,
    "configuration": place.configuration,
    "home": place.permissions,
    "disk": disk.room,
    "file system": mounts.local,
    "database": disk.database,
    "socket": place.sockets,
    "server": host.server,
    "hooks allowed": hooks.allowed,
    "hooks answer": hooks.answering,
    "own sessions": hooks.own_sessions,
    "transcripts": conversations.transcripts,
    "logout": logout.logout,
    "shell profile": programs.profile,
    "environment": programs.inherited,
    "terminal": programs.terminal,
    "clock": place.clock,
    "proxies": host.proxies,
    "other users": host.users,
}
COLOURS = {OK: "32", WARN: "33", FAIL: "31"}
INDENT = 21
MAX_COLUMNS = 100
MIN_TEXT_COLUMNS = 20
"""Columns of text, even in a narrower terminal."""


@click.command()
@click.option("--client", cls=UserOption, help="The client's executable; default: as configured.")
@json_option
def doctor(client: str | None, *, as_json: bool) -> int:
    """Check everything that sm needs. Exit code 1 if a check fails."""
    where = surroundings(client)
    found = {name: run_check(check, where) for name, check in CHECKS.items()}
    failed = sum(finding.level == FAIL for finding in found.values())
    if as_json:
        emit_json({"checks": [_as_data(name, finding) for name, finding in found.items()], "failed": failed})
        return min(failed, 1)
    for name, finding in found.items():
        show(described(name, finding))
    warned = sum(finding.level == WARN for finding in found.values())
    show(f"{failed} failed, {warned} warning{'' if warned == 1 else 's'}, {len(found) - failed - warned} ok")
    return min(failed, 1)


def surroundings(client: str | None) -> Surroundings:
    directory = Path.cwd()
    try:
        found = settings.load(directory, os.environ)
    except SmError:
        found = None
    configured = found.claude.command if found else "claude"
    return Surroundings(os.environ, directory, locate_home(os.environ), found, client or configured)


def run_check(check: Callable[[Surroundings], Finding], where: Surroundings) -> Finding:
    try:
        return check(where)
    except SmError as problem:
        return Finding(FAIL, problem.refused.message, problem.refused.hint)
    except OSError as problem:
        return Finding(FAIL, f"{problem.filename or 'it'}: {problem.strerror}", "correct its permissions")


def _as_data(name: str, finding: Finding) -> dict[str, str]:
    return {"name": name, "level": finding.level, "message": finding.message, "hint": finding.hint}


def described(name: str, finding: Finding) -> str:
    width = max(min(terminal_width(), MAX_COLUMNS) - INDENT, MIN_TEXT_COLUMNS)
    lines = textwrap.wrap(plain(finding.message), width, break_on_hyphens=False)
    lines += textwrap.wrap(f"hint: {plain(finding.hint)}", width, break_on_hyphens=False) if finding.hint else []
    head = coloured(f"{finding.level:<4}", COLOURS[finding.level]) + f"  {name:<{INDENT - 6}}"
    return head + ("\n" + " " * INDENT).join(lines)
