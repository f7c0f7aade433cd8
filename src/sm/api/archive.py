"""The archive: a session's log as text, its files, and the search over all of it.

A session reads its own log and its children's, and searches its own channel.
"""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from sm.api.authority import only_local_user
from sm.api.bodies import PruneBody
from sm.api.routes import answer, backend, body, count, target
from sm.api.security import caller_of
from sm.archive.terminal.contexts import ContextStart
from sm.archive.terminal.printer import PrintRequest
from sm.core.errors import error
from sm.core.model.history import LogRange
from sm.wire import PrunedAnswer, artefact_view, hit_view

MAX_LINES = 200_000
MAX_HITS = 1_000


async def log(request: Request) -> Response:
    """The session's terminal as text, without secrets; `context` for one, `lines` from the end.

    With `raw=1` its bytes, for the user only, and not for a browser: they hold secrets.
    """
    actor = target(request)
    raw = request.query_params.get("raw") == "1"
    if raw:
        only_local_user(request)
    found = backend(request)
    log_ranges = await _log_ranges(request, actor.session.id)
    order = PrintRequest(
        log=str(found.engine.ports.documents.log(actor.session.id)),
        start=log_ranges[0].start,
        end=log_ranges[-1].end,
        paint=log_ranges[0].paint,
        starts=[ContextStart(log_range.start, log_range.paint == log_range.start) for log_range in log_ranges],
        raw=raw,
        lines=count(request, "lines", 0, MAX_LINES) or None,
        token_hashes=found.own_tokens.hashes,
    )
    kind = "application/octet-stream" if raw else "text/plain; charset=utf-8"
    return StreamingResponse(found.printing.output(order), media_type=kind)


async def _log_ranges(request: Request, session: str) -> list[LogRange]:
    """All contexts of the session, or the one that was asked for."""
    archiving = backend(request).archiving
    number = count(request, "context", 0, MAX_LINES)
    log_ranges = await asyncio.to_thread(archiving.archive.log_ranges, await archiving.history(session))
    wanted = [log_range for log_range in log_ranges if number in {0, log_range.context.number}]
    if not wanted:
        raise error("no_context", f"The session has no context {number}", "sm archive list shows its contexts")
    return wanted


async def artefacts(request: Request) -> Response:
    """The files of the session's contexts: logs, snapshots, transcripts, handoff documents."""
    actor = target(request)
    archiving = backend(request).archiving
    history = await archiving.history(actor.session.id)
    return answer(
        [artefact_view(artefact) for artefact in await asyncio.to_thread(archiving.archive.artefacts, history)]
    )


async def prune(request: Request) -> Response:
    """Remove logs and snapshots that are too old or too much, or tell which those are."""
    wanted = await body(request, PruneBody)
    gone = await backend(request).archiving.prune(dry_run=wanted.dry_run)
    return answer(PrunedAnswer(not wanted.dry_run, [artefact_view(file) for file in gone]))


async def search(request: Request) -> Response:
    """Search terminals, transcripts and handoff documents for `q`, the newest hits first."""
    limit = count(request, "limit", 20, MAX_HITS)
    sessions = await _searchable(request)
    archive = backend(request).archiving.archive
    names = {actor.session.id: actor.session.name for actor in backend(request).engine.sessions.actors.values()}
    hits = await asyncio.to_thread(archive.search, request.query_params.get("q", ""), sessions, limit)
    return answer([hit_view(hit, names.get(hit.session)) for hit in hits])


async def _searchable(request: Request) -> tuple[str, ...] | None:
    """The sessions the caller may search, or the one it asks for; None for all."""
    engine = backend(request).engine
    caller = caller_of(request)
    wanted = request.query_params.get("session")
    asked = engine.sessions.find(wanted).session.id if wanted is not None else None
    if caller.session is None:
        return None if asked is None else (asked,)
    directories = {actor.session.id: actor.session.directory for actor in engine.sessions.actors.values()}
    channel = engine.ports.documents.channel
    own = await asyncio.to_thread(channel, directories[caller.session])
    allowed = await asyncio.to_thread(
        lambda: tuple(session for session, place in directories.items() if channel(place) == own)
    )
    if asked is not None and asked not in allowed:
        raise error("forbidden", "A session may search its own project only", "ask the user who runs sm")
    return allowed if asked is None else (asked,)
