"""Commands of an agent about its team and reminders: spawn, children, clear, wait, remind, done."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import click

from sm.cli.connection import agent_only, agent_or_user, user_client
from sm.cli.format import ago, emit_json, say, show
from sm.cli.messages import given_text
from sm.cli.new import sendable_environment
from sm.cli.options import json_option, no_start
from sm.cli.tables import Column, table, terminal_width
from sm.cli.tree import child_columns
from sm.client import session_path
from sm.core.errors import error
from sm.plain_text import plain

DEFAULT_TRACK = "10m"
MAX_ABOUT_CHARS = 60
"""Of a reminder's text in the list."""
ROUNDING_S = 5.0
"""A reminder that was just created still shows its whole delay within it."""
UNIT_S = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}


def seconds(text: str) -> float:
    """Parse a delay: 90, 90s, 5m, 2h or 1d."""
    match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]+)?)([smhd]?)", text.strip())
    if match is None:
        raise error("usage", f"Invalid delay {text!r}. Use 90, 90s, 5m, 2h or 1d", "sm help remind")
    return float(match[1]) * UNIT_S[match[2]]


class WithTrack(click.Command):
    """Makes `--track` alone a flag, so that the PROMPT after it is not its value."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = args[: args.index("--")] if "--" in args else args
        spelled = [f"--track={DEFAULT_TRACK}" if argument == "--track" else argument for argument in own]
        return super().parse_args(ctx, [*spelled, *args[len(own) :]])


@click.command(cls=WithTrack)
@click.argument("prompt", nargs=-1, required=True, metavar="PROMPT...")
@click.option("--provider", help="The client program; default: this session's.")
@click.option("--name", help="The child's name; default: this session's with `-child`.")
@click.option("--model", help="The model, passed to the client; default: this session's.")
@click.option("--dir", "directory", default=".", help="Its directory; default: here.")
@click.option(
    "--track",
    metavar="[=DELAY]",
    help=f"Ask it to report every DELAY (default {DEFAULT_TRACK}); message this session when it does not.",
)
@click.option(
    "--notify-on-stop/--no-notify-on-stop", "notify", default=True, help="Message this session when the task has ended."
)
@json_option
def spawn(prompt: tuple[str, ...], directory: str, track: str | None, *, as_json: bool, **given: Any) -> None:  # noqa: ANN401
    """Start a child session that works on PROMPT; prints its id. `-` reads the PROMPT from standard input.

    The child has this session's permission mode. This session gets a message when the task has ended.
    """
    client, own = agent_only()
    body = {
        "dir": str(Path(directory).expanduser().absolute()),
        "prompt": given_text(prompt, "prompt", "sm spawn"),
        "env": sendable_environment(),
        "track": None if track is None else seconds(track),
        **given,
    }
    child = client.call("POST", session_path(own, "/children"), body)
    if as_json:
        emit_json(child)
        return
    say(f"started {plain(child['name'])}")
    show(child["id"])


@click.command()
@click.argument("session", required=False)
@no_start
@json_option
def children(session: str | None, *, as_json: bool) -> None:
    """List this session's children, or those of SESSION: their status and what they reported last."""
    client, own = agent_or_user(session)
    found = client.call("GET", session_path(own, "/children"))
    if as_json:
        emit_json(found)
    elif not found:
        say("no children\nhint: sm spawn PROMPT starts one")
    else:
        show(table(child_columns(found), terminal_width()))
        for child in found:
            if child["detail"]:
                say(f"{plain(child['name'])}: {plain(child['detail'])}")


@click.command()
@click.argument("child")
@click.argument("prompt", nargs=-1, metavar="[PROMPT...]")
@click.option(
    "--notify-on-stop/--no-notify-on-stop", "notify", default=True, help="Message this session when the task has ended."
)
@no_start
@json_option
def clear(child: str, prompt: tuple[str, ...], *, notify: bool, as_json: bool) -> None:
    """Clear CHILD's context as soon as it is idle and give it PROMPT. The new context knows nothing else."""
    body = {"prompt": given_text(prompt, "prompt", "sm clear CHILD") if prompt else None, "notify": notify}
    found = user_client().call("POST", session_path(child, "/clear"), body)
    emit_json(found) if as_json else say(f"{plain(found['name'])} will be cleared as soon as it is idle")


