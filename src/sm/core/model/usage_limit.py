"""The usage limit of an account that a session has met: until it ends, every request of its client is refused.

The client waits by itself and continues after the reset, while its state file says that it is idle. What is typed
before meets the limit again, so nothing is typed, cleared or started.
"""

from __future__ import annotations

from dataclasses import dataclass

RESET_GRACE_S = 120.0
"""Within it after the reset the client continues by itself (seen: 71)."""
UNKNOWN_RESET_RETRY_S = 3_600.0
"""A limit whose end is unknown is tried again after it."""
LIMIT_NAMES = {"five_hour": "5-hour limit", "seven_day": "weekly limit"}
HELD_REASON = "waits for the end of the usage limit"
"""Why a rotation does not begin."""


@dataclass(frozen=True, slots=True)
class UsageLimit:
    kind: str
    """`five_hour`, `seven_day`, or `usage` where the client does not say which."""
    resets_at: float | None = None
    """UTC seconds; None where the client does not say."""
    since: float = 0.0

    @property
    def over(self) -> float:
        """When the session is looked at again, UTC seconds, if its client has not continued by then."""
        return (
            self.since + UNKNOWN_RESET_RETRY_S
            if self.resets_at is None
            else max(self.resets_at, self.since) + RESET_GRACE_S
        )

    @property
    def words(self) -> str:
        return f"{LIMIT_NAMES.get(self.kind, 'usage limit')} reached; messages wait until the client continues"
