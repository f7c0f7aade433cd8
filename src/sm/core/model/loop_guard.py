"""What shows whether a session's rotations lead anywhere; what follows from it: `core/rules/loop_guard.py`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LoopGuard:
    context: str = ""
    """The conversation that the last handoff began."""
    without_progress: int = 0
    """Rotations in a row that left a context in which nothing showed progress."""
    user_spoke: bool = False
    """The user has said something in this context."""
    message_came: bool = False
    """Another agent, or the user, has sent this context a message."""
