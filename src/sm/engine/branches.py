"""What is checked out in the directories of the sessions, read behind the requests that show it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from sm.core.ports.clock import Clock
from sm.core.ports.documents import Documents
from sm.engine.tasks import Spawn

MAX_AGE_S = 2.0
"""What was read longer ago is read again when it is asked for."""


@dataclass(slots=True)
class Branches:
    documents: Documents
    clock: Clock
    spawn: Spawn
    known: dict[str, str] = field(default_factory=dict)
    """By directory; empty outside of a work tree."""
    read_at: dict[str, float] = field(default_factory=dict)
    reading: set[str] = field(default_factory=set)

    def of(self, directory: str) -> str | None:
        """Return what is known now, at once: a disk that does not answer delays no request."""
        now = self.clock.now()
        if directory not in self.reading and not 0 <= now - self.read_at.get(directory, -1e12) < MAX_AGE_S:
            self.reading.add(directory)
            self.spawn(self._read(directory))
        return self.known.get(directory) or None

    async def _read(self, directory: str) -> None:
        try:
            self.known[directory] = (await asyncio.to_thread(self.documents.location, directory)).branch
        finally:
            self.read_at[directory] = self.clock.now()
            self.reading.discard(directory)
