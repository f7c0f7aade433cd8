"""Keeps background threads slow, so that hooks are answered first."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

REST_PER_WORK = 4.0
"""Seconds of rest for each second of work: the thread gets a fifth of a core."""
MAX_REST_S = 0.1


@dataclass(slots=True)
class Throttle:
    """Rests in proportion to the work since the last call; False if the work is to stop."""

    clock: Callable[[], float]
    stopping: threading.Event
    rest_per_work: float = REST_PER_WORK
    since: float | None = None

    def __call__(self) -> bool:
        now = self.clock()
        worked = 0.0 if self.since is None else now - self.since
        stopped = self.stopping.wait(min(MAX_REST_S, self.rest_per_work * worked))
        self.since = self.clock()
        return not stopped
