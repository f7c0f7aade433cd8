"""The user's commands about sessions: start, list, attach, kill, restore."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from sm.cli.connection import show_problems, user_client
from sm.cli.descriptions import ENDED_STATUSES, limit_words, plain, too_late_words, warning_words
from sm.cli.format import emit_json, encodable, is_terminal, say, show
from sm.cli.options import json_option, lines_option, no_start, session_argument
from sm.cli.tables import table, terminal_width
from sm.cli.tree import seconds_since, session_columns
from sm.client import Client, inside_session, session_path
from sm.core.errors import error

DAY_S = 86_400
EXPECTED_ENDS = frozenset(
    ("exited", how) for how in ("killed", "the client has ended", "the client has ended (exit code 0)")
)
"""Ends that need no explanation."""


def notes(sessions: list[dict[str, Any]]) -> list[str]:
    """Return the cause of each status, and what to do; a name that several sessions have gets its id."""
    names = Counter(session["name"] for session in sessions)
    explained = (
        view for view in sessions if view.get("detail") and (view["status"], view["detail"]) not in EXPECTED_ENDS
    )
    details = [_note(view, alone=names[view["name"]] == 1) for view in explained]
    return [*details, *(note for session in sessions for note in _warnings(session, alone=names[session["name"]] == 1))]


def _warnings(session: dict[str, Any], *, alone: bool) -> Iterator[str]:
    """Return warnings given to its agent about a full context, and compactions that came too early."""
    if session["status"] in ENDED_STATUSES:
        return
    shown = plain(session["name"]) if alone else f"{plain(session['name'])} ({session['id']})"
    given = list((session.get("context") or {}).get("crossed_at", {}).items())
    if given and (session.get("handoff") or {}).get("phase") in NOT_HANDED_OFF:
        level, at = given[-1]
        yield f"{shown}: {warning_words(level, at)}, no handoff yet (sm context {session['id']})"
    if session.get("handoffs_too_late"):
        yield f"{shown}: {too_late_words(session['handoffs_too_late'])}"
    if session.get("limit") and session["limit"].get("resets_at"):
        yield f"{shown}: {limit_words(session['limit'])}"


NOT_HANDED_OFF = frozenset({None, "done", "failed", "cancelled"})


def _note(session: dict[str, Any], *, alone: bool) -> str:
    name = plain(session["name"])
    called, shown = (name, name) if alone else (session["id"], f"{name} ({session['id']})")
    note = f"{shown}: {plain(session['detail'])}"
    lost = session["status"] == "exited" and session["detail"].startswith("pane lost")
    if session.get("adopted") or not (lost or session["status"] == "crashed"):
        return note
    # The output of a foreground terminal is not stored.
    look = "" if lost or session.get("foreground") else f"sm output {called}; "
    return f"{note} ({look}sm restore {called})"


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
@click.option("--provider", default="claude", show_default=True, help="The client program.")
@click.option("--name", help="The session's name; default: the directory's name.")
@click.option("--model", help="The model, passed to the client.")
@click.option("--prompt", help="The first prompt.")
@click.option("--client", "command", help="The client's executable; default: as configured.")
@click.option("--detach", is_flag=True, help="Print the id and do not attach.")
@no_start
@json_option
def new(directory: str, *, detach: bool, as_json: bool, **given: Any) -> None:  # noqa: ANN401
    """Start an agent in DIR (default: here) in a pane of sm, and attach to it.

    Arguments after -- go to the client unchanged.
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
        say(f"this project has a continuation prompt: sm resume {plain(offer['prompt']['path'])} continues from it")
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


@click.command("list")
@click.option("--all", "everything", is_flag=True, help="Include sessions that ended over a day ago.")
@no_start
@json_option
def list_sessions(*, everything: bool, as_json: bool) -> None:
    """List the sessions, their status and how full their contexts are.

    Inside a session, other sessions are shown with name and status only.
    """
    client = user_client()
    sessions = client.call("GET", "/sessions")
    if as_json:
        emit_json(sessions)
        return
    show_problems(client)
    shown = [
        session for session in sessions if everything or session["status"] not in ENDED_STATUSES or _recent(session)
    ]
    if not shown:
        say("no sessions\nhint: sm new starts one")
        return
    show(table(session_columns(shown), terminal_width()))
    for note in notes(shown):
        say(note)
    names = {session["id"]: plain(session["name"]) for session in sessions}
    for first, other in _paused(shown):
        pair = f"{names[first]} and {names.get(other, other)}"
        say(f"Messages between {pair} are paused (possible loop). Send either one a message to continue.")


