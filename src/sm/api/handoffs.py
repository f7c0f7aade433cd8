"""Handoffs: schedule, look at, take back, try again; and the store of them, channel by channel.

Self-directed: a session rotates itself and no other. Of the store it sees its own channel.
"""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from sm.api.authority import is_self, not_from_browser
from sm.api.bodies import HandoffBody
from sm.api.routes import answer, backend, body, target
from sm.api.security import caller_of
from sm.core.errors import error
from sm.core.model.handoff import HandoffType, StoredHandoff
from sm.engine.engine import Engine
from sm.wire import ClearedAnswer, HandoffView, ScheduledAnswer, handoff_view, rotation_view

SELF_ONLY = "sm handoff is self-directed only — requester must equal target session"


def only_requester(request: Request) -> None:
    if not is_self(request):
        raise error("not_self", SELF_ONLY)


async def schedule(request: Request) -> Response:
    """Schedule the rotation of the caller's own context; at most one waits, the last call wins.

    From a browser with a `document` alone: neither a file of the machine nor a client's arguments.
    """
    actor = target(request)
    wanted = await body(request, HandoffBody)
    if wanted.requester_session_id != actor.session.id:
        raise error("not_self", SELF_ONLY)
    if caller_of(request).device is not None and (wanted.file_path or wanted.arguments):
        raise not_from_browser("A handoff that names a file or arguments")
    engine, by_user = backend(request).engine, caller_of(request).is_user
    handoffs, switch = engine.handoffs, None
    if wanted.arguments and not wanted.to:
        raise error("bad_request", "Client arguments are for another client", "name it: --to PROVIDER")
    if wanted.to:
        switch = await engine.switches.wanted(actor.session.id, wanted.to, tuple(wanted.arguments), by_user=by_user)
    if wanted.document.strip():
        handoff = await handoffs.request_text(actor.session.id, wanted.document, switch, by_user=by_user)
        return answer(ScheduledAnswer(id=handoff.id, copy=handoff.copy))
    if not wanted.file_path:
        raise error("bad_request", "The document is empty", "write what the next context must know")
    handoff = await handoffs.request(
        actor.session.id,
        wanted.file_path,
        wanted.reason,
        HandoffType(wanted.type),
        confined=not by_user,
        switch=switch,
    )
    return answer(ScheduledAnswer(id=handoff.id, copy=handoff.copy))


async def show(request: Request) -> Response:
    """The session's handoff and the phase of its rotation."""
    actor = target(request)
    return answer(rotation_view(actor.session.rotation))


async def cancel(request: Request) -> Response:
    """Cancel a pending handoff."""
    actor = target(request)
    await backend(request).engine.handoffs.cancel(actor.session.id)
    return answer(rotation_view(actor.session.rotation))


async def retry(request: Request) -> Response:
    """Try a failed or waiting rotation again."""
    actor = target(request)
    await backend(request).engine.handoffs.retry(actor.session.id, by_user=caller_of(request).is_user)
    return answer(rotation_view(actor.session.rotation))


async def list_handoffs(request: Request) -> Response:
    """Handoffs, newest first: of `channel`, of the channel of `dir`, or all; `waiting=1` for the open ones."""
    engine = backend(request).engine
    handoffs = engine.handoffs
    channel = await _channel(request)
    if request.query_params.get("waiting"):
        found = await handoffs.waiting(channel) if channel is not None else await handoffs.waiting_anywhere()
    else:
        await handoffs.expire()
        found = await handoffs.store.handoffs(channel)
    directory = request.query_params.get("dir")
    return answer([await _listed(engine, entry, directory) for entry in found])


async def _listed(engine: Engine, entry: StoredHandoff, directory: str | None) -> HandoffView:
    """With `dir`, whether the handoff is of that directory's work tree, or of another one of its channel."""
    view = handoff_view(entry, engine.sessions.who)
    if directory is not None:
        view.here = await engine.handoffs.is_here(entry, directory)
    return view


async def show_handoff(request: Request) -> Response:
    """One handoff with its document."""
    engine = backend(request).engine
    entry = await _entry(request)
    view = handoff_view(entry, engine.sessions.who)
    view.document = await asyncio.to_thread(_document, engine, entry)
    return answer(view)


def _document(engine: Engine, entry: StoredHandoff) -> str:
    try:
        return engine.ports.documents.text(entry.handoff)
    except OSError as problem:
        message = f"The document of handoff {entry.handoff.id} cannot be read: {problem.strerror}"
        raise error("handoff_gone", message, f"it was at {entry.handoff.copy}") from problem


async def clear_handoff(request: Request) -> Response:
    """Dismiss a handoff."""
    engine = backend(request).engine
    await engine.handoffs.clear(request.path_params["handoff"])
    return answer(handoff_view(await _entry(request), engine.sessions.who))


async def clear_handoffs(request: Request) -> Response:
    """Dismiss all open handoffs of `channel`, or of the directory `dir`."""
    channel = await _channel(request)
    if channel is None:
        raise error("bad_request", "Which channel? Give channel or dir")
    directory = request.query_params.get("dir")
    return answer(ClearedAnswer(await backend(request).engine.handoffs.clear_channel(channel, directory)))


async def _entry(request: Request) -> StoredHandoff:
    handoffs = backend(request).engine.handoffs
    entry = await handoffs.entry(request.path_params["handoff"])
    own = await _own_channel(request)
    if own is not None and entry.handoff.channel != own:
        raise error("not_self", "A session may see the handoffs of its own project only")
    return entry


async def _channel(request: Request) -> str | None:
    """The channel that is asked for; None for every one. A session's is its own."""
    own = await _own_channel(request)
    if own is not None:
        return own
    handoffs = backend(request).engine.handoffs
    directory = request.query_params.get("dir")
    if directory is not None:
        return await handoffs.channel(directory)
    named = request.query_params.get("channel")
    return None if named is None else await handoffs.named(named)


async def _own_channel(request: Request) -> str | None:
    session = caller_of(request).session
    if session is None:
        return None
    engine = backend(request).engine
    return await engine.handoffs.channel(engine.sessions.actor(session).session.directory)
