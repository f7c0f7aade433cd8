"""The hooks of this server's sessions: decodes each, decides whether to believe it, and answers within its budget.

A hook is believed if it names the session's own conversation, or if the client's own files show that the session's own
process has moved to the one it names; anything else came from some other client that inherited our environment.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass

import structlog

from sm.core import events as ev
from sm.core.errors import error
from sm.core.model.ask import AskAnswer
from sm.core.model.session import Session
from sm.core.ports.clock import Clock
from sm.core.ports.provider import HookEvent, HookReply, Provider
from sm.engine import limit_evidence
from sm.engine.actor import Actor
from sm.engine.answer_arrival import plugin_asks
from sm.engine.asks import Asks
from sm.engine.client_monitor import client_state, moved
from sm.engine.context_reader import ContextReaders
from sm.engine.sessions import Sessions, provider_named
from sm.engine.ticket import Ticket
from sm.peers import Peer
from sm.processes import descends_from

log = structlog.get_logger()
HOOK_BUDGET_S = 0.05
"""Seconds a hook waits for its answer; past it the work continues behind."""
PATIENT_BUDGET_S = 2.0


WhileConnected = Callable[[Coroutine[None, None, AskAnswer | None]], Awaitable[AskAnswer | None]]
"""Awaits something until the client leaves; None if it has."""


async def _always(work: Coroutine[None, None, AskAnswer | None]) -> AskAnswer | None:
    return await work


@dataclass(frozen=True, slots=True)
class Hooks:
    sessions: Sessions
    clock: Clock
    providers: Mapping[str, Provider]
    context_readers: ContextReaders
    asks: Asks

    async def answer(
        self,
        session: str,
        provider: str,
        payload: bytes,
        pid: int | None,
        while_connected: WhileConnected = _always,
        peer: Peer | None = None,
    ) -> dict[str, object]:
        """Take a hook that came with the session's token; return the reply as the client reads it."""
        actor = self.sessions.actor(session)
        adapter, hook = self.decoded(provider, payload, pid)
        if hook.event is None or not self._believes(actor, hook):
            return {}
        hook = await limit_evidence.examined(hook, actor.session, peer, adapter, self.clock)
        reply = await self.reply_in_time(actor, hook)
        if isinstance(hook.event, ev.ConversationStarted):
            actor.link.offer(reply.whole, reply.context)
        if hook.ask is not None and not plugin_asks(actor):
            answer = await while_connected(self.asks.hold_hook(actor, hook.ask))
            if answer is not None:
                return adapter.encode_answer(hook.ask, answer)
        return adapter.encode(hook.name, reply)

    def decoded(self, provider: str, payload: bytes, pid: int | None) -> tuple[Provider, HookEvent]:
        adapter = provider_named(self.providers, provider)
        try:
            return adapter, adapter.decode(payload, self.clock.now(), pid)
        except ValueError as problem:
            raise error("bad_payload", str(problem)) from problem

    async def reply_in_time(self, actor: Actor, hook: HookEvent) -> HookReply:
        """Give the actor the hook's event; return its reply, or an empty one when the budget is over."""
        assert hook.event is not None
        ticket = Ticket(asyncio.get_running_loop().create_future())
        self._follow_transcript(actor, hook)
        if isinstance(hook.event, ev.ToolUsed | ev.ToolAsked):
            self.context_readers.catch_up(actor)
        actor.put(hook.event, ticket)
        try:
            async with asyncio.timeout(PATIENT_BUDGET_S if _is_patient(actor, hook) else HOOK_BUDGET_S):
                return await ticket.reply
        except TimeoutError:  # the reply is cancelled with the wait: what it would have carried is owed again
            ticket.given_up = True
            return HookReply()

    def _follow_transcript(self, actor: Actor, hook: HookEvent) -> None:
        """Every hook of the conversation names its transcript, which the client may have moved."""
        current = actor.session.conversation
        starts = isinstance(hook.event, ev.ConversationStarted)
        if starts or current is None or hook.conversation != current.id or not hook.transcript:
            return
        if hook.transcript != current.transcript:
            at, moved_to = self.clock.now(), hook.transcript
            actor.put(ev.TranscriptMoved(at=at, conversation=current.id, transcript=moved_to))

    def _believes(self, actor: Actor, hook: HookEvent) -> bool:
        session = actor.session
        current = session.conversation
        starts = isinstance(hook.event, ev.ConversationStarted)
        if starts and session.rotation is not None and hook.conversation == session.rotation.next:
            return True  # `sm run` was asked to start it and may not have reported yet that it has
        if starts and hook.pid is not None and session.pid is not None:
            return self._is_own_client(session, hook.pid, session.pid)
        if current is not None and hook.conversation == current.id:
            return True
        if hook.conversation in session.past:
            return False  # a late hook of a conversation that was left behind
        found = client_state(self.providers[session.provider], session)
        if found is None or found.conversation != hook.conversation:
            log.info("foreign hook ignored", session=session.id, hook=hook.name, conversation=hook.conversation)
            return False
        if not starts:
            actor.put(moved(found, self.clock.now()))
        return True

    def _is_own_client(self, session: Session, pid: int, known: int) -> bool:
        """Our client, or the one that what we started, such as a wrapper, has started; never a client below that."""
        if pid == known:
            return True
        return client_state(self.providers[session.provider], session) is None and descends_from(pid, known)


def _is_patient(actor: Actor, hook: HookEvent) -> bool:
    """Whether the answer must not be lost: the client's own continuation at a limit's end may have to be blocked."""
    event = hook.event
    continues = isinstance(event, ev.PromptSubmitted) and event.text.startswith(actor.traits.continuations)
    return continues or hook.name in actor.traits.patient_hooks
