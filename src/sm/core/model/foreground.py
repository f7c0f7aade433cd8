"""A client in the user's own terminal, run by `sm run`: which processes, and how often it may be started again.

A restart without progress is one that the client needs again at once: counted in a row, they end in a client that
stays as it is. Progress is work in the context that was left, or a prompt of the user's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

MIN_PROGRESS_CALLS = 10
"""So many tool calls in one context are progress: writing a document and handing it off takes two or three."""
MAX_RAPID_RESTARTS = 3
"""Within RAPID_WINDOW_S."""
RAPID_WINDOW_S = 120.0
RESTART_DELAY_STEP_S = 5.0
"""Each restart without progress waits longer than the one before by it."""


@dataclass(frozen=True, slots=True)
class Foreground:
    wrapper: int
    """The process of `sm run`, the client's parent."""
    wrapper_born: str = ""
    """When that process started, in the system's form: with the pid it identifies the process."""
    born: str = ""
    """The same of the client."""
    limit: int = 10
    """Restarts without progress after which it is left as it is; 0 for never restarting."""
    on_compact: str = "rotate"
    restarts: tuple[float, ...] = ()
    """When the client was restarted since there was progress, oldest first."""


def counted(foreground: Foreground, at: float, tool_calls: int) -> Foreground:
    """Return it after a restart that leaves a context with so many tool calls."""
    before = () if tool_calls >= MIN_PROGRESS_CALLS else foreground.restarts
    return replace(foreground, restarts=(*before, at)[-max(MAX_RAPID_RESTARTS, foreground.limit) :])


def not_before(foreground: Foreground) -> float:
    """When the next restart may come, UTC seconds."""
    row = foreground.restarts
    return row[-1] + RESTART_DELAY_STEP_S * (len(row) - 1) if row else 0.0


def held_back(foreground: Foreground, at: float, tool_calls: int) -> str:
    """Return why the client is not restarted any more, in words for the user; empty if it may be."""
    row = () if tool_calls >= MIN_PROGRESS_CALLS else foreground.restarts
    if len(row) >= foreground.limit:
        return f"restarted {len(row)} times without progress; this context stays; continue with sm handoff --retry"
    if len(row) >= MAX_RAPID_RESTARTS and at - row[-MAX_RAPID_RESTARTS] <= RAPID_WINDOW_S:
        often = f"restarted {MAX_RAPID_RESTARTS} times within two minutes"
        return f"{often}; this context stays; continue with sm handoff --retry"
    return ""
