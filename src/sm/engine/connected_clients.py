"""Keeps the connections to clients that the server itself connects to, and passes on what they tell.

For every living session whose provider has one, a connection stands as long as its client: what it tells is believed,
since nobody but the client is at its other end, and takes the same way as a hook.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from sm.core import events as ev
from sm.core.effects import ReadContext
from sm.core.model.ask import AskAnswer
from sm.core.model.session import Session
from sm.core.ports.clock import Clock
from sm.core.ports.provider import ClientOrder, ConnectedSession, HookEvent, HookReply, OrderResult, Provider
from sm.engine.actor import Actor
from sm.engine.asks import Asks
from sm.engine.context_reader import ContextReaders
from sm.engine.hooks import Hooks
from sm.engine.sessions import Sessions
from sm.engine.tasks import Spawn

GENERATION = "connection"
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


@dataclass(frozen=True, slots=True)
class _Reports:
    """Implements the port `ClientReports` for one session."""

    clients: ConnectedClients
    actor: Actor

    def conversation(self) -> str:
        current = self.actor.session.conversation
        return "" if current is None else current.id

    def past(self) -> tuple[str, ...]:
        return self.actor.session.past

    async def connected(self) -> None:
        self.alive()
        if self.actor.session.driver is not ev.DrivenBy.MOD:
            await self.actor.ask(ev.DriverChanged(at=self.clients.clock.now(), driver=ev.DrivenBy.MOD))

    def alive(self) -> None:
        self.actor.link.heard_from(GENERATION)

    async def hook(self, hook: HookEvent) -> HookReply:
        return await self.clients.hooks.reply_in_time(self.actor, hook)

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
        current = self.actor.session.conversation
        if current is not None:
            self.clients.context_readers.read(self.actor, ReadContext(current.id, current.transcript, current.epoch))

    async def orders(self) -> Sequence[tuple[int, ClientOrder]]:
        return [(given.id, given.order) for given in await self.actor.link.orders(GENERATION, HOLD_S)]

    def done(self, number: int, result: OrderResult) -> None:
        self.actor.link.acknowledged(number, result)
