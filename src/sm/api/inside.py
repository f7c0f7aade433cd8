"""What changes a session comes from below its own client, whoever has inherited its token.

A session's token is in the environment of everything an agent starts: of an editor, a `screen`, a job of `at` that
outlive the client as well. Messages may come from those, and reading; a handoff, a report or a child may not.

A browser is the other way round: what it changes, and its login, never comes from below a session's client.
"""

from __future__ import annotations

import asyncio

import structlog
from starlette.requests import Request

from sm.api.browsers import READING
from sm.api.routes import backend
from sm.api.security import caller_of, is_number, peer_of
from sm.core.errors import Refused, SmError, error
from sm.core.model.session import Session
from sm.peers import UNIX, is_below, is_below_one

log = structlog.get_logger()
HINT = "run it in the foreground of the agent's own shell; sm send works from everywhere"


async def check_inside(request: Request) -> None:
    """SmError if the caller changes something with the token of a session whose client has not started it.

    A caller whose process cannot be found, as on macOS or from another network namespace, passes.
    """
    actor = backend(request).engine.sessions.actors.get(caller_of(request).session or "")
    if request.method in READING or actor is None or actor.session.pid is None:
        return
    session, pid, peer = actor.session, actor.session.pid, peer_of(request)
    if peer is not None and peer[:2] == (UNIX, pid):
        return  # the client itself, by what the system says: its plugin asks for orders all the time
    below = await asyncio.to_thread(is_below, pid, peer, _claimed(request)) if peer else None
    if below is None:
        log.info("caller not verified", session=session.id, path=request.url.path)
    if below is False:
        raise SmError(outside(session))


async def check_outside(request: Request) -> None:
    """SmError if what acts as a browser was started by a session's client: an agent has found a link or a cookie."""
    sessions, peer = backend(request).engine.sessions.living(), peer_of(request)
    clients = [session.pid for session in sessions if session.pid is not None]
    if peer is not None and clients and await asyncio.to_thread(is_below_one, clients, peer):
        log.warning("a browser was started by a session's client", path=request.url.path)
        raise error("forbidden", "This browser was started by an agent's client", "use a browser that you have started")


def _claimed(request: Request) -> int | None:
    given = request.headers.get("x-sm-pid", "")
    return int(given) if is_number(given) else None


def outside(session: Session) -> Refused:
    log.warning("caller is not below the session's client", session=session.id, client=session.pid)
    message = f"This process was not started by the client of session {session.name} (pid {session.pid})"
    return Refused("outside", message, HINT)
