"""Sessions of unattended runs: at most one for each attempt, however often its start is interrupted and asked for."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass, field

from sm.core.model.reminder import Notice
from sm.core.model.session import Session
from sm.engine.launch import NewSession, SessionLauncher
from sm.engine.messages import Messages
from sm.engine.sessions import Sessions


@dataclass(frozen=True, slots=True)
class Attempts:
    sessions: Sessions
    launcher: SessionLauncher
    messages: Messages
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """One is looked up and begun at a time."""

    async def session(self, new: NewSession) -> Session:
        """Return the session of that attempt, started and given its prompt where that has not happened yet.

        One that has ended is returned as it is: whether there is another attempt is the caller's decision.
        """
        async with self.lock:
            known = (actor for actor in self.sessions.actors.values() if actor.session.attempt == new.attempt)
            actor = next(known, None) or await self.launcher.start(new)
            if new.prompt and not actor.session.ended:
                await self.messages.post(Notice(_prompt_id(new.attempt), actor.session.id, new.prompt))
            return actor.session


def _prompt_id(attempt: str) -> str:
    """Return the id of the message with an attempt's prompt, the same whenever it is asked for."""
    return hashlib.sha256(f"prompt of {attempt}".encode()).hexdigest()[:12]
