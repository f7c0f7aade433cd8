"""A client in the user's own terminal, as far as it can be seen and ended from here: by its files and its process."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from sm.core.events import Activity, DrivenBy
from sm.core.model.session import Session
from sm.core.ports.clock import Clock
from sm.core.ports.provider import (
    HOLD_REPORT_INTERVAL_S,
    ClientState,
    Leave,
    ReadyOptions,
    ReportHold,
    TranscriptEvidence,
)
from sm.core.rules.rotation import UNKNOWN_STATE, reason_to_wait
from sm.core.rules.session.status import runs_only_background
from sm.engine.client_link import SILENT
from sm.processes import alive, is_same_and_alive, signal_all

log = structlog.get_logger()
POLL_INTERVAL_S = 0.02
IDLE_SETTLE_S = 0.15
"""Seconds the client must have been idle: what was queued during the turn begins at its end (seen: at most 0.12)."""
WRITE_TIMEOUT_S = 1.0
"""Seconds the turn's last record may take to be in the transcript (seen: at most 0.19)."""
REPORT_AFTER_S = 1.0
"""Seconds of waiting before the reason for it is reported: a turn's last moments are no news."""
TYPES_NOTHING = "sm types nothing into the user's own terminal"
GONE = "sm run has ended, so this client cannot be started again"


@dataclass(slots=True)
class ForegroundDriver:
    """Where no plugin drives the client: waits for the moment at which another driver would type; `sm run` then ends
    the client and starts it again.
    """

    transcripts: TranscriptEvidence
    clock: Clock
    session: Callable[[], Session]
    client_state: Callable[[], ClientState | None]

    async def ready(self, options: ReadyOptions, report: ReportHold, leave: Leave) -> bool:
        del options
        since = reported_at = self.clock.now()
        idle, reported = 0.0, ""
        while not leave():
            now = self.clock.now()
            reason = self._busy()
            idle = 0.0 if reason else idle or now
            if idle and now - idle >= IDLE_SETTLE_S and (self._written() or now - since >= WRITE_TIMEOUT_S):
                return True
            due = reason != reported or now - reported_at >= HOLD_REPORT_INTERVAL_S
            if reason and due and now - since >= REPORT_AFTER_S:
                reported, reported_at = reason, now
                report(reason)
            await asyncio.sleep(POLL_INTERVAL_S)
        return False

    def _busy(self) -> str:
        foreground = self.session().foreground
        if foreground is not None and not alive(foreground.wrapper):
            return GONE
        if self.session().driver is DrivenBy.MOD:
            return SILENT  # until the session knows
        found = self.client_state()
        if found is None:
            return UNKNOWN_STATE
        idle = found.activity is Activity.BUSY and runs_only_background(self.session())
        return "" if idle else reason_to_wait(found.activity, found.detail) or ""

    def _written(self) -> bool:
        current = self.session().conversation
        return current is None or current.transcript is None or self.transcripts.finished(current.transcript)

    async def clear(self, leave: Leave) -> str | None:
        del leave
        return TYPES_NOTHING

    async def prompt(self, text: str, leave: Leave, *, now: bool = False) -> str | None:
        del text, leave, now
        return TYPES_NOTHING

    async def withdraw(self) -> str | None:
        return None


def signal_client(session: Session, number: signal.Signals) -> None:
    """Signal exactly the session's client, where that runs in the user's own terminal."""
    if (
        session.pid is not None
        and session.foreground is not None
        and is_same_and_alive(session.pid, session.foreground.born)
    ):
        log.info("client signalled", session=session.id, signal=number.name)
        signal_all([session.pid], number)
