"""What the page of one session shows, and the parts of it that are asked for again when something has happened."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import Any

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
from sm.web.pages import documents, transcript
from sm.web.pages.live import Live
from sm.wire import message_view, why_it_waits

MAX_MESSAGES = 50


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

    def head(self) -> dict[str, Any]:
        picture, session = self.live.picture, self.session.id
        asks = [ask for ask in picture.asks if ask["session"] == session]
        return {"row": self.row(), "view": picture.view(session), "asks": asks, "now": picture.at}

    async def messages(self) -> list[dict[str, Any]]:
        rows = await self.found.store.newest_messages(self.session.id, MAX_MESSAGES)
        who, waits = self.found.engine.sessions.who, why_it_waits(self.session, whole=True)
        shown = [msgspec.to_builtins(message_view(row, who, waits)) for row in rows]
        for message in shown:
            message["text"] = redacted(message["text"], self.found.own_tokens)
        return shown

    async def documents(self) -> list[documents.Link]:
        history = await self.found.archiving.history(self.session.id)
        return documents.chain(history.documents)

    async def transcript(self, before: int | None = None, after: int | None = None) -> transcript.TranscriptPage:
        path, provider = self._transcript()
        if not path:
            return transcript.TranscriptPage(problem="This session has no transcript yet.")
        parts = self.found.engine.ports.providers[provider].parts
        redact = partial(redacted, is_own_token=self.found.own_tokens)
        if after is not None:
            return await asyncio.to_thread(transcript.since, path, parts, redact, after)
        return await asyncio.to_thread(transcript.newest, path, parts, redact, before)

    def _transcript(self) -> tuple[str, str]:
        current = self.session.conversation
        return (current.transcript if current else None) or "", self.session.provider

    async def context_list(self) -> tuple[Context, ...]:
        return (await self.found.archiving.history(self.session.id)).contexts


def offset(request: Request, name: str) -> int | None:
    """Return a place in a file that the query names."""
    given = request.query_params.get(name)
    if given is None:
        return None
    if not is_number(given):
        raise error("bad_request", f"{name} must be a number", "load the page again")
    return int(given)
