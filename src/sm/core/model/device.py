"""A browser that has been let in: it acts as the user, within what a browser may do at all."""

from __future__ import annotations

from dataclasses import dataclass

DAY_S = 86_400.0
MAX_UNUSED_S = 30 * DAY_S
"""A device that was not used for so long has to log in again."""


@dataclass(frozen=True, slots=True)
class Device:
    id: str
    """8 hexadecimal digits."""
    name: str
    created: float
    seen: float
    """When it last sent a request; exact to a minute."""
    read_only: bool
    revoked: float | None = None

    def is_valid(self, now: float) -> bool:
        return self.revoked is None and now - self.seen < MAX_UNUSED_S
