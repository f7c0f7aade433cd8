"""The time, as the engine takes it."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """UTC, seconds since the epoch; never goes back."""
