"""Sessions whose client a person started in a terminal of their own, and whose hooks come with the user's token.

The first hook of an unknown conversation makes a session of it: measured and told like any other, by the same rules,
but without a pane. Later ones belong to it if they name its conversation, or come from its client's process, which
`/clear` and `/resume` take to another conversation. Once that process has ended, another one is another session.
"""

from __future__ import annotations

import secrets
from dataclasses import replace

from sm.core import events as ev
from sm.core.errors import error
from sm.core.ids import free_name
from sm.core.model.session import Session
from sm.core.ports.provider import HookEvent, Provider
from sm.core.ports.store import LaunchRecord
from sm.engine.actor import Actor
from sm.engine.context_reader import resized
from sm.engine.supervisor import Supervisor
from sm.processes import started_with

TOKEN_BYTES = 32


async def hook(supervisor: Supervisor, provider: str, payload: bytes, pid: int | None) -> dict[str, object]:
    adapter = supervisor.adapter(provider)
    told = supervisor.decoded(adapter, payload, pid)
    if told.event is None or pid is None or is_ours(supervisor, told.conversation):
        return {}
    async with supervisor.registering:  # the hooks of one start come at the same time
        actor = known(supervisor, told.conversation, pid) or await _register(supervisor, adapter, told, pid)
    if not follow(supervisor, actor, told):
        return {}
    return adapter.encode(told.name, await supervisor.ask_in_time(actor, told))


def is_ours(supervisor: Supervisor, conversation: str) -> bool:
    """A conversation of a session that `sm` started: its own hooks tell."""
    ours = (one.session for one in supervisor.actors.values() if not one.session.adopted and not one.session.ended)
    return any(one.conversation is not None and one.conversation.id == conversation for one in ours)


def known(supervisor: Supervisor, conversation: str, pid: int | None) -> Actor | None:
    living = [one for one in supervisor.actors.values() if one.session.adopted and not one.session.ended]
    for actor in living:
        current = actor.session.conversation
        if (pid is not None and actor.session.pid == pid) or (current is not None and current.id == conversation):
            return actor
    return None


def follow(supervisor: Supervisor, actor: Actor, told: HookEvent) -> bool:
    """Whether the hook is to be believed; one that shows the client in another conversation moves the session there."""
    current = actor.session.conversation
    if isinstance(told.event, ev.ConversationStarted) or (current is not None and current.id == told.conversation):
        return True
    if told.conversation in actor.session.past:
        return False  # late, of a conversation that was left
    at, origin = supervisor.clock.now(), ev.Origin.WITNESS
    actor.put(ev.ConversationStarted(at=at, conversation=told.conversation, transcript=told.transcript, origin=origin))
    return True


async def _register(supervisor: Supervisor, adapter: Provider, told: HookEvent, pid: int) -> Actor:
    taken = frozenset(actor.session.name for actor in supervisor.actors.values() if not actor.session.ended)
    directory = told.directory or "/"
    policy = supervisor.policies.policy(directory)
    session = Session(
        id=secrets.token_hex(4),
        name=free_name(directory.rstrip("/").rpartition("/")[2] or "root", taken),
        provider=adapter.name,
        directory=directory,
        created=supervisor.clock.now(),
        offer=await supervisor.handoffs.offer(directory) if policy.offer else None,
        policy=policy,
    )
    # Nobody is given the token: the client has the user's. A later `sm restore` brings one of its own.
    await supervisor.store.add(session, secrets.token_urlsafe(TOKEN_BYTES), LaunchRecord())
    supervisor.documents.prepare(directory)
    actor = supervisor.register(session)
    config = adapter.configuration_of(told.transcript) if told.transcript else ""
    asked = adapter.asked(*started_with(pid))
    launched = ev.SessionLaunched(
        at=supervisor.clock.now(),
        pane=None,
        pid=pid,
        conversation=told.conversation,
        transcript=told.transcript,
        config=config,
        asked=asked,
        limits=adapter.limits(config, directory, asked),
        adopted=True,
    )
    await supervisor.ask(actor, launched)
    return actor


def status(supervisor: Supervisor, session: str | None, provider: str, payload: bytes) -> Session | None:
    """The session whose status line asks, which also takes in what the client says of its window."""
    adapter = supervisor.adapter(provider)
    try:
        told = adapter.decode_status(payload)
    except (ValueError, RecursionError) as problem:
        raise error("bad_payload", f"not a status line's input: {problem}") from problem
    actor = supervisor.actor(session) if session else known(supervisor, told.conversation, None)
    current = actor.session.conversation if actor else None
    if actor is None or current is None or current.id != told.conversation:
        return None
    limit = actor.session.limit
    for kind, resets_at in told.limits if limit is not None else ():
        if limit is not None and limit.kind in {kind, "usage"} and limit.resets_at != resets_at:
            at = supervisor.clock.now()
            actor.put(ev.LimitTold(at=at, conversation=told.conversation, kind=kind, resets_at=resets_at))
    if told.window is not None and told.window != actor.session.window:
        reading = replace(current.monitor.reading, window=told.window)
        _, usable = resized(adapter, actor.session, reading, actor.session.limits)
        at = supervisor.clock.now()
        actor.put(ev.WindowTold(at=at, conversation=told.conversation, window=told.window, usable=usable))
    return actor.session
