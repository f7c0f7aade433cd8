"""What clients ask their users: list it, and answer. The user's token only; a parent's where that is configured."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from sm.api.bodies import AskAnswerBody
from sm.api.routes import answer, backend, body
from sm.api.security import Caller, caller_of
from sm.core.errors import error
from sm.core.model.ask import AskAnswer, Decision, StoredAsk
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
    given = await body(request, AskAnswerBody)
    caller = caller_of(request)
    if given.always and not caller.is_user:
        raise error("forbidden", "Only the user allows something for always", "leave out --always")
    wanted = AskAnswer(Decision(given.decision), given.text, given.always)
    found = await backend(request).engine.asks.answer(stored, wanted, given.answers, caller.session or "")
    return answer(_view(request, found))


async def _named(request: Request) -> StoredAsk:
    may_answer(request)
    found = await backend(request).store.ask(request.path_params["ask"])
    if not _is_own(request, found):
        raise error("forbidden", "A session may answer its own children only", "ask the user who runs sm")
    return found


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
    engine = backend(request).engine
    actor = engine.sessions.actors.get(stored.session)
    shown = engine.asks.shown(stored)
    if actor is None:
        return ask_view(shown, stored.session, None)
    details = engine.ports.providers[actor.session.provider].ask_details(shown.request)
    return ask_view(shown, actor.session.name, details)
