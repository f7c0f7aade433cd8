"""Notices that a terminal log is no longer written, as on a full disk, reports it, and starts it again."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field

import structlog

from sm.core.ports.clock import Clock
from sm.core.ports.documents import Documents
from sm.core.ports.panes import PaneError, Panes
from sm.engine.errors import logged
from sm.engine.sessions import Sessions

log = structlog.get_logger()
INTERVAL_S = 5.0
"""Seconds between two looks: one question to tmux, whatever the number of panes."""
INTERVAL_PER_SESSION_S = 0.03
"""Of hundreds of panes the answer is long."""
GAP_SHOWN_S = 3600.0
"""Seconds for which a gap is shown to the user; the log itself keeps a line about it."""


@dataclass(slots=True)
class LogKeeper:
    panes: Panes
    documents: Documents
    clock: Clock
    sessions: Sessions
    gaps: dict[str, float] = field(default_factory=dict)
    """When a session's log was last seen to be cut off."""

    async def run(self) -> None:
        while True:
            await asyncio.sleep(max(INTERVAL_S, INTERVAL_PER_SESSION_S * len(self.sessions.actors)))
            with logged("terminal logs not looked at"), suppress(PaneError):
                await self.look()

    async def look(self) -> None:
        for session, pane in (await self.panes.all()).items():
            if pane.dead or pane.logged or session not in self.sessions.actors:
                continue
            if session not in self.gaps:
                log.warning("terminal log is not written", session=session)
            self.gaps[session] = self.clock.now()
            with suppress(PaneError):  # still no room: the next look tries again
                await self.panes.resume_log(pane.pane, self.documents.log(session))

    def problems(self) -> list[str]:
        since = self.clock.now() - GAP_SHOWN_S
        known = [session for session, at in self.gaps.items() if at > since and session in self.sessions.actors]
        named = [self.sessions.who(session) for session in known]
        return [f"the terminal log of {name} has a gap: it could not be written, as on a full disk" for name in named]
