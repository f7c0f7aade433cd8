"""The routes of one session's page, and of what it asks for again: head, messages, transcript, screen, keys."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated

import msgspec
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.requests import Request
from starlette.responses import Response

from sm.api.routes import answer, backend, body, target
from sm.api.streams import open_stream
from sm.archive.redaction.redact import redacted
from sm.core.errors import error
from sm.core.ports.panes import Pane
from sm.web.answers import html_answer
from sm.web.pages import documents
from sm.web.pages.fleet_page import live, page
from sm.web.pages.rotations import past
from sm.web.pages.screen import screens
from sm.web.pages.session import SessionPage, TranscriptRequest, number
from sm.web.pages.templates import render

MAX_KEYS = 4_096
MAX_PASTE = 64_000
WHOLE, OLDER, JOINED, NEWER = ("whole", "older", "joined", "newer")
"""Which part of a transcript: its end, what came before a place, the context before another one, what came since."""


class KeysBody(msgspec.Struct, forbid_unknown_fields=True):
    """What the user has typed or pasted."""

    keys: Annotated[str, msgspec.Meta(max_length=MAX_KEYS)] = ""
    paste: Annotated[str, msgspec.Meta(max_length=MAX_PASTE)] = ""


async def _found(request: Request) -> SessionPage:
    shared = live(request)
    await shared.refresh()
    return SessionPage.of(request, shared)


async def show(request: Request) -> Response:
    """The page of one session."""
    found = await _found(request)
    seen = found.live.mark
    wanted = TranscriptRequest(number(request, "context"), number(request, "before"))
    known = await found.contexts()
    session = found.session
    shown = {
        **await found.head(),
        **await _history(found),
        "seen": seen,  # what happens while the rest is read is news to the page
        "contexts": known,
        "pages": await found.transcript(known, wanted),
        "shows": WHOLE if wanted.before is None else OLDER,
        "messages": await found.messages(),
        "has_pane": session.pane is not None and not session.ended,
    }
    return page(request, "session.html", "session", **shown)


async def head(request: Request) -> Response:
    """The part with its state and what it asks."""
    found = await _found(request)
    return html_answer(render("_head.html", **await found.head()))


async def message_list(request: Request) -> Response:
    """The part with the messages from and to it."""
    found = await _found(request)
    return html_answer(render("_messages.html", messages=await found.messages()))


async def history(request: Request) -> Response:
    """The part with its past rotations and its handoff documents."""
    found = await _found(request)
    return html_answer(render("_history.html", row=found.row(), **await _history(found)))


async def _history(found: SessionPage) -> dict[str, object]:
    return {"rotations": past(await found.rotations()), "documents": await found.documents()}


async def transcript(request: Request) -> Response:
    """Entries of a `context`, the newest without it: the last ones, those `before` a place in it, or `after` it."""
    found = await _found(request)
    wanted = TranscriptRequest(*(number(request, name) for name in ("context", "before", "after")))
    known = await found.contexts()
    pages = await found.transcript(known, wanted)
    shows = NEWER if wanted.after is not None else OLDER if wanted.before is not None else JOINED
    return html_answer(render("_transcript.html", row=found.row(), contexts=known, pages=pages, shows=shows))


async def document(request: Request) -> Response:
    """One of its handoff documents; with `against` what changed since another one."""
    actor, engine = target(request), backend(request).engine
    found = await SessionPage.of(request, live(request)).documents()
    link = next((each for each in found if each.id == request.path_params["handoff"]), None)
    if link is None:
        raise error("not_found", f"Session {actor.session.name} has no such document", "its page lists them")
    by_id = {each.id: each for each in found}
    against = by_id.get(request.query_params.get("against", ""))
    text = await _text(request, link.id)
    difference = None
    if against is not None:
        older = await _text(request, against.id)
        difference = await asyncio.to_thread(documents.difference, older, text)
    shown = {
        "session": actor.session.id,
        "name": actor.session.name,
        "document": link,
        "text": text,
        "before": by_id.get(link.previous or ""),
        "after": by_id.get(link.following or ""),
        "against": against,
        "difference": difference,
        "now": engine.ports.clock.now(),
    }
    return page(request, "document.html", "session", **shown)


async def _text(request: Request, handoff: str) -> str:
    engine, known = backend(request).engine, backend(request).own_tokens
    entry = await engine.handoffs.entry(handoff)
    try:
        text = await asyncio.to_thread(engine.ports.documents.text, entry.handoff)
    except OSError as problem:
        words = f"The document of handoff {handoff} cannot be read: {problem.strerror}"
        raise error("handoff_gone", words, f"it was at {entry.handoff.copy}") from problem
    return redacted(text, known)


async def screen(request: Request) -> Response:
    """Server-sent events: what its pane shows, and from then on the lines that change."""
    pane = await _pane(request)
    if request.method == "HEAD":
        return Response(media_type="text/event-stream")
    open_stream(request)
    return EventSourceResponse(_screens(request, pane))


async def _screens(request: Request, pane: Pane) -> AsyncIterator[ServerSentEvent]:
    feed = backend(request).feed
    async for found in screens(pane):
        if feed.closed:
            return
        if found is None:
            yield ServerSentEvent(event="beat", data="")
        else:
            yield ServerSentEvent(event="screen", data=msgspec.json.encode(found).decode())
    yield ServerSentEvent(event="gone", data="")


async def keys(request: Request) -> Response:
    """Give its client what the user has typed, as a terminal that shows the pane does; `paste` as pasted text."""
    wanted = await body(request, KeysBody)
    pane = await _pane(request)
    if wanted.paste:
        await pane.paste(wanted.paste)
    if wanted.keys:
        await pane.user_typed(wanted.keys.encode("utf-8", "replace"))
    return answer(None)


async def _pane(request: Request) -> Pane:
    engine, session = backend(request).engine, target(request).session
    pane = await engine.sessions.pane_of(session)
    if pane is None or session.ended:
        raise error("client_gone", "This session has no pane", "its page can restore it")
    return engine.ports.panes.pane(pane)
