"""Compares what sessions have used with their budgets, after each turn: beside the hooks, which wait for none of it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field

from sm.core import events as ev
from sm.core.model.budget import Budgets
from sm.core.model.session import Session
from sm.core.ports.clock import Clock
from sm.core.rules.budgets import is_news, readings
from sm.engine.costs import Costs
from sm.engine.errors import logged
from sm.engine.sessions import Sessions

CHECK_INTERVAL_S = 30.0
"""The configuration may have changed, and what was written of a turn after its end is read."""
SETTLE_S = 0.5
"""A client writes the last lines of a turn shortly after it reports its end; turns that end together are read once."""


@dataclass(slots=True)
class BudgetMonitor:
    sessions: Sessions
    costs: Costs
    clock: Clock
    budgets: Callable[[], Budgets]
    turn_ended: asyncio.Event = field(default_factory=asyncio.Event)

    def follow(self, before: Session, after: Session, event: ev.Event) -> None:
        """Take note of a committed event."""
        if isinstance(event, ev.TurnEnded | ev.TurnFailed) or before.budget.tree_granted != after.budget.tree_granted:
            self.turn_ended.set()

    async def run(self) -> None:
        while True:
            self.turn_ended.clear()
            with logged("budgets not compared"):
                await self.look()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CHECK_INTERVAL_S):
                    await self.turn_ended.wait()
            await asyncio.sleep(SETTLE_S)

    async def look(self) -> None:
        """Tell each session what it has used; nothing is read while there is no budget."""
        budgets = self.budgets()
        if budgets == Budgets() and not any(session.budget.words for session in self.sessions.all()):
            return
        for session, reading in readings(await self.costs.report(), budgets, self.clock.now()):
            actor = self.sessions.actors.get(session.id)
            if actor is not None and is_news(actor.session, reading):
                actor.put(reading)
