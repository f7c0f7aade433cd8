"""The goal of a thread, which has the client begin a turn after each turn: it pauses while something waits for the end.

A thread that is left keeps none that is active: its work would continue next to the new one (Codex 0.171.0).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sm.providers.codex.app.rpc import RefusedError, Rpc

ACTIVE, PAUSED, COMPLETE = "active", "paused", "complete"
CARRIED = ("objective", "tokenBudget", "status")


@dataclass(slots=True)
class HeldGoal:
    held: bool = False
    """It was active, and is to be again once a prompt was taken."""

    async def pause(self, rpc: Rpc, thread: str) -> dict[str, Any] | None:
        """Return the thread's goal, paused now if it was active; None for a thread without one."""
        try:
            goal: dict[str, Any] | None = (await rpc.call("thread/goal/get", threadId=thread)).get("goal")
        except RefusedError:  # the user has switched goals off
            return None
        if goal is not None and goal.get("status") == ACTIVE:
            await rpc.call("thread/goal/set", threadId=thread, status=PAUSED)
            self.held = True
            goal = {**goal, "status": PAUSED}
        return goal

    async def resume(self, rpc: Rpc, thread: str) -> None:
        if self.held:
            self.held = False
            await rpc.call("thread/goal/set", threadId=thread, status=ACTIVE)

    async def carry(self, rpc: Rpc, thread: str, goal: dict[str, Any] | None) -> None:
        """Give a new thread the goal that the last one had."""
        if goal is not None and goal.get("status") != COMPLETE:
            kept = {name: goal[name] for name in CARRIED if goal.get(name) is not None}
            await rpc.call("thread/goal/set", threadId=thread, **kept)
