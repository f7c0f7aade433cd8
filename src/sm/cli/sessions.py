"""Commands of a person about sessions."""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import click

from sm.cli.connection import user_client
from sm.cli.options import json_option, lines_option, no_start, session_argument
from sm.cli.output import emit_json, encodable, is_terminal, say, show
from sm.cli.tables import table, terminal_width
from sm.cli.tree import seconds_since, session_columns
from sm.cli.words import ENDED, plain
from sm.client import Client, inside_session, session_path
from sm.core.errors import error

DAY = 86_400
EXPECTED = frozenset(
    ("exited", how) for how in ("killed", "the client has ended", "the client has ended (exit code 0)")
)
"""Ends that need no explaining."""


def notes(sessions: list[dict[str, Any]]) -> list[str]:
    """What is behind a status, and what to do; a name that several have is told apart by its id."""
    names = Counter(one["name"] for one in sessions)
    told = [one for one in sessions if one.get("detail") and (one["status"], one["detail"]) not in EXPECTED]
    return [_note(one, alone=names[one["name"]] == 1) for one in told]


def _note(session: dict[str, Any], *, alone: bool) -> str:
    name = plain(session["name"])
    called, shown = (name, name) if alone else (session["id"], f"{name} ({session['id']})")
    note = f"{shown}: {plain(session['detail'])}"
    if session["status"] != "crashed" or session.get("adopted"):
        return note
    # What a terminal of its own showed is not kept.
    look = "" if session.get("foreground") else f"sm output {called}; "
    return f"{note} ({look}sm restore {called})"


class WithClientArguments(click.Command):
    """What follows `--` is the client's, whether or not a directory was named before it."""

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
@click.option("--provider", default="claude", show_default=True, help="The client program.")
@click.option("--name", help="A name; default: the directory's.")
@click.option("--model", help="The model, as the client takes it.")
@click.option("--prompt", help="The first prompt, typed once the client is ready.")
@click.option("--client", "command", help="The client's executable, instead of the configured one.")
@click.option("--detach", is_flag=True, help="Do not attach; print the id.")
@no_start
@json_option
def new(directory: str, *, detach: bool, as_json: bool, **given: Any) -> None:  # noqa: ANN401
    """Start an agent in DIR (default: here) in a pane that sm owns, and attach to it.

    What follows -- goes to the client as it is.
    """
    if inside_session() is not None:
        raise error("inside_session", "sm new cannot be used inside a session", "sm spawn starts a child")
    place = Path(directory).expanduser().absolute()
    if not place.is_dir():
        raise error(
            "no_directory", f"No such directory: {place}", "give an existing directory; client args go after --"
        )
    check_configuration(place)
    client = user_client()
    arguments = click.get_current_context().meta[CLIENT_ARGUMENTS]
    body = {"dir": str(place), "env": sendable_environment(), "arguments": arguments, **given}
    attach_or_print(client, client.call("POST", "/sessions", body), detach=detach, as_json=as_json)


def attach_or_print(client: Client, session: dict[str, Any], *, detach: bool, as_json: bool) -> None:
    """Say what was started, and what waits in its project, and show its pane if this is a terminal."""
    from sm.cli.attach import attach_to, settled  # noqa: PLC0415  # 15 modules that only a terminal needs

    to_be_shown = not (as_json or detach) and is_terminal(sys.stdout) and is_terminal(sys.stdin)
    if not to_be_shown:
        session = settled(client, session)  # attached, the pane itself shows how the client starts or ends
    if as_json:
        emit_json(session)
        return
    say(f"started {plain(session['name'])} ({session['id']})")
    offer = session.get("offer") or {}
    if offer.get("handoff") is not None:
        say(f"a handoff waits in this project: sm resume {offer['handoff']['id']} starts a session from it")
    if offer.get("prompt") is not None:
        say(f"a continuation prompt lies in this project: sm resume {plain(offer['prompt']['path'])} goes on from it")
    attach_to(client, session["id"]) if to_be_shown else show(session["id"])


def sendable_environment() -> dict[str, str]:
    """What a pane gets of this environment: all that JSON can hold."""
    kept = {name: value for name, value in os.environ.items() if encodable(name + value)}
    for name in os.environ.keys() - kept.keys():
        say(f"left out of the session's environment, because it is not UTF-8: {name}")
    return kept


def check_configuration(place: Path) -> None:
    """A running server keeps its last good configuration; what is broken since is said before anything starts."""
    from sm.settings import load  # noqa: PLC0415  # msgspec costs 31 ms

    load(place, os.environ)


