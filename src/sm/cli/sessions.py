"""The user's commands about sessions that exist: list, attach, output, rename, tail."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from sm.cli.connection import show_problems, user_client
from sm.cli.descriptions import interrupted_words, limit_words, limited_words, too_late_words, warning_words
from sm.cli.format import emit_json, is_terminal, say, show
from sm.cli.options import json_option, lines_option, no_start, session_argument
from sm.cli.tables import table, terminal_width
from sm.cli.tree import seconds_since, session_columns
from sm.client import session_path
from sm.core.errors import error
from sm.core.ids import as_argument
from sm.fleet import ENDED_STATUSES, in_tree, is_lost, need, needs_answer
from sm.plain_text import plain

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
    called, shown = _called(session, alone=alone)
    given = list((session.get("context") or {}).get("crossed_at", {}).items())
    if given and (session.get("handoff") or {}).get("phase") in NOT_HANDED_OFF:
        level, at = given[-1]
        yield f"{shown}: {warning_words(level, at)}, no handoff yet (sm context {called})"
    if session.get("interrupted"):
        yield f"{shown}: {interrupted_words(session)}"
    if session.get("handoffs_too_late"):
        yield f"{shown}: {too_late_words(session['handoffs_too_late'])}"
    if session.get("limit") and session["status"] != "limited":
        yield f"{shown}: {limit_words(session['limit'])}"


NOT_HANDED_OFF = frozenset({None, "done", "failed", "cancelled"})


def _note(session: dict[str, Any], *, alone: bool) -> str:
    called, shown = _called(session, alone=alone)
    if session["status"] == "limited" and session.get("limit"):
        return f"{shown}: {limited_words(session, called)}"
    note = f"{shown}: {plain(session['detail'])}"
    pane_lost = session["status"] == "exited" and session["lost_at"] is not None
    if session.get("adopted") or not (pane_lost or session["status"] == "crashed"):
        return note
    # The output of a foreground terminal is not stored.
    look = "" if pane_lost or session.get("foreground") else f"sm output {called}; "
    return f"{note} ({look}sm restore {called})"


def _called(session: dict[str, Any], *, alone: bool) -> tuple[str, str]:
    """Return what a command calls a session, and what a text does; the only one with its name by that."""
    name, identity = plain(session["name"]), session["id"]
    return (as_argument(name, identity), name) if alone else (identity, f"{name} ({identity})")


@click.command("list")
@click.option("--all", "everything", is_flag=True, help="Include sessions that ended over a day ago.")
@click.option("--running", is_flag=True, help="Only those that have not ended.")
@click.option("--here", is_flag=True, help="Only those of this project: this directory, or its repository's worktrees.")
@click.option("--waiting", is_flag=True, help="Only those that wait for your answer, or are blocked.")
@no_start
@json_option
def list_sessions(*, everything: bool, running: bool, here: bool, waiting: bool, as_json: bool) -> None:
    """List the sessions, their status and how full their contexts are. Those that need you come first.

    Inside a session, other sessions are shown with name and status only.
    """
    client = user_client()
    sessions = client.call("GET", "/sessions")
    chosen = [session for session in sessions if not running or session["status"] not in ENDED_STATUSES]
    chosen = [session for session in chosen if not waiting or needs_answer(session)]
    chosen = _of_project(chosen) if here else chosen
    if as_json:
        emit_json([session for _, session in in_tree(chosen)])
        return
    show_problems(client)
    shown = [session for session in chosen if everything or _is_news(session)]
    if not shown:
        say(_none_of(sessions, running=running, here=here, waiting=waiting))
        return
    show(table(session_columns(shown), terminal_width()))
    for note in notes(shown):
        say(note)
    lost = sum(map(is_lost, shown))
    if lost > 1:
        say(f"{lost} sessions were lost: sm restore --all restarts them")
    names = {session["id"]: plain(session["name"]) for session in sessions}
    for first, other in _paused(shown):
        pair = f"{names[first]} and {names.get(other, other)}"
        say(f"Messages between {pair} are paused (possible loop). Send either one a message to continue.")


def _paused(sessions: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return the pairs of sessions whose messages to each other are paused, each once."""
    pairs = {tuple(sorted((session["id"], other))) for session in sessions for other in session.get("paused_with", ())}
    return sorted((first, other) for first, other in pairs)


def _of_project(sessions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    from sm.archive.handoffs.channels import belongs_to  # noqa: PLC0415  # for --here only

    return [session for session in sessions if session.get("dir") and belongs_to(Path.cwd(), Path(session["dir"]))]


def _none_of(sessions: list[dict[str, Any]], *, running: bool, here: bool, waiting: bool) -> str:
    if not sessions or not (running or here or waiting):
        return "no sessions\nhint: sm new starts one"
    which = "waits for you" if waiting else "runs" if running else "is of this project"
    return f"no session {which}{' in this project' if here and (waiting or running) else ''}\nhint: sm list"


def _is_news(session: dict[str, Any]) -> bool:
    """Whether it lives, was active within a day, or was lost and can be restored."""
    return session["status"] not in ENDED_STATUSES or seconds_since(session) < DAY_S or is_lost(session)


@click.command()
@session_argument(required=False)
@click.option("--waiting", is_flag=True, help="The session that has waited longest for your answer.")
@click.option("--ended", is_flag=True, hidden=True, help="Say how its client has ended, as tmux asks once it has.")
@no_start
def attach(session: str | None, *, waiting: bool, ended: bool) -> int:
    """Show a session's pane in this terminal. Detach with Ctrl-b d.

    When the client ends, your terminal comes back. Inside another tmux sm prints the keys that detach there.
    """
    from sm.cli.attach import attach_to, report_end  # noqa: PLC0415  # as above

    if waiting == (session is not None):
        raise error("usage", "Name a SESSION, or use --waiting", "sm list --waiting shows who waits")
    if ended:
        return report_end(user_client(start=False), session or "")
    check_terminal("sm attach", "sm output prints what the pane shows")
    client = user_client()
    shown = session or first_waiting(client.call("GET", "/sessions"))
    if shown is None:
        say("no session waits for you")
        return 1
    attach_to(client, shown)
    return 0


def first_waiting(sessions: list[dict[str, Any]]) -> str | None:
    """Return the id of the session in a pane that needs the user most; of several the one that was last seen first."""
    meant = [session for session in sessions if session["pane"] is not None and needs_answer(session)]
    return min(meant, key=lambda session: (need(session), session["last_activity"]))["id"] if meant else None


def check_terminal(command: str, hint: str) -> None:
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        raise error("no_terminal", f"{command} needs a terminal", hint)


@click.command()
@session_argument()
@lines_option(200)
@no_start
@json_option
def output(session: str, lines: int, *, as_json: bool) -> None:
    """Print the last lines that a session's pane shows, with its history."""
    found = user_client().call("GET", session_path(session, f"/output?lines={lines}"))
    emit_json(found) if as_json else show(found["text"])


@click.command()
@session_argument()
@click.argument("name")
@no_start
@json_option
def rename(session: str, name: str, *, as_json: bool) -> None:
    """Rename SESSION to NAME."""
    found = user_client().call("PATCH", session_path(session), {"name": name})
    emit_json(found) if as_json else say(f"renamed to {plain(found['name'])}")


@click.command()
@session_argument()
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
