"""A browser that has been let in: it acts as the user, within what a browser may do at all."""

from __future__ import annotations

from dataclasses import dataclass

DAY_S = 86_400.0
MAX_UNUSED_S = 30 * DAY_S
"""A device that was not used for so long has to log in again."""


@dataclass(frozen=True, slots=True)
class PushSubscription:
    """Where and how a browser takes notifications while no page is open, as it says itself."""

    endpoint: str
    """A URL of its push service; who knows it and the keys can notify the device."""
    p256dh: str
    """Its public key, in base64."""
    auth: str
    """The secret that goes with it, in base64."""


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
    push: PushSubscription | None = None
    """Null where it is not notified."""

    def is_valid(self, now: float) -> bool:
        return self.revoked is None and now - self.seen < MAX_UNUSED_S
