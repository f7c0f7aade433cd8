"""Lets another client continue a session: ends the one that it has and starts the other one in its place.

The session lives on all the while. Its rotation says what is wanted and how far it is; what is done here can be done
again from any point, also by the next server: the environment for the new client is the old one's, which the terminal
multiplexer keeps. Where the new client cannot be started, the rotation decides who continues.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import structlog

from sm.core import events as ev
from sm.core.errors import SmError, error
from sm.core.ids import as_argument
from sm.core.model.rotation import Switch
from sm.core.model.session import Session
from sm.core.ports.clock import Clock
from sm.core.ports.panes import Launch, PaneError, Panes, PaneStatus
from sm.core.ports.policies import Policies
from sm.core.ports.provider import Provider
from sm.core.ports.store import LaunchRecord, Store
from sm.core.rules.session.refusals import may_hand_off, may_switch
from sm.engine.actor import Actor
from sm.engine.errors import logged
from sm.engine.launch import SessionLauncher
from sm.engine.sessions import Sessions, provider_named
from sm.engine.tasks import Spawn
from sm.engine.termination import GRACE_S
from sm.processes import alive

log = structlog.get_logger()
NO_ENVIRONMENT = "the environment of the client before is not known"


@dataclass(slots=True)
class ClientSwitches:
    sessions: Sessions
    store: Store
    panes: Panes
    clock: Clock
    providers: Mapping[str, Provider]
    policies: Policies
    spawn: Spawn
    launcher: SessionLauncher = field(init=False)
    """Given afterwards: what starts sessions has their effects run, which begin this."""
    locks: dict[str, asyncio.Lock] = field(default_factory=dict)
    """By session: one client at a time."""
    begun: Counter[str] = field(default_factory=Counter)
    """How much is still to be done for each session."""

    async def wanted(self, session: str, to: str, arguments: tuple[str, ...], *, by_user: bool) -> Switch | None:
        """Return what a handoff to that provider means, None for the session's own; SmError if it cannot be."""
        found = self.sessions.actor(session).session
        provider_named(self.providers, to)
        if arguments and not by_user:
            raise error("forbidden", "An agent gives no client arguments", "ask the user who runs sm")
        if to == found.provider:
            if arguments:
                hint = "leave them out; sm kill and sm new start a client with others"
                raise error(
                    "bad_request", f"Session {found.name} has {to} already: arguments are for another client", hint
                )
            return None
        if not by_user and not self.policies.agents_may_switch():
            message = "An agent may not have another client continue its session: team.may_switch is not set"
            raise error("forbidden", message, f"ask the user: sm handoff FILE --to {to} --session {found.id}")
        refused = may_hand_off(found) or may_switch(found)
        if refused is not None:
            raise SmError(refused)
        switch = Switch(to, arguments)
        await self._prepared(found, switch)  # what is missing is better said to whoever asks
        return switch

    def begin(self, actor: Actor) -> None:
        """Do what the session's rotation says, behind whatever was begun for it before."""
        self.begun[actor.session.id] += 1
        self.sessions.restoring.add(actor.session.id)  # the end of its client is not the session's
        self.spawn(self._run(actor))

    def is_under_way(self, session: Session, pane: PaneStatus | None) -> bool:
        """Whether the last server ended while no client of the session was left, or one that it has not noted."""
        rotation = session.rotation
        if rotation is None or not rotation.changes_client or pane is None:
            return False
        lives = not pane.dead and pane.pid == session.pid and session.pid is not None and alive(session.pid)
        return not lives

    async def _run(self, actor: Actor) -> None:
        identity = actor.session.id
        try:
            async with self.locks.setdefault(identity, asyncio.Lock()):
                with logged("client not exchanged", session=identity) as doing:
                    await self._exchange(actor)
                if doing.problem is not None:
                    await self._failed(actor, str(doing.problem))
        finally:
            self.begun[identity] -= 1
            if not self.begun[identity]:
                self.sessions.restoring.discard(identity)

    async def _exchange(self, actor: Actor) -> None:
        session = actor.session
        rotation = session.rotation
        if session.ended or rotation is None or rotation.switch is None or not rotation.changes_client:
            return
        try:
            token, launch, record = await self._prepared(session, rotation.switch)
        except (SmError, PaneError) as problem:
            reason = problem.refused.message if isinstance(problem, SmError) else str(problem)
            await self._failed(actor, reason)
            return
        now = actor.session.rotation
        if actor.session.ended or now is None or now.switch != rotation.switch or not now.changes_client:
            return  # a prompt came first, or the end of the session
        log.info("client is exchanged", session=session.id, to=rotation.switch.to)
        await self.panes.empty(session.id, GRACE_S)
        if actor.session.ended:
            return
        await self.store.exchange(session.id, token, record)
        self.sessions.set_token(session.id, token)
        self.sessions.launches[session.id] = record
        await self.panes.clear(session.id)
        pane = await self.launcher.run(actor, launch, rotation.switch.to, in_place=True)
        if actor.session.pane != pane.pane:  # it was killed in between
            await self.panes.end(session.id, GRACE_S)

    async def _prepared(self, session: Session, switch: Switch) -> tuple[str, Launch, LaunchRecord]:
        env = await self.panes.environment(session.id)
        if not env:
            raise error("switch_refused", NO_ENVIRONMENT, f"sm restore {as_argument(session.name, session.id)}")
        return self.launcher.prepared_switch(session, switch, env)

    async def _failed(self, actor: Actor, reason: str) -> None:
        """Tell the rotation; where the client before was to come back, nothing is left but its document."""
        session, now = actor.session, self.clock.now()
        rotation = session.rotation
        if session.ended or rotation is None or rotation.switch is None or rotation.handoff is None:
            return
        gone = session.pid is None or not alive(session.pid)
        if gone and rotation.switch.back:
            await self.panes.clear(session.id)
            await actor.ask(ev.LaunchFailed(at=now, reason=f"the client could not be started: {reason}"))
            return
        await actor.ask(ev.SwitchFailed(at=now, handoff=rotation.handoff.id, reason=reason, ended=gone))
