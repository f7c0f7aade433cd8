"""The handoff, prompt and documents found in a project for a session that begins there."""

from __future__ import annotations

from dataclasses import dataclass

from sm.core.model.channel import Location
from sm.core.model.handoff import Handoff


@dataclass(frozen=True, slots=True)
class ProjectDocument:
    """A document in the project that no session of `sm` wrote in this form."""

    path: str
    written: float
    tracked: bool
    """Git tracks it: it came with the project."""


@dataclass(frozen=True, slots=True)
class ContinuationPrompt:
    """A continuation prompt of a session of `sm` whose handoff expired without being used."""

    path: str
    written: float


@dataclass(frozen=True, slots=True)
class Offer:
    """The handoff, prompt and documents found in a project for a session that begins there."""

    waiting: Handoff | None = None
    foreign: tuple[ProjectDocument, ...] = ()
    prompt: ContinuationPrompt | None = None
    here: Location | None = None
    """The location of the session that reads it."""

    def __bool__(self) -> bool:
        return self.waiting is not None or self.prompt is not None or bool(self.foreign)
