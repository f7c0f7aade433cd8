"""A client in the user's own terminal, run by `sm run`: which processes, and how often its context was left.

How often it may be: `core/rules/foreground_rotation.py`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Foreground:
    wrapper: int
    """The process of `sm run`, the client's parent."""
    wrapper_born: str = ""
    """When that process started, in the system's form: with the pid it identifies the process."""
    born: str = ""
    """The same of the client."""
    limit: int = 10
    """Rotations without progress after which it is left as it is; 0 for no rotation at all."""
    on_compact: str = "rotate"
    restarts: tuple[float, ...] = ()
    """When a context was left since there was progress, oldest first: cleared in place, or by a restart."""
