"""The user's draft on the client's screen, which a new thread has started again: it is put back as it was shown.

It is the user's own text, pasted into an empty box and never submitted. Of a draft of several rows it is not known
where the screen has wrapped it: each row becomes a line. What is shown folded cannot be read, and is not put back.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field

from sm.core.ports.panes import Pane, PaneError
from sm.providers.codex.tui.screen import TuiBox, read_box

LOOK_INTERVAL_S = 0.1
TIMEOUT_S = 20.0
"""Seconds in which the screen is up again (seen: 0.6)."""


@dataclass(slots=True)
class DraftKeeper:
    pane: Pane
    _task: asyncio.Task[None] | None = field(default=None)

    async def shown(self) -> str:
        """Return the draft in the box; empty if there is none that can be read."""
        box = await self._box()
        return "" if box is None or box.folded or box.clipped else box.text

    def put_back(self, draft: str) -> None:
        """Paste it as soon as the new screen shows an empty box."""
        if draft:
            self._task = asyncio.get_running_loop().create_task(self._put_back(draft))

    async def _put_back(self, draft: str) -> None:
        with contextlib.suppress(TimeoutError, PaneError):
            async with asyncio.timeout(TIMEOUT_S):
                left = False
                while True:
                    await asyncio.sleep(LOOK_INTERVAL_S)
                    box = await self._box()
                    left = left or box is None or box.text != draft  # the old screen may still be there
                    if left and box is not None and box.empty and box.cursor_inside and box == await self._again():
                        await self.pane.paste(draft)
                        return

    async def _again(self) -> TuiBox | None:
        """A look can catch a screen that is half drawn."""
        await asyncio.sleep(LOOK_INTERVAL_S)
        return await self._box()

    async def _box(self) -> TuiBox | None:
        try:
            view = await self.pane.look()
        except PaneError:
            return None
        return None if view.dead else read_box(view.lines, view.cursor)
