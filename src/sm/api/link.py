"""The link of the plugin in a client: it reports, acknowledges what it has done, and asks what it is to do."""

from __future__ import annotations

from dataclasses import asdict
from hashlib import sha256

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from sm.api.bodies import AskBody, LinkBody, OwnLinkBody
from sm.api.connected import while_connected
from sm.api.routes import answer, backend, body, target
from sm.api.security import caller_of
from sm.core import events as ev
from sm.core.errors import error
from sm.core.model.usage_limit import UsedShare
from sm.core.ports.provider import OrderResult
from sm.engine.actor import Actor
from sm.peers import UNIX
from sm.wire import LinkAnswer, LinkDocument, LinkOrder


async def exchange(request: Request) -> Response:
    """Take results and a handoff; with `hold`, answer as soon as there is an order, or after so many seconds."""
    return answer(await _exchanged(request, target(request), await body(request, LinkBody)))


async def exchange_of_own(request: Request) -> Response:
    """Take the same of a client that the user has started, and its hooks; it is known by its process alone."""
    given = await body(request, OwnLinkBody)
    pid = caller_of(request).client
    assert pid is not None
    engine = backend(request).engine
    actor, reply = await engine.external_clients.of_plugin(request.path_params["provider"], bytes(given.hook), pid)
    if given.declined:
        actor.put(ev.HandoffDeclined(at=engine.ports.clock.now()))
    told = await _exchanged(request, actor, given)
    return answer(
        msgspec.structs.replace(told, reply=told.reply or reply or None, rotate=actor.session.policy.rotate_own)
    )


async def _exchanged(request: Request, actor: Actor, given: LinkBody) -> LinkAnswer:
    actor.link.heard_from(given.generation)
    if actor.session.driver is not ev.DrivenBy.MOD:
        await actor.ask(ev.DriverChanged(at=backend(request).engine.ports.clock.now(), driver=ev.DrivenBy.MOD))
    for done in given.done:
        actor.link.acknowledged(done.id, OrderResult(done.problem or done.dropped, done.text))
    if given.context is not None:
        told = given.context
        backend(request).engine.hooks.context_readers.reported(actor, told.conversation, told.tokens, told.window)
    if given.limits:
        shares = [UsedShare(share.kind, share.percent, share.resets_at) for share in given.limits]
        backend(request).engine.usage_limits.reported(actor.session, shares, by_client=True)
    if given.handoff is not None:
        await backend(request).engine.handoffs.request_text(actor.session.id, given.handoff)
    if given.ask is not None:
        return await _asked(request, actor, given.ask, given)
    orders = await actor.link.orders(given.generation, given.hold) if given.hold else []
    whole = actor.link.taken() if given.started else None
    document = None if whole is None else LinkDocument(*whole)
    return LinkAnswer([LinkOrder(given.id, **asdict(given.order)) for given in orders], document)


async def _asked(request: Request, actor: Actor, ask: AskBody, given: LinkBody) -> LinkAnswer:
    """Answer with what the user answers; without that, and not over, the plugin asks again."""
    hooks, asks = backend(request).engine.hooks, backend(request).engine.asks
    adapter, hook = hooks.decoded(actor.session.provider, bytes(ask.hook), actor.session.pid)
    if hook.ask is None:
        return LinkAnswer([], over=True)
    name = f"{actor.session.id} {given.generation} {ask.number}"
    identity = sha256(name.encode("utf-8", "replace")).hexdigest()[:8]
    outcome = await while_connected(request, asks.hold_exchange(actor, identity, hook.ask, given.hold))
    if outcome is None or outcome.answer is None:
        return LinkAnswer([], over=outcome is None or outcome.over)
    return LinkAnswer([], reply=adapter.encode_answer(hook.ask, outcome.answer))


def only_client(request: Request) -> None:
    if caller_of(request).client is None:
        raise error("not_client", "Only a client may do this, over the server's socket and without a token")


def only_own_client(request: Request) -> None:
    """A token is inherited by whatever the agent starts, another client too: only the session's own has a say here."""
    session, peer = target(request).session, request.client
    pid = peer.port if peer is not None and peer.host == UNIX else None
    if caller_of(request).session != session.id or pid is None or pid != session.pid:
        raise error("not_client", "Only the client of the session may do this, over the server's socket")
