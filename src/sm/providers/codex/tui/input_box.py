"""The input box as it is now, and whether keys may go to it: by the client's state and the screen (Codex 0.171.0)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from sm.core.ports.panes import Pane, View
from sm.core.ports.provider import ClientState
from sm.providers.box_wait import POLL_INTERVAL_S
from sm.providers.codex.tui.screen import TuiBox, read_box
from sm.providers.holds import wait_reason

EFFECT_TIMEOUT_S = 1.0
"""Seconds for a key's effect to show in the box."""
SCREEN_LAGS_S = 3.0
"""Seconds after which the rollout is believed before a screen on which a turn seems to run: an agent's own words may
look like that."""
MIN_SCREEN_LINES = 8

ENDED = "the client has ended"
BUSY = "the client is busy"
BEHIND = "the client has not read yet what was typed"
COVERED = "a dialog or another view covers the input box"
TOO_SMALL = "the terminal is too small to show the input box: enlarge it"
SHELL_MODE = "the input box is in shell mode"


@dataclass(slots=True)
class InputBox:
    pane: Pane
    client_state: Callable[[], ClientState | None]
    background: Callable[[], bool]
    """True while only background tasks keep the client's state busy: it is idle at its prompt all the same."""
    behind_at: float = 0.0
    """When the client was last seen not to have read all that was typed."""
    _works: float | None = None
    """Since when the screen says that a turn runs."""

    def state(self, *, busy: bool = False) -> str | None:
        """Why no key may go out now; a client that works is such a reason unless `busy`."""
        return wait_reason(self.client_state(), busy=busy or self.background())

    async def look(self, *, busy: bool = False) -> tuple[TuiBox, View] | str:
        """The box and the view it was read from if keys may go to it now, otherwise why not."""
        view = await self.pane.look()
        if view.dead:
            return ENDED
        reason = self.state(busy=busy)
        if reason is not None:
            return reason
        if view.behind:
            self.behind_at = asyncio.get_running_loop().time()
            return BEHIND
        box = read_box(view.lines, view.cursor)
        if box is None or not box.cursor_inside:
            return TOO_SMALL if len(view.lines) < MIN_SCREEN_LINES else COVERED
        if box.shell_mode:
            return SHELL_MODE
        return BUSY if not busy and self._seems_to_work(box) else (box, view)

    def _seems_to_work(self, box: TuiBox) -> bool:
        now = asyncio.get_running_loop().time()
        self._works = (self._works or now) if box.working else None
        return self._works is not None and now - self._works < SCREEN_LAGS_S

    async def settled(self, *, busy: bool = False) -> tuple[TuiBox, View] | str:
        """Look until two looks in a row agree: one may see half of a screen that is being drawn (10 of 260 did)."""
        deadline = asyncio.get_running_loop().time() + EFFECT_TIMEOUT_S
        before: TuiBox | None = None
        while True:
            look = await self.look(busy=busy)
            box = None if isinstance(look, str) else look[0]
            refused = isinstance(look, str) and look != COVERED
            if refused or (box is not None and box == before) or asyncio.get_running_loop().time() >= deadline:
                return look
            before = box
            await asyncio.sleep(POLL_INTERVAL_S)

    async def shown(self) -> TuiBox | None:
        """The box, whatever the client does; None while something else takes the keys."""
        view = await self.pane.look()
        box = read_box(view.lines, view.cursor)
        return box if box is not None and box.cursor_inside and not box.shell_mode else None

    async def shows(self, expected: Callable[[TuiBox], bool]) -> bool:
        """Whether two looks in a row show that; for why two, see `settled`."""
        deadline = asyncio.get_running_loop().time() + EFFECT_TIMEOUT_S
        seen = False
        while asyncio.get_running_loop().time() < deadline:
            box = await self.shown()
            holds = box is not None and expected(box)
            if holds and seen:
                return True
            seen = holds
            await asyncio.sleep(POLL_INTERVAL_S)
        return False
