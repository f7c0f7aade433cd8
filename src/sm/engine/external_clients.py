"""Sessions whose client the user started in a terminal of their own, and whose hooks come with the user's token.

The first hook of an unknown conversation makes a session of it: measured and warned like any other, by the same rules,
but without a pane. Later ones belong to it if they name its conversation, or come from its client's process, which
`/clear` and `/resume` take to another conversation. Once that process has ended, another one is another session.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

from sm.core import events as ev
from sm.core.errors import error
from sm.core.ids import free_name
from sm.core.model.session import Session
from sm.core.ports.clock import Clock
from sm.core.ports.documents import Documents
from sm.core.ports.policies import Policies
from sm.core.ports.provider import HookEvent, Provider
from sm.core.ports.store import LaunchRecord, Store
from sm.core.rules.handoff_offers import gets_offer
from sm.engine.actor import Actor
from sm.engine.actor_factory import ActorFactory
from sm.engine.context_reader import usable_of
from sm.engine.handoffs import Handoffs
from sm.engine.hooks import Hooks
from sm.engine.limit_evidence import proven
from sm.engine.sessions import Sessions, new_token, provider_named
from sm.engine.usage_limits import UsageLimits
from sm.processes import alive, descends_from, started_with

SESSION_VARIABLE = "CLAUDE_SESSION_MANAGER_ID"
"""In the environment of everything that a session's client has started."""


