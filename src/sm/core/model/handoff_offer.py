"""What lies in a project for a session that begins there."""

from __future__ import annotations

from dataclasses import dataclass

from sm.core.model.channel import Location
from sm.core.model.handoff import Handoff


@dataclass(frozen=True, slots=True)
class Foreign:
    """A document in the project that no session of `sm` wrote as it is."""

    path: str
    written: float
    tracked: bool
    """Git tracks it: it came with the project."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A continuation prompt by a session of `sm`, from which none has begun while its handoff waited."""

    path: str
    written: float


@dataclass(frozen=True, slots=True)
class Offer:
    """What lies in a project for a session that begins there."""

    waiting: Handoff | None = None
    foreign: tuple[Foreign, ...] = ()
    prompt: Prompt | None = None
    here: Location | None = None
    """Of the session that reads it."""

    def __bool__(self) -> bool:
        return self.waiting is not None or self.prompt is not None or bool(self.foreign)
