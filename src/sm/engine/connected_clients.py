"""Keeps the connections to clients that the server itself connects to, and passes on what they tell.

For every living session whose provider has one, there is a connection as long as its client lives. What it tells is
believed, since only the client is at its other end, and takes the same way as a hook.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

from sm.core import events as ev
from sm.core.model.ask import AskAnswer
from sm.core.model.session import Session, Status
from sm.core.ports.clock import Clock
from sm.core.ports.provider import ClientOrder, ConnectedSession, HookEvent, HookReply, OrderResult, Provider
from sm.engine.actor import Actor
from sm.engine.asks import Asks
from sm.engine.context_reader import ContextReaders
from sm.engine.hooks import Hooks
from sm.engine.sessions import Sessions
from sm.engine.tasks import Spawn

HOLD_S = 20.0
"""Seconds that orders are waited for at a time."""


@dataclass(slots=True)
class ConnectedClients:
    sessions: Sessions
    clock: Clock
    providers: Mapping[str, Provider]
    hooks: Hooks
    asks: Asks
    context_readers: ContextReaders
    spawn: Spawn
    running: dict[str, tuple[int, asyncio.Event]] = field(default_factory=dict)
    """By session: the process of the client that is connected to, and what ends the connection."""

    async def start(self) -> None:
        for actor in tuple(self.sessions.actors.values()):
            self.follow(actor.session)

    def follow(self, session: Session) -> None:
        """Connect to a client that has been started, and let go of one that has ended."""
        known = self.running.get(session.id)
        pid = None if session.ended else session.pid
        if known is not None and known[0] == pid:
            return
        if known is not None:
            del self.running[session.id]
            known[1].set()
        provider = self.providers.get(session.provider)
        if pid is None or provider is None:
            return
        place = ConnectedSession(session.id, session.name, session.directory, pid)
        work = provider.connection(place, _Reports(self, self.sessions.actor(session.id)))
        if work is not None:
            left = asyncio.Event()
            self.running[session.id] = pid, left
            self.spawn(_kept(work, left))


async def _kept(work: Coroutine[None, None, None], left: asyncio.Event) -> None:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(work)
        await left.wait()
        task.cancel()


@dataclass(slots=True)
class _Reports:
    """Implements the port `ClientReports` for one session."""

    clients: ConnectedClients
    actor: Actor
    generation: str = ""
    """Of the present connection."""

    def conversation(self) -> str:
        session = self.actor.session
        current = None if session.status is Status.STARTING else session.conversation
        return "" if current is None else current.id

    def past(self) -> tuple[str, ...]:
        return self.actor.session.past

    async def connected(self) -> None:
        self.generation = secrets.token_hex(4)
        self.alive()
        if self.actor.session.driver is not ev.DrivenBy.MOD:
            await self.actor.ask(ev.DriverChanged(at=self.clients.clock.now(), driver=ev.DrivenBy.MOD))

    def alive(self) -> None:
        self.actor.link.heard_from(self.generation)

    async def hook(self, hook: HookEvent) -> HookReply:
        """Take it as of now: the order of events is by the server's clock, which may have been set since it started."""
        event = None if hook.event is None else replace(hook.event, at=self.clients.clock.now())
        return await self.clients.hooks.reply_in_time(self.actor, replace(hook, event=event))

    async def ask(self, identity: str, hook: HookEvent) -> AskAnswer | None:
        assert hook.ask is not None
        await self.hook(hook)
        name = f"{self.actor.session.id} {identity}"
        number = sha256(name.encode("utf-8", "replace")).hexdigest()[:8]
        while True:
            outcome = await self.clients.asks.hold_exchange(self.actor, number, hook.ask, HOLD_S)
            if outcome.answer is not None or outcome.over:
                return outcome.answer

    def reported(self, conversation: str, tokens: int, window: int) -> None:
        self.clients.context_readers.reported(self.actor, conversation, tokens, window)

    def measure(self) -> None:
        self.clients.context_readers.look(self.actor)

    async def orders(self) -> Sequence[tuple[int, ClientOrder]]:
        link = self.actor.link
        if link.released:
            await asyncio.Event().wait()  # the server stops: this is cancelled
        return [(given.id, given.order) for given in await link.orders(self.generation, HOLD_S)]

    def done(self, number: int, result: OrderResult) -> None:
        self.actor.link.acknowledged(number, result)
