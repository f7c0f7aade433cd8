"""Drives Codex by its app-server: clears and prompts by requests that return, with no key pressed.

What the user types in the client's screen stays as it is. A prompt is submitted while the thread is idle; one that is
to be read at once joins the turn that runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from sm.core.ports.provider import (
    ClientCalls,
    ClientOrder,
    ClientState,
    Leave,
    NoAnswerError,
    ReadyOptions,
    ReportHold,
)
from sm.providers.holds import HoldReports, wait_reason

POLL_INTERVAL_S = 0.005
SLOW_POLL_INTERVAL_S = 0.1
GAVE_WAY = "gave way"
STEER = "steer"
"""The order that adds to a turn that runs, beside those of every client."""


@dataclass(frozen=True, slots=True)
class AppDriver:
    calls: ClientCalls
    client_state: Callable[[], ClientState | None]

    async def ready(self, options: ReadyOptions, report: ReportHold, leave: Leave) -> bool:
        holds = HoldReports(report)
        while not leave():
            reason = wait_reason(self.client_state() if self.calls.alive else None, busy=options.busy)
            if reason is None:
                return True
            await asyncio.sleep(SLOW_POLL_INTERVAL_S if holds.note(reason) else POLL_INTERVAL_S)
        return False

    async def clear(self, leave: Leave) -> str | None:
        return await self._asked(ClientOrder("rotate"), leave)

    async def prompt(self, text: str, leave: Leave, *, now: bool = False) -> str | None:
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
