"""`GET /events`: server-sent events; `Last-Event-ID` replays what came after that number.

An event reads the same replayed and live; a live one also tells the session's status and phase after it. A number
that this database has not given yet comes from another one, as after a back-up was put back: the reader gets one event
that says so, and from there on what is new.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Any

import msgspec
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.requests import Request
from starlette.responses import Response

from sm.api.routes import backend
from sm.api.security import caller_of, is_number
from sm.api.streams import open_stream
from sm.archive.redaction.redact import IsOwnToken, redacted_json
from sm.core.errors import error
from sm.wire import LiveEvent, ReplayedEvent

RESTARTED = "EventNumbersRestarted"
"""Kind of that event, whose number is the newest one. It belongs to no session."""
RETRY_INTERVAL_MS = 1000
"""Milliseconds after which a reader that was cut off comes back."""


async def events(request: Request) -> Response:
    """Server-sent events as they happen; with `Last-Event-ID` those after it first. A session follows its own."""
    last = request.headers.get("last-event-id")
    if last is not None and not is_number(last):
        raise error("bad_request", "Last-Event-ID must be the number of an event")
    if request.method == "HEAD":
        return Response(media_type="text/event-stream")
    open_stream(request)
    return EventSourceResponse(_stream(request, int(last) if last is not None else None))


async def _stream(request: Request, seen: int | None) -> AsyncIterator[ServerSentEvent]:
    own = caller_of(request).session
    known = backend(request).own_tokens
    newest = await backend(request).store.newest_event()
    with backend(request).feed.subscribed() as live:
        yield ServerSentEvent(comment="subscribed", retry=RETRY_INTERVAL_MS)
        if seen is not None and seen > newest:
            yield _restarted(request, seen, newest)
            seen = newest
        if seen is not None:
            async for row in _rows_after(request, seen):
                event = ReplayedEvent(**{**row, "data": event_data(str(row["data"]), known)})
                seen = event.number
                if own is None or event.session == own:
                    yield _sent(event)
        async for item in live:
            if (own is None or item.session == own) and (seen is None or item.number > seen):
                yield _sent(LiveEvent(**{**asdict(item), "data": event_data(item.data, known)}))


def _restarted(request: Request, seen: int, newest: int) -> ServerSentEvent:
    at, session = backend(request).engine.ports.clock.now(), caller_of(request).session
    data = {"unknown": seen, "why": "The database is another one or a back-up. New events follow from its numbers."}
    return _sent(ReplayedEvent(newest, session, at, RESTARTED, msgspec.Raw(msgspec.json.encode(data))))


def event_data(data: str, known: IsOwnToken) -> msgspec.Raw:
    """What the store keeps of an event, without secrets."""
    return msgspec.Raw(redacted_json(data, known).encode())


async def _rows_after(request: Request, number: int) -> AsyncIterator[dict[str, Any]]:
    store = backend(request).store
    while rows := await store.events_after(number):
        for row in rows:
            yield row
        number = int(str(rows[-1]["number"]))


def _sent(event: ReplayedEvent | LiveEvent) -> ServerSentEvent:
    return ServerSentEvent(data=msgspec.json.encode(event).decode(), event=event.kind, id=str(event.number))
