"""What clients ask their users, and the answers of users who are elsewhere.

A client's hook waits here while its dialog is open in its terminal. The answer is a future in memory, with what the
tool was given as the client has it; the database has that without secrets. Without the hook nothing can be answered
here: after a restart of the server a client that asks again, as its plugin does, opens its ask again.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import structlog

from sm.core import events as ev
from sm.core.errors import SmError
from sm.core.model.ask import Ask, AskAnswer, AskReply, AskRequest, AskState, Decision, StoredAsk
from sm.core.model.report import one_line
from sm.core.model.session import Session
from sm.core.ports.clock import Clock
from sm.core.ports.documents import Documents
from sm.core.ports.policies import Policies
from sm.core.ports.provider import Provider
from sm.core.ports.store import Store
from sm.core.rules.asks import over, recorded_answer, resolved, too_long, unfit
from sm.core.rules.session.asks import IN_TERMINAL, STANDING, is_closed
from sm.engine.actor import Actor
from sm.engine.answer_arrival import AnswerArrival
from sm.engine.client_monitor import client_state
from sm.engine.errors import logged
from sm.engine.sessions import Sessions
from sm.engine.tasks import Spawn
from sm.engine.unseen_asks import UnseenAsks

log = structlog.get_logger()
MAX_KEPT_CHARACTERS = 256 << 10
"""Of what a tool was given; of a larger one the record says only that it was asked."""
MAX_TOOL_CHARACTERS = 200
"""Of its name, which any server of tools may choose."""
HOOK_GONE_S = 0.5
"""After a hook has let go the client's state file shows whether its dialog is gone as well."""
PLUGIN_GONE_S = 5.0
"""Within it a plugin asks again."""
KEPT_ANSWER_S = 60.0
"""An answer that a plugin has had is given word for word where it asks again: the record has it without secrets."""
MAX_OPEN = 50
"""Of one session; what it asks beyond that is answered in its terminal alone."""
LET_GO = "the client no longer waits for sm"
NOT_KEPT = "its answer was lost, and is not on record as it held a secret; answer it again"


@dataclass(slots=True, eq=False)
class HeldAsk:
    id: str
    request: AskRequest
    """As the client gave it, secrets included: what the user is shown before they answer."""
    answer: asyncio.Future[AskAnswer | None]
    """None once there is nothing to answer any more."""
    session: str
    chosen: AskAnswer | None = None
    """It is being written; any other answer is late."""
    waiting: int = 0
    """Requests of the client that wait for it now."""


@dataclass(frozen=True, slots=True)
class Outcome:
    answer: AskAnswer | None = None
    over: bool = False
    """Nothing is left to wait for."""


@dataclass(frozen=True, slots=True)
class Past:
    """Of an ask that comes under a number that was asked before."""

    outcome: Outcome | None = None
    """How it has ended; None for one that may be answered now."""
    lost: str = ""
    """Why it is open again though it was answered."""


