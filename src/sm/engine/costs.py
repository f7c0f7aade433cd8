"""What sessions have used and what that costs: each context, each session, and each with all its children."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sm.core.model.cost import ByModel, Price
from sm.core.model.history import Context
from sm.core.model.session import Session
from sm.core.model.session_cost import SessionCost, of_run, session_costs
from sm.core.ports.provider import TranscriptEvidence, UsageRecord
from sm.core.ports.store import ContextStore
from sm.engine.sessions import Sessions


@dataclass(slots=True)
class Costs:
    sessions: Sessions
    store: ContextStore
    providers: Mapping[str, TranscriptEvidence]
    prices: Callable[[], Mapping[str, Price]]
    records: dict[str, UsageRecord] = field(default_factory=dict)
    """By transcript: the next report reads on from where the last one ended."""
    reading: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def report(self, since: float = 0.0, run: str = "") -> list[SessionCost]:
        """Return what every session, or every one of that run, has used since then, UTC seconds."""
        sessions, contexts = self.sessions.all(), await self.store.contexts()
        sessions = of_run(run, sessions) if run else sessions
        async with self.reading:
            return await asyncio.to_thread(self._report, sessions, contexts, since)

    def _report(
        self, sessions: Sequence[Session], contexts: Mapping[str, tuple[Context, ...]], since: float
    ) -> list[SessionCost]:
        used = {
            session.id: [(context, self._used(session, context, since)) for context in contexts.get(session.id, ())]
            for session in sessions
        }
        return session_costs(sessions, used, self.prices())

    def _used(self, session: Session, context: Context, since: float) -> ByModel:
        if context.transcript is None:
            return {}
        record = self.records.get(context.transcript)
        if record is None:
            provider = self.providers[context.provider or session.provider]
            record = self.records[context.transcript] = provider.usage(context.transcript)
        return record.read(since)
