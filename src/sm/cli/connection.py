"""Which server a command talks to, as whom; a person's command starts one where none runs.

With CLAUDE_SESSION_MANAGER_ID set a command is an agent's: it uses the session's token only and starts nothing.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass

from sm.cli.format import say
from sm.cli.options import may_start
from sm.client import Client, UnavailableError, inside_session, session_client
from sm.core.errors import SmError, error
from sm.lock import held_by, running_server
from sm.paths import SmHome, locate_home, open_home, read_token

TYPE_CHECKING = False  # `typing` costs 3 ms
if TYPE_CHECKING:
    import subprocess

START_TIMEOUT = 30.0
"""Seconds that a server may take until it announces itself, and as many again until it first answers."""
HANGS = 3.0
"""Seconds without an answer after which a server that had announced itself before we asked is said to hang."""
POLL = 0.05
HINT = "hint: "
OUTSIDE = "Not running inside an sm session: CLAUDE_SESSION_MANAGER_ID is not set"


def agent_or_user(session: str | None) -> tuple[Client, str]:
    """The client to use and the session meant: the caller's own inside one, else the one a person names."""
    own = inside_session()
    if own is not None:
        return session_client(), session or own
    if session is None:
        raise error("not_in_session", OUTSIDE, "run it inside a session, or name one: sm list shows them")
    return user_client(), session


def agent_only() -> tuple[Client, str]:
    """The client to use and the caller's own session, for what no person can do in its place."""
    own = inside_session()
    if own is None:
        hint = "an agent calls it in its session; use sm list, sm new or sm send"
        raise error("not_in_session", OUTSIDE, hint)
    return session_client(), own


def user_client(*, start: bool = True) -> Client:
    """A client with the user's token; the server is started in the background if none answers."""
    if inside_session() is not None:
        return session_client()
    place = locate_home(os.environ)
    client = running(place)
    if client is not None:
        return client
    if not (start and may_start()) or os.environ.get("SM_NO_START"):
        pid = held_by(place)
        raise UnavailableError if pid is None else not_answering(place, pid)
    return started()


def running(place: SmHome) -> Client | None:
    """A client for the server of this SM_HOME, if it answers; SmError if it does and we have not its token."""
    record = running_server(place)
    if record is None:
        return None
    token = read_token(place)
    if token is None:
        raise error("bad_token", f"{place.token} is missing", "sm server restart creates a new one")
    client = Client(record.url, token)
    try:
        client.call("GET", "/health", timeout=2.0)
    except UnavailableError:
        return None
    except SmError as problem:
        if problem.refused.code != "unauthorized":
            raise
        hint = "sm server restart; agents keep running"
        raise error("bad_token", f"The server does not accept the token in {place.token}", hint) from problem
    return client


def tell_problems(client: Client) -> None:
    """Say what is wrong with the server itself, to the user alone."""
    from sm.cli.descriptions import plain  # noqa: PLC0415  # few commands say any

    if inside_session() is None:
        for problem in client.call("GET", "/health").get("problems", ()):
            say(f"problem: {plain(problem)}")


def not_answering(place: SmHome, pid: int) -> SmError:
    """The error for a server that hangs, which the user may end, or for one that has not announced itself yet."""
    if running_server(place) is None:
        return error("not_answering", f"The server (pid {pid}) is still starting", "try again in a few seconds")
    hint = "sm server restart starts another one; agents keep running"
    return error("not_answering", f"The server (pid {pid}) does not answer", hint)


def started() -> Client:
    """Return a client for a server that was started for it, by us or by another process at the same time."""
    place = open_home(os.environ)
    launch = _launched(place) if held_by(place) is None else None
    patience = _Patience(running_server(place) is not None)
    while patience.left(announced=running_server(place) is not None):
        client = running(place)
        if client is not None:
            return client
        if launch is not None and launch.process.poll() is not None:
            if held_by(place) is None:
                words, hint = _last_words(place, launch.output_begin)
                raise error("start_failed", f"The server did not start: {words}", hint or "sm doctor")
            launch = None  # another one was faster
        time.sleep(POLL)
    pid = held_by(place)
    if pid is not None:
        raise not_answering(place, pid)
    raise error("start_failed", "The server did not answer in time", f"its output is in {place.server_output}")


class _Patience:
    """How long a start is waited for: counted from the announcement, whose time the machine's load decides."""

    def __init__(self, announced: bool) -> None:  # noqa: FBT001  # one state, told once
        self._announced = announced
        self._seconds = HANGS if announced else START_TIMEOUT
        self._begin = time.monotonic()

    def left(self, *, announced: bool) -> bool:
        if announced and not self._announced:
            self._announced, self._begin = True, time.monotonic()
        return time.monotonic() - self._begin < self._seconds


@dataclass(frozen=True, slots=True)
class _Launch:
    process: subprocess.Popen[bytes]
    output_begin: int


def _launched(place: SmHome) -> _Launch:
    import subprocess  # noqa: PLC0415  # 10 ms that only a first command needs

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
    return _Launch(process, begin)


def _last_words(place: SmHome, begin: int) -> tuple[str, str]:
    """What this start has said last, without the prefix of an error, and its hint."""
    try:
        words = place.server_output.read_bytes()[begin:].decode("utf-8", "replace").strip().splitlines()
    except OSError:
        return "no output", ""
    said = [line for line in words if not line.startswith(HINT)]
    hints = [line for line in words if line.startswith(HINT)]
    if said:
        return said[-1].removeprefix("Error: "), hints[-1].removeprefix(HINT) if hints else ""
    return "no output" if os.statvfs(place.root).f_bavail else f"no room on the file system of {place.root}", ""
