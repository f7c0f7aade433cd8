"""Sessions: list, start, look at, rename, end, restore, send to."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from functools import lru_cache
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from sm.api import foreground
from sm.api.authority import not_from_browser, only_user, owns
from sm.api.bodies import NewSessionBody, RenameBody, RestoreBody
from sm.api.feed import event_data
from sm.api.routes import Backend, answer, backend, body, count, target
from sm.api.security import caller_of
from sm.archive.redaction.redact import BLOCK_LINES, IsOwnToken, without_secrets
from sm.core import events as ev
from sm.core.errors import SmError, error
from sm.core.ids import as_argument
from sm.core.model.context import Monitor
from sm.core.model.session import Session
from sm.core.rules.context_thresholds import thresholds
from sm.core.rules.session.refusals import external_client
from sm.core.rules.team import already_ended, children_of
from sm.engine.new_session import NewSession
from sm.wire import (
    AttachAnswer,
    ContextHistoryView,
    ContextMark,
    EndedSession,
    EventsAnswer,
    EventView,
    PublicSession,
    SessionView,
    TextAnswer,
    context_view,
    public_view,
    session_view,
)

MAX_LINES = 200_000
BLANK_RUN = re.compile(r"\n(?:[ \t]*\n){3,}")


async def list_sessions(request: Request) -> Response:
    """All of them for the user; a session sees itself and its children whole and the names and status of the others.

    `ids`, with commas between them, asks for these only; one that is not there any more is left out.
    """
    actors = backend(request).engine.sessions.actors
    wanted = request.query_params.get("ids")
    named = None if wanted is None else frozenset(wanted.split(","))
    sessions = [actor.shown for name, actor in actors.items() if named is None or name in named]
    return answer([_view(request, session) for session in sessions])


def _view(request: Request, session: Session) -> SessionView | PublicSession:
    if not owns(caller_of(request), session):
        return public_view(session)
    return owner_view(backend(request), session)


def owner_view(found: Backend, session: Session) -> SessionView:
    """Return all that its owner is shown of it."""
    view = session_view(session)
    view.branch, view.said = found.engine.branches.of(session.directory), _said(session.said, found.own_tokens)
    view.paused_with = found.engine.messages.paused(session.id)
    return view


@lru_cache(4096)
def _said(text: str, known: IsOwnToken) -> str:
    """Redact what agents have said. A dashboard asks often, and most agents have said nothing new."""
    return without_secrets(text, known)


async def new_session(request: Request) -> Response:
    """Start a session. With `foreground` the caller starts the client, in a terminal of its own."""
    wanted = await body(request, NewSessionBody)
    if wanted.headless and not wanted.attempt:
        raise error("bad_request", "Only an attempt of a run can be headless", "leave headless out")
    new = NewSession(
        directory=wanted.dir,
        env=wanted.env,
        provider=wanted.provider,
        name=wanted.name,
        model=wanted.model,
        prompt=wanted.prompt,
        arguments=tuple(wanted.arguments),
        command=wanted.command,
        handoff=wanted.handoff,
        attempt=wanted.attempt,
        scope=wanted.scope,
        headless=wanted.headless,
        handoff_at=None if wanted.handoff_threshold is None else wanted.handoff_threshold / 100,
    )
    if wanted.foreground is not None:
        place = foreground.wanted(request, wanted.foreground, wanted.dir)
        return await foreground.register(request, replace(new, foreground=place))
    engine = backend(request).engine
    begun = engine.attempts.session(new) if new.attempt else engine.launcher.create(new)
    return answer(session_view(await begun), 201)


async def show(request: Request) -> Response:
    """One session, by id or name: whole and with its children for its owner, else name and status."""
    session = target(request).shown
    view = _view(request, session)
    if isinstance(view, SessionView):
        every = (actor.session for actor in backend(request).engine.sessions.actors.values())
        view.children = [public_view(child) for child in children_of(session.id, every)]
    return answer(view)


async def rename(request: Request) -> Response:
    """Rename the session."""
    actor = target(request)
    wanted = await body(request, RenameBody)
    await backend(request).engine.sessions.rename(actor.session.id, wanted.name)
    return answer(session_view(actor.session))


async def kill(request: Request) -> Response:
    """End the session's client; with `children=1` everything below it too."""
    actor = target(request)
    by, children = caller_of(request).session or "", request.query_params.get("children") == "1"
    gone = await backend(request).engine.team.kill(actor.session.id, by, children=children)
    view = session_view(actor.session)
    view.ended = [EndedSession(session.id, session.name) for session in gone]
    return answer(view)