@dataclass(slots=True)
class Asks:
    sessions: Sessions
    store: Store
    documents: Documents
    clock: Clock
    policies: Policies
    providers: Mapping[str, Provider]
    spawn: Spawn
    arrival: AnswerArrival
    unseen: UnseenAsks
    held: dict[str, HeldAsk] = field(default_factory=dict)
    """By id."""
    given: dict[str, AskAnswer] = field(default_factory=dict)
    """To plugins a short time ago, by the ask's id."""
    released: asyncio.Event = field(default_factory=asyncio.Event)

    async def hold_hook(self, actor: Actor, request: AskRequest) -> AskAnswer | None:
        """Wait for the answer to what a hook asks; cancelled when the client lets go of the hook."""
        return (await self._hold(actor, secrets.token_hex(4), request, None)).answer

    async def hold_exchange(self, actor: Actor, number: str, request: AskRequest, seconds: float) -> Outcome:
        """Wait so long for the answer to what the plugin in a client asks; it asks again under the same number."""
        past = Past() if number in self.held else await self._past(actor, number, request)
        if past.outcome is not None:
            return past.outcome
        outcome = await self._hold(actor, number, request, seconds, past.lost)
        if outcome.answer is not None and number not in self.given:
            self.given[number] = outcome.answer
            asyncio.get_running_loop().call_later(KEPT_ANSWER_S, self.given.pop, number, None)
        return outcome

    async def _past(self, actor: Actor, identity: str, request: AskRequest) -> Past:
        """Return how an ask has ended: whoever asks again has lost the answer, which counts."""
        try:
            stored = await self.store.ask(identity)
        except SmError:  # it is new
            return Past()
        if stored.ask.state in STANDING:
            return Past()
        details = self.providers[actor.session.provider].ask_details(request)
        answer = self.given.get(identity) or recorded_answer(stored, details)
        if answer is None and stored.ask.state is AskState.ANSWERED:
            return Past(lost=NOT_KEPT)
        return Past(Outcome(answer, over=True))

    async def _hold(
        self, actor: Actor, identity: str, request: AskRequest, seconds: float | None, reason: str = ""
    ) -> Outcome:
        held, is_new = self.held.get(identity), False
        if held is None:
            if self._has_too_many(actor.session, identity):
                return Outcome(over=True)
            answer = asyncio.get_running_loop().create_future()
            held = self.held[identity] = HeldAsk(identity, request, answer, actor.session.id)
            is_new = True
        held.waiting += 1
        try:
            if is_new:
                await self._open(actor, held, reason)
            await self._wait(held, seconds)
        finally:
            held.waiting -= 1
            if not self.released.is_set():
                self.spawn(self._let_go(actor, held, HOOK_GONE_S if seconds is None else PLUGIN_GONE_S))
        if not held.answer.done():
            return Outcome()
        self.held.pop(identity, None)
        return Outcome(held.answer.result(), over=held.answer.result() is None)

    def _has_too_many(self, session: Session, identity: str) -> bool:
        known = {ask.id for ask in session.asks}
        known |= {held.id for held in self.held.values() if held.session == session.id}
        return identity not in known and len(known) >= MAX_OPEN

    async def _wait(self, held: HeldAsk, seconds: float | None) -> None:
        async with asyncio.TaskGroup() as group:
            stopped = group.create_task(self.released.wait())
            either: tuple[asyncio.Future[Any], ...] = (held.answer, stopped)
            await asyncio.wait(either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            stopped.cancel()

    async def _open(self, actor: Actor, held: HeldAsk, reason: str) -> None:
        request = held.request
        with logged("ask not opened", session=actor.session.id):
            kept = await asyncio.to_thread(self._without_secrets, request)
            opened = ev.AskOpened(
                at=self.clock.now(),
                ask=held.id,
                kind=kept.kind,
                tool=kept.tool,
                agent=kept.agent,
                request=kept,
                reason=reason,
            )
            await actor.ask(opened)
        if not held.answer.done() and not is_open(actor.session, held.id):
            held.answer.set_result(None)
        if (request.agent or request.hidden) and not request.stays:
            self.spawn(self.unseen.give_way(actor, held.id))

    def _without_secrets(self, request: AskRequest) -> AskRequest:
        tool = one_line(self.documents.without_secrets(request.tool), MAX_TOOL_CHARACTERS)
        if len(request.input) > MAX_KEPT_CHARACTERS:
            return replace(request, tool=tool, input="{}")
        return replace(
            request,
            tool=tool,
            input=self.documents.json_without_secrets(request.input),
            suggestions=self.documents.json_without_secrets(request.suggestions),
        )

    async def _let_go(self, actor: Actor, held: HeldAsk, patience: float) -> None:
        """The client waits no longer, unless it asks again within `patience`: say whether its dialog is still open."""
        await asyncio.sleep(patience)
        if held.waiting or self.held.get(held.id, held) is not held:
            return
        self.held.pop(held.id, None)
        if held.chosen is not None:
            await self.arrival.check(actor, held.id)
        if held.chosen is not None or held.answer.done():
            return
        held.answer.set_result(None)
        found = client_state(self.providers[actor.session.provider], actor.session)
        is_standing = found is not None and found.activity is ev.Activity.WAITING
        kind, reason = (ev.AskExpired, LET_GO) if is_standing else (ev.AskWithdrawn, IN_TERMINAL)
        actor.put(kind(at=self.clock.now(), ask=held.id, reason=reason))

    def heard(self, before: Session, after: Session, event: ev.Event) -> None:
        """Let go of the hooks of what is over after an event, which is on disk."""
        if before.asks == after.asks:
            return
        for ask in before.asks:
            held = self.held.get(ask.id)
            if held is not None and not held.answer.done() and not is_open(after, ask.id):
                held.answer.set_result(held.chosen if isinstance(event, ev.AskAnswered) else None)

    def release(self) -> None:
        """Answer the hooks that wait: the server is about to stop."""
        self.released.set()

    # --- answering ------------------------------------------------------------------------------------------------

    def shown(self, stored: StoredAsk) -> StoredAsk:
        """Return it as the client gave it, where it can be answered."""
        held = self.held.get(stored.ask.id)
        if held is None or stored.ask.state is not AskState.OPEN:
            return stored
        return replace(stored, request=held.request)

    async def answer(
        self, stored: StoredAsk, answer: AskAnswer, replies: Sequence[AskReply], by: str = ""
    ) -> StoredAsk:
        """Give the client its answer; return once it is on disk. SmError for one that is late, or does not fit."""
        ask, actor = stored.ask, self.sessions.actor(stored.session)
        held = self.held.get(ask.id)
        if held is None or held.chosen is not None or held.answer.done() or not is_open(actor.session, ask.id):
            raise await self._too_late(actor, ask.id)
        await self._check_dialog(actor, ask, held.request)
        answer = self._checked(actor, ask, held, answer, replies)
        held.chosen = answer
        try:
            words = await asyncio.to_thread(self.documents.without_secrets, answer.words)
            answers = answer.answers if words == answer.words else ()
            at, decision, always = self.clock.now(), answer.decision, answer.always
            told = ev.AskAnswered(
                at=at, ask=ask.id, decision=decision, always=always, by=by, text=words, answers=answers
            )
            await actor.ask(told)
        except Exception:
            held.chosen = None
            raise
        after = await self.store.ask(ask.id)
        if held.answer.result() is None:
            raise await self._too_late(actor, ask.id)
        return after

    async def _too_late(self, actor: Actor, identity: str) -> SmError:
        return SmError(over((await self.store.ask(identity)).ask, self.sessions.as_argument(actor.session.id)))

    async def _check_dialog(self, actor: Actor, ask: Ask, request: AskRequest) -> None:
        """Refuse what was answered in the terminal a moment ago: the client's own file is the first to show it.

        That shows one dialog as it shows the next: what has run has its result in the transcript.
        """
        now, provider = self.clock.now(), self.providers[actor.session.provider]
        found, current = client_state(provider, actor.session), actor.session.conversation
        is_over = found is not None and is_closed(ask, found.activity, now)
        if not is_over and not ask.agent and current is not None and current.transcript:
            is_over = await asyncio.to_thread(provider.came_back, current.transcript, request, ask.asked)
        if is_over:
            await actor.ask(ev.AskWithdrawn(at=now, ask=ask.id, reason=IN_TERMINAL))
            raise await self._too_late(actor, ask.id)

    def _checked(
        self, actor: Actor, ask: Ask, held: HeldAsk, answer: AskAnswer, replies: Sequence[AskReply]
    ) -> AskAnswer:
        details = self.providers[actor.session.provider].ask_details(held.request)
        own_words = [answer.text, *(reply for reply in replies if isinstance(reply, str))]
        most = self.policies.limits().message_bytes
        refused = too_long(ask, own_words, most) or unfit(ask, details, answer)
        if refused is not None:
            raise SmError(refused)
        if answer.decision is not Decision.ANSWER:
            return answer
        words = resolved(ask, details.questions, replies)
        if not isinstance(words, tuple):
            raise SmError(words)
        return replace(answer, answers=words)


def is_open(session: Session, ask: str) -> bool:
    return any(known.id == ask and known.state is AskState.OPEN for known in session.asks)
