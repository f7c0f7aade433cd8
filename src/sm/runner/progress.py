"""What a look at a session says that the last one did not: the lines that a user reads while a run works."""

from __future__ import annotations

from sm.core.model.session import Status
from sm.runner.outcome import SessionLook

TOLD = frozenset({Status.LIMITED, Status.WAITING, Status.BLOCKED, Status.CRASHED, Status.EXITED})
"""The rest changes with each tool call."""


def news(before: SessionLook | None, look: SessionLook) -> str:
    """Return what has changed, in a few words; empty if nothing has that anybody waits for."""
    if before is None:
        return f"session {look.id}"
    if look.rotations > before.rotations:
        return f"context {look.rotations + 1}"
    state = _state(look)
    return "" if state == _state(before) else state or "works again"


def _state(look: SessionLook) -> str:
    if look.status not in TOLD:
        return ""
    return f"{look.status}: {look.detail}" if look.detail else look.status
