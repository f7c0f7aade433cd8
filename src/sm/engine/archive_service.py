"""Tends the archive behind everything else, and answers for it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from sm.core.model.history import Artefact, Context, Document, SessionHistory
from sm.core.model.session import Session
from sm.core.ports.archive import Archive
from sm.core.ports.clock import Clock
from sm.core.ports.store import HistoryStore
from sm.engine.errors import logged
from sm.engine.sessions import Sessions

INTERVAL_S, MAX_INTERVAL_S = 2.0, 30.0
"""Seconds between two looks at the logs."""
INTERVAL_PER_SESSION_S = 0.02
"""A look takes some 0.06 ms per session, also for one that has ended: it stays below a 200th of a core."""


@dataclass(frozen=True, slots=True)
class Archiving:
    sessions: Sessions
    store: HistoryStore
    archive: Archive
    clock: Clock

    async def run(self) -> None:
        while True:
            with logged("archive not tended"):
                histories = await self.histories()
                await asyncio.to_thread(self.archive.tend, histories, self.clock.now())
            many = INTERVAL_PER_SESSION_S * len(self.sessions.all())
            await asyncio.sleep(min(MAX_INTERVAL_S, max(INTERVAL_S, many)))

    async def histories(self) -> list[SessionHistory]:
        sessions = self.sessions.all()
        contexts, documents = await self.store.contexts(), await self.store.documents()
        return await asyncio.to_thread(
            lambda: [
                _history_of(session, contexts.get(session.id, ()), documents.get(session.id, ()))
                for session in sessions
            ]
        )

    async def history(self, session: str) -> SessionHistory:
        return next(history for history in await self.histories() if history.session == session)

    async def prune(self, *, dry_run: bool) -> list[Artefact]:
        histories = await self.histories()
        return await asyncio.to_thread(lambda: self.archive.prune(histories, self.clock.now(), dry_run=dry_run))


def _history_of(session: Session, contexts: tuple[Context, ...], documents: tuple[Document, ...]) -> SessionHistory:
    return SessionHistory(
        session=session.id,
        provider=session.provider,
        ended=session.ended,
        last_activity=session.last_activity or session.created,
        contexts=contexts,
        documents=documents,
        snapshot=session.rotation.snapshot if session.rotation is not None else None,
    )