@click.command("list")
@click.option("--all", "everything", is_flag=True, help="Those too that ended more than a day ago.")
@no_start
@json_option
def list_sessions(*, everything: bool, as_json: bool) -> None:
    """Show the sessions, what they do and how full their contexts are.

    A session sees itself whole and the others by name and status.
    """
    sessions = user_client().call("GET", "/sessions")
    if as_json:
        emit_json(sessions)
        return
    shown = [one for one in sessions if everything or one["status"] not in ENDED or _recent(one)]
    if not shown:
        say("no sessions\nhint: sm new starts one")
        return
    show(table(session_columns(shown), terminal_width()))
    for note in notes(shown):
        say(note)
    names = {one["id"]: plain(one["name"]) for one in sessions}
    for one, other in _paused(shown):
        pair = f"{names[one]} and {names.get(other, other)}"
        say(f"{pair} are paused, for they write to each other with no person in between: `sm send` to one goes on")


def _paused(sessions: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Pairs of sessions whose messages to each other are paused, each once."""
    pairs = {tuple(sorted((one["id"], other))) for one in sessions for other in one.get("paused_with", ())}
    return sorted((one, other) for one, other in pairs)


def _recent(session: dict[str, Any]) -> bool:
    """An ended session is shown for a day, so that nobody wonders where it went."""
    return seconds_since(session) < DAY


@click.command()
@session_argument
@click.option("--ended", is_flag=True, hidden=True, help="Say how its client has ended, as tmux asks once it has.")
@no_start
def attach(session: str, *, ended: bool) -> int:
    """Show a session's pane in this terminal. Detach with Ctrl-b d.

    When its client ends, the terminal is given back. In another tmux the keys may be others: they are said first.
    """
    from sm.cli.attach import attach_to, tell_end  # noqa: PLC0415  # as above

    if ended:
        return tell_end(user_client(start=False), session)
    check_terminal("sm attach", "sm output prints what the pane shows")
    attach_to(user_client(), session)
    return 0


def check_terminal(command: str, hint: str) -> None:
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        raise error("no_terminal", f"{command} needs a terminal", hint)


@click.command()
@session_argument
@lines_option
@no_start
@json_option
def output(session: str, lines: int, *, as_json: bool) -> None:
    """Print the end of what a session's pane shows, with its history."""
    found = user_client().call("GET", session_path(session, f"/output?lines={lines}"))
    emit_json(found) if as_json else show(found["text"])


@click.command()
@session_argument
@click.argument("name")
@no_start
@json_option
def rename(session: str, name: str, *, as_json: bool) -> None:
    """Give SESSION the NAME."""
    found = user_client().call("PATCH", session_path(session), {"name": name})
    emit_json(found) if as_json else say(f"renamed to {plain(found['name'])}")


@click.command()
@session_argument
@click.option("--children", is_flag=True, help="End its children too, and theirs.")
@no_start
@json_option
def kill(session: str, *, children: bool, as_json: bool) -> None:
    """End a session's client and all it started. Its documents and logs stay. Nothing is asked.

    Its children work on, unless --children ends them too. An agent may end its own children only.
    """
    found = user_client().call("DELETE", session_path(session, "?children=1" if children else ""))
    if as_json:
        emit_json(found)
        return
    for one in found["ended"]:
        say(f"ended {plain(one['name'])} ({one['id']})")


@click.command()
@session_argument
@click.option("--attach", "attach_after", is_flag=True, help="Attach to it.")
@click.option("--force", is_flag=True, help="Start it although its client has ended 5 times within 300 seconds.")
@no_start
@json_option
def restore(session: str, *, attach_after: bool, force: bool, as_json: bool) -> None:
    """Bring an ended session back: its last conversation, or the document of a handoff that was not finished.

    Refused while another client has that conversation open, and after 5 starts within 300 seconds that ended without
    a turn. An agent may bring its own children back.
    """
    if attach_after:
        check_terminal("sm restore --attach", "without --attach it needs none")
    from sm.cli.attach import attach_to, settled  # noqa: PLC0415  # as above

    client = user_client()
    body = {"env": sendable_environment(), **({"force": True} if force else {})}
    found = client.call("POST", session_path(session, "/restore"), body)
    found = found if attach_after else settled(client, found)
    emit_json(found) if as_json else say(f"restored {plain(found['name'])} ({found['id']})")
    if attach_after:
        attach_to(client, found["id"])


@click.command()
@session_argument
@click.option("-f", "--follow", is_flag=True, help="Go on as it happens, also over a restart of the server.")
@click.option("--lines", type=click.IntRange(1, 200_000), default=20, show_default=True, help="How many from the end.")
@no_start
@json_option
def tail(session: str, lines: int, *, follow: bool, as_json: bool) -> None:
    """Print what happened to a session: turns, tools, readings, handoffs.

    With --follow and --json every event is an object on a line of its own.
    """
    from sm.cli.following import print_events  # noqa: PLC0415  # http.client is for this command only

    print_events(user_client(), session, lines, follow=follow, as_json=as_json)
