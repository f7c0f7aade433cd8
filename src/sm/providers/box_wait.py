"""What one wait for an empty input box has seen, and how long the user may keep it waiting."""

from __future__ import annotations

import asyncio
from typing import Protocol

from sm.core.ports.panes import View
from sm.core.ports.provider import ReadyOptions, ReportHold
from sm.providers.holds import HoldReports

POLL_INTERVAL_S = 0.005
SLOW_POLL_INTERVAL_S = 0.1
QUIET_S = 1.5
"""Seconds an attached person's box must not have changed (typing within the 0.3 s window lost letters 14 of 24)."""


class ShownText(Protocol):
    """An input box, as far as its text is concerned."""

    @property
    def text(self) -> str: ...


class WaitHistory:
    """What one wait has seen: how long the box has been as it is, and what was last reported."""

    def __init__(self, report: ReportHold, options: ReadyOptions) -> None:
        self.holds = HoldReports(report)
        self.options = options
        self.text: str | None = None
        self.since = self.holds.started
        self.tries = 0
        self.typing: float | None = None
        """Since when the user has kept it waiting."""

    def quiet(self, box: ShownText, view: View) -> bool:
        """Return whether the user is not about to add to the box."""
        now = asyncio.get_running_loop().time()
        if view.typed_ago is None or (self.text is None and view.typed_ago >= QUIET_S + 1):
            return True
        self.typing = self.typing or now
        if self.options.patience is not None and now - self.typing >= self.options.patience:
            return True
        if box.text != self.text:
            self.text, self.since = box.text, now
        return now - self.since >= QUIET_S

    def hold(self, reason: str) -> float:
        """Report why it waits; return how long to sleep."""
        return SLOW_POLL_INTERVAL_S if self.holds.note(reason) else POLL_INTERVAL_S
