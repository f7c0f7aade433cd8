"""Drives Claude Code by the plugin in it: clears and prompts by calls that return, with no key pressed.

A draft, a menu, vim's modes and whatever the user types stay as they are; the client itself waits for its
menus and dialogs to close (2.1.290 to 2.1.332). The keys take over where the plugin does not answer, and for what it
cannot do: a prompt that joins a turn that runs.
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
    Driver,
    Leave,
    NoAnswerError,
    ReadyOptions,
    ReportHold,
)

POLL_INTERVAL_S = 0.02
HELD_INTERVAL_S = 0.2
BUSY = "the client is busy"
NO_PANE = "the plugin in the client does not answer, and nothing is typed into the user's own terminal"
GAVE_WAY = "gave way"
REFUSED_AFTER_STOP = "the session was stopped"
"""In the client's refusal of every call after the user has interrupted a turn, until they send something (2.1.328)."""
STOPPED_BY_USER = "stopped by you: it continues after your next prompt"


@dataclass(frozen=True, slots=True)
class ModDriver:
    calls: ClientCalls
    keys: Driver
    client_state: Callable[[], ClientState | None]
    background: Callable[[], bool]
    """True while only background tasks keep the client's state busy: it is idle at its prompt all the same."""

    async def ready(self, options: ReadyOptions, report: ReportHold, leave: Leave) -> bool:
        reported = False
        while not leave():
            if options.busy or not self.calls.alive:
                return await self.keys.ready(options, report, leave)
            if not self._works():
                return True
            if not reported:
                report(BUSY)
                reported = True
            await asyncio.sleep(POLL_INTERVAL_S)
        return False

    def _works(self) -> bool:
        found = self.client_state()
        return found is not None and found.activity is Activity.BUSY and not self.background()

    async def clear(self, leave: Leave) -> str | None:
        return await (self._asked(ClientOrder("rotate"), leave) if self.calls.alive else self.keys.clear(leave))

    async def prompt(self, text: str, leave: Leave, *, now: bool = False) -> str | None:
        if now or not self.calls.alive:
            return await self.keys.prompt(text, leave, now=now)
        return await self._asked(ClientOrder("prompt", text, as_user=True), leave)

    async def _asked(self, order: ClientOrder, leave: Leave) -> str | None:
        if leave():
            return GAVE_WAY
        try:
            refused = (await self.calls.ask(order)).refused
        except NoAnswerError as problem:
            return str(problem)
        return STOPPED_BY_USER if REFUSED_AFTER_STOP in refused else refused or None


@dataclass(frozen=True, slots=True)
class NoPane:
    """In the place of the keys in the user's own terminal, where none is pressed: all waits for the plugin."""

    async def ready(self, options: ReadyOptions, report: ReportHold, leave: Leave) -> bool:
        del options
        report(NO_PANE)
        while not leave():
            await asyncio.sleep(HELD_INTERVAL_S)
        return False

    async def clear(self, leave: Leave) -> str | None:
        del leave
        return NO_PANE

    async def prompt(self, text: str, leave: Leave, *, now: bool = False) -> str | None:
        del text, leave, now
        return NO_PANE
