"""Sessions of unattended runs: at most one for each attempt, however often its start is interrupted and asked for."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass, field

from sm.core.errors import SmError
from sm.core.model.notices import started_again
from sm.core.model.reminder import Notice
from sm.core.model.session import Session
from sm.core.rules.session.status import lost_at
from sm.engine.launch import SessionLauncher
from sm.engine.messages import Messages
from sm.engine.new_session import NewSession
from sm.engine.sessions import Sessions

STAYS_DOWN = "restart_loop"
"""What a client is refused with that has ended again and again without finishing a turn."""


@dataclass(frozen=True, slots=True)
class Attempts:
    sessions: Sessions
    launcher: SessionLauncher
    messages: Messages
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """One is looked up and begun at a time."""

    async def session(self, new: NewSession) -> Session:
        """Return the session of that attempt, started and given its prompt where that has not happened yet.

        One whose client has ended without an order to is started again, and asked to continue what that interrupted.
        One that was ended, or that stays down, is returned as it is: whether there is another attempt is the caller's
        decision.
        """
        async with self.lock:
            known = (actor for actor in self.sessions.actors.values() if actor.session.attempt == new.attempt)
            actor = next(known, None) or await self.launcher.start(new)
            if lost_at(actor.session) is not None:
                await self._restore(actor.session.id, new)
            if not actor.session.ended:
                await self._prompt(actor.session, new)
            return actor.session

    async def _restore(self, session: str, new: NewSession) -> None:
        try:
            await self.launcher.restore(session, new.env, headless=new.headless)
        except SmError as problem:
            if problem.refused.code != STAYS_DOWN:
                raise

    async def _prompt(self, session: Session, new: NewSession) -> None:
        """Queue what its agent has to know; a message that was queued is not queued again."""
        if new.prompt:
            await self.messages.post(Notice(_message_id("prompt", new.attempt), session.id, new.prompt))
        takes_up = session.rotation is not None and session.rotation.unfinished
        if session.interrupted and session.failed_starts and not takes_up:
            known = _message_id(f"continuation after {session.failed_starts[-1]}", new.attempt)
            await self.messages.post(Notice(known, session.id, started_again(session.scope)))


def _message_id(what: str, attempt: str) -> str:
    """Return the id of a message to an attempt's agent, the same whenever it is asked for."""
    return hashlib.sha256(f"{what} of {attempt}".encode()).hexdigest()[:12]
