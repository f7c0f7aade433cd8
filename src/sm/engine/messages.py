"""Messages of all sessions: takes what is to be sent, stores and queues it, and reads what waits behind a window.

`core/rules/send_limits.py` decides what may be sent, `core/model/framing.py` how an agent reads it, and the session
itself when it is delivered.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import structlog

from sm.core import effects as ef
from sm.core import events as ev
from sm.core.errors import SmError
from sm.core.model.framing import THE_USER, cleaned, composed, inline_limit, named
from sm.core.model.message import Message, Mode, SendRequest, StoredMessage, digest
from sm.core.model.message_queue import lane_of
from sm.core.model.reminder import Notice
from sm.core.model.session import Session
from sm.core.ports.clock import Clock
from sm.core.ports.documents import Documents
from sm.core.ports.policies import Policies
from sm.core.ports.provider import TranscriptEvidence
from sm.core.ports.store import Store
from sm.core.rules.send_limits import MINUTE_S, looping, refusal, too_fast, unfit_body
from sm.engine.actor import Actor
from sm.engine.errors import logged
from sm.engine.reminders import Reminders
from sm.engine.sessions import Sessions
from sm.engine.tasks import Spawn

log = structlog.get_logger()
RETRY_INTERVAL_S = 1.0
"""Seconds after a notice that could not be queued: a full disk must not keep the server busy."""
SWEEP_INTERVAL_S = 10.0
"""Seconds between looks for messages whose time is over, of sessions that have ended too."""


@dataclass(slots=True)
class Messages:
    store: Store
    documents: Documents
    clock: Clock
    policies: Policies
    providers: Mapping[str, TranscriptEvidence]
    sessions: Sessions
    reminders: Reminders
    spawn: Spawn
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    sent: dict[str, deque[float]] = field(default_factory=dict)
    """When each session has sent, within the last minute."""
    exchanged: dict[tuple[str, str], int] = field(default_factory=dict)
    """Messages from one agent to another since the user last spoke to either."""

    # --- sending ------------------------------------------------------------------------------------------------

    async def send(self, target: str, sender: str, request: SendRequest) -> str:
        """Queue a message of a session, or of the user; return its id. SmError if it is refused."""
        actor = self.sessions.actor(target)
        stored, message = await self.accept(actor, sender, request)
        await self.put(actor, stored, message)
        return stored.id

    async def accept(self, target: Actor, sender: str, request: SendRequest) -> tuple[StoredMessage, Message]:
        """Do everything that may refuse a message or fail, before anything is changed for it. SmError if refused.

        The result lacks only its number, and is not stored.
        """
        request = replace(request, body=cleaned(request.body))
        by = self.sessions.actor(sender).session if sender else None
        self._check(request, by, target.session)
        stored = StoredMessage(
            id=secrets.token_hex(6),
            target=target.session.id,
            body=request.body,
            sender=sender,
            frame=named(by.name, by.id) if by is not None else THE_USER,
            mode=request.mode,
            expires=None if request.expires is None else self.clock.now() + request.expires,
            command=request.command,
            notify_on_stop=request.notify_on_stop,
            wait=request.wait,
        )
        message = await self._composed(target, stored)
        await self.reminders.promise(stored)
        return stored, message

    async def put(self, target: Actor, stored: StoredMessage, message: Message, *, cleared: bool = False) -> None:
        """Queue what was accepted; `cleared` for a context that is cleared first, in the same event."""
        # Numbered only now: nothing may come between this and the actor's inbox.
        number = next(self.numbers)
        stored, message = replace(stored, number=number), replace(message, number=number)
        event = ev.ClearRequested if cleared else ev.MessageQueued
        await target.ask(event(at=self.clock.now(), message=message, stored=stored))
        log.info("message queued", id=stored.id, target=stored.target, sender=stored.sender, size=len(stored.body))
        if stored.frame:
            self._count(stored.sender, stored.target)
            await self.reminders.reported(stored.sender, stored.target)

    async def cancel(self, message: str, by: str = "") -> None:
        """Take back a message if it still waits."""
        stored = await self.store.stored_message(message)
        if stored is not None:
            at = self.clock.now()
            event = ev.MessageCancelled(at=at, id=message, mode=stored.mode, number=stored.number, by=by)
            await self.sessions.actor(stored.target).ask(event)

    def check_first(self, sender: str, body: str) -> None:
        """SmError if a session that is still to be started could not get it from `sender`."""
        limits = self.policies.limits()
        refused = unfit_body(cleaned(body), limits)
        if refused is None and sender:
            refused = too_fast(self._recent(sender), self.clock.now(), limits)
        if refused is not None:
            raise SmError(refused)

    async def post_notices(self) -> None:
        """Make messages of what reminders have said, in order."""
        while True:
            notice = await self.reminders.said.get()
            while not await self._posted(notice):
                await asyncio.sleep(RETRY_INTERVAL_S)

    async def _posted(self, notice: Notice) -> bool:
        with logged("notice not queued", message=notice.id) as attempt:
            await self.post(notice)
            await self.store.forget_notice(notice.id)
        return attempt.problem is None

    async def post(self, notice: Notice) -> None:
        """Queue words of `sm` itself that are on disk, unless an earlier server has queued them."""
        if notice.session in self.sessions.actors and await self.store.stored_message(notice.id) is None:
            await self._queue(StoredMessage(notice.id, notice.session, notice.text, mode=Mode.IMPORTANT))

    def tell(self, target: str, text: str, *, sender: str = "", mode: Mode = Mode.SEQUENTIAL) -> None:
        """Queue words of `sm` itself, as they are; they begin with `[sm`."""
        if target in self.sessions.actors:
            self.spawn(self._queue(StoredMessage(secrets.token_hex(6), target, text, sender, mode=mode)))

    def _check(self, request: SendRequest, sender: Session | None, target: Session) -> None:
        limits = self.policies.limits()
        refused = refusal(request, sender, target, limits)
        if refused is None and sender is not None:
            names = (sender.name, target.name)
            there, back = self._exchanged(sender.id, target.id)
            refused = too_fast(self._recent(sender.id), self.clock.now(), limits) or looping(there, back, names, limits)
        if refused is not None:
            raise SmError(refused)

    async def _queue(self, stored: StoredMessage) -> None:
        target = self.sessions.actor(stored.target)
        await self.put(target, stored, await self._composed(target, stored))

    async def _composed(self, target: Actor, stored: StoredMessage) -> Message:
        def keep(body: str) -> str:
            return self.documents.message_file(stored.target, stored.id, body)

        if stored.command or len(stored.body) < inline_limit(target.traits):
            return composed(stored, keep, target.traits)
        return await asyncio.to_thread(composed, stored, keep, target.traits)  # it may have to be written to a file

    # --- who talks with whom ------------------------------------------------------------------------------------

    def _recent(self, sender: str) -> deque[float]:
        sent = self.sent.setdefault(sender, deque())
        while sent and self.clock.now() - sent[0] >= MINUTE_S:
            sent.popleft()
        return sent

    def _count(self, sender: str, target: str) -> None:
        if not sender:
            self.user_spoke(target)
            return
        self._recent(sender).append(self.clock.now())
        self.exchanged[sender, target] = self.exchanged.get((sender, target), 0) + 1
        self.spawn(self.store.count_exchange(sender, target))

    def _exchanged(self, left: str, right: str) -> tuple[int, int]:
        return self.exchanged.get((left, right), 0), self.exchanged.get((right, left), 0)

    def user_spoke(self, session: str) -> None:
        pairs = [pair for pair in self.exchanged if session in pair]
        for pair in pairs:
            del self.exchanged[pair]
        if pairs:
            self.spawn(self.store.forget_exchanges(session))

    def paused(self, session: str) -> list[str]:
        """The sessions with which this one has exchanged too much."""
        limits = self.policies.limits()
        others = {other for pair in self.exchanged if session in pair for other in pair if other != session}
        return sorted(other for other in others if looping(*self._exchanged(session, other), ("", ""), limits))

    def heard(self, before: Session, event: ev.Event) -> None:
        """Take note of a prompt: one that neither `sm` nor the client itself has made is the user's."""
        if not isinstance(event, ev.PromptSubmitted) or not self.exchanged:
            return
        queue, traits = before.outbox, self.sessions.actor(before.id).traits
        ours = queue.typed and bool(queue.queue) and digest(traits.as_typed(event.text)) == queue.first.digest
        woken = before.rotation is not None and before.rotation.active
        if not (ours or woken or traits.made_by_client(event.text)):
            self.user_spoke(before.id)

    # --- what waits ---------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Continue the numbers, and queue what the last server stored and did not queue."""
        self.numbers = itertools.count(await self.store.last_number() + 1)
        self.exchanged = await self.store.exchanges()
        for target, mode, number, identity in await self.store.queued_numbers():
            actor = self.sessions.actors.get(target)
            if actor is None or number <= lane_of(actor.session.outbox, mode).known:
                continue
            stored = await self.store.stored_message(identity)
            if stored is not None:
                actor.put(ev.MessageQueued(at=self.clock.now(), message=await self._composed(actor, stored)))
        self.spawn(self._sweep())

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_INTERVAL_S)
            await self.store.expire_messages()

    async def fetch(self, actor: Actor, effect: ef.FetchMessages) -> None:
        rows, left = await self.store.next_messages(actor.session.id, effect.refill)
        messages = tuple([await self._composed(actor, row) for row in rows])
        actor.put(ev.MessagesFetched(at=self.clock.now(), refill=effect.refill, messages=messages, left=left))

    async def find(self, actor: Actor, effect: ef.FindMessages) -> None:
        """Search for what is in flight, in each transcript it may be in."""
        provider = self.providers[actor.session.provider]
        sought_for = [(flight, flight.mark(actor.traits)) for flight in effect.handed]
        found = {flight.message.id for flight, mark in sought_for if mark is None and not flight.fatal}
        unreadable: list[str] = []
        kept: list[str] = []
        for transcript in {flight.transcript for flight, mark in sought_for if mark is not None}:
            here = {flight: mark for flight, mark in sought_for if mark is not None and flight.transcript == transcript}
            marks = {mark: flight.position for flight, mark in here.items()}
            shown = await asyncio.to_thread(provider.shown, transcript, marks) if transcript else None
            if shown is None:
                unreadable += [flight.message.id for flight in here]
                continue
            found.update(flight.message.id for flight, mark in here.items() if mark in shown)
            missing = {mark: position for mark, position in marks.items() if mark not in shown}
            later = await asyncio.to_thread(provider.kept, transcript or "", missing) if missing else frozenset()
            kept += [flight.message.id for flight, mark in here.items() if mark in later]
        asked = tuple(flight.message.id for flight in effect.handed)
        sought = ev.MessagesSought(
            at=self.clock.now(), asked=asked, found=tuple(sorted(found)), unreadable=tuple(unreadable), kept=tuple(kept)
        )
        actor.put(sought)
