"""Follows the files that say how a session is treated: `sm`'s configuration, the client's settings, its transcript."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from sm.core import events as ev
from sm.core.model.capacity import ClientLimits
from sm.core.model.context import Policy
from sm.core.model.session import Session
from sm.core.ports.clock import Clock
from sm.core.ports.policies import Policies
from sm.core.ports.provider import Provider
from sm.engine.actor import Actor
from sm.engine.context_reader import ContextReaders
from sm.engine.errors import logged
from sm.engine.sessions import Sessions
from sm.engine.transcripts import transcript_moved
from sm.processes import started_with

INTERVAL_S = 2.0
INTERVAL_PER_SESSION_S = 0.004
"""Of hundreds of sessions each is looked at less often."""
BATCH = 10
"""Sessions between which hooks are let in."""


@dataclass(frozen=True, slots=True)
class Read:
    """What one round has read: many sessions share a directory."""

    policies: dict[str, Policy] = field(default_factory=dict)
    limits: dict[tuple[str, str, str, tuple[tuple[str, str], ...]], ClientLimits] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ConfigurationMonitor:
    sessions: Sessions
    clock: Clock
    providers: Mapping[str, Provider]
    policies: Policies
    context_readers: ContextReaders
    asked_of: dict[tuple[str, int], tuple[tuple[str, str], ...]] = field(default_factory=dict)
    """What the processes of sessions were started with, as far as that was looked up."""

    async def run(self) -> None:
        while True:
            await asyncio.sleep(max(INTERVAL_S, INTERVAL_PER_SESSION_S * len(self.sessions.actors)))
            read = Read()
            for number, actor in enumerate(tuple(self.sessions.actors.values())):
                with logged("configuration not followed", session=actor.session.id):
                    self.renew_policy(actor, read)
                    self._renew_limits(actor, read)
                    self._renew_transcript(actor)
                if number % BATCH == 0:
                    await asyncio.sleep(0)  # hooks come in between

    def renew_policy(self, actor: Actor, read: Read | None = None) -> None:
        directory, policies = actor.session.directory, {} if read is None else read.policies
        policy = policies.get(directory) or policies.setdefault(directory, self.policies.policy(directory))
        policy = policy.handing_off_at(actor.session.handoff_at)
        if not actor.session.ended and policy != actor.session.policy:
            actor.put(ev.PolicyChanged(at=self.clock.now(), policy=policy))

    def _renew_transcript(self, actor: Actor) -> None:
        event = transcript_moved(self.providers[actor.session.provider], actor.session, self.clock.now())
        if event is not None:
            actor.put(event)

    def _renew_limits(self, actor: Actor, read: Read) -> None:
        """The client reads its settings again when they change, and its limit changes with them."""
        session = actor.session
        if session.ended or not session.config:
            return
        place = session.provider, session.config, session.directory, session.asked or self._asked(session)
        limits = read.limits.get(place)
        if limits is None:
            limits = read.limits[place] = self.providers[session.provider].limits(*place[1:])
        if limits != session.limits:
            actor.put(ev.LimitsChanged(at=self.clock.now(), limits=limits))
            self.context_readers.resize(actor, limits)

    def _asked(self, session: Session) -> tuple[tuple[str, str], ...]:
        """What its client was started with, where no event says so: a server before the last upgrade kept less."""
        if session.pid is None:
            return ()
        client = session.id, session.pid
        if client not in self.asked_of:
            self.asked_of[client] = self.providers[session.provider].asked(*started_with(session.pid))
        return self.asked_of[client]
