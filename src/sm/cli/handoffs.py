"""The user's commands about handoff documents: list, show, clear, and start a session from one."""

from __future__ import annotations

import os
import shlex
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import click

from sm.archive.handoffs.project_directory import git_entry
from sm.archive.handoffs.sources import is_at_hand, resolved
from sm.cli.connection import user_client
from sm.cli.format import ago, emit_json, say, show
from sm.cli.new import attach_or_print, check_configuration, sendable_environment
from sm.cli.options import json_option, no_start
from sm.cli.tables import Column, table, terminal_width
from sm.client import Client, inside_session
from sm.core.errors import error
from sm.core.model.channel import Location
from sm.paths import checked_id
from sm.plain_text import plain
from sm.settings import load

PROMPT_FILES = (".sm/continue-prompt.md", ".ll/ll-continue-prompt.md")
NO_PROMPT = (
    "Error: No continuation prompt found at .sm/continue-prompt.md\n"
    "Run /handoff to generate one, or specify a custom path:\n"
    "/sm:resume path/to/custom-prompt.md"
)
HOUR_S = 3_600.0
channel_option = click.option("--channel", metavar="C", help="The project: its path, directory name or name.")


@click.group(invoke_without_command=True)
@channel_option
@no_start
@json_option
@click.pass_context
def handoffs(context: click.Context, channel: str | None, *, as_json: bool) -> None:
    """List the handoff documents, the newest first: their states and the sessions that have them."""
    if context.invoked_subcommand is not None:
        if channel is not None or as_json:
            raise error("usage", "Options go after the subcommand", f"sm handoffs {context.invoked_subcommand} --help")
        return
    found = user_client().call("GET", f"/handoffs{_query(channel)}")
    if as_json:
        emit_json(found)
    elif not found:
        say("no handoffs\nhint: an agent makes one with sm handoff FILE")
    else:
        show(table(_columns(found), terminal_width()))
        for view in found:
            if view["reason"]:
                say(f"{view['id']}: {plain(view['reason'])}")


def _query(channel: str | None, **more: str) -> str:
    """Return the query: a path is a directory in the channel, any other text its name."""
    if channel is None:
        named = {}
    elif "/" in channel or channel in {".", ".."}:
        named = {"dir": str(Path(channel).expanduser().absolute())}
    else:
        named = {"channel": channel}
    given = {**named, **more}
    return f"?{urlencode(given)}" if given else ""


def _columns(found: list[dict[str, Any]]) -> list[Column]:
    now = time.time()  # noqa: TID251  # the user's clock
    return [
        Column("ID", [view["id"] for view in found]),
        Column("STATE", [view["state"] for view in found]),
        Column("HELD BY", [plain(view["holder"] or "-") for view in found], rank=3),
        Column("AGE", [ago(now - view["created"]) for view in found]),
        Column("TYPE", [view["type"] for view in found], rank=2),
        Column("CHANNEL", [plain(view["channel"]) for view in found], rank=1),
    ]


@handoffs.command("show")
@click.argument("handoff", metavar="ID")
@no_start
@json_option
def show_one(handoff: str, *, as_json: bool) -> None:
    """Print the document of a handoff."""
    found = user_client().call("GET", f"/handoffs/{checked_id(handoff)}")
    emit_json(found) if as_json else show(found["document"].rstrip("\n"))


@handoffs.command("clear")
@click.argument("handoff", required=False, metavar="[ID]")
@channel_option
@no_start
@json_option
def clear(handoff: str | None, channel: str | None, *, as_json: bool) -> None:
    """Dismiss an open handoff; without ID, all open ones in this project. The documents stay."""
    client = user_client()
    if handoff is not None:
        found = client.call("DELETE", f"/handoffs/{checked_id(handoff)}")
        cleared = [found["id"]]
    else:
        found = client.call("DELETE", f"/handoffs{_query(channel or '.')}")
        cleared = found["cleared"]
    if as_json:
        emit_json({"cleared": cleared})
    else:
        say("\n".join(f"cleared {identity}" for identity in cleared) or "no open handoff in this project")


