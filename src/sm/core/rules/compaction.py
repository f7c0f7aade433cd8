"""Whether the client is kept from compacting by itself, so that its agent can hand off first.

It asks again before every request over its threshold, so it is held for as long as the handoff takes and never for
good: past the limits below, and close to the size the model's API refuses, it compacts.
"""

from __future__ import annotations

from sm.core.model.client_traits import ClientTraits
from sm.core.model.compaction import CompactionHold
from sm.core.model.context import Monitor

MAX_BLOCKS = 12
MAX_HOLD_S = 600.0
HELD = "sm: waits for the agent's handoff"
ROTATE = "rotate"


def held(hold: CompactionHold, monitor: Monitor, at: float, traits: ClientTraits) -> CompactionHold | None:
    """Return the hold with one more block, or None if the client must be let go."""
    window, size = monitor.reading.window, monitor.projected
    if window is None or size is None or monitor.exceeds_window or size >= window - traits.refusal_margin:
        return None
    if hold.blocks >= MAX_BLOCKS or (hold.blocks and at - hold.since >= MAX_HOLD_S):
        return None
    return CompactionHold(hold.blocks + 1, hold.since if hold.blocks else at)
