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
    """What is refused, as an exception: the surface shows its message and hint."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(refused.message)
        self.refused = refused


def error(code: str, message: str, hint: str = "") -> SmError:
    return SmError(Refused(code, message, hint))


USER_COMMANDS = ("sm server", "sm new", "sm restore", "sm attach", "sm trust", "sm doctor", "sm demo")
"""Commands in hints that an agent may not use, or that help only the user."""


def for_agent(refused: Refused) -> Refused:
    """Return the refusal with a hint that an agent can follow: what only the user can do, it asks them for."""
    if any(command in refused.hint for command in USER_COMMANDS):
        return replace(refused, hint=f"ask the user who runs sm: {refused.hint}")
    return refused
