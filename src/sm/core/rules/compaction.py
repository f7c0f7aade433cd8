"""Whether the client is kept from compacting by itself, so that its agent can hand off first.

It asks again before every request over its threshold, so it is held for as long as the handoff takes and never for
good: past the limits below, and close to the size the model's API refuses, it compacts. Before that a fork of the
agent's model, where there can be one, writes the document that the agent has not written.
"""

from __future__ import annotations

from sm.core.model.client_traits import ClientTraits
from sm.core.model.compaction import CompactionHold
from sm.core.model.context import Monitor
from sm.core.model.forked_document import FORK_TIMEOUT_S
from sm.core.values import replace

MAX_BLOCKS = 12
MAX_HOLD_S = 600.0
FORK_ROOM = 12_000
"""Tokens that the agent may still add while a fork writes. With less left a fork is asked at once and not waited for: a
client that may not compact may end the turn itself before the size that the API refuses."""
HELD = "sm: waits for the agent's handoff"
ROTATE = "rotate"


def held(hold: CompactionHold, monitor: Monitor, at: float, traits: ClientTraits) -> CompactionHold | None:
    """Return the hold with one more block, or None if the client must be let go."""
    if not _has_room(monitor, traits.refusal_margin):
        return None
    if hold.blocks >= MAX_BLOCKS or (hold.blocks and at - hold.since >= MAX_HOLD_S):
        return None
    return replace(hold, blocks=hold.blocks + 1, since=hold.since if hold.blocks else at)


def held_for_fork(
    before: CompactionHold, hold: CompactionHold | None, monitor: Monitor, at: float, traits: ClientTraits
) -> CompactionHold | None:
    """Return `hold`, or one that asks a fork or waits for it, if nothing else holds the client much longer."""
    roomy = _has_room(monitor, traits.refusal_margin + FORK_ROOM)
    if before.fork_asked:
        waits = roomy and not before.fork_answered and at - before.fork_asked < FORK_TIMEOUT_S
        return hold or (before if waits else None)
    if hold is None:
        return replace(before, fork_asked=at) if roomy else None
    return hold if roomy else replace(hold, fork_asked=at)


def _has_room(monitor: Monitor, margin: int) -> bool:
    """Whether so many tokens are known to be left of the window."""
    window, size = monitor.reading.window, monitor.projected
    return window is not None and size is not None and not monitor.exceeds_window and size < window - margin
