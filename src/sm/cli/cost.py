"""`sm cost`: what sessions have used of models, and what that costs."""

from __future__ import annotations

import time
from typing import Any

import click

from sm.cli.connection import user_client
from sm.cli.format import emit_json, say, show, tokens
from sm.cli.options import json_option, no_start
from sm.cli.tables import Column, table, terminal_width
from sm.cli.team import seconds
from sm.client import session_path
from sm.plain_text import plain

Json = dict[str, Any]
UNKNOWN = "unknown"
NO_PRICE = "no price is set for {}: cost.prices in config.toml, as in sm help reference"


@click.command()
@click.argument("session", required=False)
@click.option("--since", metavar="TIME", help="Only what was used in the last TIME: 90m, 24h, 7d.")
@click.option("--contexts", is_flag=True, help="Show each context of a session.")
@no_start
@json_option
def cost(session: str | None, since: str | None, *, contexts: bool, as_json: bool) -> None:
    """Show the tokens that sessions have used, by their transcripts, and what they cost.

    TREE is a session with all its children. CACHED tokens were read from the cache.
    """
    begin = max(0.0, time.time() - seconds(since)) if since else 0.0  # noqa: TID251  # the user's own clock
    client = user_client()
    found = client.call("GET", f"/cost?since={begin:.0f}")
    chosen = [cost for cost in found if session is None or session in {cost["id"], cost["name"]}]
    if session is not None and not chosen:  # a part of an id, or of no session
        meant = client.call("GET", session_path(session))["id"]
        chosen = [cost for cost in found if cost["id"] == meant]
    if as_json:
        emit_json(chosen)
        return
    used = [cost for cost in chosen if cost["tree"]["requests"]]
    if not used:
        say("no tokens were used" + (" in that time" if since else ""))
        return
    show(table(_columns(_rows(used, contexts=contexts)), terminal_width()))
    unpriced = sorted({model for cost in used for model in cost["tree"]["unpriced"]})
    if unpriced:
        say(NO_PRICE.format(", ".join(map(plain, unpriced))))


Row = tuple[str, Json, Json | None]
"""What it is called, what it has used, and that of its tree."""


def _rows(used: list[Json], *, contexts: bool) -> list[Row]:
    rows: list[Row] = []
    for found in used:
        rows.append((plain(found["name"]), found["spent"], found["tree"]))
        if contexts:
            rows += [(f"  context {context['number']}", context["spent"], None) for context in found["contexts"]]
    return rows


def _columns(rows: list[Row]) -> list[Column]:
    return [
        Column("NAME", [name for name, _, _ in rows]),
        Column("REQUESTS", [f"{spent['requests']:,}" for _, spent, _ in rows], rank=3),
        Column("TOKENS", [tokens(spent["tokens"]) for _, spent, _ in rows]),
        Column("CACHED", [tokens(spent["cache_reads"]) for _, spent, _ in rows], rank=2),
        Column("OUTPUT", [tokens(spent["output"]) for _, spent, _ in rows], rank=1),
        Column("COST", [dollars(spent) for _, spent, _ in rows]),
        Column("TREE", ["" if tree is None else dollars(tree) for _, _, tree in rows], rank=1),
    ]


def dollars(spent: Json) -> str:
    """Return `$1.25`, `over $1.25` where a part of it has no price, or `unknown`."""
    if spent["usd"] is None:
        return UNKNOWN
    return f"{'over ' if spent['unpriced'] else ''}${spent['usd']:,.2f}"