@dataclass(frozen=True, slots=True)
class ExternalClients:
    sessions: Sessions
    hooks: Hooks
    actor_factory: ActorFactory
    handoffs: Handoffs
    usage_limits: UsageLimits
    store: Store
    documents: Documents
    clock: Clock
    providers: Mapping[str, Provider]
    policies: Policies
    registering: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while a session is made of a hook: the hooks of one start come at the same time."""

    async def answer(self, provider: str, payload: bytes, pid: int | None) -> dict[str, object]:
        """Take a hook that came with the user's token; return the reply as the client reads it."""
        adapter, hook = self.hooks.decoded(provider, payload, pid)
        if hook.event is None or pid is None or self._is_ours(hook.conversation):
            return {}
        async with self.registering:
            actor = self.known(hook.conversation, pid) or await self._register(adapter, hook, pid)
        if actor.session.driver is ev.DrivenBy.MOD or not self._follow(actor, hook):
            return {}  # its plugin reports the same
        return adapter.encode(hook.name, await self.hooks.reply_in_time(actor, proven(hook)))

    async def of_plugin(self, provider: str, payload: bytes, pid: int) -> tuple[Actor, dict[str, object]]:
        """Return the session of the client with that pid, and the reply to its hook if there is one.

        The process is all that counts: no conversation that a payload names leads to another client's session.
        """
        actor = self._of_process(pid)
        if not payload:
            if actor is None:
                raise error("no_session", "No hook of this client was heard yet")
            return actor, {}
        adapter, hook = self.hooks.decoded(provider, payload, pid)
        if actor is None:
            await asyncio.to_thread(self._check_client, adapter, hook, pid)
            async with self.registering:
                actor = self._of_process(pid) or await self._register(adapter, hook, pid)
        if hook.event is None or not self._follow(actor, hook):
            return actor, {}
        reply = await self.hooks.reply_in_time(actor, proven(hook))
        if isinstance(hook.event, ev.ConversationStarted):
            actor.link.offer(reply.whole, reply.context)
        return actor, adapter.encode(hook.name, reply)

    def _of_process(self, pid: int) -> Actor | None:
        actors = self.sessions.actors.values()
        own = (actor for actor in actors if actor.session.adopted and not actor.session.ended)
        return next((actor for actor in own if actor.session.pid == pid), None)

    def _check_client(self, adapter: Provider, hook: HookEvent, pid: int) -> None:
        """Refuse what is no client of the user's own: what an agent has started, and what only says that it is one."""
        above = next((session for session in self.sessions.living() if is_below(session, pid)), None)
        if above is not None:
            raise error("not_client", f"This process was started by the client of session {above.name}")
        if SESSION_VARIABLE in started_with(pid)[0]:
            raise error("not_client", "This process has the environment of a session")
        found = adapter.client_state(adapter.configuration_of(hook.transcript or ""), pid)
        if found is None or found.conversation != hook.conversation:
            raise error("no_session", "The client's own files do not show this conversation")
        others = (session for session in self.sessions.living() if session.pid is not None and alive(session.pid))
        if any(other.conversation is not None and other.conversation.id == hook.conversation for other in others):
            raise error("not_client", "Another client has this conversation open")

    def _is_ours(self, conversation: str) -> bool:
        """True for a conversation of a session that `sm` started: its hooks come with its own token too."""
        ours = (session.conversation for session in self.sessions.living() if not session.adopted)
        return any(current is not None and current.id == conversation for current in ours)

    def known(self, conversation: str, pid: int | None) -> Actor | None:
        for actor in self.sessions.actors.values():
            if not actor.session.adopted or actor.session.ended:
                continue
            current = actor.session.conversation
            if (pid is not None and actor.session.pid == pid) or (current is not None and current.id == conversation):
                return actor
        return None

    def _follow(self, actor: Actor, hook: HookEvent) -> bool:
        """Return whether the hook is believed; one that shows another conversation moves the session there."""
        current = actor.session.conversation
        if isinstance(hook.event, ev.ConversationStarted) or (current is not None and current.id == hook.conversation):
            return True
        if hook.conversation in actor.session.past:
            return False  # late, of a conversation that was left
        at, origin = self.clock.now(), ev.Origin.CLIENT_STATE
        actor.put(
            ev.ConversationStarted(at=at, conversation=hook.conversation, transcript=hook.transcript, origin=origin)
        )
        return True

    async def _register(self, adapter: Provider, hook: HookEvent, pid: int) -> Actor:
        directory = hook.directory or "/"
        policy = self.policies.policy(directory)
        session = Session(
            id=secrets.token_hex(4),
            name=free_name(directory.rstrip("/").rpartition("/")[2] or "root", self.sessions.taken_names()),
            provider=adapter.name,
            directory=directory,
            created=self.clock.now(),
            offer=await self.handoffs.offer(directory) if gets_offer(policy, parent=None) else None,
            policy=policy,
        )
        # The token is given to no one: the client has the user's. A later `sm restore` brings one of its own.
        await self.store.add(session, new_token(), LaunchRecord())
        self.documents.prepare(directory)
        actor = self.actor_factory.register(session)
        config = adapter.configuration_of(hook.transcript) if hook.transcript else ""
        asked = adapter.asked(*started_with(pid))
        launched = ev.SessionLaunched(
            at=self.clock.now(),
            pane=None,
            pid=pid,
            conversation=hook.conversation,
            transcript=hook.transcript,
            config=config,
            asked=asked,
            limits=adapter.limits(config, directory, asked),
            adopted=True,
        )
        await actor.ask(launched)
        return actor

    def status(self, session: str | None, provider: str, payload: bytes) -> Session | None:
        """Return the session whose status line asks, after taking note of what the client reports with it."""
        adapter = provider_named(self.providers, provider)
        try:
            told = adapter.decode_status(payload)
        except (ValueError, RecursionError) as problem:
            raise error("bad_payload", f"not a status line's input: {problem}") from problem
        actor = self.sessions.actor(session) if session else self.known(told.conversation, None)
        current = actor.session.conversation if actor else None
        if actor is None or current is None or current.id != told.conversation:
            return None
        self.usage_limits.reported(actor.session, told.shares, by_client=False)
        if told.window is not None and told.window != actor.session.window:
            usable = usable_of(adapter, actor.session, current, told.window)
            at = self.clock.now()
            actor.put(ev.WindowTold(at=at, conversation=told.conversation, window=told.window, usable=usable))
        return actor.session


def is_below(session: Session, pid: int) -> bool:
    """Whether the session's client is that process or has started it."""
    return session.pid is not None and descends_from(pid, session.pid)
