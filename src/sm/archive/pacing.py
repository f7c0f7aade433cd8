"""Pauses of what works behind everything else."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

REST = 4.0
"""Times as long as it has worked a thread rests, so that it has a fifth of what one may have."""
LONGEST_REST = 0.1


@dataclass(slots=True)
class Rests:
    """Pauses in proportion to the work since the last one; none is due before a moment's work is done."""

    clock: Callable[[], float]
    stopping: threading.Event
    share: float = REST
    since: float | None = None

    def __call__(self) -> bool:
        now = self.clock()
        worked = 0.0 if self.since is None else now - self.since
        stopped = self.stopping.wait(min(LONGEST_REST, self.share * worked))
        self.since = self.clock()
        return not stopped
