"""The context windows of Claude models, and where the client compacts.

Names as the transcript gives them, by prefix; a model that is not here has an unknown window: then tokens are shown and
no percentage, since a wrong window is worse than none. Seen on 2.1.328 (status line) or published with the model.
"""

from __future__ import annotations

WINDOWS: tuple[tuple[str, int], ...] = (
    ("claude-opus-5-5", 1_000_000),
    ("claude-sonnet-5-5", 1_000_000),
    ("claude-haiku-5-5", 1_000_000),
    ("claude-opus-4-8", 1_000_000),
    ("claude-sonnet-5", 1_000_000),
    ("claude-fable-5-1", 1_000_000),
    ("claude-sonnet-4-5", 200_000),
    ("claude-haiku-4-5", 200_000),
    ("claude-opus-4-1", 200_000),
)
REPLY_RESERVE = 20_000
MARGIN = 13_000
"""The client compacts at window - min(maxOutput, 20,000) - 13,000 (2.1.328); the same where it does not by itself."""


def window_of(model: str | None) -> int | None:
    if model is None:
        return None
    return next((window for prefix, window in WINDOWS if model.startswith(prefix)), None)


def usable_of(window: int | None, auto_compact: int | None = None) -> int | None:
    """Tokens at which the client would compact. `auto_compact` is its auto-compact window, if set smaller.

    None where that is not known, also for a window that is smaller than what the client keeps free.
    """
    if window is None:
        return None
    usable = min(window, auto_compact or window) - REPLY_RESERVE - MARGIN
    return usable if usable > 0 else None
