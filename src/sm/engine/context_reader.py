"""When a session's context is read, and what of it is reported: one reading at a time, never a long one on the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from sm.core import effects as ef
from sm.core import events as ev
from sm.core.model.capacity import ClientLimits, named
from sm.core.model.context import ContextReading
from sm.core.model.session import Conversation, Session
from sm.core.ports.clock import Clock
from sm.core.ports.provider import Transcript, TranscriptEvidence, TranscriptSource
from sm.core.rules.context_thresholds import is_due
from sm.core.values import replace
from sm.engine.actor import Actor
from sm.engine.tasks import Spawn
from sm.engine.transcripts import transcript_moved

SETTLE_INTERVALS_S = (0.04, 0.06, 0.1)
"""Pauses before the newest record is looked for again: it lands 13 to 190 ms after its hook (2.1.328)."""


@dataclass(slots=True)
class ContextReader:
    """Reads one session's context; one reading at a time, and one more for all requests that come during it."""

    transcript: Transcript
    path: str
    last: ContextReading | None = None
    busy: bool = False
    caught_up: bool = False
    looked: bool = False
    """The hook's own reading has just found nothing new."""
    counting: bool = False
    again: ef.ReadContext | None = None
    reported: int | None = None
    """Tokens that the client, or its plugin, has reported last."""


def resized(
    provider: TranscriptSource, session: Session, reading: ContextReading, limits: ClientLimits
) -> tuple[ContextReading, int | None]:
    """The reading with its window, by all that is known of the session's client, and the usable part of that."""
    told = replace(reading, window=reading.window or session.window, model=named(reading.model, session.model))
    return provider.sized(told, limits, session.policy.assumed_window)


def usable_of(provider: TranscriptSource, session: Session, current: Conversation, window: int) -> int | None:
    """Return the usable part of a window that the client itself has told."""
    return resized(provider, session, replace(current.monitor.reading, window=window), session.limits)[1]


@dataclass(slots=True)
class ContextReaders:
    clock: Clock
    providers: Mapping[str, TranscriptEvidence]
    spawn: Spawn
    readers: dict[str, ContextReader] = field(default_factory=dict)
    """By session."""

    def read(self, actor: Actor, request: ef.ReadContext) -> None:
        if request.transcript is None:
            return
        reader = self.readers.get(actor.session.id)
        if reader is None or reader.path != request.transcript:
            provider = self.providers[actor.session.provider]
            reader = self.readers[actor.session.id] = ContextReader(
                provider.transcript(request.transcript), request.transcript
            )
        if reader.busy:
            reader.again = request
            return
        if reader.caught_up:
            reader.caught_up = False  # the hook's own reading has just found this call's record
            return
        reader.busy = True
        self.spawn(self._measure(actor, reader, request))

    async def _measure(self, actor: Actor, reader: ContextReader, request: ef.ReadContext) -> None:
        try:
            while True:
                await self._read_until_news(actor, reader, request)
                if reader.again is None:
                    return
                request, reader.again = reader.again, None
        finally:
            reader.busy = False

    async def _read_until_news(self, actor: Actor, reader: ContextReader, request: ef.ReadContext) -> None:
        at_once = () if reader.looked and request.settle else (0.0,)
        reader.looked = False
        for pause in (*at_once, *(SETTLE_INTERVALS_S if request.settle else ())):
            await asyncio.sleep(pause)
            cold = reader.last is None
            reading = await asyncio.to_thread(reader.transcript.read) if cold else reader.transcript.read()
            if reading == reader.last:
                continue
            reader.last = reading
            self._report(actor, reading, request)
            if not cold:
                return

    def catch_up(self, actor: Actor) -> None:
        """Read what has been written since, before a tool call is judged: a warning then rides on its own reply.

        The record of a call that took more than about 0.1 s is on disk by now. Never the first reading, which may be
        long.
        """
        current = actor.session.conversation
        reader = self.readers.get(actor.session.id)
        if current is None or not is_due(current.monitor.tool_calls + 1, actor.session.policy):
            return
        if reader is None or reader.last is None or reader.path != current.transcript:
            return
        reading = reader.transcript.read()
        reader.looked = reading == reader.last
        if not reader.looked:
            reader.last, reader.caught_up = reading, True
            self._report(actor, reading, ef.ReadContext(current.id, current.transcript, current.epoch))

    def reported(self, actor: Actor, conversation: str, tokens: int, window: int) -> None:
        """Take what the plugin in the client says; a conversation that is not the session's own changes nothing."""
        session = actor.session
        current = session.conversation
        if current is None:
            return
        provider = self.providers[session.provider]
        # No hook of a tool tells where it is now: the plugin reports in their place.
        if (event := transcript_moved(provider, session, self.clock.now())) is not None:
            actor.put(event)
        usable = usable_of(provider, session, current, window)
        actor.put(
            ev.ContextReported(
                at=self.clock.now(), conversation=conversation, tokens=tokens, window=window, usable=usable
            )
        )
        reader = self.readers.get(session.id)
        if reader is not None:
            reader.reported = tokens
        read = reader.last if reader is not None and reader.path == current.transcript else None
        if read is not None and read.tokens == tokens:  # read before this came: it also tells what the reply weighs
            self._report(actor, read, ef.ReadContext(current.id, current.transcript, current.epoch))

    def look(self, actor: Actor) -> None:
        """Read what a client has written before its tool runs, and take it as its report: a warning comes in time.

        Never the first reading, which may be long.
        """
        current, reader = actor.session.conversation, self.readers.get(actor.session.id)
        if current is None or reader is None or reader.last is None or reader.path != current.transcript:
            return
        reading = reader.transcript.read()
        if reading != reader.last:
            reader.last = reading
            self._report(actor, reading, ef.ReadContext(current.id, current.transcript, current.epoch))
        if reading.tokens is not None and reading.window is not None and reading.tokens != reader.reported:
            self.reported(actor, current.id, reading.tokens, reading.window)

    def resize(self, actor: Actor, limits: ClientLimits) -> None:
        """Tell the last reading once more, as it is by other limits."""
        reader, current = self.readers.get(actor.session.id), actor.session.conversation
        if reader is not None and reader.last is not None and current is not None and current.transcript == reader.path:
            self._report(actor, reader.last, ef.ReadContext(current.id, reader.path, current.epoch), limits)

    def _report(
        self, actor: Actor, reading: ContextReading, request: ef.ReadContext, limits: ClientLimits | None = None
    ) -> None:
        session = actor.session
        sized, usable = resized(self.providers[session.provider], session, reading, limits or session.limits)
        at = self.clock.now()
        actor.put(
            ev.ContextRead(at=at, conversation=request.conversation, epoch=request.epoch, reading=sized, usable=usable)
        )

    def count(self, actor: Actor) -> None:
        """Count the whole file's replies and compactions behind, and tell it: an idle agent is not read again."""
        reader = self.readers.get(actor.session.id)
        if reader is not None and not reader.counting:
            reader.counting = True
            self.spawn(self._count(actor, reader))

    async def _count(self, actor: Actor, reader: ContextReader) -> None:
        try:
            while not await asyncio.to_thread(reader.transcript.scan):
                await asyncio.sleep(0.05)
        finally:
            reader.counting = False
        current = actor.session.conversation
        if current is not None and current.transcript == reader.path:
            self.read(actor, ef.ReadContext(current.id, reader.path, current.epoch))