async def restore_session(request: Request) -> Response:
    """Start an ended session again, with its last conversation or its unfinished handoff; `force` is the user's.

    From a browser in the environment of the server.
    """
    actor = target(request)
    wanted = await body(request, RestoreBody)
    engine, session = backend(request).engine, actor.session.id
    if wanted.force:
        only_user(request)
    by_device = caller_of(request).device is not None
    if by_device and wanted.env:
        raise not_from_browser("An environment for a client")
    if caller_of(request).is_user:
        env = backend(request).environment if by_device else wanted.env
        return answer(session_view(await engine.launcher.restore(session, env, force=wanted.force)))
    return answer(session_view(await engine.team.restore_child(session, wanted.env)))


async def remove(request: Request) -> Response:
    """Remove an ended session from the list; it cannot be restored any more."""
    gone = await backend(request).engine.team.remove(target(request).session.id)
    return answer(EndedSession(gone.id, gone.name))


async def context(request: Request) -> Response:
    """How full the session's context is; null is unknown."""
    actor = target(request)
    return answer(context_view(actor.session))


async def context_history(request: Request) -> Response:
    """How full the session's context was over its whole life, and what happened to it."""
    session, found = target(request).session, backend(request)
    history = await found.histories.of(found.store.database, session.id)
    monitor = session.conversation.monitor if session.conversation is not None else Monitor()
    warning, critical = thresholds(monitor, session.policy)
    readings = history.readings
    return answer(
        ContextHistoryView(
            at=[reading.at for reading in readings],
            tokens=[reading.tokens for reading in readings],
            usable=[reading.usable for reading in readings],
            marks=[ContextMark(mark.at, mark.words) for mark in history.marks],
            warning=warning,
            critical=critical,
        )
    )


async def rearm(request: Request) -> Response:
    """Let crossed thresholds warn again."""
    actor = target(request)
    engine = backend(request).engine
    await actor.ask(ev.LatchesReset(at=engine.ports.clock.now()))
    return answer(context_view(actor.session))


async def output(request: Request) -> Response:
    """What the session's pane shows, with its history, without secrets; `lines` from the end."""
    actor = target(request)
    engine = backend(request).engine
    text = await engine.ports.panes.pane(await _pane(request, actor.session)).history()
    wanted = count(request, "lines", MAX_LINES, MAX_LINES)
    return answer(TextAnswer(await asyncio.to_thread(_shown, text, wanted, backend(request).own_tokens)))


def _shown(text: str, wanted: int, known: IsOwnToken) -> str:
    """Return the last lines; a secret is also known by the lines above them."""
    lines = BLANK_RUN.sub("\n\n\n", text).strip("\n").split("\n")  # a fresh screen is mostly empty
    return "\n".join(without_secrets("\n".join(lines[-wanted - BLOCK_LINES :]), known).split("\n")[-wanted:])


async def events(request: Request) -> Response:
    """The last events of the session, oldest first."""
    actor = target(request)
    number = count(request, "lines", 20, MAX_LINES)
    rows: list[dict[str, Any]] = await backend(request).store.events_of(actor.session.id, number)
    known = backend(request).own_tokens
    found = [EventView(**{**row, "data": event_data(str(row["data"]), known)}) for row in rows]
    return answer(EventsAnswer(actor.session.id, found, last=max((event.number for event in found), default=0)))


async def attachment(request: Request) -> Response:
    """The command that a terminal runs to show the pane."""
    actor = target(request)
    if actor.session.ended:
        raise SmError(already_ended(actor.session))
    inside_tmux = request.query_params.get("inside_tmux") == "1"
    pane = await _pane(request, actor.session)
    argv = await backend(request).engine.ports.panes.attach(pane, inside_tmux=inside_tmux)
    return answer(AttachAnswer(list(argv), actor.session.name))


async def _pane(request: Request, session: Session) -> str:
    pane = await backend(request).engine.sessions.pane_of(session)
    if pane is None and session.adopted and not session.ended:
        raise SmError(external_client(session))
    if pane is None and session.foreground is not None and not session.ended:
        hint = "use that terminal; sm tail and sm context show it from here"
        raise error("in_foreground", f"Session {session.name} runs in a foreground terminal of its own", hint)
    if pane is None:
        raise error("client_gone", "This session has no pane", f"sm restore {as_argument(session.name, session.id)}")
    return pane
