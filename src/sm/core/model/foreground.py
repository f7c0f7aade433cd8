"""A client in the user's own terminal, run by `sm run`: which processes, and how often it may be started again.

A restart without progress is one that the client needs again at once: counted in a row, they end in a client that
stays as it is. Progress is work in the context that was left, or a prompt of the person's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

PROGRESS = 10
"""Tool calls in one context that are work: writing a document and handing it off takes two or three."""
STORM = 3
STORM_SECONDS = 120.0
DELAY = 5.0
"""Seconds by which each restart without progress waits longer than the one before."""


@dataclass(frozen=True, slots=True)
class Foreground:
    wrapper: int
    """The process of `sm run`, the client's parent."""
    wrapper_born: str = ""
    """When that process started, as the system tells: with the pid it names exactly that process."""
    born: str = ""
    """The same of the client."""
    limit: int = 10
    """Restarts without progress after which it is left as it is; 0 for never restarting."""
    on_compact: str = "rotate"
    restarts: tuple[float, ...] = ()
    """When the client was restarted since there was progress, oldest first."""


def counted(foreground: Foreground, at: float, tool_calls: int) -> Foreground:
    """Return it after a restart that leaves a context with so many tool calls."""
    before = () if tool_calls >= PROGRESS else foreground.restarts
    return replace(foreground, restarts=(*before, at)[-max(STORM, foreground.limit) :])


def not_before(foreground: Foreground) -> float:
    """When the next restart may come, UTC seconds."""
    row = foreground.restarts
    return row[-1] + DELAY * (len(row) - 1) if row else 0.0


def held_back(foreground: Foreground, at: float, tool_calls: int) -> str:
    """Return why the client is not restarted any more, in words for the user; empty if it may be."""
    row = () if tool_calls >= PROGRESS else foreground.restarts
    if len(row) >= foreground.limit:
        return f"restarted {len(row)} times without progress; this context stays; continue with sm handoff --retry"
    if len(row) >= STORM and at - row[-STORM] <= STORM_SECONDS:
        return f"restarted {STORM} times within two minutes; this context stays; continue with sm handoff --retry"
    return ""
