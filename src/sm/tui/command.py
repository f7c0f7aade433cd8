"""`sm watch`, and `sm` without arguments in a terminal: where the screen opens, and what it needs."""

from __future__ import annotations

import importlib.util
import os
import sys

import click

from sm.cli.connection import user_client
from sm.cli.format import is_dumb, is_terminal, without_utf8
from sm.cli.options import no_start
from sm.client import Client, inside_session
from sm.core.errors import error
from sm.lock import running_server
from sm.paths import locate_home, read_token


@click.command()
@no_start
def watch() -> None:
    """Show all sessions live: who needs you, who works, how full, since when, at what cost.

    Keys do the rest from there: Enter attaches, a answers, m sends a message; ? shows them all. `sm` alone opens it
    too.
    """
    if inside_session() is not None:
        raise error("inside_session", "sm watch is the user's: it shows every session", "sm status shows this one")
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        raise error("no_terminal", "sm watch needs a terminal", "sm list --json prints the same for scripts")
    if is_dumb():
        raise error(
            "no_terminal", "sm watch needs a terminal that moves its cursor; TERM is dumb", "sm list shows the same"
        )
    if importlib.util.find_spec("textual") is None:
        hint = "pip install 'agent-sm[tui]' into the environment of sm; sm list and sm asks work without it"
        raise error("no_textual", "The live screen needs Textual, which is not installed", hint)
    user_client()
    from sm.tui.app import Dashboard  # noqa: PLC0415  # 300 ms, for this command only

    Dashboard(announced_client, ascii_only=without_utf8(sys.stdout)).run()


def announced_client() -> Client | None:
    """Return a client for the server that has announced itself, whether it answers or not; None without one."""
    home = locate_home(os.environ)
    record, token = running_server(home), read_token(home)
    return None if record is None or token is None else Client(record.url, token)
