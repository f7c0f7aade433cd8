"""Which usage limits concern every session of an account: those that an agent cannot have made up.

A session's token is enough for a hook, and whatever an agent starts has it. What such a hook tells of a limit holds for
that session alone, unless the client itself has sent it or the transcript has the client's notice.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

import structlog

from sm.core import events as ev
from sm.core.model.session import Session
from sm.core.model.usage_limit import UsageLimit
from sm.core.ports.clock import Clock
from sm.core.ports.provider import HookEvent, TranscriptEvidence
from sm.peers import Peer, is_at

log = structlog.get_logger()
LOOKS = 5
LOOK_INTERVAL_S = 0.1
"""The client writes its notice about when it runs its hooks; a command hook waits less than a second."""


def proven(hook: HookEvent) -> HookEvent:
    """Return the hook as one that the client itself has sent."""
    event = hook.event
    if not isinstance(event, ev.TurnFailed) or event.limit is None:
        return hook
    return replace(hook, event=replace(event, limit=replace(event.limit, proven=True)))


async def examined(
    hook: HookEvent, session: Session, peer: Peer | None, provider: TranscriptEvidence, clock: Clock
) -> HookEvent:
    """Return the hook with its limit proven if the client has sent it, or with the limit of the client's notice."""
    event = hook.event
    if not isinstance(event, ev.TurnFailed) or event.limit is None:
        return hook
    if session.pid is not None and peer is not None and await asyncio.to_thread(is_at, session.pid, peer):
        return proven(hook)
    for _ in range(LOOKS):
        now = clock.now()
        found = await asyncio.to_thread(in_own_transcript, provider, session, now)
        if found is not None and found.ends_at(now) > now:
            return replace(hook, event=replace(event, limit=found))
        await asyncio.sleep(LOOK_INTERVAL_S)
    log.warning("limit not proven", session=session.id, kind=event.limit.kind, resets_at=event.limit.resets_at)
    return hook


def in_own_transcript(provider: TranscriptEvidence, session: Session, now: float) -> UsageLimit | None:
    """Return what the transcript tells of a limit: proven if it lies where the client keeps it, as a hook says too."""
    current = session.conversation
    if current is None:
        return None
    kept = provider.found_transcript(session.config, current.id) if session.config else None
    path = kept or current.transcript
    found = provider.usage_limit(path, now) if path else None
    return None if found is None else replace(found, proven=kept is not None)
