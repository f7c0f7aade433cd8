"""How full a conversation is, and when that is worth telling its agent.

A reading belongs to one conversation and is never applied to another. Thresholds are compared with `projected` (what
the next request will weigh), since that is what the client itself compares before it compacts. A latch, once set, is
reset by a new conversation, a compaction or the person, never because the number fell.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Source(StrEnum):
    """Where a reading comes from, best first."""

    USAGE = "usage"
    """The client's own record of the last reply."""
    BOUNDARY = "boundary"
    """The size a compaction left behind; leaves out system prompt and tools, so it is a lower bound."""
    STATUS = "status"
    """The client's status line."""
    ESTIMATE = "estimate"
    """Counted from what the tools returned; nothing else could be read."""
    UNKNOWN = "unknown"


class Level(StrEnum):
    OK = "ok"
    WARNING = "warning"
    CRITICAL = "critical"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ContextReading:
    """One measurement of one conversation. None means unknown; token counts are never negative."""

    tokens: int | None = None
    """Prompt side of the last request: input + cache creation + cache read."""
    projected: int | None = None
    """What the next request will weigh: tokens + the last reply's output + the estimate of the running call."""
    source: Source = Source.UNKNOWN
    exact: bool = False
    """True if the client itself counted it."""
    stale: bool = False
    """True if a newer request is known to exist that this reading does not show."""
    lower_bound: bool = False
    model: str | None = None
    window: int | None = None
    """The model's context window in tokens, where the transcript or the client tells it."""
    compactions: int | None = None
    """Compactions of the main conversation; None until the whole file has been counted."""
    messages: int | None = None
    """Distinct replies of the main conversation; None until counted."""
    output_tokens: int | None = None
    """Output tokens over all those replies; None until counted."""
    malformed: int | None = None
    """Complete lines that were no JSON object; None until counted."""
    boundary: tuple[int | None, int | None] | None = None
    """(tokens before, tokens after) of the newest compaction seen, None if none was."""
