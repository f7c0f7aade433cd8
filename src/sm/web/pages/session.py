"""What the page of one session shows, and the parts of it that are asked for again when something has happened."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import msgspec
from starlette.requests import Request

from sm.api.routes import Backend, backend, target
from sm.api.security import is_number
from sm.archive.redaction.redact import redacted
from sm.core.errors import error
from sm.core.model.history import Context
from sm.core.model.session import Session
from sm.engine.actor import Actor
from sm.fleet import Row
from sm.store import contexts, events
from sm.web.pages import documents
from sm.web.pages.contexts import chosen, known_contexts, located
from sm.web.pages.live import Live
from sm.web.pages.rotations import MAX_PHASES, RotationLine, rotation_lines, running
from sm.web.pages.transcript import TranscriptPage, newest, since
from sm.wire import message_view, why_it_waits

MAX_MESSAGES = 50
NO_TRANSCRIPT = "It has no transcript yet."


class TranscriptRequest(NamedTuple):
    """Which part of which context's transcript."""

    context: int | None = None
    """The newest for None."""
    before: int | None = None
    after: int | None = None


class ContextPage(NamedTuple):
    context: Context | None
    page: TranscriptPage


@dataclass(frozen=True, slots=True)
class SessionPage:
    """One request about one session."""

    found: Backend
    actor: Actor
    live: Live

    @classmethod
    def of(cls, request: Request, live: Live) -> SessionPage:
        return cls(backend(request), target(request), live)

    @property
    def session(self) -> Session:
        return self.actor.shown

    def row(self) -> Row:
        row = self.live.row(self.session.id)
        if row is None:
            raise error("not_found", f"No session {self.session.id}", "sm list shows the sessions")
        return row

    async def head(self) -> dict[str, Any]:
        lines = await self.rotations()
        picture, session = self.live.picture, self.session.id
        asks, view = [ask for ask in picture.asks if ask["session"] == session], picture.view(session)
        return {"row": self.row(), "view": view, "asks": asks, "now": picture.at, "rotation": running(view, lines)}

    async def messages(self) -> list[dict[str, Any]]:
        rows = await self.found.store.newest_messages(self.session.id, MAX_MESSAGES)
        who, waits = self.found.engine.sessions.who, why_it_waits(self.session, whole=True)
        shown = [msgspec.to_builtins(message_view(row, who, waits)) for row in rows]
        for message in shown:
            message["text"] = redacted(message["text"], self.found.own_tokens)
        return shown

    async def documents(self) -> list[documents.Link]:
        query = partial(contexts.documents_of, session=self.session.id)
        return documents.chain(await self.found.store.database.read(query))

    async def contexts(self) -> tuple[Context, ...]:
        recorded = await self.found.store.database.read(partial(contexts.of_session, session=self.session.id))
        return known_contexts(recorded, self.session)

    async def transcript(self, known: tuple[Context, ...], wanted: TranscriptRequest) -> list[ContextPage]:
        """Return what is asked for: of one context, and of the newest one too where that has followed it since."""
        context = chosen(known, wanted.context)
        if context is None:
            return [ContextPage(None, TranscriptPage(problem=NO_TRANSCRIPT))]
        found = [ContextPage(context, await self._read(context, wanted.before, wanted.after))]
        if wanted.after is not None and context.number < known[-1].number:
            found.append(ContextPage(known[-1], await self._read(known[-1])))
        return found

    async def _read(self, context: Context, before: int | None = None, after: int | None = None) -> TranscriptPage:
        providers, session = self.found.engine.ports.providers, self.session
        parts = providers[context.provider or session.provider].parts
        redact = partial(redacted, is_own_token=self.found.own_tokens)

        def read() -> TranscriptPage:
            path = located(providers[session.provider], session, context)
            if not path:
                return TranscriptPage([], after or 0, after or 0, NO_TRANSCRIPT)
            if after is not None:
                return since(path, parts, redact, after)
            return newest(path, parts, redact, before)

        return await asyncio.to_thread(read)

    async def rotations(self) -> list[RotationLine]:
        query = partial(events.phases, session=self.session.id, limit=MAX_PHASES)
        return rotation_lines(await self.found.store.database.read(query))


def number(request: Request, name: str) -> int | None:
    """Return a number of the query, as of a context or of a place in a file."""
    given = request.query_params.get(name)
    if given is None:
        return None
    if not is_number(given):
        raise error("bad_request", f"{name} must be a number", "load the page again")
    return int(given)
