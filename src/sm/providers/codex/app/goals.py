"""The goal of a thread, which has the client begin a turn after each turn: it pauses while something waits for the end.

A thread that is left keeps none that is active: its work would continue next to the new one (Codex 0.171.0).
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from sm.providers.codex.app import schema
from sm.providers.codex.app.rpc import RefusedError, Rpc

ACTIVE, PAUSED, COMPLETE = "active", "paused", "complete"


@dataclass(slots=True)
class HeldGoal:
    held: bool = False
    """It was active, and is to be again once a prompt was taken."""

    async def pause(self, rpc: Rpc, thread: str) -> schema.ThreadGoal | None:
        """Return the thread's goal, paused now if it was active; None for a thread without one."""
        try:
            goal = (await rpc.call(schema.ThreadGoalGet(thread_id=thread))).goal
        except RefusedError:  # the user has switched goals off
            return None
        if goal is not None and goal.status == ACTIVE:
            await rpc.call(schema.ThreadGoalSet(thread_id=thread, status=PAUSED))
            self.held = True
            goal = msgspec.structs.replace(goal, status=PAUSED)
        return goal

    async def resume(self, rpc: Rpc, thread: str) -> None:
        if self.held:
            self.held = False
            await rpc.call(schema.ThreadGoalSet(thread_id=thread, status=ACTIVE))

    async def carry(self, rpc: Rpc, thread: str, goal: schema.ThreadGoal | None) -> None:
        """Give a new thread the goal that the last one had."""
        if goal is not None and goal.objective and goal.status != COMPLETE:
            await rpc.call(
                schema.ThreadGoalSet(
                    thread_id=thread,
                    objective=goal.objective,
                    status=goal.status or None,
                    token_budget=goal.token_budget,
                )
            )
