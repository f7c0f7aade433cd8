"""Commands an agent calls about itself: handoff, status, context. A person may use them with a session's name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sm.cli import handing_off
from sm.cli.connection import agent_or_user, user_client
from sm.cli.output import bar, emit_json, show, tokens
from sm.client import Client, inside_session
from sm.core.errors import error


@click.command()
@click.argument("file", required=False, metavar="FILE")
@click.option("--reason", default="", help="Why now; kept with the handoff.")
@click.option("--status", "action", flag_value="status", help="Tell how far the rotation is.")
@click.option("--cancel", "action", flag_value="cancel", help="Take a pending handoff back.")
@click.option("--retry", "action", flag_value="retry", help="Try again after a failure.")
@click.option("--session", metavar="S", help="The session, for a person (with --status, --cancel, --retry).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def handoff(file: str | None, reason: str, action: str | None, session: str | None, *, as_json: bool) -> int:
    """Clear this session's context at the end of the turn and go on from FILE, as the same session.

    FILE is the document the next context starts from; `-` reads it from standard input. Call it as the last action of
    a turn and end the turn.
    """
    if action is None:
        return _schedule(file, reason, session, as_json=as_json)
    if file is not None:
        raise error("usage", f"--{action} takes no FILE", "sm handoff --help")
    client, own = agent_or_user(session)
    view = _acted(client, own, action)
    if as_json:
        emit_json(view)
    else:
        show(handoff_line(view))
    return 0


def _schedule(file: str | None, reason: str, session: str | None, *, as_json: bool) -> int:
    if session is not None:
        raise error("not_self", "sm handoff is self-directed only — requester must equal target session")
    if inside_session() is None:
        raise error("not_in_session", handing_off.NOT_INSIDE)
    if file is None:
        raise error("usage", "FILE is missing", "sm handoff .sm/handoff.md")
    return handing_off.schedule(file, reason, as_json=as_json)


ACTIONS = {"status": ("GET", ""), "cancel": ("DELETE", ""), "retry": ("POST", "/retry")}


def _acted(client: Client, session: str, action: str) -> dict[str, Any]:
    method, suffix = ACTIONS[action]
    view = client.call(method, f"/sessions/{session}/handoff{suffix}")
    assert isinstance(view, dict)
    return view


def handoff_line(view: dict[str, Any]) -> str:
    if view.get("phase") is None:
        return "No handoff yet"
    note = f": {view['note']}" if view.get("note") else ""
    return f"{view['phase']}{note}  ({view['path']})"


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def status(*, as_json: bool) -> None:
    """Inside a session: who it is, its context and its handoff. Outside: every session."""
    if inside_session() is None:
        from sm.cli.sessions import print_sessions  # noqa: PLC0415  # only a person's form needs it

        print_sessions(user_client(), as_json=as_json, everything=False)
        return
    client, own = agent_or_user(None)
    view = client.call("GET", f"/sessions/{own}")
    if as_json:
        emit_json(view)
        return
    context_view = view["context"]
    show(f"{view['name']} ({view['id']}) {view['status']}")
    show(f"context {context_line(context_view)}")
    show(f"handoff {handoff_line(view['handoff'])}")


def context_line(view: dict[str, Any]) -> str:
    percent = view.get("percent")
    if view.get("tokens") is None and view.get("projected") is None:
        return "unknown"
    share = f" ({percent:.1f}% of usable {tokens(view.get('usable'))})" if percent is not None else ""
    size = view.get("projected") if view.get("projected") is not None else view.get("tokens")
    return f"{bar(percent)} {size:,} tokens{share}, {view.get('level', 'unknown')}"


@click.command()
@click.argument("session", required=False)
@click.option("--transcript", type=click.Path(path_type=Path), help="Read this file instead; needs no server.")
@click.option("--provider", type=click.Choice(["claude", "codex"]), default="claude", help="Who wrote the transcript.")
@click.option("--rearm", is_flag=True, help="Reset the latches, so that crossed thresholds warn again.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def context(session: str | None, transcript: Path | None, provider: str, *, rearm: bool, as_json: bool) -> None:
    """Show how full a session's context is, or what a transcript says."""
    if transcript is not None:
        from sm.cli.measuring import transcript_view  # noqa: PLC0415  # reads files, needs no server

        view = transcript_view(transcript, provider)
    else:
        client, own = agent_or_user(session)
        method, suffix = ("POST", "/context/rearm") if rearm else ("GET", "/context")
        view = client.call(method, f"/sessions/{own}{suffix}")
    if as_json:
        emit_json(view)
    else:
        show(context_line(view))
