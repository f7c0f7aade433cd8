"""`sm new`: starts an agent in a pane and attaches to it. `sm run`, `sm spawn` and `sm resume` start one likewise."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import click

from sm.cli.connection import user_client
from sm.cli.format import emit_json, encodable, is_terminal, say, show
from sm.cli.options import json_option, no_start
from sm.client import Client, inside_session
from sm.core.errors import error
from sm.plain_text import plain


class WithClientArguments(click.Command):
    """Takes the arguments after `--` for the client, with or without a directory before it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own, theirs = _split(args)
        ctx.meta[CLIENT_ARGUMENTS] = theirs
        return super().parse_args(ctx, own)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- CLIENT ARGS]"]


CLIENT_ARGUMENTS = "sm.client_arguments"


def _split(args: list[str]) -> tuple[list[str], list[str]]:
    at = args.index("--") if "--" in args else len(args)
    return args[:at], args[at + 1 :]


@click.command(cls=WithClientArguments)
@click.argument("directory", default=".", metavar="[DIR]")
@click.option("--provider", default="claude", show_default=True, help="The client: claude, codex or codex-tui.")
@click.option("--name", help="The session's name; default: the directory's name.")
@click.option("--model", help="The model, passed to the client.")
@click.option("--prompt", help="The first prompt.")
@click.option("--client", "command", help="The client's executable; default: as configured.")
@click.option("--worktree", "branch", metavar="BRANCH", help="Start it in a worktree of BRANCH, made if there is none.")
@click.option("--detach", is_flag=True, help="Print the id and do not attach.")
@no_start
@json_option
def new(directory: str, *, branch: str | None, detach: bool, as_json: bool, **given: Any) -> None:  # noqa: ANN401
    """Start an agent in DIR (default: here) in a pane of sm, and attach to it.

    Arguments after -- go to the client unchanged. A new worktree is the repository's neighbour, REPOSITORY-BRANCH, and
    stays when its session has ended: git worktree remove.
    """
    if inside_session() is not None:
        raise error("inside_session", "sm new cannot be used inside a session", "sm spawn starts a child")
    place = Path(directory).expanduser().absolute()
    if not place.is_dir():
        raise error(
            "no_directory", f"No such directory: {place}", "give an existing directory; client args go after --"
        )
    if branch is not None:
        from sm.cli.worktree import checkout  # noqa: PLC0415  # for this option only

        place = checkout(place, branch)
    check_configuration(place)
    client = user_client()
    arguments = click.get_current_context().meta[CLIENT_ARGUMENTS]
    body = {"dir": str(place), "env": sendable_environment(), "arguments": arguments, **given}
    attach_or_print(client, client.call("POST", "/sessions", body), detach=detach, as_json=as_json)


def attach_or_print(client: Client, session: dict[str, Any], *, detach: bool, as_json: bool) -> None:
    """Report what was started, and open handoffs in its project; attach if this is a terminal."""
    from sm.cli.attach import attach_to, wait_for_start  # noqa: PLC0415  # 15 modules, for a terminal only

    to_be_shown = not (as_json or detach) and is_terminal(sys.stdout) and is_terminal(sys.stdin)
    if not to_be_shown:
        session = wait_for_start(client, session)  # when attached, the pane shows how the client starts or ends
    if as_json:
        emit_json(session)
        return
    say(f"started {plain(session['name'])} ({session['id']})")
    offer = session.get("offer") or {}
    if offer.get("handoff") is not None:
        say(f"this project has an open handoff: sm resume {offer['handoff']['id']} starts a session from it")
    if offer.get("prompt") is not None:
        path = shlex.quote(plain(offer["prompt"]["path"]))
        say(f"this project has a continuation prompt: sm resume {path} continues from it")
    from sm.cli.worktree import say_neighbours  # noqa: PLC0415  # a dozen modules, for words only

    say_neighbours(session, client.call("GET", "/sessions"))
    attach_to(client, session["id"]) if to_be_shown else show(session["id"])


def sendable_environment() -> dict[str, str]:
    """Return the part of this environment that a pane gets: all that JSON can hold."""
    kept = {name: value for name, value in os.environ.items() if encodable(name + value)}
    for name in os.environ.keys() - kept.keys():
        say(f"left out of the session's environment, not UTF-8: {name}")
    return kept


def check_configuration(place: Path) -> None:
    """Report an invalid configuration before anything starts: a running server uses its last good one."""
    from sm.settings import load, project_values  # noqa: PLC0415  # msgspec costs 31 ms

    load(place, os.environ)
    for name, value in project_values(place, os.environ).items():  # the project's file may have come with a clone
        say(f"set by this project's .sm/config.toml: {name} = {plain(json.dumps(value, ensure_ascii=False))}")
