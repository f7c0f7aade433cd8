"""What sessions have used and what that costs: each context, each session, and each with all its children."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sm.core.model.cost import ByModel, Price, spending, together
from sm.core.model.history import Context
from sm.core.model.session import Session
from sm.core.model.session_cost import ContextCost, SessionCost
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

    async def report(self, since: float = 0.0) -> list[SessionCost]:
        """Return what every session has used since then, UTC seconds."""
        sessions, contexts = self.sessions.all(), await self.store.contexts()
        async with self.reading:
            return await asyncio.to_thread(self._report, sessions, contexts, since)

    def _report(
        self, sessions: Sequence[Session], contexts: Mapping[str, tuple[Context, ...]], since: float
    ) -> list[SessionCost]:
        prices = self.prices()
        used = {
            session.id: [(context, self._used(session, context, since)) for context in contexts.get(session.id, ())]
            for session in sessions
        }
        own = {name: together(by_model for _, by_model in found) for name, found in used.items()}
        return [
            SessionCost(
                session,
                spending(own[session.id], prices),
                tuple(ContextCost(context, spending(by_model, prices)) for context, by_model in used[session.id]),
                spending(together(own[member] for member in family(session.id, sessions)), prices),
            )
            for session in sessions
        ]

    def _used(self, session: Session, context: Context, since: float) -> ByModel:
        if context.transcript is None:
            return {}
        record = self.records.get(context.transcript)
        if record is None:
            record = self.records[context.transcript] = self.providers[session.provider].usage(context.transcript)
        return record.read(since)


def family(session: str, sessions: Iterable[Session]) -> list[str]:
    """Return the session, its children and theirs."""
    known = list(sessions)
    found = [session]
    for member in found:  # it grows while it is read
        found += [child.id for child in known if child.parent == member and child.id not in found]
    return found
