"""`sm limits`: the usage limits of the accounts, and the sessions that wait for their end."""

from __future__ import annotations

from typing import Any

import click

from sm.cli.connection import user_client
from sm.cli.descriptions import moment, plain
from sm.cli.format import emit_json, say, show
from sm.cli.options import json_option, no_start
from sm.cli.tables import Column, table, terminal_width
from sm.client import session_path

KINDS = {"five_hour": "5-hour", "seven_day": "weekly", "usage": "usage"}


@click.command()
@click.option("--resume", "resumed", metavar="SESSION", multiple=True, help="Let a session that waits continue now.")
@no_start
@json_option
def limits(resumed: tuple[str, ...], *, as_json: bool) -> None:
    """Show the usage limits of your accounts, what is used of them, and the sessions that wait for a reset.

    An account is a configuration directory of the client. After a reset the client continues by itself, or sm wakes its
    agent: limits.resume says whether. --resume continues a session now, whatever it waits for; give it once for each.
    """
    client = user_client()
    if resumed:
        continued = [client.call("POST", session_path(session, "/limit/resume")) for session in resumed]
        names = ", ".join(plain(view["name"]) for view in continued)
        emit_json(continued) if as_json else say(f"continues: {names}")
        return
    found = client.call("GET", "/limits")
    if as_json:
        emit_json(found)
        return
    if not found["accounts"]:
        say("no running session")
        return
    show(table(_columns(found["accounts"]), terminal_width()))
    for account in found["accounts"]:
        for session in account["sessions"]:
            say(f"{plain(session['name'])}: {plain(session['detail'])}")


def _columns(accounts: list[dict[str, Any]]) -> list[Column]:
    return [
        Column("ACCOUNT", [plain(account["config"]) for account in accounts], shrinks=True),
        Column("LIMIT", [_limit(account["limit"]) for account in accounts]),
        Column("USED", [_used(account["used"]) for account in accounts]),
        Column("WAITING", [str(len(account["sessions"])) for account in accounts], rank=1),
    ]


def _limit(limit: dict[str, Any] | None) -> str:
    if limit is None:
        return "-"
    until = f" until {moment(limit['resets_at'])}" if limit["resets_at"] else ""
    return f"{_kind(limit['kind'])}{until}"


def _used(shares: list[dict[str, Any]]) -> str:
    return ", ".join(f"{_kind(share['kind'])} {share['percent']:.0f}%" for share in shares) or "unknown"


def _kind(kind: str) -> str:
    return KINDS.get(kind, plain(kind).replace("_", " "))
