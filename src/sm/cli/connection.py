"""Which server a command talks to, as whom; a person's command starts one where none runs.

With CLAUDE_SESSION_MANAGER_ID set a command is an agent's: it uses the session's token only and starts nothing.
"""

from __future__ import annotations

import os
import sys
import time

from sm.cli.options import may_start
from sm.cli.output import say
from sm.client import Client, UnavailableError, inside_session, session_client
from sm.core.errors import error
from sm.lock import running_server
from sm.paths import Home, home, open_home, read_token

START_TIMEOUT = 15.0
POLL = 0.05


def agent_or_user(session: str | None) -> tuple[Client, str]:
    """The client to use and the session meant: the caller's own inside one, else the one a person names."""
    own = inside_session()
    if own is not None:
        return session_client(), session or own
    if session is None:
        hint = "run it inside a session, or name one: sm list shows them"
        raise error("not_in_session", "CLAUDE_SESSION_MANAGER_ID not set: this is no session", hint)
    return user_client(), session


def user_client(*, start: bool = True) -> Client:
    """A client with the user's token; the server is started in the background if none answers."""
    if inside_session() is not None:
        return session_client()
    place = home(os.environ)
    client = running(place)
    if client is not None:
        return client
    if not (start and may_start()) or os.environ.get("SM_NO_START"):
        raise UnavailableError
    return started()


def running(place: Home) -> Client | None:
    """A client for the server of this SM_HOME, if it answers and is ours."""
    record = running_server(place)
    token = read_token(place) if record is not None else None
    if record is None or token is None:
        return None
    client = Client(record.url, token)
    try:
        client.call("GET", "/health", timeout=2.0)
    except UnavailableError:
        return None
    return client


def started() -> Client:
    import subprocess  # noqa: PLC0415  # 10 ms that only a first command needs

    place = open_home(os.environ)
    say("starting the sm server")
    descriptor = os.open(place.server_output, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    with open(descriptor, "ab") as output:  # noqa: PTH123  # a descriptor, no path
        begin = output.tell()
        process = subprocess.Popen(
            [sys.executable, "-m", "sm", "server", "run"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            cwd="/",
        )
    deadline = time.monotonic() + START_TIMEOUT
    while time.monotonic() < deadline:
        client = running(place)
        if client is not None:
            return client
        if process.poll() is not None:
            raise error("start_failed", f"The server did not start: {_last_words(place, begin)}", "sm doctor")
        time.sleep(POLL)
    raise error("start_failed", "The server did not answer in time", f"its words are in {place.server_output}")


def _last_words(place: Home, begin: int) -> str:
    """What this start has said, without the prefix of an error and its hint."""
    try:
        words = place.server_output.read_bytes()[begin:].decode("utf-8", "replace").strip().splitlines()
    except OSError:
        return "no output"
    said = [line for line in words if not line.startswith("hint: ")]
    return said[-1].removeprefix("Error: ") if said else "no output"
