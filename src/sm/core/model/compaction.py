"""How often a client was kept from compacting by itself; whether it is: `core/rules/compaction.py`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CompactionHold:
    """How often the compaction of one conversation was put off, and since when."""

    blocks: int = 0
    since: float = 0.0
    fork_asked: float = 0.0
    """When a fork of the agent's model was asked for the document, UTC seconds; 0 if it was not."""
    fork_answered: bool = False
    """It has answered, or never will."""
