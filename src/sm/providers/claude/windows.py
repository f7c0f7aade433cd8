"""The context windows of Claude models, and where the client compacts.

Windows are the pinned client's own table (2.1.328, each asked of it), by the model's plain name. A model that is not
here is assumed to have `Policy.assumed_window`, the smallest usual one, until something shows more.
"""

from __future__ import annotations

import re

from sm.core.model.capacity import NO_LIMITS, ClientLimits

USUAL = 200_000
LONG = 1_000_000
WINDOWS = {
    **dict.fromkeys(
        (
            "claude-3-5-haiku",
            "claude-3-5-sonnet",
            "claude-3-7-sonnet",
            "claude-sonnet-4",
            "claude-sonnet-4-0",
            "claude-sonnet-4-5",
            "claude-sonnet-4-6",
            "claude-opus-4",
            "claude-opus-4-0",
            "claude-opus-4-1",
            "claude-opus-4-5",
            "claude-opus-4-6",
            "claude-haiku-4-5",
        ),
        USUAL,
    ),
    **dict.fromkeys(
        (
            "claude-opus-4-7",
            "claude-opus-4-8",
            "claude-opus-5",
            "claude-opus-5-5",
            "claude-sonnet-5",
            "claude-sonnet-5-5",
            "claude-haiku-5-5",
            "claude-fable-5",
            "claude-fable-5-1",
            "claude-fable-5-2",
            "claude-mythos-5",
            "claude-mythos-5-1",
            "claude-mythos-5-2",
        ),
        LONG,
    ),
}
PLAIN = re.compile(r"claude-(?:[a-z]{1,20}-[0-9]{1,2}(?:-[0-9]{1,2})?|[0-9]-[0-9]-[a-z]{1,20})(?![0-9a-z])")
"""A model's name without what gateways put before it and dates behind it."""
LONG_SUFFIX = "[1m]"
REPLY_RESERVE = 20_000
MARGIN = 13_000
"""The client compacts at window - min(maxOutput, 20,000) - 13,000 (2.1.328); the same where it does not by itself."""
REFUSED_BELOW = 3_000
"""Where it may not compact, it refuses to continue at window - min(maxOutput, 20,000) - 3,000 (2.1.328)."""


def plain_name(model: str) -> str:
    """The name that the table knows; of a model that is none of Claude's the whole name."""
    match = PLAIN.search(model.lower())
    return match.group() if match else model


def window_of(model: str | None, limits: ClientLimits = NO_LIMITS) -> int | None:
    """The model's own window; None for a model that is not in the table."""
    if model is None:
        return None
    found = WINDOWS.get(plain_name(model))
    if model.lower().endswith(LONG_SUFFIX):
        found = LONG
    if found is None:
        return limits.max_context
    return min(found, USUAL) if limits.no_long_window else found


def usable_of(window: int | None, model: str | None = None, limits: ClientLimits = NO_LIMITS) -> int | None:
    """Tokens at which the client compacts, or refuses to continue where it may not compact.

    None where that is not known, also for a window that is smaller than what the client keeps free.
    """
    if window is None:
        return None
    reserve = min(limits.max_output or REPLY_RESERVE, REPLY_RESERVE)
    if limits.never_compacts:
        usable = window - reserve - REFUSED_BELOW
    else:
        room = min(window, _auto_compact(model, limits) or window) - reserve
        usable = room - MARGIN
        if limits.percent is not None:
            usable = min(int(room * limits.percent / 100), usable)
    return usable if usable > 0 else None


def _auto_compact(model: str | None, limits: ClientLimits) -> int | None:
    """The auto-compact window: one set for this model comes before the one for all."""
    name = plain_name(model or "")
    return next((window for model_name, window in limits.by_model if model_name == name), limits.auto_compact)
