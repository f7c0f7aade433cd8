"""The post office: takes what is to be sent, keeps it and queues it, and fetches what waits behind a window.

What may be sent is decided in `core.post`, how it is put in `core.framing`, when it is delivered by the session itself.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field, replace

import structlog

from sm.core import effects as ef
from sm.core import events as ev
from sm.core.errors import SmError
from sm.core.model.framing import THE_USER, Envelope, cleaned, command, composed, named
from sm.core.model.message import Letter, Message, Mode, as_typed, digest
from sm.core.model.message_queue import lane_of
from sm.core.model.reminder import Notice
from sm.core.model.session import Session
from sm.core.ports.clock import Clock
from sm.core.ports.documents import Documents
from sm.core.ports.policies import Policies
from sm.core.ports.provider import Provider
from sm.core.ports.store import KeptMessage, Store
from sm.core.rules.send_limits import MINUTE, Wish, looping, refusal, too_fast, unfit_body
from sm.engine.actor import Actor

log = structlog.get_logger()
SWEEP = 10.0
"""Seconds between looks for messages whose time is over, of sessions that have ended too."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a message is to be sent."""

    mode: Mode = Mode.SEQUENTIAL
    expires: float | None = None
    """Seconds from now."""
    notify_on_stop: bool = False
    wait: float | None = None
    command: bool = False


@dataclass(frozen=True, slots=True)
class Accepted:
    """A message that was not refused: only its number is missing, and that it is written."""

    message: Message
    letter: Letter


