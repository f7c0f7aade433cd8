"""A client in the user's own terminal, run by `sm run`: which processes, and how often it was started again.

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
    """Restarts without progress after which it is left as it is; 0 for never restarting."""
    on_compact: str = "rotate"
    restarts: tuple[float, ...] = ()
    """When the client was restarted since there was progress, oldest first."""
