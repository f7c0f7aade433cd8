"""`GET /events`: server-sent events; `Last-Event-ID` replays what came after that number."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.requests import Request
from starlette.responses import Response

from sm.api.routes import backend
from sm.api.security import caller_of


async def events(request: Request) -> Response:
    return EventSourceResponse(_stream(request))


async def _stream(request: Request) -> AsyncIterator[ServerSentEvent]:
    own = caller_of(request).session
    last = request.headers.get("last-event-id", "")
    live = backend(request).feed.items()
    seen = int(last) if last.isdigit() else None
    if seen is not None:
        async for number, event in _replay(request, seen, own):
            seen = number
            yield event
    async for item in live:
        if (own is None or item.session == own) and (seen is None or item.number > seen):
            yield _event(item.number, item.kind, msgspec.to_builtins(item))


async def _replay(request: Request, after: int, own: str | None) -> AsyncIterator[tuple[int, ServerSentEvent]]:
    store = backend(request).store
    while rows := await store.events_after(after):
        for row in rows:
            after = int(str(row["number"]))
            if own is None or row["session"] == own:
                yield after, _event(after, str(row["kind"]), {name: row[name] for name in ("number", "session", "kind", "at")})


def _event(number: int, kind: str, data: object) -> ServerSentEvent:
    return ServerSentEvent(data=msgspec.json.encode(data).decode(), event=kind, id=str(number))
