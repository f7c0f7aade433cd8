"""`sm server`: the background process that owns the sessions."""

from __future__ import annotations

import contextlib
import os
import signal
import time

import click

from sm.cli.connection import running_client, show_problems, start_server, user_client
from sm.cli.format import ago, emit_json, say, show
from sm.cli.options import json_option
from sm.client import Client, inside_session
from sm.core.errors import SmError, error
from sm.lock import held_by, holder, same_process
from sm.paths import SmHome, atomic_write, locate_home, open_home
from sm.plain_text import plain

STOP_TIMEOUT_S = 10.0
KILL_TIMEOUT_S = 5.0
"""For a killed process to be gone."""


@click.group()
def server() -> None:
    """Start, stop and inspect the server. Agents keep running while it is stopped."""


@server.command()
def run() -> None:
    """Run the server in this terminal."""
    from sm.bootstrap import serve  # noqa: PLC0415  # imports the whole server

    _check_user("run")
    serve()


@server.command()
@json_option
def start(*, as_json: bool) -> None:
    """Start the server in the background, if none runs."""
    _check_user("start")
    client = running_client(locate_home(os.environ))
    if client is not None:
        say("the server is already running")
    _show_state(client or start_server(), as_json=as_json)


@server.command()
@json_option
def stop(*, as_json: bool) -> None:
    """Stop the server. Agents keep running; the next start processes what was missed."""
    _check_user("stop")
    _stop()
    emit_json({"stopped": True}) if as_json else say("the server has stopped")


def _check_user(verb: str) -> None:
    if inside_session() is not None:
        raise error("forbidden", f"A session may not {verb} the server", "ask the user who runs sm")


def _stop() -> None:
    """Stop the server by a request; if it does not answer, or does not stop, end its process."""
    home = locate_home(os.environ)
    found = holder(home)
    if found is None:
        raise error("not_running", "No server runs", "sm server start")
    pid, _ = found
    if not _stop_requested(home):
        say(f"the server does not answer: ending its process {pid}")
        _signal(found, signal.SIGTERM)
        _signal(found, signal.SIGCONT)  # a process stopped by Ctrl-Z could not end
    if not _wait_until_gone(home, STOP_TIMEOUT_S):
        say(f"the server does not stop: killing its process {pid}")
        _signal(found, signal.SIGKILL)
        if not _wait_until_gone(home, KILL_TIMEOUT_S):
            raise error("not_stopping", f"The server (pid {pid}) does not end", "look at that process with ps")


def _stop_requested(home: SmHome) -> bool:
    with contextlib.suppress(SmError):
        client = running_client(home)
        if client is not None:
            client.call("POST", "/stop")
            return True
    return False


def _signal(found: tuple[int, float | None], number: signal.Signals) -> None:
    if same_process(*found):
        with contextlib.suppress(ProcessLookupError):
            os.kill(found[0], number)


def _wait_until_gone(home: SmHome, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while held_by(home) is not None:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@server.command()
@json_option
def restart(*, as_json: bool) -> None:
    """Stop the server and start it again, at the same address."""
    _check_user("restart")
    if held_by(locate_home(os.environ)) is not None:
        _stop()
    _show_state(start_server(), as_json=as_json)


@server.command()
@click.option("--print", "only_print", is_flag=True, help="Print the service's file and change nothing.")
@json_option
def install(*, only_print: bool, as_json: bool) -> None:
    """Run the server as your service: it starts when you log in, and again after a crash. Agents keep running.

    With systemd on Linux, with launchd on macOS. Run it again after an upgrade; sm server uninstall removes it.
    """
    from sm.cli.service import run_all, service  # noqa: PLC0415  # for these two commands only

    _check_user("install")
    found = service(os.environ)
    if only_print:
        show(found.text.decode("utf-8", "replace").rstrip("\n"))
        return
    home = open_home(os.environ)
    known = found.path.exists()
    made = [folder for folder in found.path.parents if not folder.exists()]
    atomic_write(found.path, found.text, 0o644)
    try:
        run_all(found.enable, os.environ)
    except SmError:
        if not known:
            found.path.unlink()
            with contextlib.suppress(OSError):  # something else is in it
                for folder in made:
                    folder.rmdir()
        raise
    with contextlib.suppress(SmError):  # it does not run yet
        run_all(found.halt, os.environ)
    if held_by(home) is not None:
        _stop()
    run_all(found.start, os.environ)
    _show_state(start_server(launch=False), as_json=as_json)
    if not as_json:
        say(f"wrote {found.path}\nsm doctor says under `logout` whether it outlives one")


@server.command()
@json_option
def uninstall(*, as_json: bool) -> None:
    """Stop the service of the server and remove its file. Agents keep running."""
    from sm.cli.service import run_all, service  # noqa: PLC0415  # as above

    _check_user("uninstall")
    found = service(os.environ)
    if not found.path.exists():
        raise error("no_service", f"No service is installed: {found.path} does not exist", "sm server install")
    run_all(found.stop, os.environ)
    found.path.unlink()
    run_all(found.forget, os.environ)
    emit_json({"removed": str(found.path)}) if as_json else say(f"removed {found.path}; sm server start starts one")


def _show_state(client: Client, *, as_json: bool) -> None:
    if as_json:
        emit_json(_state(client))
    else:
        say(f"the server runs at {client.address}")
        show_problems(client)


@server.command()
@json_option
def status(*, as_json: bool) -> None:
    """Show whether the server runs, and where. Starts nothing."""
    found = _state(user_client(start=False))
    if as_json:
        emit_json(found)
        return
    show(f"running at {found['url']} (pid {found['pid']}, version {found['version']})")
    sessions = "1 session" if found["sessions"] == 1 else f"{found['sessions']} sessions"
    show(f"{sessions}, up {ago(float(str(found['uptime'])))}, home {found['home']}")
    problems = found.get("problems")
    for problem in problems if isinstance(problems, list) else ():
        show(f"problem: {plain(problem)}")


def _state(client: Client) -> dict[str, object]:
    return {"url": client.address, **client.call("GET", "/health")}
