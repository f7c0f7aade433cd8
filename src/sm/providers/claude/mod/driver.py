"""Drives Claude Code by the plugin in it: clears and prompts by calls that return, with no key pressed.

A draft, vim's modes and whatever the user types stay as they are. Menus and dialogs are waited for, and named; one that
opens at the last moment delays the order in the client until it closes (2.1.290 to 2.1.332). The keys take over where
the plugin does not answer, and for what it cannot do: a prompt that joins a turn that runs, and the user's own command,
which it would submit as words.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from sm.core.ports.panes import PaneError
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
from sm.core.rules.rotation import UNKNOWN_STATE
from sm.providers.claude.traits import CLAUDE
from sm.providers.holds import HoldReports, wait_reason

POLL_INTERVAL_S = 0.005
SLOW_POLL_INTERVAL_S = 0.1
NO_PANE = "the plugin in the client does not answer, and nothing is typed into the user's own terminal"
GAVE_WAY = "gave way"
NO_KEYS = 'the plugin in the client does not answer, and claude.driver = "mod" allows no key'
REFUSED_AFTER_STOP = "the session was stopped"
"""In the client's refusal of every call after the user has interrupted a turn, until they send something (2.1.328)."""
STOPPED_BY_USER = "stopped by you: it continues after your next prompt"


@dataclass(slots=True)
class ModDriver:
    calls: ClientCalls
    keys: Driver
    client_state: Callable[[], ClientState | None]
    background: Callable[[], bool]
    """True while only background tasks keep the client's state busy: it is idle at its prompt all the same."""
    _stopped: float | None = None
    """Since when the client was idle when it refused an order because its user had stopped it."""

    async def ready(self, options: ReadyOptions, report: ReportHold, leave: Leave) -> bool:
        holds = HoldReports(report)
        while not leave():
            if options.busy:
                return await self.keys.ready(options, report, leave)
            if not self.calls.alive:
                if await self.keys.ready(options, report, lambda: leave() or self.calls.alive):
                    return True
                continue
            found = self.client_state()
            reason = wait_reason(found, busy=self.background()) or self._stop(found)
            if reason is None or reason == UNKNOWN_STATE:  # the plugin answers, whatever the client's file says
                reason = await self._typed_before()
            if reason is None:
                return True
            await asyncio.sleep(SLOW_POLL_INTERVAL_S if holds.note(reason) else POLL_INTERVAL_S)
        return False

    async def _typed_before(self) -> str | None:
        """Remove what the keys have left in the box, as at a start whose plugin was slower than they."""
        try:
            return await self.keys.withdraw()
        except PaneError as problem:
            return str(problem)

    async def clear(self, leave: Leave) -> str | None:
        return await (self._asked(ClientOrder("rotate"), leave) if self.calls.alive else self.keys.clear(leave))

    async def prompt(self, text: str, leave: Leave, *, now: bool = False) -> str | None:
        if now or not self.calls.alive:
            return await self.keys.prompt(text, leave, now=now)
        if text.startswith(CLAUDE.special_prefixes):
            if isinstance(self.keys, NoKeys):
                return self.keys.reason
            is_ready = await self.keys.ready(ReadyOptions(), lambda _: None, leave)
            return await self.keys.prompt(text, leave) if is_ready else GAVE_WAY
        return await self._asked(ClientOrder("prompt", text, as_user=True), leave)

    async def withdraw(self) -> str | None:
        return await self.keys.withdraw()

    async def _asked(self, order: ClientOrder, leave: Leave) -> str | None:
        if leave():
            return GAVE_WAY
        try:
            refused = (await self.calls.ask(order)).refused
        except NoAnswerError as problem:
            return str(problem)
        if REFUSED_AFTER_STOP not in refused:
            return refused or None
        found = self.client_state()
        self._stopped = None if found is None else found.since
        return STOPPED_BY_USER

    def _stop(self, found: ClientState | None) -> str | None:
        """It refuses everything until its user sends something, and is at work then."""
        return STOPPED_BY_USER if found is not None and found.since and found.since == self._stopped else None


@dataclass(frozen=True, slots=True)
class NoKeys:
    """In the place of the keys where none may be pressed: whatever they would do waits for the plugin."""

    reason: str

    async def ready(self, options: ReadyOptions, report: ReportHold, leave: Leave) -> bool:
        del options
        holds = HoldReports(report)
        while not leave():
            holds.note(self.reason)
            await asyncio.sleep(SLOW_POLL_INTERVAL_S)
        return False

    async def clear(self, leave: Leave) -> str | None:
        del leave
        return self.reason

    async def prompt(self, text: str, leave: Leave, *, now: bool = False) -> str | None:
        del text, leave, now
        return self.reason

    async def withdraw(self) -> str | None:
        return None
