"""The routes, who may call each, and how an error is answered."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import structlog
from msgspec import UNSET
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from sm.api import (
    archive,
    asks,
    costs,
    feed,
    foreground,
    handoffs,
    hooks,
    limits,
    link,
    messages,
    notifications,
    sessions,
    team,
)
from sm.api.authority import ABOVE, ANYBODY, OWNER, SELF, USER, ApiRoute, Authority, decided
from sm.api.browsers import Browsers
from sm.api.errors import error_response
from sm.api.routes import Backend, answer, backend
from sm.api.security import Guard, caller_of, refusal
from sm.api.streams import Streams
from sm.core.errors import Refused, SmError
from sm.core.ports.panes import PaneError
from sm.wire import StopAnswer

log = structlog.get_logger()


async def health(request: Request) -> Response:
    """Version, pid, home, number of sessions and uptime; `problems` of the server itself, if it has any."""
    found = backend(request)
    now = msgspec.structs.replace(
        found.health,
        sessions=len(found.engine.sessions.actors),
        uptime=round(found.engine.ports.clock.now() - found.started, 3),
        problems=(found.problems() if caller_of(request).is_user else []) or UNSET,
    )
    return answer(now)


async def stop(request: Request) -> Response:
    """End the server, gracefully."""
    request.scope["sm.stop"]()
    return answer(StopAnswer())


SESSION = "/sessions/{session}"
THE_REQUESTER = Authority("the user, the session itself, which the body names too", handoffs.only_requester)
OWN_CLIENT = Authority("the session's own client", link.only_own_client)
CLIENT = Authority("a client that the user has started, for itself", link.only_client)
OWN_PROJECT = decided("the user; a session in its own project")
ITS_SIDES = decided("the user, the message's sender and target")
ITS_SENDER = decided("the user, the message's sender")
ANSWERING = decided("the user; with `asks.parents` the parent of the session that asks")
ITSELF_AND_CHILDREN = decided("the user; a session itself and its children")
OWN_EVENTS = decided("the user; a session its own")
ROUTES = [
    ApiRoute("POST", "/hooks/{provider}", hooks.hook, ANYBODY, from_anywhere=True),
    ApiRoute("POST", "/status/{provider}", hooks.status_line, ANYBODY, from_anywhere=True),
    ApiRoute("GET", "/sessions", sessions.list_sessions, ANYBODY, from_browser=True),
    ApiRoute("POST", "/sessions", sessions.new_session, USER),
    ApiRoute("POST", f"{SESSION}/link", link.exchange, OWN_CLIENT),
    ApiRoute("POST", "/link/{provider}", link.exchange_of_own, CLIENT),
    ApiRoute("GET", SESSION, sessions.show, ANYBODY, from_browser=True),
    ApiRoute("PATCH", SESSION, sessions.rename, SELF, from_browser=True),
    ApiRoute("DELETE", SESSION, sessions.kill, ABOVE, from_browser=True),
    ApiRoute("POST", f"{SESSION}/restore", sessions.restore_session, ABOVE, from_browser=True),
    ApiRoute("POST", f"{SESSION}/remove", sessions.remove, USER, from_browser=True),
    ApiRoute("GET", f"{SESSION}/context", sessions.context, OWNER, from_browser=True),
    ApiRoute("GET", f"{SESSION}/context/history", sessions.context_history, OWNER, from_browser=True),
    ApiRoute("POST", f"{SESSION}/context/rearm", sessions.rearm, SELF, from_browser=True),
    ApiRoute("POST", f"{SESSION}/messages", messages.send, ANYBODY, from_anywhere=True, from_browser=True),
    ApiRoute("GET", f"{SESSION}/messages", messages.inbox, SELF, from_browser=True),
    ApiRoute("GET", f"{SESSION}/output", sessions.output, OWNER, from_browser=True),
    ApiRoute("GET", f"{SESSION}/events", sessions.events, OWNER, from_browser=True),
    ApiRoute("GET", f"{SESSION}/attach", sessions.attachment, USER),
    ApiRoute("POST", f"{SESSION}/handoff", handoffs.schedule, THE_REQUESTER, from_browser=True),
    ApiRoute("GET", f"{SESSION}/handoff", handoffs.show, SELF, from_browser=True),
    ApiRoute("DELETE", f"{SESSION}/handoff", handoffs.cancel, SELF, from_browser=True),
    ApiRoute("POST", f"{SESSION}/handoff/retry", handoffs.retry, SELF, from_browser=True),
    ApiRoute("GET", "/limits", limits.show, USER, from_browser=True),
    ApiRoute("POST", f"{SESSION}/limit/resume", limits.resume, USER, from_browser=True),
    ApiRoute("GET", f"{SESSION}/children", team.children, OWNER, from_browser=True),
    ApiRoute("POST", f"{SESSION}/children", team.spawn, SELF),
    ApiRoute("POST", f"{SESSION}/clear", team.clear, ABOVE, from_browser=True),
    ApiRoute("POST", f"{SESSION}/report", team.report, SELF),
    ApiRoute("POST", f"{SESSION}/waits", team.wait, SELF),
    ApiRoute("GET", f"{SESSION}/reminders", team.reminders, SELF, from_browser=True),
    ApiRoute("POST", f"{SESSION}/reminders", team.remind, SELF, from_browser=True),
    ApiRoute("DELETE", f"{SESSION}/reminders/{{reminder}}", team.cancel_reminder, SELF, from_browser=True),
    ApiRoute("GET", f"{SESSION}/log", archive.log, OWNER, from_browser=True),
    ApiRoute("GET", f"{SESSION}/archive", archive.artefacts, OWNER, from_browser=True),
    ApiRoute("POST", "/archive/prune", archive.prune, USER),
    ApiRoute("GET", "/search", archive.search, OWN_PROJECT, from_browser=True),
    ApiRoute("POST", f"{SESSION}/client", foreground.client_started, USER),
    ApiRoute("POST", f"{SESSION}/client/exit", foreground.client_exited, USER),
    ApiRoute("GET", f"{SESSION}/order", foreground.order, USER),
    ApiRoute("POST", f"{SESSION}/order", foreground.take_order, USER),
    ApiRoute("POST", "/messages", messages.send_to, ANYBODY, from_anywhere=True, from_browser=True),
    ApiRoute("GET", "/messages/{message}", messages.message, ITS_SIDES, from_browser=True),
    ApiRoute("DELETE", "/messages/{message}", messages.cancel, ITS_SENDER, from_browser=True),
    ApiRoute("GET", "/asks", asks.list_asks, ANSWERING, from_browser=True),
    ApiRoute("GET", "/asks/{ask}", asks.show, ANSWERING, from_browser=True),
    ApiRoute("POST", "/asks/{ask}", asks.give_answer, ANSWERING, from_browser=True),
    ApiRoute("GET", "/handoffs", handoffs.list_handoffs, OWN_PROJECT, from_browser=True),
    ApiRoute("DELETE", "/handoffs", handoffs.clear_handoffs, USER),
    ApiRoute("GET", "/handoffs/{handoff}", handoffs.show_handoff, OWN_PROJECT, from_browser=True),
    ApiRoute("DELETE", "/handoffs/{handoff}", handoffs.clear_handoff, USER, from_browser=True),
    ApiRoute("GET", "/cost", costs.cost, ITSELF_AND_CHILDREN, from_browser=True),
    ApiRoute("POST", "/notifications/test", notifications.test, USER),
    ApiRoute("POST", "/notifications/run-ended", notifications.run_ended, USER),
    ApiRoute("GET", "/events", feed.events, OWN_EVENTS, from_browser=True),
    ApiRoute("GET", "/health", health, ANYBODY, from_browser=True),
    ApiRoute("POST", "/stop", stop, USER),
]


async def _refused(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, SmError)
    return refusal(request.scope, problem.refused)


async def _left(_: Request, __: Exception) -> Response:
    """The client has left before all of its body came: nothing reads this answer, and it is no fault of the server."""
    return error_response(Refused("bad_request", "The body is not complete"))


async def _pane(_: Request, problem: Exception) -> Response:
    return error_response(Refused("client_gone", f"The pane does not answer: {problem}", "sm restore brings it back"))


async def _http(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, HTTPException)
    code = {404: "no_route", 405: "bad_method"}.get(problem.status_code, "bad_request")
    refused = Refused(code, f"{request.method} {request.url.path}: {problem.detail}")
    return refusal(request.scope, refused, problem.headers)


async def _internal(request: Request, problem: Exception) -> Response:
    log.error("request failed", path=request.url.path, problem=type(problem).__name__, exc_info=problem)
    return error_response(
        Refused("internal", "The server failed on this request", "its log says why: SM_HOME/server.log")
    )


def application(found: Backend, user_token: str, browsers: Browsers, routes: Sequence[ApiRoute] = ROUTES) -> Guard:
    handlers = {
        SmError: _refused,
        PaneError: _pane,
        HTTPException: _http,
        ClientDisconnect: _left,
        Exception: _internal,
    }
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.router.redirect_slashes = False  # another path is another route, and an error is JSON
    app.state.backend = found
    app.state.devices = browsers
    app.state.streams = Streams()
    sessions = found.engine.sessions
    return Guard(app, user_token, sessions.by_token, browsers, ended=sessions.has_ended)
