"""Drives Codex by its app-server: clears and prompts by requests that return, with no key pressed.

A prompt is submitted while the thread is idle; one that is to be read at once joins the turn that runs. What the user
types in the client's screen is in no prompt, and comes back after a new thread has started that screen again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from sm.core.events import Activity
from sm.core.ports.provider import (
    ClientCalls,
    ClientOrder,
    ClientState,
    Leave,
    NoAnswerError,
    ReadyOptions,
    ReportHold,
)
from sm.providers.codex.app.draft import DraftKeeper
from sm.providers.codex.traits import APP
from sm.providers.holds import HoldReports, wait_reason

POLL_INTERVAL_S = 0.005
SLOW_POLL_INTERVAL_S = 0.1
GAVE_WAY = "gave way"
STEER, COMPACT = "steer", "compact"
"""Orders beside those of every client: add to a turn that runs, and compact the context."""
PAUSE_GOAL, RESUME_GOAL = "pause goal", "resume goal"
"""With a goal the client begins a turn after each, so that it is never idle: it pauses until a prompt was taken."""
COMMANDS = {"/new": "rotate", "/clear": "rotate", "/compact": COMPACT}
"""The client's commands that the app-server has a request for."""
NO_COMMAND = "Codex's app-server has no {}: type it in the client's screen (sm attach)"


@dataclass(frozen=True, slots=True)
class AppDriver:
    calls: ClientCalls
    client_state: Callable[[], ClientState | None]
    draft: DraftKeeper | None = None
    """Of the user at the client's screen, where there is one."""

    async def ready(self, options: ReadyOptions, report: ReportHold, leave: Leave) -> bool:
        holds, paused = HoldReports(report), False
        while not leave():
            found = self.client_state() if self.calls.alive else None
            reason = wait_reason(found, busy=options.busy)
            if reason is None:
                return True
            if found is not None and found.activity is Activity.BUSY and not paused:
                paused = await self._asked(ClientOrder(PAUSE_GOAL), leave) is None
            await asyncio.sleep(SLOW_POLL_INTERVAL_S if holds.note(reason) else POLL_INTERVAL_S)
        if paused:
            await self._asked(ClientOrder(RESUME_GOAL), lambda: False)
        return False

    async def clear(self, leave: Leave) -> str | None:
        draft = "" if self.draft is None else await self.draft.shown()
        refused = await self._asked(ClientOrder("rotate"), leave)
        if self.draft is not None and refused is None:
            self.draft.put_back(draft)
        return refused

    async def prompt(self, text: str, leave: Leave, *, now: bool = False) -> str | None:
        if text.startswith(APP.special_prefixes):
            kind = COMMANDS.get(text.strip())
            if kind is None:
                return NO_COMMAND.format(text.split(maxsplit=1)[0])
            return await self._asked(ClientOrder(kind), leave)
        return await self._asked(ClientOrder(STEER if now else "prompt", text, as_user=True), leave)

    async def withdraw(self) -> str | None:
        return None

    async def _asked(self, order: ClientOrder, leave: Leave) -> str | None:
        if leave():
            return GAVE_WAY
        try:
            return (await self.calls.ask(order)).refused or None
        except NoAnswerError as problem:
            return str(problem)
