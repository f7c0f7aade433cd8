"""The routes, and what becomes of an error."""

from __future__ import annotations

import msgspec
import structlog
from msgspec import UNSET
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from sm.api import archive, feed, foreground, handoffs, hooks, messages, sessions, team
from sm.api.errors import error_response
from sm.api.inside import Inside
from sm.api.routes import Backend, answer, backend
from sm.api.security import Guard, caller_of, only_user
from sm.core.errors import Refused, SmError
from sm.core.ports.panes import PaneError
from sm.wire import StopAnswer

log = structlog.get_logger()


async def health(request: Request) -> Response:
    """Version, pid, home, number of sessions and uptime; `problems` of the server itself, if it has any."""
    found = backend(request)
    now = msgspec.structs.replace(
        found.health,
        sessions=len(found.supervisor.actors),
        uptime=round(found.supervisor.clock.now() - found.started, 3),
        problems=(found.problems() if caller_of(request).is_user else []) or UNSET,
    )
    return answer(now)


async def stop(request: Request) -> Response:
    """End the server, gracefully; the user only."""
    only_user(request)
    request.scope["sm.stop"]()
    return answer(StopAnswer())


SESSION = "/sessions/{session}"
ROUTES = [
    Route("/hooks/{provider}", hooks.hook, methods=["POST"]),
    Route("/status/{provider}", hooks.status_line, methods=["POST"]),
    Route("/sessions", sessions.list_sessions, methods=["GET"]),
    Route("/sessions", sessions.new_session, methods=["POST"]),
    Route(SESSION, sessions.show, methods=["GET"]),
    Route(SESSION, sessions.rename, methods=["PATCH"]),
    Route(SESSION, sessions.kill, methods=["DELETE"]),
    Route(f"{SESSION}/restore", sessions.restore_session, methods=["POST"]),
    Route(f"{SESSION}/context", sessions.context, methods=["GET"]),
    Route(f"{SESSION}/context/rearm", sessions.rearm, methods=["POST"]),
    Route(f"{SESSION}/messages", messages.send, methods=["POST"]),
    Route(f"{SESSION}/messages", messages.inbox, methods=["GET"]),
    Route(f"{SESSION}/output", sessions.output, methods=["GET"]),
    Route(f"{SESSION}/events", sessions.events, methods=["GET"]),
    Route(f"{SESSION}/attach", sessions.attachment, methods=["GET"]),
    Route(f"{SESSION}/handoff", handoffs.schedule, methods=["POST"]),
    Route(f"{SESSION}/handoff", handoffs.show, methods=["GET"]),
    Route(f"{SESSION}/handoff", handoffs.cancel, methods=["DELETE"]),
    Route(f"{SESSION}/handoff/retry", handoffs.retry, methods=["POST"]),
    Route(f"{SESSION}/children", team.children, methods=["GET"]),
    Route(f"{SESSION}/children", team.spawn, methods=["POST"]),
    Route(f"{SESSION}/clear", team.clear, methods=["POST"]),
    Route(f"{SESSION}/report", team.report, methods=["POST"]),
    Route(f"{SESSION}/waits", team.wait, methods=["POST"]),
    Route(f"{SESSION}/reminders", team.reminders, methods=["GET"]),
    Route(f"{SESSION}/reminders", team.remind, methods=["POST"]),
    Route(f"{SESSION}/reminders/{{reminder}}", team.cancel_reminder, methods=["DELETE"]),
    Route(f"{SESSION}/log", archive.log, methods=["GET"]),
    Route(f"{SESSION}/archive", archive.artefacts, methods=["GET"]),
    Route("/archive/prune", archive.prune, methods=["POST"]),
    Route("/search", archive.search, methods=["GET"]),
    Route(f"{SESSION}/client", foreground.client_started, methods=["POST"]),
    Route(f"{SESSION}/client/exit", foreground.client_exited, methods=["POST"]),
    Route(f"{SESSION}/order", foreground.order, methods=["GET"]),
    Route(f"{SESSION}/order", foreground.take_order, methods=["POST"]),
    Route("/messages", messages.send_to, methods=["POST"]),
    Route("/messages/{message}", messages.message, methods=["GET"]),
    Route("/messages/{message}", messages.cancel, methods=["DELETE"]),
    Route("/handoffs", handoffs.list_handoffs, methods=["GET"]),
    Route("/handoffs", handoffs.clear_handoffs, methods=["DELETE"]),
    Route("/handoffs/{handoff}", handoffs.show_handoff, methods=["GET"]),
    Route("/handoffs/{handoff}", handoffs.clear_handoff, methods=["DELETE"]),
    Route("/events", feed.events, methods=["GET"]),
    Route("/health", health, methods=["GET"]),
    Route("/stop", stop, methods=["POST"]),
]


async def _refused(_: Request, problem: Exception) -> Response:
    assert isinstance(problem, SmError)
    return error_response(problem.refused)


async def _left(_: Request, __: Exception) -> Response:
    """Whoever asked has gone before all of the body came: nobody reads this, and it is no fault of ours."""
    return error_response(Refused("bad_request", "The body is not complete"))


async def _pane(_: Request, problem: Exception) -> Response:
    return error_response(Refused("client_gone", f"The pane does not answer: {problem}", "sm restore brings it back"))


async def _http(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, HTTPException)
    code = {404: "no_route", 405: "bad_method"}.get(problem.status_code, "bad_request")
    refused = Refused(code, f"{request.method} {request.url.path}: {problem.detail}")
    return error_response(refused, problem.headers)


async def _internal(request: Request, problem: Exception) -> Response:
    log.error("request failed", path=request.url.path, problem=type(problem).__name__, exc_info=problem)
    return error_response(
        Refused("internal", "The server failed on this request", "its log says why: SM_HOME/server.log")
    )


def application(found: Backend, user_token: str) -> Guard:
    handlers = {
        SmError: _refused,
        PaneError: _pane,
        HTTPException: _http,
        ClientDisconnect: _left,
        Exception: _internal,
    }
    app = Starlette(routes=ROUTES, exception_handlers=handlers)
    app.router.redirect_slashes = False  # another path is another route, and an error is JSON
    app.state.backend = found
    # Looked up at each request: a restored session gets a new table.
    supervisor = found.supervisor
    inside = Inside(app, supervisor)
    return Guard(inside, user_token, lambda token: supervisor.tokens.get(token), ended=supervisor.has_ended)  # noqa: PLW0108
