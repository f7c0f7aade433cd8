"""`sm limits`: the usage limits of the accounts, and the sessions that wait for their end."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from sm.cli.connection import user_client
from sm.cli.descriptions import limit_kind, limit_words, limited_words, moment, seconds_since_reset
from sm.cli.format import emit_json, say, show
from sm.cli.lifecycle import Results, named_sessions
from sm.cli.options import json_option, no_start, sessions_argument
from sm.cli.tables import Column, table, terminal_width
from sm.client import Client, session_path
from sm.core.ids import as_argument
from sm.plain_text import plain


@click.command()
@sessions_argument(required=False)
@click.option("--resume", "resumed", metavar="SESSION", multiple=True, help="Let a session that waits continue now.")
@no_start
@json_option
def limits(sessions: tuple[str, ...], resumed: tuple[str, ...], *, as_json: bool) -> int:
    """Show the usage limits of your accounts, what is used of them, and the sessions that wait for a reset.

    An account is a configuration directory of the client; with SESSIONS only what these wait for is shown. After a
    reset the client continues by itself, or sm wakes its agent: limits.resume says whether. --resume continues a
    session after the reset, once its client no longer does so by itself; give it once for each.
    """
    client = user_client()
    if resumed:
        return _resume(client, resumed, as_json=as_json)
    chosen = {view["id"]: view for view in (client.call("GET", session_path(session)) for session in sessions)}
    found = client.call("GET", "/limits")
    if chosen:
        found["accounts"] = _of_sessions(found["accounts"], set(chosen))
    emit_json(found) if as_json else _show(found, chosen)
    return 0


def _resume(client: Client, names: tuple[str, ...], *, as_json: bool) -> int:
    """Let each of the sessions continue, whatever is refused of the others; return the exit code."""
    if len(names) == 1:
        found = client.call("POST", session_path(names[0], "/limit/resume"))
        emit_json(found) if as_json else say(f"continues: {plain(found['name'])}")
        return 0
    results = Results()
    for session in named_sessions(client, names):
        path = session_path(session["id"], "/limit/resume")
        results.add(session, partial(client.call, "POST", path))
    if results.done and not as_json:
        say(f"continues: {', '.join(plain(view['name']) for view in results.done)}")
    return results.report("resumed", as_json=as_json)


def _show(found: dict[str, Any], chosen: dict[str, dict[str, Any]]) -> None:
    if found["accounts"]:
        show(table(_columns(found["accounts"]), terminal_width()))
    elif not chosen:
        say("no running session")
    for account in found["accounts"]:
        for session in account["sessions"]:
            say(f"{plain(session['name'])}: {_waits(session, found['resume'], found['patience'])}")
    waiting = {session["id"] for account in found["accounts"] for session in account["sessions"]}
    for session, view in chosen.items():
        if session not in waiting:
            say(f"{plain(view['name'])} waits for no usage limit")


def _columns(accounts: list[dict[str, Any]]) -> list[Column]:
    return [
        Column("ACCOUNT", [plain(account["config"]) for account in accounts], shrinks=True),
        Column("LIMIT", [_limit(account) for account in accounts]),
        Column("USED", [_used(account["used"]) for account in accounts]),
        Column("WAITING", [str(len(account["sessions"])) for account in accounts], rank=1),
    ]


def _of_sessions(accounts: list[dict[str, Any]], chosen: set[str]) -> list[dict[str, Any]]:
    """Return the accounts for which one of some sessions waits, and only these sessions of them."""
    waiting = [
        {**account, "sessions": [session for session in account["sessions"] if session["id"] in chosen]}
        for account in accounts
    ]
    return [account for account in waiting if account["sessions"]]


def _waits(session: dict[str, Any], resume: str, patience: float) -> str:
    limit = session["limit"]
    ago = seconds_since_reset(limit)
    if session["status"] != "limited":
        return f"{session['status']}; {limit_words(limit)}"
    if ago is None or limit["asks"]:
        return limited_words(session, as_argument(session["name"], session["id"]))
    left = patience - ago
    when = f"within {left:.0f} s" if left >= 1 else "soon"
    if not limit["interrupted"]:
        return f"{limit_words(limit)}; messages are sent {when}"
    if resume == "auto":
        return f"{limit_words(limit)}; continues {when}"
    called = as_argument(session["name"], session["id"])
    after = f", then sm asks you: sm limits --resume {called}" if resume == "ask" else ""
    return f"{limit_words(limit)}; its client may continue by itself {when}{after}"


def _limit(account: dict[str, Any]) -> str:
    limit = account["limit"]
    if limit is None:
        limits = (session["limit"] for session in account["sessions"])
        over = next((limit for limit in limits if seconds_since_reset(limit) is not None), None)
        return f"{limit_kind(over['kind'])} has reset" if over else "-"
    until = f" until {moment(limit['resets_at'])}" if limit["resets_at"] else ""
    return f"{limit_kind(limit['kind'])}{until}"


def _used(shares: list[dict[str, Any]]) -> str:
    return ", ".join(_share(share) for share in shares) or "unknown"


def _share(share: dict[str, Any]) -> str:
    """Return what is used of a limit; after its reset the last figure says nothing."""
    used = f"{share['percent']:.0f}%" if seconds_since_reset(share) is None else "has reset"
    return f"{limit_kind(share['kind'])} {used}"