@click.command()
@click.argument("target")
@click.argument("delay", metavar="DELAY")
@json_option
def wait(target: str, delay: str, *, as_json: bool) -> None:
    """Get a message when TARGET is idle, or after DELAY. Returns at once: end the turn to wait."""
    client, own = agent_only()
    found = client.call("POST", session_path(own, "/waits"), {"target": target, "seconds": seconds(delay)})
    if as_json:
        emit_json(found)
    elif found["idle"]:
        show(f"{plain(found['name'])} {'has ended' if found['ended'] else 'is idle'} already")
    else:
        show(f"You will get a message when {plain(found['name'])} is idle, or after {ago(seconds(delay))}")


@click.command()
@click.argument("text", nargs=-1, metavar="[TEXT...]")
@json_option
def done(text: tuple[str, ...], *, as_json: bool) -> None:
    """Report the task as complete to the parent, and end this session's reminders."""
    client, own = agent_only()
    body = {"text": given_text(text, "text", "sm done") if text else "", "done": True}
    found = client.call("POST", session_path(own, "/report"), body)
    emit_json(found) if as_json else show("Done" + (" — reported to your parent" if found["parent"] else ""))


REMINDER_ID = re.compile(r"[0-9a-f]{1,32}")
USAGE = "sm remind DELAY TEXT, sm remind list, sm remind cancel ID"


@click.command()
@click.argument("delay", metavar="DELAY|list|cancel")
@click.argument("text", nargs=-1, metavar="[TEXT...|ID]")
@click.option("--every", is_flag=True, help="Repeat it every DELAY.")
@json_option
def remind(delay: str, text: tuple[str, ...], *, every: bool, as_json: bool) -> None:
    """Get TEXT as a message after DELAY (90, 90s, 5m, 2h or 1d).

    `sm remind list` lists this session's reminders and waits; `sm remind cancel ID` cancels one.
    """
    client, own = agent_only()
    path = session_path(own, "/reminders")
    if delay == "list" and not text:
        found = client.call("GET", path)
        emit_json(found) if as_json else _show_reminders(found)
    elif delay == "cancel" and len(text) == 1:
        if REMINDER_ID.fullmatch(text[0]) is None:
            raise error("not_found", f"No reminder {text[0]}", "sm remind list")
        found = client.call("DELETE", f"{path}/{text[0]}")
        emit_json(found) if as_json else say(f"cancelled {found['id']}")
    elif delay in {"list", "cancel"}:
        raise error("usage", f"sm remind {delay} takes {'no words' if delay == 'list' else 'one ID'}", USAGE)
    else:
        body = {"delay": seconds(delay), "text": given_text(text, "text", "sm remind DELAY"), "every": every}
        found = client.call("POST", path, body)
        emit_json(found) if as_json else show(found["id"])


def _show_reminders(found: list[dict[str, Any]]) -> None:
    if not found:
        say(f"no reminders\nhint: {USAGE}")
    else:
        show(table(reminder_columns(found), terminal_width()))


def reminder_columns(reminders: list[dict[str, Any]]) -> list[Column]:
    return [
        Column("ID", [reminder["id"] for reminder in reminders]),
        Column("KIND", [reminder["kind"] for reminder in reminders]),
        Column("IN", [_until(reminder["due"]) for reminder in reminders]),
        Column("EVERY", [ago(reminder["every"]) if reminder["every"] else "-" for reminder in reminders], rank=1),
        Column("ABOUT", [_about(reminder)[:MAX_ABOUT_CHARS] for reminder in reminders], rank=2),
    ]


def _until(due: float | None) -> str:
    if due is None:
        return "-"
    return ago(due - time.time() + ROUNDING_S)  # noqa: TID251  # the user's clock


def _about(reminder: dict[str, Any]) -> str:
    return plain(str(reminder["text"])) if reminder["text"] else plain(str(reminder["about"]))