@dataclass(slots=True)
class Messages:
    store: Store
    documents: Documents
    clock: Clock
    policies: Policies
    providers: dict[str, Provider]
    actors: dict[str, Actor]
    ask: Callable[[Actor, ev.Event], Awaitable[None]]
    """Returns once the event is decided and on disk."""
    spawn: Callable[[Coroutine[object, object, None]], None]
    promise: Callable[[str, str, str, Options], Awaitable[None]]
    """Told of a message before it is queued: from whom, to whom, its id, and what the sender wants to be told of it."""
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    sent: dict[str, deque[float]] = field(default_factory=dict)
    """When each session has sent, within the last minute."""
    exchanged: dict[tuple[str, str], int] = field(default_factory=dict)
    """Messages from one agent to another since a person last spoke to either."""

    # --- sending ------------------------------------------------------------------------------------------------

    async def send(self, target: Actor, sender: str, body: str, options: Options | None = None) -> str:
        """Queue a message of a session, or of the person; its id. SmError if it is refused."""
        accepted = await self.accept(target, sender, body, options or Options())
        await self.put(target, sender, accepted)
        return accepted.message.id

    async def accept(self, target: Actor, sender: str, body: str, options: Options) -> Accepted:
        """Everything that may refuse a message or fail, before anything is changed for it. SmError if it is refused."""
        body = cleaned(body)
        by = self.actors[sender].session if sender else None
        self._check(Wish(body, by, options.mode, options.command), target.session)
        frame = named(by.name, by.id) if by is not None else THE_USER
        letter = Letter(body, frame, options.notify_on_stop, options.wait)
        message = await self._made(target, sender, secrets.token_hex(6), letter, options)
        await self.promise(sender, target.session.id, message.id, options)
        return Accepted(message, letter)

    async def put(self, target: Actor, sender: str, accepted: Accepted, *, cleared: bool = False) -> None:
        """Queue what was accepted; `cleared` for a context that is cleared first, in the same event."""
        # Numbered only now: between here and the actor's inbox nothing may come in between.
        message, letter = replace(accepted.message, number=next(self.numbers)), accepted.letter
        event = ev.ClearRequested if cleared else ev.MessageQueued
        await self.ask(target, event(at=self.clock.now(), message=message, letter=letter))
        log.info("message queued", id=message.id, target=target.session.id, sender=sender, size=len(letter.body))
        if letter.frame:
            self._count(sender, target.session.id)

    def check_first(self, sender: str, body: str) -> None:
        """SmError if a session that is still to be started could not get it from `sender`."""
        limits = self.policies.limits()
        refused = unfit_body(cleaned(body), limits)
        if refused is None and sender:
            refused = too_fast(self._recent(sender), self.clock.now(), limits)
        if refused is not None:
            raise SmError(refused)

    async def post(self, notice: Notice) -> None:
        """Make a message of words of `sm` itself that are on disk, unless an earlier life of the server has."""
        if await self.store.kept_message(notice.id) is None:
            options = Options(mode=Mode.IMPORTANT)
            await self._queue(self.actors[notice.session], "", notice.id, Letter(notice.text), options)

    def tell(self, target: str, text: str, *, sender: str = "", mode: Mode = Mode.SEQUENTIAL) -> None:
        """Queue words of `sm` itself, as they are; they begin with `[sm`."""
        if target in self.actors:
            self.spawn(self._told(self.actors[target], sender, text, mode))

    async def _told(self, target: Actor, sender: str, text: str, mode: Mode) -> None:
        await self._queue(target, sender, secrets.token_hex(6), Letter(text), Options(mode=mode))

    def _check(self, wish: Wish, target: Session) -> None:
        limits = self.policies.limits()
        refused = refusal(wish, target, limits)
        if refused is None and wish.sender is not None:
            sender = wish.sender
            names = (sender.name, target.name)
            there, back = self._exchanged(sender.id, target.id)
            refused = too_fast(self._recent(sender.id), self.clock.now(), limits) or looping(there, back, names, limits)
        if refused is not None:
            raise SmError(refused)

    async def _queue(self, target: Actor, sender: str, identity: str, letter: Letter, options: Options) -> None:
        message = await self._made(target, sender, identity, letter, options)
        await self.put(target, sender, Accepted(message, letter))

    async def _made(self, target: Actor, sender: str, identity: str, letter: Letter, options: Options) -> Message:
        expires = None if options.expires is None else self.clock.now() + options.expires
        kept = KeptMessage(
            id=identity,
            target=target.session.id,
            sender=sender,
            frame=letter.frame,
            body=letter.body,
            number=0,
            mode=options.mode,
            expires=expires,
            command=options.command,
        )
        return await self._composed(kept)

    async def _composed(self, kept: KeptMessage) -> Message:
        envelope = Envelope(kept.id, kept.sender, kept.frame)

        def keep(body: str) -> str:
            return self.documents.message_file(kept.target, kept.id, body)

        if kept.command:
            message = command(envelope, kept.body)
        elif len(kept.body) < SHORT:
            message = composed(envelope, kept.body, keep)
        else:
            message = await asyncio.to_thread(composed, envelope, kept.body, keep)
        return replace(message, number=kept.number, mode=kept.mode, expires=kept.expires)

    # --- who talks with whom ------------------------------------------------------------------------------------

    def _recent(self, sender: str) -> deque[float]:
        sent = self.sent.setdefault(sender, deque())
        while sent and self.clock.now() - sent[0] >= MINUTE:
            sent.popleft()
        return sent

    def _count(self, sender: str, target: str) -> None:
        if not sender:
            self.person_spoke(target)
            return
        self._recent(sender).append(self.clock.now())
        self.exchanged[sender, target] = self.exchanged.get((sender, target), 0) + 1
        self.spawn(self.store.count_exchange(sender, target))

    def _exchanged(self, one: str, other: str) -> tuple[int, int]:
        return self.exchanged.get((one, other), 0), self.exchanged.get((other, one), 0)

    def person_spoke(self, session: str) -> None:
        pairs = [pair for pair in self.exchanged if session in pair]
        for pair in pairs:
            del self.exchanged[pair]
        if pairs:
            self.spawn(self.store.forget_exchanges(session))

    def paused(self, session: str) -> list[str]:
        """The sessions with which this one has exchanged too much."""
        limits = self.policies.limits()
        others = {one for pair in self.exchanged if session in pair for one in pair if one != session}
        return sorted(one for one in others if looping(*self._exchanged(session, one), ("", ""), limits))

    def heard(self, before: Session, event: ev.Event) -> None:
        """A prompt that neither we nor the client itself have made is a person's."""
        if not isinstance(event, ev.PromptSubmitted) or not self.exchanged:
            return
        outbox = before.outbox
        ours = outbox.typed and bool(outbox.queue) and digest(as_typed(event.text)) == outbox.queue[0].digest
        woken = before.rotation is not None and before.rotation.active
        if not (ours or woken or event.text.lstrip().startswith("<")):
            self.person_spoke(before.id)

    # --- what waits ---------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Go on numbering, and queue what a server's last life kept and did not queue."""
        self.numbers = itertools.count(await self.store.last_number() + 1)
        self.exchanged = await self.store.exchanges()
        for target, mode, number, identity in await self.store.queued_numbers():
            actor = self.actors.get(target)
            if actor is None or number <= lane_of(actor.session.outbox, mode).known:
                continue
            kept = await self.store.kept_message(identity)
            if kept is not None:
                actor.put(ev.MessageQueued(at=self.clock.now(), message=await self._composed(kept)))
        self.spawn(self._sweep())

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP)
            await self.store.expire_messages()

    async def fetch(self, actor: Actor, effect: ef.FetchMessages) -> None:
        rows, left = await self.store.next_messages(actor.session.id, effect.refill)
        messages = tuple([await self._composed(row) for row in rows])
        actor.put(ev.MessagesFetched(at=self.clock.now(), refill=effect.refill, messages=messages, left=left))

    async def find(self, actor: Actor, effect: ef.FindMessages) -> None:
        """Look for what was handed over, in each transcript it may be in."""
        provider = self.providers[actor.session.provider]
        found: set[str] = set()
        unreadable: list[str] = []
        for transcript in {one.transcript for one in effect.handed}:
            here = [one for one in effect.handed if one.transcript == transcript]
            marks = {one.mark: one.position for one in here}
            shown = await asyncio.to_thread(provider.shown, transcript, marks) if transcript else None
            if shown is None:
                unreadable += [one.message.id for one in here]
            else:
                found.update(one.message.id for one in here if one.mark in shown)
        asked = tuple(one.message.id for one in effect.handed)
        sought = ev.MessagesSought(
            at=self.clock.now(), asked=asked, found=tuple(sorted(found)), unreadable=tuple(unreadable)
        )
        actor.put(sought)


SHORT = 800
"""Characters up to which no file is written."""
