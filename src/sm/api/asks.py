"""What clients ask their users: list it, and answer. The user's token only; a parent's where that is configured."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from starlette.requests import Request
from starlette.responses import Response

from sm.api.bodies import AskAnswerBody
from sm.api.routes import Backend, answer, backend, body
from sm.api.security import Caller, caller_of
from sm.core.errors import error
from sm.core.ids import is_prefix
from sm.core.model.ask import AskAnswer, AskState, Decision, StoredAsk
from sm.core.model.session import Session
from sm.core.rules.session.asks import RESTARTED
from sm.engine.asks import is_open
from sm.wire import AskView, ask_view


async def list_asks(request: Request) -> Response:
    """What is open; with `all=1` also what is over, the oldest first."""
    may_answer(request)
    found = await backend(request).store.asks(standing=request.query_params.get("all") != "1")
    return answer([_view(request, stored) for stored in found if _is_own(request, stored)])


async def show(request: Request) -> Response:
    """One ask, by its id or a beginning of it."""
    return answer(_view(request, await _named(request)))


async def give_answer(request: Request) -> Response:
    """The first answer counts; a late one is refused, with the state of the ask."""
    stored = await _named(request)
    _check_id(request, stored)
    given = await body(request, AskAnswerBody)
    await _asked_again(request, stored)
    caller = caller_of(request)
    if given.always and not caller.is_user:
        raise error("forbidden", "Only the user allows something for always", "leave out --always")
    wanted = AskAnswer(Decision(given.decision), given.text, given.always)
    found = await backend(request).engine.asks.answer(stored, wanted, given.answers, caller.session or "")
    return answer(_view(request, found))


async def _named(request: Request) -> StoredAsk:
    """Return the ask with that id, or a beginning of it, or the only open one of the session called so."""
    may_answer(request)
    named = request.path_params["ask"]
    sessions = backend(request).engine.sessions
    if sessions.called(named) is None:
        found = await backend(request).store.ask(named)
    else:
        found = await _of_session(request, sessions.find(named).session, named)
    if not _is_own(request, found):
        raise error("forbidden", "A session may answer its own children only", "ask the user who runs sm")
    return found


async def _of_session(request: Request, session: Session, named: str) -> StoredAsk:
    """Return the only ask of a session for which a dialog may be open.

    An agent may choose a name with which an ask's id begins: that one means neither.
    """
    standing = await backend(request).store.asks(standing=True)
    own = [stored for stored in standing if stored.session == session.id and _is_own(request, stored)]
    if any(is_prefix(named) and stored.ask.id.startswith(named.lower()) for stored in standing):
        words = f"{named} is a session's name, and the id of an ask begins with it"
        raise error("ambiguous", words, "give the whole id; sm asks lists them")
    if len(own) == 1:
        return own[0]
    if not own:
        raise error("not_found", f"Session {session.name} has no open ask", "sm asks lists what is open")
    shown = ", ".join(f"{stored.ask.id} ({stored.ask.tool})" for stored in own)
    raise error("ambiguous", f"Session {session.name} has {len(own)} open asks: {shown}", "give the id of one")


def _check_id(request: Request, stored: StoredAsk) -> None:
    """An answer is to what its giver has seen: what a session asks by now may be something else."""
    named, ask = request.path_params["ask"], stored.ask
    if not ask.id.startswith(named.lower()):
        message = f"{named} is a session, and an answer needs the id of what it asks: {ask.id} ({ask.tool})"
        raise error("bad_request", message, f"sm asks {ask.id} shows it")


async def _asked_again(request: Request, stored: StoredAsk) -> None:
    """Wait a moment for a client whose ask a restart of the server has ended: its plugin asks again."""
    actor = backend(request).engine.sessions.actors.get(stored.session)
    if actor is None or stored.ask.state is not AskState.EXPIRED or stored.ask.reason != RESTARTED:
        return
    with suppress(TimeoutError):
        async with asyncio.timeout(ASKED_AGAIN_S):
            while not actor.session.ended and not is_open(actor.session, stored.ask.id):
                await asyncio.sleep(POLL_S)


ASKED_AGAIN_S = 5.0
"""Within it a plugin asks a new server again."""
POLL_S = 0.1


def may_answer(request: Request) -> None:
    caller, engine = caller_of(request), backend(request).engine
    if not caller.is_user and (caller.session is None or not engine.ports.policies.parents_may_answer()):
        raise error("forbidden", "Only the user answers what a client asks", "ask the user who runs sm")


def _is_own(request: Request, stored: StoredAsk) -> bool:
    """Whether the caller is the user, or the parent of the session whose client asks."""
    caller = caller_of(request)
    return caller.is_user or _is_parent(request, caller, stored)


def _is_parent(request: Request, caller: Caller, stored: StoredAsk) -> bool:
    actor = backend(request).engine.sessions.actors.get(stored.session)
    return actor is not None and actor.session.parent is not None and actor.session.parent == caller.session


def _view(request: Request, stored: StoredAsk) -> AskView:
    return shown_ask(backend(request), stored)


def shown_ask(found: Backend, stored: StoredAsk) -> AskView:
    """Return an ask as its user is shown it, with what the client's own form of it says."""
    actor = found.engine.sessions.actors.get(stored.session)
    shown = found.engine.asks.shown(stored)
    if actor is None:
        return ask_view(shown, stored.session, None)
    details = found.engine.ports.providers[actor.session.provider].ask_details(shown.request)
    return ask_view(shown, actor.session.name, details)
