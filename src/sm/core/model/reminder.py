"""A notice that one session asked for, and when it is due: one row each. `core/rules/reminders.py` has the rules.

Bound to the session, not to its conversation: a rotation changes nothing about it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    ONCE = "once"
    EVERY = "every"
    TRACK = "track"
    """The target is asked to report, and the owner reads it if it does not."""
    WAIT = "wait"
    """The target has gone idle, or the time is up."""
    STOP = "stop"
    """The task that the target was given has ended."""
    CHECK = "check"
    """The state of the target, so long after it was given a message."""


@dataclass(frozen=True, slots=True)
class Reminder:
    id: str
    kind: Kind
    owner: str
    """The session that reads it."""
    target: str
    """The session it is about; of ONCE and EVERY the owner itself."""
    created: float
    """UTC, seconds since the epoch, as all times here."""
    due: float | None = None
    """When there is something to say; None while it waits for an event."""
    text: str = ""
    """ONCE and EVERY: what is said. STOP and WAIT: the target's last words."""
    every: float = 0.0
    """EVERY and TRACK: seconds from one to the next. CHECK: seconds from the message on."""
    deadline: float | None = None
    """WAIT: when the time is up."""
    message: str = ""
    """STOP and CHECK: the message that is meant, for STOP or empty for the next prompt. EVERY and TRACK: the notice
    sent last."""
    running: bool = False
    """STOP: the target has that task by now."""
    unanswered: int = 0
    """TRACK: how often the target was asked without a report."""
    reported: float = 0.0
    """STOP: when the target itself last told the owner something during this task."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A text of `sm`'s own for a session."""

    id: str
    session: str
    text: str
