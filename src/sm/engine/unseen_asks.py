"""Lets go of the hook of an ask that has no dialog, once the user is at its terminal.

A client shows the dialog of a subagent in the background only after its hook has an answer, and some clients every
dialog. Until its user is at the terminal the hook is held, so that `sm` can answer; then it is let go of, and the
dialog opens.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from sm.core import events as ev
from sm.core.model.session import Session
from sm.core.ports.clock import Clock
from sm.core.ports.panes import Panes
from sm.engine.actor import Actor
from sm.engine.errors import logged

LOOK_S = 1.0
"""Between looks at the terminals; a dialog that opens beside its hook does so within it."""
IN_THE_TERMINAL = "its dialog opens in the terminal, where its user is"


@dataclass(frozen=True, slots=True)
class UnseenAsks:
    panes: Panes
    clock: Clock

    async def give_way(self, actor: Actor, identity: str) -> None:
        """Watch one ask until it is over, or its dialog was seen."""
        while True:
            await asyncio.sleep(LOOK_S)
            ask = next((known for known in actor.session.asks if known.id == identity), None)
            if ask is None or not ask.unseen:
                return
            if await self._is_shown(actor.session):
                actor.put(ev.AskExpired(at=self.clock.now(), ask=identity, reason=IN_THE_TERMINAL))
                return

    async def _is_shown(self, session: Session) -> bool:
        """Whether a terminal shows the client, as far as is known: always, where it is in no pane of the server."""
        if session.pane is None:
            return True
        with logged("terminals not looked at", session=session.id):
            return any(terminal.session == session.id for terminal in await self.panes.terminals())
        return False
