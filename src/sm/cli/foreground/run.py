"""`sm run`: the client in this terminal, as if started alone, measured and rotated like every other session.

Without a server the client runs as well, and the user is shown that monitoring is off.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from sm.cli.connection import user_client
from sm.cli.format import is_terminal, say
from sm.cli.new import CLIENT_ARGUMENTS, WithClientArguments, check_configuration, sendable_environment
from sm.cli.options import may_start, no_start
from sm.client import inside_session
from sm.core.errors import SmError, error

SERVERLESS_ERRORS = frozenset(
    {"unavailable", "start_failed", "not_answering", "home_unusable", "internal", "database_unusable", "write_failed"}
)
"""After these errors the client runs without a server."""


@click.command(cls=WithClientArguments)
@click.option("--name", help="The session's name; default: the directory's name.")
@click.option(
    "--max-restarts",
    type=click.IntRange(0),
    help="Number of handoffs without progress after which sm keeps the context.",
)
@click.option(
    "--on-compact",
    type=click.Choice(["rotate", "save"]),
    help="Before the client compacts: continue in a fresh context, or only save a document. Default: as configured, "
    "else rotate.",
)
@click.option("--client", "command", help="The client's executable; default: as configured.")
@no_start
def run(name: str | None, max_restarts: int | None, on_compact: str | None, command: str | None) -> int:
    """Run the client in this terminal, without tmux; after a handoff its agent continues here in a fresh context.

    Arguments after -- go to the client unchanged. Exit code: the client's.
    """
    if inside_session() is not None:
        raise error("inside_session", "sm run cannot be used inside a session", "sm spawn starts a child")
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        raise error("no_terminal", "sm run needs a terminal", "sm new --detach starts a session without one")
    place = Path.cwd()
    check_configuration(place)
    arguments = click.get_current_context().meta[CLIENT_ARGUMENTS]
    env = sendable_environment()
    wrapper = {"wrapper": os.getpid(), "max_restarts": max_restarts, "on_compact": on_compact or _configured(place)}
    body = {"dir": str(place), "env": env, "name": name, "arguments": arguments, "command": command}
    try:
        client = user_client()
        session = client.call("POST", "/sessions", {**body, "foreground": wrapper})
    except SmError as problem:
        if problem.refused.code not in SERVERLESS_ERRORS or not may_start():
            raise
        _run_alone(place, command, arguments, problem)
    return _run_with_server(client, session, env)


def _configured(place: Path) -> object:
    from sm.settings import configured_value  # noqa: PLC0415  # msgspec costs 31 ms

    return configured_value(place, os.environ, "handoff.on_compact") or "rotate"


def _run_with_server(client: Any, session: dict[str, Any], env: dict[str, str]) -> int:  # noqa: ANN401
    from sm.cli.foreground.server_link import ServerLink  # noqa: PLC0415  # threads and pipes, for this command only
    from sm.cli.foreground.terminal import UserTerminal  # noqa: PLC0415
    from sm.cli.foreground.wrapper import ClientWrapper  # noqa: PLC0415

    link = ServerLink(client, session["id"], env, on_order=lambda: None)
    wrapper = ClientWrapper(link, session["launch"]["env"], UserTerminal())
    link.on_order = wrapper.ring
    return wrapper.run(session["launch"])


def _run_alone(place: Path, command: str | None, arguments: list[str], problem: SmError) -> NoReturn:
    from sm.settings import load  # noqa: PLC0415  # msgspec costs 31 ms

    say(f"sm: monitoring is off: {problem.refused.message}; the client runs without it")
    configured = load(place, os.environ).claude
    argv = [command] if command else [configured.command, *configured.arguments]
    try:
        os.execvp(argv[0], [*argv, *arguments])  # noqa: S606  # the client replaces this process
    except OSError as failed:
        raise error(
            "client_not_found", f"Client not found: {argv[0]}", "install it, or name one with --client"
        ) from failed