@handoffs.command("active")
@channel_option
@no_start
@json_option
def active(channel: str | None, *, as_json: bool) -> int:
    """Print the ids of open handoffs in this directory; exit code 1 if it has none.

    A handoff of another worktree of the repository is named on stderr: `sm resume ID` takes it.
    """
    found = user_client().call("GET", f"/handoffs{_query(channel or '.', waiting='1')}")
    here = [view for view in found if view.get("here", True)]
    if as_json:
        emit_json(here)
    elif here:
        show("\n".join(view["id"] for view in here))
    for view in found:
        if view not in here:
            say(f"{view['id']} is open in {_where(view)}\nhint: sm resume {view['id']}")
    return 0 if here else 1


def _where(found: dict[str, Any]) -> str:
    return plain(Location(found["dir"], found["branch"] or "").said)


def _holder_hint(client: Client) -> str:
    """Return which session has the newest handoff of this project: another may have taken it just before."""
    found = client.call("GET", f"/handoffs{_query('.')}")
    waits = next((view for view in found if view["state"] == "active" and not view["held_by"]), None)
    if waits is not None:
        return f"an open handoff of {_where(waits)}: sm resume {waits['id']}"
    newest = found[0] if found else {"held_by": None}
    return f"the newest handoff here, {newest['id']}, is with session {newest['holder']}" if newest["held_by"] else ""


@click.command()
@click.argument("source", required=False, metavar="[PATH|ID]")
@click.option("--name", help="The session's name; default: the directory's name.")
@click.option("--model", help="The model, passed to the client.")
@click.option("--client", "command", help="The client's executable; default: as configured.")
@click.option("--detach", is_flag=True, help="Print the id and do not attach.")
@no_start
@json_option
def resume(source: str | None, *, detach: bool, as_json: bool, **given: Any) -> None:  # noqa: ANN401
    """Start a session in this directory that continues from a document.

    The document is the handoff of that ID, a file, or by default the newest open handoff of this directory, else
    .sm/continue-prompt.md here or at the root of the repository. Each handoff is given to one session.
    """
    if inside_session() is not None:
        raise error("inside_session", "sm resume cannot be used inside a session", "read the document instead")
    place = Path.cwd()
    check_configuration(place)
    client = user_client()
    body = {
        "dir": str(place),
        "env": sendable_environment(),
        "handoff": _default_source(client, place) if source is None else _source_of(source),
        **given,
    }
    attach_or_print(client, client.call("POST", "/sessions", body), detach=detach, as_json=as_json)


def _source_of(source: str) -> str:
    """Return an id unchanged, a file as an absolute path."""
    if not source.startswith("HO-") or Path(source).exists():
        path = Path(source).expanduser().absolute()
        if not path.exists():
            raise error("file_not_found", f"Neither a handoff nor a file: {source}", "sm handoffs lists the handoffs")
        return str(path)
    return source


def _default_source(client: Client, place: Path) -> str:
    if any(view["here"] for view in client.call("GET", f"/handoffs{_query('.', waiting='1')}")):
        return ""  # the server decides which of them
    entry = git_entry(place)
    places = (place,) if entry is None else (place, entry.parent)
    path = next((folder / name for folder in places for name in PROMPT_FILES if (folder / name).is_file()), None)
    if path is None:
        raise error("no_prompt", NO_PROMPT, _holder_hint(client))
    if not is_at_hand(resolved(path), str(place)):  # a clone may contain a link to any file of the user
        raise error(
            "file_unfit",
            f"{path} is a link that leads to {resolved(path)}",
            f"sm resume {shlex.quote(str(resolved(path)))}",
        )
    hours = load(place, os.environ).continuation.prompt_expiry_hours
    age = (time.time() - path.stat().st_mtime) / HOUR_S  # noqa: TID251  # a file's time is the machine's
    if 0 < hours < age:
        say(f"warning: {path} was written {age:.0f} hours ago; it may be out of date")
    return str(path)
