"""Ends clients behind the command that asked for it: one termination per session at a time, and until it is done.

Whoever starts that session again waits here first, or the end of the old client would take the new one with it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import structlog

from sm.core.ports.panes import PaneError, Panes
from sm.engine.tasks import Spawn

log = structlog.get_logger()
GRACE_S = 5.0
"""Seconds a client has to end by itself before it is killed."""
TIMEOUT_S = GRACE_S + 2.0
"""Seconds in which a client has ended, if tmux answers."""
RETRY_INTERVAL_S = 1.0


@dataclass(slots=True)
class Terminations:
    panes: Panes
    spawn: Spawn
    under_way: dict[str, asyncio.Event] = field(default_factory=dict)
    """By session id."""

    def begin(self, session: str) -> None:
        if session not in self.under_way:
            self.under_way[session] = asyncio.Event()
            self.spawn(self._end(session))

    def is_under_way(self, session: str) -> bool:
        return session in self.under_way

    async def over(self, session: str) -> bool:
        """Wait for a termination that is under way; False if it takes too long."""
        ending = self.under_way.get(session)
        if ending is None:
            return True
        try:
            async with asyncio.timeout(TIMEOUT_S):
                return await ending.wait()
        except TimeoutError:
            return False

    async def _end(self, session: str) -> None:
        try:
            while not await self._ended(session):
                await asyncio.sleep(RETRY_INTERVAL_S)
        finally:
            self.under_way.pop(session).set()

    async def _ended(self, session: str) -> bool:
        try:
            await self.panes.end(session, GRACE_S)
        except PaneError as problem:
            log.warning("client not ended yet", session=session, problem=str(problem))
            return False
        return True
