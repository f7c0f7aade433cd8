"""Finds answers that are on record and did not reach their client, as those of a server that was killed on the way.

The plugin in a client asks again and is given the answer from the record. Any other hook asks once: its dialog stays
open, and only its terminal can answer it. The client's own state file shows that, since it says since when it waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from sm.core import events as ev
from sm.core.errors import SmError
from sm.core.model.ask import AskState, StoredAsk
from sm.core.ports.clock import Clock
from sm.core.ports.provider import Provider
from sm.core.ports.store import Store
from sm.engine.actor import Actor
from sm.engine.client_monitor import client_state
from sm.engine.sessions import Sessions
from sm.engine.tasks import Spawn

ARRIVAL_S = 10.0
"""Within it a client closes the dialog that was answered, also on a machine that has much to do."""
NOT_ARRIVED = "the answer did not reach the client"


@dataclass(frozen=True, slots=True)
class AnswerArrival:
    sessions: Sessions
    store: Store
    clock: Clock
    providers: Mapping[str, Provider]
    spawn: Spawn

    async def start(self) -> None:
        """Look at what was answered last in each session whose dialog was open when the last server ended."""
        doubtful = {
            identity
            for identity, actor in self.sessions.actors.items()
            if not actor.session.ended and actor.session.dialog is not None
        }
        for stored in await self.store.asks(standing=False) if doubtful else ():
            if stored.session in doubtful and self._is_doubtful(actor := self.sessions.actor(stored.session), stored):
                self.spawn(self.check(actor, stored.ask.id))

    async def check(self, actor: Actor, identity: str) -> None:
        """Say of an answer that its dialog is still open: not of one for which a plugin may ask again.

        Where something else is asked, the dialog may be of that.
        """
        while True:
            await asyncio.sleep(ARRIVAL_S)
            try:
                stored = await self.store.ask(identity)
            except SmError:  # removed with its session
                return
            if not self._is_doubtful(actor, stored):
                return
            if not (actor.session.asks or plugin_asks(actor)):
                await self._lost(actor, stored)
                return

    def _is_doubtful(self, actor: Actor, stored: StoredAsk) -> bool:
        """Whether it was answered, and the client has waited for its user since before that."""
        found = client_state(self.providers[actor.session.provider], actor.session)
        return (
            stored.ask.state is AskState.ANSWERED
            and not actor.session.ended
            and found is not None
            and found.activity is ev.Activity.WAITING
            and 0 < found.since <= stored.ask.changed
        )

    async def _lost(self, actor: Actor, stored: StoredAsk) -> None:
        at, ask = self.clock.now(), stored.ask
        opened = ev.AskOpened(
            at=at, ask=ask.id, kind=ask.kind, tool=ask.tool, agent=ask.agent, request=stored.request, reason=NOT_ARRIVED
        )
        await actor.ask(opened)
        await actor.ask(ev.AskExpired(at=at, ask=ask.id, reason=NOT_ARRIVED))


def plugin_asks(actor: Actor) -> bool:
    """Whether the plugin in the client asks, by exchanges that a restart of the server does not end."""
    return actor.session.driver is ev.DrivenBy.MOD and actor.link.alive
