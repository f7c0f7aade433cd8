"""Messages: send, list what waits, show the state of one. The sender is who the token says."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from sm.api.authority import not_from_browser, owns
from sm.api.bodies import AddressedMessageBody, MessageBody
from sm.api.routes import answer, backend, body, target
from sm.api.security import caller_of
from sm.core.errors import SmError, error
from sm.core.ids import CHILDREN, PARENT
from sm.core.model.message import MessageState, SendRequest
from sm.engine.actor import Actor
from sm.wire import SentMessage, UnsentMessage, message_view, why_it_waits


async def send(request: Request) -> Response:
    """Queue a message for the session."""
    wanted = await body(request, MessageBody)
    return answer(await _sent(request, target(request), wanted), 201)


async def send_to(request: Request) -> Response:
    """Queue a message for `to`: an id, a name, several with commas between, `parent` or `children`.

    Of several, each is answered for itself: with its message's id, or with the error that refused it.
    """
    wanted = await body(request, AddressedMessageBody)
    names = [name.strip() for name in wanted.to.split(",") if name.strip()]
    if not names:
        raise error("bad_request", "No target is named", "sm send TARGET TEXT")
    if len(names) == 1 and names[0] != CHILDREN:
        return answer([await _sent(request, _named(request, names[0]), wanted)], 201)
    return answer([result for name in names for result in await _sent_each(request, name, wanted)], 201)


async def _sent_each(request: Request, name: str, wanted: MessageBody) -> list[SentMessage | UnsentMessage]:
    try:
        found = _children(request) if name == CHILDREN else [_named(request, name)]
    except SmError as problem:
        return [_refused(name, problem)]
    results: list[SentMessage | UnsentMessage] = []
    for actor in found:
        try:
            results.append(await _sent(request, actor, wanted))
        except SmError as problem:
            results.append(_refused(actor.session.name, problem))
    return results


def _refused(name: str, problem: SmError) -> UnsentMessage:
    refused = problem.refused
    return UnsentMessage(name, refused.message, refused.code, refused.hint)


async def _sent(request: Request, actor: Actor, wanted: MessageBody) -> SentMessage:
    if wanted.command and caller_of(request).device is not None:
        raise not_from_browser("A command of the client")
    asked = SendRequest(
        body=wanted.text,
        mode=wanted.mode,
        expires=wanted.expires,
        notify_on_stop=wanted.notify_on_stop,
        wait=wanted.wait,
        command=wanted.command,
    )
    sender = caller_of(request).session or ""
    identity = await backend(request).engine.messages.send(actor.session.id, sender, asked)
    return SentMessage(identity, MessageState.QUEUED.value, actor.session.id, actor.session.name)


def _caller(request: Request, word: str) -> str:
    """The session that sends; `parent` and `children` are targets of sessions only."""
    own = caller_of(request).session
    if own is None:
        raise error("not_found", f"'{word}' is a target inside a session only", "name a session: sm list shows them")
    return own


def _named(request: Request, name: str) -> Actor:
    engine = backend(request).engine
    if name != PARENT:
        return engine.sessions.find(name)
    parent = engine.sessions.actor(_caller(request, PARENT)).session.parent
    if parent is None:
        raise error(
            "not_found", "This session has no parent: the user started it", "name a session: sm list shows them"
        )
    return engine.sessions.actor(parent)


def _children(request: Request) -> list[Actor]:
    own = _caller(request, CHILDREN)
    actors = backend(request).engine.sessions.actors.values()
    found = [actor for actor in actors if actor.session.parent == own and not actor.session.ended]
    if not found:
        raise error("not_found", "This session has no running children", "sm list shows the sessions")
    return found


async def message(request: Request) -> Response:
    """The state of a message."""
    found = await _found(request, "sender", "target")
    return answer(message_view(found, backend(request).engine.sessions.who, _waits(request, str(found["target"]))))


def _waits(request: Request, session: str) -> str:
    actor = backend(request).engine.sessions.actors.get(session)
    if actor is None:
        return ""
    return why_it_waits(actor.session, whole=owns(caller_of(request), actor.session))


async def cancel(request: Request) -> Response:
    """Cancel a queued message."""
    before = await _found(request, "sender")
    engine = backend(request).engine
    await engine.messages.cancel(str(before["id"]), caller_of(request).session or "")
    after = await _found(request, "sender")
    if before["state"] != MessageState.QUEUED.value or after["state"] != MessageState.FAILED.value:
        how = "is being typed" if after["state"] == MessageState.QUEUED.value else f"is already {after['state']}"
        hint = f"sm message {after['id']} shows what happens to it; only a queued message can be cancelled"
        raise error("too_late", f"Message {after['id']} {how}", hint)
    return answer(message_view(after, engine.sessions.who))


async def _found(request: Request, *roles: str) -> dict[str, Any]:
    """The message that the path names, if the caller is the user or has one of the roles."""
    found = await backend(request).store.message(request.path_params["message"])
    caller = caller_of(request)
    if found is None or not (caller.is_user or caller.session in {found[role] for role in roles}):
        raise error("not_found", f"No such message: {request.path_params['message']}", "sm send printed its id")
    return found


async def inbox(request: Request) -> Response:
    """What waits for the session or is on its way to it, in the order of its delivery by mode.

    With `dead=1` what did not arrive of what it was sent and has sent, each with its reason, the newest first; with
    `all=1` all of that, whatever its state.
    """
    actor = target(request)
    store, given = backend(request).store, request.query_params
    session = actor.session.id
    if given.get("dead") == "1":
        rows = await store.dead_letters(session)
    else:
        rows = await (store.newest_messages(session) if given.get("all") == "1" else store.inbox(session))
    waits = _waits(request, session)
    return answer([message_view(row, backend(request).engine.sessions.who, waits) for row in rows])
