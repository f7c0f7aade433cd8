"""The routes of the search and of the devices."""

from __future__ import annotations

import asyncio

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from sm.api.routes import backend
from sm.core.errors import SmError
from sm.web.access import manage
from sm.web.pages.fleet_page import page
from sm.web.pages.found import shown_hit
from sm.wire import DeviceView

MAX_HITS = 60


async def search(request: Request) -> Response:
    """The page of the search over all contexts; `q` is searched for, in `session` alone where it is given."""
    query, named = request.query_params.get("q", "").strip(), request.query_params.get("session")
    found = backend(request)
    session = found.engine.sessions.find(named).session if named else None
    names = {actor.session.id: actor.session.name for actor in found.engine.sessions.actors.values()}
    hits, problem = None, ""
    if query:
        try:
            within = (session.id,) if session else None
            hits = await asyncio.to_thread(found.archiving.archive.search, query, within, MAX_HITS)
        except SmError as refused:
            problem = f"{refused.refused.message}. {refused.refused.hint}".strip(". ") + "."
    shown = None if hits is None else [shown_hit(hit, names.get(hit.session)) for hit in hits]
    return page(request, "search.html", "search", query=query, session=session, hits=shown, problem=problem)


async def devices(request: Request) -> Response:
    """The browsers that are logged in, the newest first; a read-only one sees itself. HTML for a browser."""
    listed = await manage.list_devices(request)
    if "text/html" not in request.headers.get("accept", ""):
        return listed
    return page(request, "devices.html", "devices", devices=msgspec.json.decode(listed.body, type=list[DeviceView]))
