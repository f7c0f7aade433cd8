"""What a client may do without asking anybody, in words that hold for every kind of client.

Each provider maps its permission modes to this and back. What a mode leaves open counts as the less, so that a client
which is started for another kind of client never may more than that one.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Freedom(IntEnum):
    """What needs no permission."""

    READING = 0
    """To read."""
    WORKING = 1
    """To edit files of the project, and to run commands in a sandbox that holds them there, or under supervision."""
    EVERYTHING = 2


@dataclass(frozen=True, slots=True)
class Rights:
    level: Freedom = Freedom.READING
    asks: bool = False
    """What needs a permission is asked for; otherwise it is refused without a dialog."""

    def within(self, other: Rights) -> bool:
        """Whether nothing is allowed here that is not allowed there. What a client asks for, its user decides."""
        return self.level <= other.level


STRICTEST = Rights()
"""Of a client that says nothing of its permission mode, or what is not known."""
