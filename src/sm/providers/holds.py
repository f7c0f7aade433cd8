"""Why a client takes no prompt now, by what it says of itself, and when that is reported."""

from __future__ import annotations

import asyncio

from sm.core.events import Activity
from sm.core.ports.provider import HOLD_REPORT_INTERVAL_S, ClientState, ReportHold
from sm.core.rules.rotation import UNKNOWN_STATE, reason_to_wait

REPORT_AFTER_S = 0.5
"""A rotation usually waits 0.07 s for the client to be idle: no news for anybody."""


def wait_reason(found: ClientState | None, *, busy: bool) -> str | None:
    """Return why a client in this state takes no prompt; with `busy` one that works takes it."""
    if found is None:
        return UNKNOWN_STATE
    works = found.activity is Activity.BUSY
    return None if works and busy else reason_to_wait(found.activity, found.detail)


class HoldReports:
    """What one wait reports: its reason, once the wait lasts, whenever the reason changes, and now and then."""

    def __init__(self, report: ReportHold) -> None:
        self.report = report
        self.started = asyncio.get_running_loop().time()
        self.reason = ""
        self.reported = 0.0

    def note(self, reason: str) -> bool:
        """Return whether the wait lasts."""
        now = asyncio.get_running_loop().time()
        lasts = now - self.started >= REPORT_AFTER_S
        if lasts and (reason != self.reason or now - self.reported >= HOLD_REPORT_INTERVAL_S):
            self.reason, self.reported = reason, now
            self.report(reason)
        return lasts
