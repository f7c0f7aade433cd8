"""Keeps the line below each pane up to date: every second, with hundreds of panes every few, where it has changed."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field

from sm.core.model.session import Session
from sm.core.ports.panes import PaneError, Panes
from sm.core.rules.pane_line import pane_line, waits_for_user
from sm.engine.errors import logged
from sm.engine.sessions import Sessions

INTERVAL_S = 1.0
INTERVAL_PER_SESSION_S = 0.003
"""Of hundreds of sessions each is looked at less often."""


@dataclass(slots=True)
class PaneLines:
    panes: Panes
    sessions: Sessions
    shown: dict[str, tuple[Session, str]] = field(default_factory=dict)
    """By id: the session as it was, and what the line says: of hundreds that rest none is put into words again."""
    waiting: list[str] = field(default_factory=list)
    """Who has waited for the user."""

    async def run(self) -> None:
        while True:
            with logged("line below a pane not written"), suppress(PaneError):
                await self.write()
            await asyncio.sleep(max(INTERVAL_S, INTERVAL_PER_SESSION_S * len(self.sessions.actors)))

    async def write(self) -> None:
        living = self.sessions.living()
        waiting = [session.name for session in living if waits_for_user(session)]
        before, same_waiting = self.shown, waiting == self.waiting
        self.shown, self.waiting = {}, waiting
        for session in living:
            known, text = before.get(session.id, (None, ""))
            if session.pane is None:
                continue
            if known is not session or not same_waiting:
                line = pane_line(session, waiting)
                if known is None or (known.pane, text) != (session.pane, line):
                    with suppress(PaneError):  # it is just ending
                        await self.panes.label(session.pane, line)
                text = line
            self.shown[session.id] = session, text
