"""What `sm` refuses, as values and as one exception that carries them to the surface."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Refused:
    code: str
    """Stable: scripts branch on it."""
    message: str
    hint: str = ""
    """What to do about it."""


class SmError(Exception):
    """Something a person can do something about."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(refused.message)
        self.refused = refused


def error(code: str, message: str, hint: str = "") -> SmError:
    return SmError(Refused(code, message, hint))


PERSONS = ("sm server", "sm new", "sm restore", "sm attach", "sm trust", "sm doctor", "sm demo")
"""Commands in hints that an agent may not use, or that help nobody but a person."""


def for_agent(refused: Refused) -> Refused:
    """The same with a hint that an agent can follow: what only a person can do is theirs to ask for."""
    if any(command in refused.hint for command in PERSONS):
        return replace(refused, hint=f"ask the user who runs sm: {refused.hint}")
    return refused
