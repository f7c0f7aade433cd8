"""`sm server`: the background process that owns the sessions."""

from __future__ import annotations

import os
import time

import click

from sm.cli.connection import running, started, user_client
from sm.cli.output import ago, emit_json, say, show
from sm.client import inside_session
from sm.core.errors import error
from sm.lock import held_by
from sm.paths import home

STOP_TIMEOUT = 10.0
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


@click.group()
def server() -> None:
    """Start, stop and look at the server. Sessions go on while it is stopped."""


@server.command()
def run() -> None:
    """Run the server in this terminal."""
    from sm.bootstrap import serve  # noqa: PLC0415  # everything is loaded here

    serve()


@server.command()
def start() -> None:
    """Start the server in the background, if none runs."""
    if running(home(os.environ)) is not None:
        say("the server already runs")
        return
    client = started()
    say(f"the server runs at {client.address}")


@server.command()
def stop() -> None:
    """Stop the server. Agents go on; what they report meanwhile is caught up with at the next start."""
    _stop()
    say("the server has stopped")


def _stop() -> None:
    if inside_session() is not None:
        raise error("forbidden", "A session may not stop the server", "ask the person who runs sm")
    place = home(os.environ)
    client = running(place)
    if client is None:
        pid = held_by(place)
        if pid is None:
            raise error("not_running", "No server runs", "sm server start")
        raise error("not_answering", f"The server (pid {pid}) does not answer", f"kill {pid}")
    client.call("POST", "/stop")
    deadline = time.monotonic() + STOP_TIMEOUT
    while held_by(place) is not None:
        if time.monotonic() > deadline:
            raise error("not_stopping", "The server does not stop", f"kill {held_by(place)}")
        time.sleep(0.05)


@server.command()
def restart() -> None:
    """Stop the server and start it again, at the same address."""
    if running(home(os.environ)) is not None:
        _stop()
    client = started()
    say(f"the server runs at {client.address}")


@server.command()
@json_option
def status(*, as_json: bool) -> int:
    """Tell whether the server runs, and where."""
    client = user_client(start=False)
    health = client.call("GET", "/health")
    found = {"url": client.address, **health}
    if as_json:
        emit_json(found)
    else:
        show(f"running at {found['url']} (pid {found['pid']}, version {found['version']})")
        show(f"{found['sessions']} sessions, up {ago(found['uptime'])}, home {found['home']}")
    return 0
