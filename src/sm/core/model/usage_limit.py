"""The usage limit of an account that a session has met: until it ends, every request of its client is refused.

The client waits by itself and continues after the reset, while its state file says that it is idle. What is typed
before meets the limit again, so nothing is typed, cleared or started.
"""

from __future__ import annotations

from dataclasses import dataclass

GRACE = 120.0
"""Seconds after the reset in which the client continues by itself (seen: 71)."""
UNTOLD = 3_600.0
"""Seconds after which a limit whose end is not told is tried again."""
NAMES = {"five_hour": "5-hour limit", "seven_day": "weekly limit"}
HELD = "waits for the end of the usage limit"
"""Why a rotation does not begin."""


@dataclass(frozen=True, slots=True)
class UsageLimit:
    kind: str
    """`five_hour`, `seven_day`, or `usage` where the client does not say which."""
    resets_at: float | None = None
    """UTC seconds; None where the client does not tell."""
    since: float = 0.0

    @property
    def over(self) -> float:
        """When the session is looked at again, UTC seconds, if its client has not gone on by then."""
        return self.since + UNTOLD if self.resets_at is None else max(self.resets_at, self.since) + GRACE

    @property
    def words(self) -> str:
        return f"{NAMES.get(self.kind, 'usage limit')} reached; messages wait until the client continues"
