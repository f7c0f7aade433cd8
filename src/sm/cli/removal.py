"""`sm rm` and `sm prune`: take ended sessions out of the list. `sm archive prune` deletes old logs instead."""

from __future__ import annotations

import sys
import time
from functools import partial
from typing import Any

import click

from sm.cli.connection import user_client
from sm.cli.format import emit_json, is_terminal, say, show
from sm.cli.lifecycle import Results, named_sessions
from sm.cli.options import json_option, no_start, sessions_argument
from sm.cli.tables import table, terminal_width
from sm.cli.team import seconds
from sm.cli.tree import session_columns
from sm.client import Client, inside_session, session_path
from sm.core.errors import error
from sm.fleet import ENDED_STATUSES, is_lost
from sm.plain_text import plain


@click.command()
@sessions_argument()
@click.option("--yes", is_flag=True, help="Remove without asking what sm restore --all would restart.")
@no_start
@json_option
def rm(sessions: tuple[str, ...], *, yes: bool, as_json: bool) -> int:
    """Remove ended sessions from the list: all that are named, or none. They cannot be restored any more.

    Asks before it removes one that was lost, as by a reboot. Handoff documents and the client's transcripts stay,
    terminal logs as long as archive.keep_days says.
    """
    check_user("remove sessions")
    client = user_client()
    meant = named_sessions(client, sessions)
    needed = _needed(client, meant)
    if needed:
        return removed(client, needed, as_json=as_json)  # the server refuses each, and says why
    lost = [session for session in meant if is_lost(session)]
    if lost and not yes:
        if as_json:
            raise error("usage", "--json cannot ask", "--yes removes what sm restore --all would restart")
        say(f"{', '.join(plain(session['name']) for session in lost)}: lost, and sm restore would restart it")
        if not agreed(len(meant)):
            say("nothing removed")
            return 0
    return removed(client, meant, as_json=as_json)


def _needed(client: Client, meant: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the sessions that live or have living children."""
    living = [session for session in client.call("GET", "/sessions") if session["status"] not in ENDED_STATUSES]
    ids = {session["id"] for session in living} | {session["parent"] for session in living}
    return [session for session in meant if session["id"] in ids]


@click.command()
@click.option("--older-than", "age", default="1d", show_default=True, metavar="DELAY", help="How long ago they ended.")
@click.option("--dry-run", is_flag=True, help="Show what would be removed, and remove nothing.")
@click.option("--yes", is_flag=True, help="Remove without asking.")
@no_start
@json_option
def prune(age: str, *, dry_run: bool, yes: bool, as_json: bool) -> int:
    """Remove ended sessions from the list: shows them and asks. They cannot be restored any more.

    What sm restore --all would restart stays, and what has living children. Handoff documents and transcripts stay,
    terminal logs as long as archive.keep_days says; sm archive prune deletes logs.
    """
    check_user("remove sessions")
    if as_json and not (yes or dry_run):
        raise error("usage", "--json cannot ask", "sm prune --json --yes")
    client = user_client()
    sessions = client.call("GET", "/sessions")
    meant = prunable(sessions, seconds(age))
    if dry_run and as_json:
        emit_json({"removed": [], "would_remove": meant})
        return 0
    if not as_json:
        if not meant:
            say(f"nothing to remove\nhint: {_other_ways(sessions, seconds(age))}")
            return 0
        show(table(session_columns(meant), terminal_width()))
    if dry_run or not (yes or agreed(len(meant))):
        say("nothing removed")
        return 0
    return removed(client, meant, as_json=as_json)


def _other_ways(sessions: list[dict[str, Any]], age: float) -> str:
    if age and prunable(sessions, 0.0):
        return "sm prune --older-than 0s includes what has just ended"
    if any(map(is_lost, sessions)):
        return "what was lost stays: sm restore --all restarts it, sm rm NAME removes it"
    return "sm kill ends a session, sm rm removes one that has ended"


def check_user(what: str) -> None:
    if inside_session() is not None:
        raise error("forbidden", f"A session may not {what}", "ask the user who runs sm")


def agreed(count: int) -> bool:
    if not is_terminal(sys.stdin):
        words = "Cannot ask for confirmation: standard input is not a terminal"
        raise error("usage", words, "read what is above, then run it again with --yes")
    return click.confirm(f"Remove {'this session' if count == 1 else f'these {count} sessions'}?", err=True)


def prunable(sessions: list[dict[str, Any]], age: float) -> list[dict[str, Any]]:
    """Return the sessions that ended so long ago, without those that are still to be restored or have children."""
    before = time.time() - age  # noqa: TID251  # the user's clock
    parents = {session["parent"] for session in sessions if session["status"] not in ENDED_STATUSES}
    return [
        session
        for session in sessions
        if session["status"] in ENDED_STATUSES and not is_lost(session) and session["id"] not in parents
        if max(session["last_activity"] or session["created"], session["lost_at"] or 0.0) <= before
    ]


def removed(client: Client, sessions: list[dict[str, Any]], *, as_json: bool) -> int:
    results = Results()
    for session in sessions:
        path = session_path(session["id"], "/remove")
        results.add(session, partial(client.call, "POST", path))
    if not as_json:
        for gone in results.done:
            say(f"removed {plain(gone['name'])} ({gone['id']})")
    return results.report("removed", as_json=as_json)
