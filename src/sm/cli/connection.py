"""Which server a command uses, with which token; the user's command starts one if none runs.

With CLAUDE_SESSION_MANAGER_ID set a command is an agent's: it uses the session's token only and starts no server.
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

START_TIMEOUT_S = 30.0
"""For a server to announce itself, and the same again until its first answer."""
ANSWER_TIMEOUT_S = 3.0
"""A server that was already announced and does not answer within it hangs."""
POLL_INTERVAL_S = 0.05
HINT_PREFIX = "hint: "
NOT_IN_SESSION = "Not running inside an sm session: CLAUDE_SESSION_MANAGER_ID is not set"


def agent_or_user(session: str | None) -> tuple[Client, str]:
    """Return the client and the session: the caller's own inside one, else the one that the user names."""
    own = inside_session()
    if own is not None:
        return session_client(), session or own
    if session is None:
        raise error("not_in_session", NOT_IN_SESSION, "run it inside a session, or name one: sm list shows them")
    return user_client(), session


def agent_only() -> tuple[Client, str]:
    """Return the client and the caller's own session, for commands of agents only."""
    own = inside_session()
    if own is None:
        hint = "an agent calls it in its session; use sm list, sm new or sm send"
        raise error("not_in_session", NOT_IN_SESSION, hint)
    return session_client(), own


def user_client(*, start: bool = True) -> Client:
    """Return a client with the user's token; start the server in the background if none answers."""
    if inside_session() is not None:
        return session_client()
    home = locate_home(os.environ)
    client = running_client(home)
    if client is not None:
        return client
    if not (start and may_start()) or os.environ.get("SM_NO_START"):
        pid = held_by(home)
        raise UnavailableError if pid is None else not_answering(home, pid)
    return start_server()


def running_client(home: SmHome) -> Client | None:
    """Return a client for the server of this SM_HOME, if it answers; SmError if it does not accept our token."""
    record = running_server(home)
    if record is None:
        return None
    token = read_token(home)
    if token is None:
        raise error("bad_token", f"{home.token} is missing", "sm server restart creates a new one")
    client = Client(record.url, token)
    try:
        client.call("GET", "/health", timeout=2.0)
    except UnavailableError:
        return None
    except SmError as problem:
        if problem.refused.code != "unauthorized":
            raise
        hint = "sm server restart; agents keep running"
        raise error("bad_token", f"The server does not accept the token in {home.token}", hint) from problem
    return client


def show_problems(client: Client) -> None:
    """Print the problems of the server itself, to the user only."""
    from sm.plain_text import plain  # noqa: PLC0415  # few commands print any

    if inside_session() is None:
        for problem in client.call("GET", "/health").get("problems", ()):
            say(f"problem: {plain(problem)}")


def not_answering(home: SmHome, pid: int) -> SmError:
    """Return the error for a server that hangs, which the user may end, or that has not announced itself yet."""
    if running_server(home) is None:
        return error("not_answering", f"The server (pid {pid}) is still starting", "try again in a few seconds")
    hint = "sm server restart starts another one; agents keep running"
    return error("not_answering", f"The server (pid {pid}) does not answer", hint)


def start_server(*, launch: bool = True) -> Client:
    """Start a server, unless another process does, and return a client for it.

    Without `launch` only wait for one that another process starts.
    """
    home = open_home(os.environ)
    launched = _launch(home) if launch and held_by(home) is None else None
    deadline = _StartDeadline(running_server(home) is not None)
    while deadline.is_open(announced=running_server(home) is not None):
        client = running_client(home)
        if client is not None:
            return client
        if launched is not None and launched.process.poll() is not None:
            if held_by(home) is None:
                words, hint = _startup_error(home, launched.output_begin)
                raise error("start_failed", f"The server did not start: {words}", hint or "sm doctor")
            launched = None  # another process was faster
        time.sleep(POLL_INTERVAL_S)
    pid = held_by(home)
    if pid is not None:
        raise not_answering(home, pid)
    raise error("start_failed", "The server did not answer in time", f"its output is in {home.server_output}")


class _StartDeadline:
    """How long to wait for a start: counted from the announcement, which the machine's load may delay."""

    def __init__(self, announced: bool) -> None:  # noqa: FBT001  # one state, given once
        self._announced = announced
        self._seconds = ANSWER_TIMEOUT_S if announced else START_TIMEOUT_S
        self._begin = time.monotonic()

    def is_open(self, *, announced: bool) -> bool:
        if announced and not self._announced:
            self._announced, self._begin = True, time.monotonic()
        return time.monotonic() - self._begin < self._seconds


@dataclass(frozen=True, slots=True)
class _Launch:
    process: subprocess.Popen[bytes]
    output_begin: int


def _launch(home: SmHome) -> _Launch:
    import subprocess  # noqa: PLC0415  # 10 ms, for a first command only

    say("starting the sm server")
    descriptor = os.open(home.server_output, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
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


def _startup_error(home: SmHome, begin: int) -> tuple[str, str]:
    """Return the last line of this start's output, without the prefix of an error, and its hint."""
    try:
        words = home.server_output.read_bytes()[begin:].decode("utf-8", "replace").strip().splitlines()
    except OSError:
        return "no output", ""
    said = [line for line in words if not line.startswith(HINT_PREFIX)]
    hints = [line for line in words if line.startswith(HINT_PREFIX)]
    if said:
        return said[-1].removeprefix("Error: "), hints[-1].removeprefix(HINT_PREFIX) if hints else ""
    return "no output" if os.statvfs(home.root).f_bavail else f"no room on the file system of {home.root}", ""
