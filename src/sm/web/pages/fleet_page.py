"""The routes of the fleet's page, and of the one stream that keeps every open page up to date."""

from __future__ import annotations

from sse_starlette import EventSourceResponse
from starlette.requests import Request
from starlette.responses import Response

from sm.api.routes import backend
from sm.api.security import caller_of
from sm.api.streams import open_stream
from sm.web.answers import csrf_token, html_answer
from sm.web.pages.live import Live
from sm.web.pages.run_reader import RunReader
from sm.web.pages.templates import render

STATIC = "/web/static"


def live(request: Request) -> Live:
    """Return what this server's open pages share."""
    state = request.app.state
    if not hasattr(state, "live_pages"):
        found = backend(request)
        state.live_pages = Live(found, RunReader.of(found.health.home, found.engine.tasks.spawn))
    shared = state.live_pages
    assert isinstance(shared, Live)
    return shared


def page(request: Request, template: str, name: str, /, **values: object) -> Response:
    """Return a whole page; `name` is its place in the navigation."""
    device, shared = caller_of(request).device, live(request)
    frame = {
        "csrf": csrf_token(request),
        "static": STATIC,
        "page": name,
        "read_only": device is not None and device.read_only,
        "now": backend(request).engine.ports.clock.now(),
        "seen": shared.mark,
    }
    return html_answer(render(template, **{**frame, **values}))


async def home(request: Request) -> Response:
    """The page of the fleet: what asks, every session, the runs."""
    shared = live(request)
    if not shared.runs_known:
        await shared.read_runs()  # the first page of a server says nothing that is not so
    picture = await shared.refresh()
    shown = {
        "counts": picture.title,
        "rows": picture.rows,
        "asks": picture.asks,
        "runs": picture.runs,
        "runs_problem": shared.runs_problem,
    }
    return page(request, "fleet.html", "fleet", **shown)


async def stream(request: Request) -> Response:
    """Server-sent events for an open page: the parts of the fleet that change; of a `session` or `run` that it did."""
    if request.method == "HEAD":
        return Response(media_type="text/event-stream")
    open_stream(request)
    mark = request.headers.get("last-event-id") or request.query_params.get("seen", "")
    session, run = (request.query_params.get(name, "") for name in ("session", "run"))
    return EventSourceResponse(live(request).stream(mark, session, run))
