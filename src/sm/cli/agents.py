"""Commands that an agent calls about itself: handoff, status, context. The user can call them with a session's name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sm.cli.connection import agent_only, agent_or_user
from sm.cli.descriptions import context_line, handoff_line, status_lines
from sm.cli.format import emit_json, show
from sm.cli.handoff import NOT_INSIDE, NextClient, schedule
from sm.cli.new import CLIENT_ARGUMENTS, WithClientArguments
from sm.cli.options import UserOption, json_option, no_start
from sm.client import Client, inside_session, session_path
from sm.core.errors import error
from sm.core.model.context_warnings import handoff_file


class WithNextClient(WithClientArguments):
    """With `--to` what follows `--` is for that client; without, it is a FILE whose name begins with a dash."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = args[: args.index("--")] if "--" in args else args
        if any(argument.partition("=")[0] == "--to" for argument in own):
            return super().parse_args(ctx, args)
        ctx.meta[CLIENT_ARGUMENTS] = []
        return click.Command.parse_args(self, ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*click.Command.collect_usage_pieces(self, ctx), "[--to PROVIDER -- CLIENT ARGS]"]


@click.command(cls=WithNextClient)
@click.argument("file", required=False, metavar="FILE")
@click.option("--auto", is_flag=True, help="Make the document from transcript, git and todos, without a model.")
@click.option(
    "--out",
    cls=UserOption,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="File that --auto with --transcript writes.",
)
@click.option(
    "--transcript",
    cls=UserOption,
    type=click.Path(path_type=Path),
    metavar="T",
    help="With --auto: use this transcript and schedule nothing.",
)
@click.option("--reason", default="", help="The reason, stored with the handoff.")
@click.option("--status", "action", flag_value="status", help="Show the progress.")
@click.option("--cancel", "action", flag_value="cancel", help="Cancel a pending handoff.")
@click.option("--retry", "action", flag_value="retry", help="Try again after a failure.")
@click.option("--to", default="", metavar="PROVIDER", help="Let another client continue from it: claude or codex.")
@click.option("--session", metavar="S", help="The session, outside of one (with --to, --status, --cancel, --retry).")
@no_start
@json_option
def handoff(  # noqa: PLR0913, PLR0917  # click's own form: a parameter for each option
    file: str | None,
    out: Path | None,
    transcript: Path | None,
    reason: str,
    action: str | None,
    session: str | None,
    to: str,
    *,
    auto: bool,
    as_json: bool,
) -> int:
    """Clear this session's context at the end of the turn and continue from FILE, as the same session.

    FILE is the document the next context starts from; `-` reads it from standard input. Call it as the last action of
    a turn and end the turn. The last call in a turn wins.

    With --auto, without FILE: sm makes the document from the transcript and keeps it as .sm/handoff-auto-ID.md in the
    session's directory. Outside a session sm schedules nothing and prints the document of a transcript.

    With --to another client continues the same session: its name, parent, children and messages stay. That client has
    at most the rights of the one before; only the user may give it others, after --: sm handoff FILE --to codex
    --session S -- ARGS. If it does not start, the client before continues from the document.
    """
    arguments = click.get_current_context().meta[CLIENT_ARGUMENTS]
    if (to or arguments) and (action is not None or out is not None or transcript is not None or not to):
        raise error("usage", "--to, and what follows --, go with a document alone", "sm handoff --help")
    following = NextClient(to, tuple(arguments))
    if to and inside_session() is None:
        return _hand_over(file, session, following, reason, auto=auto, as_json=as_json)
    if auto:
        return _auto(file or action or session, out, transcript, reason, following, as_json=as_json)
    if out is not None or transcript is not None:
        raise error("usage", "--out and --transcript go with --auto", "sm handoff --help")
    if action is None:
        return _schedule(file, reason, session, following, as_json=as_json)
    if file is not None:
        raise error("usage", f"--{action} takes no FILE", "sm handoff --help")
    client, own = agent_or_user(session)
    view = _acted(client, own, action)
    if as_json:
        emit_json(view)
    else:
        show(handoff_line(view))
    return 0


def _hand_over(
    file: str | None, session: str | None, following: NextClient, reason: str, *, auto: bool, as_json: bool
) -> int:
    from sm.cli.switch import hand_over  # noqa: PLC0415  # for the user only

    if session is None:
        raise error("usage", "Which session? Name it with --session", "sm list shows them")
    hand_over(file, session, following, reason, auto=auto, as_json=as_json)
    return 0


def _auto(
    other: str | None, out: Path | None, transcript: Path | None, reason: str, following: NextClient, *, as_json: bool
) -> int:
    from sm.cli import auto_handoff  # noqa: PLC0415  # for --auto only: reads a whole transcript

    if other is not None:
        raise error("usage", "--auto takes no FILE, no --session and no other action", "sm handoff --help")
    if transcript is not None:
        auto_handoff.write_only(transcript, out, as_json=as_json)
    else:
        auto_handoff.hand_off(reason, following, as_json=as_json)
    return 0


def _schedule(file: str | None, reason: str, session: str | None, following: NextClient, *, as_json: bool) -> int:
    if session is not None:
        raise error("not_self", "sm handoff is self-directed only — requester must equal target session")
    if inside_session() is None:
        raise error("not_in_session", NOT_INSIDE)
    if file is None:
        raise error("usage", "FILE is missing", f"sm handoff {handoff_file(inside_session() or '')}")
    return schedule(file, reason, following=following, as_json=as_json)


ACTIONS = {"status": ("GET", ""), "cancel": ("DELETE", ""), "retry": ("POST", "/retry")}


def _acted(client: Client, session: str, action: str) -> dict[str, Any]:
    method, suffix = ACTIONS[action]
    view = client.call(method, session_path(session, f"/handoff{suffix}"))
    assert isinstance(view, dict)
    return view


@click.command()
@click.argument("text", nargs=-1, metavar="[TEXT...]")
@json_option
def status(text: tuple[str, ...], *, as_json: bool) -> None:
    """Show this session, its children, context and handoff; with TEXT report to others what it is doing.

    For an agent in its session. Outside of one, use `sm list`.
    """
    client, own = agent_only()
    if text:
        view = client.call("POST", session_path(own, "/report"), {"text": " ".join(text)})
    else:
        view = client.call("GET", session_path(own))
    if as_json:
        emit_json(view)
    else:
        show("Reported" if text else status_lines(view))


@click.command()
@click.argument("session", required=False)
@click.option(
    "--transcript",
    cls=UserOption,
    type=click.Path(path_type=Path),
    help="Read this transcript instead; needs no server.",
)
@click.option("--provider", type=click.Choice(["claude", "codex"]), help="Format of the transcript; default: detected.")
@click.option("--rearm", is_flag=True, help="Let the thresholds warn again in this context.")
@no_start
@json_option
def context(session: str | None, transcript: Path | None, provider: str | None, *, rearm: bool, as_json: bool) -> None:
    """Show how full a session's context, or that of a transcript, is."""
    if transcript is not None:
        from sm.cli.transcript_report import transcript_view  # noqa: PLC0415  # reads files, needs no server

        if session is not None or rearm:
            raise error("usage", "--transcript takes neither SESSION nor --rearm", "sm context --help")
        view = transcript_view(transcript, provider)
    else:
        client, own = agent_or_user(session)
        method, suffix = ("POST", "/context/rearm") if rearm else ("GET", "/context")
        view = client.call(method, session_path(own, suffix))
    if as_json:
        emit_json(view)
    else:
        show(context_line(view))
