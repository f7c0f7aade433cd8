"""Keeps the line below each pane up to date: once a second, and only where it has changed."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field

from sm.core.ports.panes import PaneError, Panes
from sm.core.rules.pane_line import pane_line, waits_for_user
from sm.engine.errors import logged
from sm.engine.sessions import Sessions

INTERVAL_S = 1.0


@dataclass(slots=True)
class PaneLines:
    panes: Panes
    sessions: Sessions
    shown: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By session: its pane, and what the line says."""

    async def run(self) -> None:
        while True:
            with logged("line below a pane not written"), suppress(PaneError):
                await self.write()
            await asyncio.sleep(INTERVAL_S)

    async def write(self) -> None:
        living = self.sessions.living()
        waiting = [session.name for session in living if waits_for_user(session)]
        now = {
            session.id: (session.pane, pane_line(session, waiting)) for session in living if session.pane is not None
        }
        for session, (pane, text) in now.items():
            if self.shown.get(session) != (pane, text):
                with suppress(PaneError):  # it is just ending
                    await self.panes.label(pane, text)
        self.shown = now
