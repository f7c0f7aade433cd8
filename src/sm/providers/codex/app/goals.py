"""The goal of a thread, which has the client begin a turn after each turn: it pauses while something waits for the end.

A thread that is left keeps none that is active: its work would continue next to the new one (Codex 0.171.0).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from sm.providers.codex.app import schema
from sm.providers.codex.app.rpc import RefusedError, Rpc

ACTIVE, PAUSED, COMPLETE = "active", "paused", "complete"


@dataclass(slots=True)
class HeldGoal:
    mark: Path
    """A file that is there while a goal, which was active, is to be so again once a prompt was taken: the next server
    finds it."""

    @property
    def held(self) -> bool:
        return self.mark.exists()

    async def pause(self, rpc: Rpc, thread: str) -> schema.ThreadGoal | None:
        """Return the thread's goal, paused now if it was active; None for a thread without one."""
        try:
            goal = (await rpc.call(schema.ThreadGoalGet(thread_id=thread))).goal
        except RefusedError:  # the user has switched goals off
            return None
        if goal is not None and goal.status == ACTIVE:
            self.mark.touch(mode=0o600)
            await rpc.call(schema.ThreadGoalSet(thread_id=thread, status=PAUSED))
            goal = msgspec.structs.replace(goal, status=PAUSED)
        return goal

    async def resume(self, rpc: Rpc, thread: str) -> None:
        if self.held:
            await rpc.call(schema.ThreadGoalSet(thread_id=thread, status=ACTIVE))
            self.mark.unlink(missing_ok=True)

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
