"""Commands of a person about sessions."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import click

from sm.cli.connection import user_client
from sm.cli.output import ago, bar, coloured, emit_json, say, show, table, tokens
from sm.client import Client, inside_session
from sm.core.errors import error

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
no_start = click.option("--no-start", is_flag=True, help="Refuse instead of starting a server.")
COLOURS = {
    "idle": "32",
    "working": "36",
    "rotating": "35",
    "waiting": "33",
    "blocked": "31",
    "crashed": "31",
    "silent": "33",
    "exited": "90",
}


@click.command(context_settings={"ignore_unknown_options": False})
@click.argument("directory", default=".", metavar="[DIR]")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- CLIENT ARGS]")
@click.option("--provider", default="claude", show_default=True, help="The client program.")
@click.option("--name", help="A name; default: the directory's.")
@click.option("--model", help="The model, as the client takes it.")
@click.option("--prompt", help="The first prompt, typed once the client is ready.")
@click.option("--client", "command", help="The client's executable, instead of the configured one.")
@click.option("--detach", is_flag=True, help="Do not attach.")
@no_start
@json_option
def new(directory: str, arguments: tuple[str, ...], *, detach: bool, no_start: bool, as_json: bool, **given: Any) -> None:  # noqa: ANN401
    """Start an agent in DIR (default: here) in a pane that sm owns, and attach to it."""
    if inside_session() is not None:
        raise error("inside_session", "sm new cannot be used inside a session", "sm spawn starts a child")
    place = Path(directory).expanduser().absolute()
    if not place.is_dir():
        raise error("no_directory", f"No such directory: {place}", "give an existing directory; client args go after --")
    body = {"dir": str(place), "env": dict(os.environ), "arguments": list(arguments), **given}
    client = user_client(start=not no_start)
    session = client.call("POST", "/sessions", body)
    if as_json:
        emit_json(session)
    else:
        say(f"started {session['name']} ({session['id']})")
    if not (detach or as_json):
        if sys.stdout.isatty() and sys.stdin.isatty():
            attach_to(client, session["id"])
        else:
            show(session["id"])
    elif detach and not as_json:
        show(session["id"])


@click.command("list")
@click.option("--all", "everything", is_flag=True, help="The ended ones too.")
@no_start
@json_option
def list_sessions(*, everything: bool, no_start: bool, as_json: bool) -> None:
    """Show the sessions, what they do and how full their contexts are."""
    print_sessions(user_client(start=not no_start), as_json=as_json, everything=everything)


def print_sessions(client: Client, *, as_json: bool, everything: bool) -> None:
    sessions = client.call("GET", "/sessions")
    if as_json:
        emit_json(sessions)
        return
    ended = {"exited", "crashed"}
    shown = [one for one in sessions if everything or one["status"] not in ended or _recent(one)]
    if not shown:
        say("no sessions\nhint: sm new starts one")
        return
    show(table([_row(one) for one in shown], ("NAME", "STATUS", "CONTEXT", "ROT", "HANDOFF", "SEEN")))
    for one in shown:
        if one.get("detail"):
            say(f"{one['name']}: {one['detail']}")


def _recent(session: dict[str, Any]) -> bool:
    """An ended session is shown for a day, so that nobody wonders where it went."""
    return time.time() - (session.get("last_activity") or session.get("created") or 0) < DAY  # noqa: TID251  # a person's clock


DAY = 86_400


def _row(session: dict[str, Any]) -> tuple[str, ...]:
    context = session.get("context") or {}
    percent = context.get("percent")
    size = context.get("projected") if context.get("projected") is not None else context.get("tokens")
    gauge = f"{bar(percent, 6)} {percent:3.0f}%" if percent is not None else (tokens(size) if size else "unknown")
    seen = session.get("last_activity") or session.get("created") or 0
    phase = (session.get("handoff") or {}).get("phase") or "-"
    return (
        session["name"][:24],
        session["status"],
        gauge,
        str(session.get("rotations", 0)),
        phase,
        ago(time.time() - seen) if seen else "-",  # noqa: TID251  # a person's clock
    )


@click.command()
@click.argument("session")
def attach(session: str) -> None:
    """Show a session's pane in this terminal. Detach with Ctrl-b d."""
    if not sys.stdin.isatty():
        raise error("no_terminal", "sm attach needs a terminal", "sm output prints what the pane shows")
    attach_to(user_client(), session)


def attach_to(client: Client, session: str) -> None:
    inside = bool(os.environ.get("TMUX"))
    found = client.call("GET", f"/sessions/{quoted(session)}/attach?inside_tmux={int(inside)}")
    argv = found["argv"]
    keys = "Ctrl-b Ctrl-b d" if inside else "Ctrl-b d"
    say(coloured(f"attaching to {found['name']}; detach with {keys}", "90"))
    os.execvp(argv[0], argv)  # noqa: S606  # tmux takes this terminal over


@click.command()
@click.argument("session")
@click.option("--lines", type=click.IntRange(min=1), default=200, show_default=True, help="How many from the end.")
@json_option
def output(session: str, lines: int, *, as_json: bool) -> None:
    """Print the end of what a session's pane shows, with its history."""
    found = user_client().call("GET", f"/sessions/{quoted(session)}/output?lines={lines}")
    emit_json(found) if as_json else show(found["text"])


@click.command()
@click.argument("session")
@click.argument("name")
@json_option
def rename(session: str, name: str, *, as_json: bool) -> None:
    """Give SESSION the NAME."""
    found = user_client().call("PATCH", f"/sessions/{quoted(session)}", {"name": name})
    emit_json(found) if as_json else say(f"renamed to {found['name']}")


@click.command()
@click.argument("session")
@json_option
def kill(session: str, *, as_json: bool) -> None:
    """End a session's client and all it started. Its documents and logs stay."""
    found = user_client().call("DELETE", f"/sessions/{quoted(session)}")
    emit_json(found) if as_json else say(f"ended {found['name']} ({found['id']})")


@click.command()
@click.argument("session")
@click.option("--attach", "attach_after", is_flag=True, help="Attach to it.")
@json_option
def restore(session: str, *, attach_after: bool, as_json: bool) -> None:
    """Bring an ended session back: its last conversation, or the document of a handoff that was not finished."""
    client = user_client()
    found = client.call("POST", f"/sessions/{quoted(session)}/restore", {"env": dict(os.environ)})
    emit_json(found) if as_json else say(f"restored {found['name']} ({found['id']})")
    if attach_after:
        attach_to(client, found["id"])


@click.command()
@click.argument("session")
@click.option("-f", "--follow", is_flag=True, help="Go on as it happens.")
@click.option("--lines", type=click.IntRange(min=1), default=20, show_default=True, help="How many from the end.")
@json_option
def tail(session: str, lines: int, *, follow: bool, as_json: bool) -> None:
    """Print what happened to a session: turns, tools, readings, handoffs."""
    from sm.cli.following import print_events  # noqa: PLC0415  # http.client is for this command only

    print_events(user_client(), session, lines, follow=follow, as_json=as_json)


def quoted(session: str) -> str:
    from urllib.parse import quote  # noqa: PLC0415  # 5 ms that most commands don't need

    return quote(session, safe="")
