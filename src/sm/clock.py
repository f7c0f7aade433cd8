"""The system's clock, and how a time is written: UTC everywhere, with a Z (case A78)."""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime

from sm.core.ports.clock import Clock

__all__ = ["Clock", "SystemClock", "iso", "parse_iso", "stamp", "started_at"]

# Both count while the machine sleeps, time.monotonic() on neither system: eight hours of sleep are eight hours.
_STEADY = time.CLOCK_MONOTONIC if sys.platform == "darwin" else time.CLOCK_BOOTTIME


class SystemClock:
    """The wall clock at the start of the process, continued by a clock that cannot be set.

    A step of the wall clock, forwards or back, therefore neither fires a timer nor delays it.
    """

    def __init__(self) -> None:
        wall = time.time()  # noqa: TID251  # this is the Clock
        self._offset = wall - time.clock_gettime(_STEADY)

    def now(self) -> float:
        return self._offset + time.clock_gettime(_STEADY)


def started_at() -> float:
    """Return when the machine was started, in seconds since the epoch."""
    return time.time() - time.clock_gettime(_STEADY)  # noqa: TID251  # this is the Clock


def iso(at: float) -> str:
    """`2026-02-02T06:45:30Z`, whole seconds."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"


def stamp(at: float) -> str:
    """`20260202-064530`, for names of files."""
    return f"{datetime.fromtimestamp(at, UTC):%Y%m%d-%H%M%S}"


def parse_iso(text: str) -> float:
    """Return seconds since the epoch; a time without a zone is UTC. ValueError for other text."""
    moment = datetime.fromisoformat(text.strip())
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
