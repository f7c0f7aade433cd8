"""What `sm` refuses, as values and as one exception that carries them to the surface."""

from __future__ import annotations

from dataclasses import dataclass


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