def _paused(sessions: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return the pairs of sessions whose messages to each other are paused, each once."""
    pairs = {tuple(sorted((session["id"], other))) for session in sessions for other in session.get("paused_with", ())}
    return sorted((first, other) for first, other in pairs)


def _recent(session: dict[str, Any]) -> bool:
    """Whether it was active within a day: so long an ended session is shown."""
    return seconds_since(session) < DAY_S


@click.command()
@session_argument
@click.option("--ended", is_flag=True, hidden=True, help="Say how its client has ended, as tmux asks once it has.")
@no_start
def attach(session: str, *, ended: bool) -> int:
    """Show a session's pane in this terminal. Detach with Ctrl-b d.

    When the client ends, your terminal comes back. Inside another tmux sm prints the keys that detach there.
    """
    from sm.cli.attach import attach_to, report_end  # noqa: PLC0415  # as above

    if ended:
        return report_end(user_client(start=False), session)
    check_terminal("sm attach", "sm output prints what the pane shows")
    attach_to(user_client(), session)
    return 0


def check_terminal(command: str, hint: str) -> None:
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        raise error("no_terminal", f"{command} needs a terminal", hint)


@click.command()
@session_argument
@lines_option(200)
@no_start
@json_option
def output(session: str, lines: int, *, as_json: bool) -> None:
    """Print the last lines that a session's pane shows, with its history."""
    found = user_client().call("GET", session_path(session, f"/output?lines={lines}"))
    emit_json(found) if as_json else show(found["text"])


@click.command()
@session_argument
@click.argument("name")
@no_start
@json_option
def rename(session: str, name: str, *, as_json: bool) -> None:
    """Rename SESSION to NAME."""
    found = user_client().call("PATCH", session_path(session), {"name": name})
    emit_json(found) if as_json else say(f"renamed to {plain(found['name'])}")


@click.command()
@session_argument
@click.option("--children", is_flag=True, help="End its children too, and their children.")
@no_start
@json_option
def kill(session: str, *, children: bool, as_json: bool) -> None:
    """End a session's client and all processes it started, without confirmation. Documents and logs stay.

    Its children keep running unless --children is given. An agent can end its own children only.
    """
    found = user_client().call("DELETE", session_path(session, "?children=1" if children else ""))
    if as_json:
        emit_json(found)
        return
    for ended in found["ended"]:
        say(f"ended {plain(ended['name'])} ({ended['id']})")


@click.command()
@session_argument
@click.option("--attach", "attach_after", is_flag=True, help="Attach to it afterwards.")
@click.option("--force", is_flag=True, help="Restore even after 5 failed starts within 300 seconds.")
@no_start
@json_option
def restore(session: str, *, attach_after: bool, force: bool, as_json: bool) -> None:
    """Restart an ended session with its last conversation, or with the document of an unfinished handoff.

    Refused while another client has that conversation open, and after 5 starts within 300 seconds that ended without
    a turn. An agent can restore its own children only.
    """
    if attach_after:
        check_terminal("sm restore --attach", "without --attach it needs none")
    from sm.cli.attach import attach_to, wait_for_start  # noqa: PLC0415  # as above

    client = user_client()
    body = {"env": sendable_environment(), **({"force": True} if force else {})}
    found = client.call("POST", session_path(session, "/restore"), body)
    found = found if attach_after else wait_for_start(client, found)
    emit_json(found) if as_json else say(f"restored {plain(found['name'])} ({found['id']})")
    if attach_after:
        attach_to(client, found["id"])


@click.command()
@session_argument
@click.option("-f", "--follow", is_flag=True, help="Follow new events; survives server restarts.")
@lines_option(20)
@click.option("--all", "everything", is_flag=True, help="Include the steps inside sm, with all that is stored of them.")
@no_start
@json_option
def tail(session: str, lines: int, *, follow: bool, everything: bool, as_json: bool) -> None:
    """Print what a session does: prompts, tools, how full its context is, warnings, handoffs.

    Prompts and commands come from the client's transcript, without secrets; sm stores neither. With --follow and
    --json, each event is one JSON object per line.
    """
    from sm.cli.tail import TailOptions, print_events  # noqa: PLC0415  # http.client is for this command only

    print_events(user_client(), session, TailOptions(lines, follow, as_json, everything))
