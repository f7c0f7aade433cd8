"""Handoffs: asks a session for its own, and keeps those that wait: where, who may have them, how long, the manifests.

Rows are the truth. A document is written before its row and the manifest after it; what a crash left between them is
put right at the start. Ages are compared when somebody asks and once a minute.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import structlog

from sm.core import events as ev
from sm.core.errors import SmError, error
from sm.core.model.channel import channel_directory
from sm.core.model.handoff import Handoff, HandoffState, HandoffType, StoredHandoff
from sm.core.model.handoff_offer import ContinuationPrompt, Offer
from sm.core.model.rotation import CANCELLABLE, OVER, Phase, Switch
from sm.core.model.session import Session
from sm.core.ports.clock import Clock
from sm.core.ports.documents import Documents
from sm.core.ports.policies import Policies
from sm.core.ports.provider import TranscriptEvidence
from sm.core.ports.store import Store
from sm.core.rules.handoff_offers import expires, offered, prompts_since
from sm.core.rules.loop_guard import may_not_resume, too_soon
from sm.core.rules.session.refusals import may_hand_off
from sm.engine.errors import logged
from sm.engine.sessions import Sessions
from sm.engine.tasks import Spawn
from sm.engine.transcripts import shows_progress

log = structlog.get_logger()
SWEEP_INTERVAL_S = 60.0
MAX_ROWS = 1_000_000  # more than there will be


@dataclass(slots=True)
class Handoffs:
    store: Store
    documents: Documents
    clock: Clock
    policies: Policies
    providers: Mapping[str, TranscriptEvidence]
    sessions: Sessions
    spawn: Spawn
    stale: set[str] = field(default_factory=set)
    """Channels whose manifest is behind its rows."""
    writing: bool = False

    async def start(self) -> None:
        """Put right what the last server left half done, and write every manifest that differs."""
        await self.store.settle()
        entries = await self.store.handoffs(None, MAX_ROWS)
        await asyncio.to_thread(self.documents.set_aside, {entry.handoff.id for entry in entries})
        await self.expire()
        for entry in await self.store.waiting():
            with logged("handoff not checked", handoff=entry.handoff.id):
                await self._fit(entry.handoff)
        self.stale.update(await self.store.channels())
        await self._write_manifests()

    async def sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_INTERVAL_S)
            with logged("handoffs not expired"):
                await self.expire()

    # --- a session's own --------------------------------------------------------------------------------------------

    async def request(
        self,
        session: str,
        path: str,
        reason: str = "",
        kind: HandoffType = HandoffType.AGENT,
        *,
        confined: bool = False,
        switch: Switch | None = None,
    ) -> Handoff:
        """Schedule the session's rotation; an agent's is `confined` to the files that it may hand off."""
        kept = partial(self.documents.schedule, path=Path(path), reason=reason, kind=kind, confined=confined)
        return await self._requested(session, kept, switch, by_user=not confined)

    async def request_text(
        self, session: str, text: str, switch: Switch | None = None, *, by_user: bool = False
    ) -> Handoff:
        """Schedule the session's rotation with a document that is in no file of the agent's."""
        kept = partial(self.documents.keep, text=text, kind=HandoffType.AGENT)
        return await self._requested(session, kept, switch, by_user=by_user)

    async def _requested(
        self, session: str, kept: partial[Handoff], switch: Switch | None, *, by_user: bool
    ) -> Handoff:
        actor = self.sessions.actor(session)
        at, provider = self.clock.now(), self.providers[actor.session.provider]
        refused = may_hand_off(actor.session) or (None if by_user else too_soon(actor.session, at))
        if refused is not None:
            raise SmError(refused)
        handoff = await asyncio.to_thread(kept, actor.session, at=at)
        progress = by_user or await asyncio.to_thread(shows_progress, provider, actor.session)
        await actor.ask(ev.HandoffRequested(at=at, handoff=handoff, progress=progress, switch=switch))
        return handoff

    async def keep(self, session: str, text: str, kind: HandoffType) -> Handoff:
        """Keep a document that was made for the session without its agent, as before a compaction."""
        actor, at = self.sessions.actor(session), self.clock.now()
        handoff = await asyncio.to_thread(self.documents.keep, actor.session, text, kind, at)
        await actor.ask(ev.DocumentKept(at=at, handoff=handoff))
        return handoff

    async def cancel(self, session: str) -> None:
        """Cancel the handoff that the session is about to continue from."""
        actor = self.sessions.actor(session)
        current = actor.session.rotation
        if current is None or current.handoff is None or current.phase in OVER:
            raise error("no_handoff", "No handoff is pending", "sm handoff --status")
        if current.phase not in CANCELLABLE:
            raise error(
                "too_late",
                f"The handoff can no longer be cancelled ({current.phase.value})",
                "sm handoff --status",
            )
        await actor.ask(ev.HandoffCancelled(at=self.clock.now()))

    async def retry(self, session: str, *, by_user: bool) -> None:
        """Try the session's failed or waiting rotation again; one that waits for the user only where they ask."""
        actor = self.sessions.actor(session)
        current = actor.session.rotation
        if actor.session.ended:
            raise error("ended", f"Session {session} has ended", "sm restore brings it back with its document")
        if current is None or current.phase not in {Phase.PENDING, Phase.FAILED}:
            raise error("no_handoff", "No failed handoff to retry", "sm handoff --status")
        refused = None if by_user else may_not_resume(actor.session)
        if refused is not None:
            raise SmError(refused)
        await actor.ask(ev.HandoffRetried(at=self.clock.now()))

    # --- manifests --------------------------------------------------------------------------------------------------

    def note(self, channel: str) -> None:
        """A row of the channel has changed: its manifest follows, behind."""
        self.stale.add(channel)
        if not self.writing:
            self.writing = True
            self.spawn(self._write_manifests())

    async def _write_manifests(self) -> None:
        try:
            while self.stale:
                channel = self.stale.pop()
                with logged("manifest not written", channel=channel):
                    entries = await self.store.handoffs(channel)
                    await asyncio.to_thread(self.documents.write_manifest, channel, entries)
        finally:
            self.writing = False

    # --- what waits -------------------------------------------------------------------------------------------------

    async def channel(self, directory: str) -> str:
        return await asyncio.to_thread(self.documents.channel, directory)

    async def named(self, name: str) -> str:
        """The channel of that name: the whole of it, its directory's, or the last part of its path if it is unique."""
        known = await self.store.channels()
        exact = [channel for channel in known if name in {channel, channel_directory(channel)}]
        last = [channel for channel in known if channel.rpartition("/")[2] == name]
        found = exact or last
        if len(found) > 1:
            raise error("handoff_unknown", f"Several channels are named {name}", f"one of: {', '.join(found)}")
        return found[0] if found else name

    async def waiting_anywhere(self) -> list[StoredHandoff]:
        await self.expire()
        return await self.store.waiting()

    async def waiting(self, channel: str) -> list[StoredHandoff]:
        """What a session that begins in the channel may take up, the newest first."""
        return [entry for entry in await self.waiting_anywhere() if entry.handoff.channel == channel]

    async def waiting_here(self, directory: str) -> list[StoredHandoff]:
        """Of those the ones that were written in the same work tree: another's is for whoever names its id."""
        return await self._here(await self.waiting(await self.channel(directory)), directory)

    async def _here(self, entries: Sequence[StoredHandoff], directory: str) -> list[StoredHandoff]:
        return [entry for entry in entries if await self.is_here(entry, directory)]

    async def is_here(self, entry: StoredHandoff, directory: str) -> bool:
        return await asyncio.to_thread(self.documents.is_same_place, entry.handoff.directory, directory)

    async def expire(self) -> None:
        now = self.clock.now()
        old = [entry for entry in await self.store.waiting() if self._expired(entry, now)]
        await self._close(old, HandoffState.EXPIRED, "not picked up in time")

    def _expired(self, entry: StoredHandoff, now: float) -> bool:
        hours = self.policies.policy(entry.handoff.directory).expiry_hours
        end = expires(entry.counted, hours)
        return end is not None and now >= end

    async def _close(self, entries: Sequence[StoredHandoff], state: HandoffState, reason: str) -> int:
        if not entries:
            return 0
        closed = await self.store.close([entry.handoff.id for entry in entries], state, reason)
        for entry in entries:
            self.note(entry.handoff.channel)
        return closed

    async def offer(self, directory: str) -> Offer | None:
        """Return what is open for a new session in the directory."""
        channel = await self.channel(directory)
        waiting = await self.waiting(channel)
        here = {entry.handoff.id for entry in await self._here(waiting, directory)}
        handoff = offered(waiting, here)
        known = await self.store.handoffs(channel)
        foreign = await asyncio.to_thread(self.documents.foreign, directory, known)
        if handoff is not None:
            return Offer(handoff, foreign, here=await asyncio.to_thread(self.documents.location, directory))
        return Offer(None, foreign, await self._prompt(directory, known)) or None

    async def _prompt(self, directory: str, known: Sequence[StoredHandoff]) -> ContinuationPrompt | None:
        since = prompts_since(self.clock.now(), self.policies.policy(directory).prompt_hours)
        return await asyncio.to_thread(self.documents.prompt, directory, known, since)

    # --- taking one up ------------------------------------------------------------------------------------------------

    async def wanted(self, session: Session, choice: str, conversation: str) -> Handoff:
        """The handoff a new session is to begin from: by id, from a file, or (empty) what waits in its work tree."""
        if choice.startswith("/"):
            at, path = self.clock.now(), Path(choice)
            return await asyncio.to_thread(self.documents.import_file, session, path, conversation, at)
        if choice:
            entry = await self.entry(choice)
            return await self._fit(entry.handoff)
        for entry in await self.waiting_here(session.directory):
            return await self._fit(entry.handoff)
        raise await self._none_waits(await self.channel(session.directory))

    async def _none_waits(self, channel: str) -> SmError:
        """Why nothing is left: who has it, where it was there."""
        for entry in await self.waiting(channel):
            where = f"No open handoff in this directory; {entry.handoff.id} is of {entry.handoff.location.said}"
            return error("no_handoff", where, f"sm resume {entry.handoff.id}")
        known = await self.store.handoffs(channel)
        held = next((entry for entry in known if entry.state is HandoffState.ACTIVE), None)
        if held is not None:
            message = f"Handoff {held.handoff.id} is being picked up by session {self.sessions.who(held.holder)}"
            return error("handoff_taken", message, f"sm attach {self.sessions.as_argument(held.holder)}")
        last = known[0] if known and known[0].state is HandoffState.CONSUMED else None
        hint = "sm handoffs lists those of all projects"
        if last is not None:
            hint = f"the last one, {last.handoff.id}, was picked up by session {self.sessions.who(last.holder)}"
        return error("no_handoff", "No open handoff in this project", hint)

    async def entry(self, handoff: str) -> StoredHandoff:
        found = await self.store.handoff(handoff)
        if found is None:
            raise error("handoff_unknown", f"No handoff {handoff}", "sm handoffs shows them")
        return found

    async def _fit(self, handoff: Handoff) -> Handoff:
        """The handoff, if its document is there and its own; otherwise it is ended, and the log says why."""
        try:
            return await asyncio.to_thread(self.documents.checked, handoff)
        except SmError as problem:
            log.warning("handoff cannot be used", handoff=handoff.id, code=problem.refused.code)
            if await self.store.close([handoff.id], HandoffState.FAILED, problem.refused.message):
                self.note(handoff.channel)
            raise

    async def clear(self, handoff: str) -> None:
        """Dismiss it: taken back from the session that is to begin from it, or not offered any more."""
        entry = await self.entry(handoff)
        holder = self.sessions.actors.get(entry.holder)
        current = holder.session.rotation if holder is not None else None
        document = current.handoff if current is not None and current.active else None
        if holder is not None and document is not None and document.id == handoff:
            await self.cancel(holder.session.id)
            return
        if not await self._close([entry], HandoffState.CLEARED, "cleared"):
            raise self._not_waiting(await self.entry(handoff))

    async def clear_channel(self, channel: str, directory: str | None = None) -> list[str]:
        """Dismiss all of a channel, or of a directory in it; return their ids."""
        entries = await self.waiting(channel) if directory is None else await self.waiting_here(directory)
        await self._close(entries, HandoffState.CLEARED, "cleared")
        return [entry.handoff.id for entry in entries]

    def _not_waiting(self, entry: StoredHandoff) -> SmError:
        if entry.holder and entry.state in {HandoffState.PENDING, HandoffState.ACTIVE, HandoffState.FAILED}:
            message = f"Handoff {entry.handoff.id} is held by session {self.sessions.who(entry.holder)}"
            return error(
                "handoff_taken", message, f"sm handoff --cancel --session {self.sessions.as_argument(entry.holder)}"
            )
        return error("handoff_closed", f"Handoff {entry.handoff.id} is {entry.state.value}", "sm handoffs --json")
