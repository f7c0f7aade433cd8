"""`sm server`: the background process that owns the sessions."""

from __future__ import annotations

import os
import time

import click

from sm.cli.connection import running, started, user_client
from sm.cli.options import json_option
from sm.cli.output import ago, emit_json, say, show
from sm.client import Client, inside_session
from sm.core.errors import error
from sm.lock import held_by
from sm.paths import home

STOP_TIMEOUT = 10.0


@click.group()
def server() -> None:
    """Start, stop and look at the server. Sessions go on while it is stopped."""


@server.command()
def run() -> None:
    """Run the server in this terminal."""
    from sm.bootstrap import serve  # noqa: PLC0415  # everything is loaded here

    _only_a_person("run")
    serve()


@server.command()
@json_option
def start(*, as_json: bool) -> None:
    """Start the server in the background, if none runs."""
    _only_a_person("start")
    client = running(home(os.environ))
    if client is not None:
        say("the server already runs")
    _tell(client or started(), as_json=as_json)


@server.command()
@json_option
def stop(*, as_json: bool) -> None:
    """Stop the server. Agents go on; what they report meanwhile is caught up with at the next start."""
    _only_a_person("stop")
    _stop()
    emit_json({"stopped": True}) if as_json else say("the server has stopped")


def _only_a_person(verb: str) -> None:
    if inside_session() is not None:
        raise error("forbidden", f"A session may not {verb} the server", "ask the person who runs sm")


def _stop() -> None:
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
@json_option
def restart(*, as_json: bool) -> None:
    """Stop the server and start it again, at the same address."""
    _only_a_person("restart")
    if running(home(os.environ)) is not None:
        _stop()
    _tell(started(), as_json=as_json)


def _tell(client: Client, *, as_json: bool) -> None:
    if as_json:
        emit_json(_state(client))
    else:
        say(f"the server runs at {client.address}")


@server.command()
@json_option
def status(*, as_json: bool) -> None:
    """Tell whether the server runs, and where. Starts nothing."""
    found = _state(user_client(start=False))
    if as_json:
        emit_json(found)
        return
    show(f"running at {found['url']} (pid {found['pid']}, version {found['version']})")
    sessions = "1 session" if found["sessions"] == 1 else f"{found['sessions']} sessions"
    show(f"{sessions}, up {ago(float(str(found['uptime'])))}, home {found['home']}")


def _state(client: Client) -> dict[str, object]:
    return {"url": client.address, **client.call("GET", "/health")}
