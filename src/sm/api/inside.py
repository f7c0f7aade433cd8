"""What changes a session comes from below its own client, whoever has inherited its token.

A session's token is in the environment of everything an agent starts: of an editor, a `screen`, a job of `at` that
outlive the client as well. Messages may come from those, and reading; a handoff, a report or a child may not.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass

import structlog
from starlette.types import ASGIApp, Receive, Scope, Send

from sm.api.errors import error_response
from sm.api.security import Caller, is_number
from sm.core.errors import Refused
from sm.core.model.session import Session
from sm.engine.sessions import Sessions
from sm.peers import is_below

log = structlog.get_logger()
HANDOFF = re.compile(r"/sessions/([^/]+)/handoff")
"""Another session's is refused by its route, wherever the caller is."""
HINT = "run it in the foreground of the agent's own shell; sm send works from everywhere"


@dataclass(frozen=True, slots=True)
class Inside:
    app: ASGIApp
    sessions: Sessions
    open: tuple[re.Pattern[str], ...]
    """What a session's token alone allows: the client's own reports, and sending. The table of the routes says it."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] not in {"GET", "HEAD"} and not self._is_open(scope["path"]):
            refused = await self._refusal(scope)
            if refused is not None:
                await error_response(refused)(scope, receive, send)
                return
        await self.app(scope, receive, send)

    def _is_open(self, path: str) -> bool:
        return any(pattern.fullmatch(path) for pattern in self.open)

    async def _refusal(self, scope: Scope) -> Refused | None:
        caller: Caller = scope["sm.caller"]
        actor = self.sessions.actors.get(caller.session or "")
        if actor is None or actor.session.pid is None:
            return None
        handoff = HANDOFF.fullmatch(scope["path"])
        if handoff is not None and handoff[1] != caller.session:
            return None
        peer = scope.get("client")
        below = await asyncio.to_thread(is_below, actor.session.pid, peer, _claimed(scope)) if peer else None
        if below is None:  # as on macOS, or from another network namespace
            log.info("caller not verified", session=caller.session, path=scope["path"])
        return outside(actor.session) if below is False else None


def _claimed(scope: Scope) -> int | None:
    given = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"x-sm-pid"), "")
    return int(given) if is_number(given) else None


def outside(session: Session) -> Refused:
    log.warning("caller is not below the session's client", session=session.id, client=session.pid)
    message = f"This process was not started by the client of session {session.name} (pid {session.pid})"
    return Refused("outside", message, HINT)
