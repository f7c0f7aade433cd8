"""Takes over the sessions of the last server at a start; their clients may have continued without it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import structlog

from sm.core import events as ev
from sm.core.model.session import Session
from sm.core.ports.clock import Clock
from sm.core.ports.panes import PaneError, Panes, PaneStatus
from sm.core.ports.provider import Provider
from sm.core.ports.store import Store
from sm.core.rules.session.status import PANE_LOST
from sm.engine.actor import Actor
from sm.engine.actor_factory import ActorFactory
from sm.engine.client_monitor import INTERVAL_S, client_state, moved
from sm.engine.configuration_monitor import ConfigurationMonitor
from sm.engine.switch import ClientSwitches
from sm.engine.termination import Terminations
from sm.processes import alive

log = structlog.get_logger()
MAX_TRIES = 20


@dataclass(frozen=True, slots=True)
class Recovery:
    store: Store
    panes: Panes
    clock: Clock
    providers: Mapping[str, Provider]
    actor_factory: ActorFactory
    terminations: Terminations
    configuration_monitor: ConfigurationMonitor
    switches: ClientSwitches

    async def run(self) -> None:
        panes = await self._all_panes()
        for session in await self.store.sessions():
            self._resume(self.actor_factory.register(session), panes.get(session.id))

    def _resume(self, actor: Actor, pane: PaneStatus | None) -> None:
        """Continue where the last server ended: its last command may have been given and not carried out."""
        session, at = actor.session, self.clock.now()
        if session.adopted and not session.ended:
            self.configuration_monitor.renew_policy(actor)
            self._take_over(actor, session)
            return
        started = session.pid is not None
        killed = session.ended and session.pid is not None and alive(session.pid)
        if pane is not None and not pane.dead and (killed or not started):
            self.terminations.begin(session.id)
        if session.ended:
            return
        self.configuration_monitor.renew_policy(actor)
        if not started:
            actor.put(ev.LaunchFailed(at=at, reason="the server ended while the client was being started"))
        elif self.switches.is_under_way(session, pane):
            self.switches.begin(actor)
        elif session.foreground is not None:
            self._take_over(actor, session)  # the client monitor, or `sm run`, reports whether its client lives
        elif pane is None:
            actor.put(ev.ClientExited(at=at, reason=PANE_LOST))
        else:
            self._take_over(actor, session)

    async def _all_panes(self) -> dict[str, PaneStatus]:
        """Return every pane of this server. A tmux that is just ending does not answer for a moment."""
        for _ in range(MAX_TRIES):
            try:
                return await self.panes.all()
            except PaneError as problem:
                log.warning("tmux does not answer yet", problem=str(problem))
                await asyncio.sleep(INTERVAL_S)
        return await self.panes.all()

    def _take_over(self, actor: Actor, session: Session) -> None:
        found = client_state(self.providers[session.provider], session)
        current = session.conversation
        if found is not None and current is not None and found.conversation != current.id:
            actor.put(moved(found, self.clock.now()))
        elif session.foreground is not None and current is not None and current.transcript is None:
            self._find_transcript(actor, session, current.id)
        actor.put(ev.ServerStarted(at=self.clock.now()))

    def _find_transcript(self, actor: Actor, session: Session, conversation: str) -> None:
        """`sm run` may have started a client whose first hooks found no server."""
        path = self.providers[session.provider].found_transcript(session.config, conversation)
        if path is not None:
            at, origin = self.clock.now(), ev.Origin.CLIENT_STATE
            actor.put(ev.ConversationStarted(at=at, conversation=conversation, transcript=path, origin=origin))
