"""What the user is notified of, and when, as they have set it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum


class NotificationKind(StrEnum):
    ASK = "ask"
    """A permission or another dialog is open."""
    BLOCKED = "blocked"
    """The client refuses to continue."""
    ROTATION_FAILED = "rotation_failed"
    """A handoff has failed, or waits for the user."""
    TOO_LATE = "too_late"
    """The client compacted the context before the agent handed off."""
    LIMITED = "limited"
    """A usage limit of the account is met."""
    RESUMED = "resumed"
    """The client works again after a usage limit."""
    BUDGET = "budget"
    """A budget is nearly used, or used."""
    DIED = "died"
    """A client has crashed, or a child's has ended before its task was done."""
    FINISHED = "finished"
    """An agent that the user started reports its task as complete."""
    UNDELIVERED = "undelivered"
    """A message has expired, failed, or was never seen by its agent."""
    RUN_ENDED = "run_ended"
    """A run of unattended work has ended: what was delivered, and what waits."""


@dataclass(frozen=True, slots=True)
class NotifyRules:
    """What the user has set."""

    kinds: Collection[str] = frozenset(NotificationKind)
    after: float = 20.0
    """Seconds that an episode has lasted before it is sent."""
    away_after: float = 120.0
    """Seconds since the last key in a terminal that shows a session, within which its user looks at it."""
    quiet: tuple[int, int] | None = None
    """First and last minute of the local day in which nothing is sent; the last one is loud again."""
    digest: float = 0.0
    """Seconds between two notifications, at least; what comes in between is sent as one."""
