"""Starts a session's client, the first time and again.

A session exists in the store before its client runs, so that the client's first hook already finds it. A restored
session continues its last conversation, or, if a handoff was not finished, begins a new one with that document.
"""

from __future__ import annotations

import asyncio
import secrets
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from sm.core import events as ev
from sm.core.errors import SmError, error
from sm.core.ids import as_argument, free_name
from sm.core.model.handoff import Handoff
from sm.core.model.message import SendRequest
from sm.core.model.rotation import Switch
from sm.core.model.session import Session
from sm.core.ports.clock import Clock
from sm.core.ports.documents import Documents
from sm.core.ports.panes import Launch, PaneError, Panes, PaneStatus
from sm.core.ports.policies import Policies
from sm.core.ports.provider import LaunchRequest, Provider
from sm.core.ports.store import LaunchRecord, Store
from sm.core.rules import handoff_offers
from sm.core.rules.rotation import taken_up
from sm.core.rules.session.refusals import second_client, stays_down
from sm.core.rules.session.status import lost_at
from sm.engine.actor import Actor
from sm.engine.actor_factory import ActorFactory
from sm.engine.handoffs import Handoffs
from sm.engine.messages import Messages
from sm.engine.new_session import NewSession, existing_directory
from sm.engine.rights import successor
from sm.engine.sessions import Sessions, check_name, new_token, provider_named
from sm.engine.termination import Terminations
from sm.engine.transcripts import transcript_of

LEAVE_TIMEOUT_S = 5.0
"""For a client to end once its terminal has gone (seen: 0.3)."""
POLL_INTERVAL_S = 0.05


@dataclass(frozen=True, slots=True)
class SessionLauncher:
    sessions: Sessions
    actor_factory: ActorFactory
    messages: Messages
    handoffs: Handoffs
    terminations: Terminations
    store: Store
    documents: Documents
    panes: Panes
    clock: Clock
    providers: Mapping[str, Provider]
    policies: Policies

    async def create(self, new: NewSession) -> Session:
        if new.prompt and new.prompt.strip():
            self.messages.check_first("", new.prompt)
        actor = await self.start(new)
        if new.prompt and new.prompt.strip():
            await self.messages.send(actor.session.id, "", SendRequest(new.prompt))
        return actor.session

    async def start(self, new: NewSession) -> Actor:
        actor, _, launch = await self.add(new)
        await self._run(actor, launch)
        return actor

    async def add(self, new: NewSession) -> tuple[Actor, str, Launch]:
        """Store a new session; return its actor, its token, and how its client is started."""
        directory = existing_directory(new.directory)
        if new.name is not None:
            check_name(new.name)
        name = new.name or free_name(directory.name or "root", self.sessions.taken_names())
        with self.sessions.reserved(name):
            return await self._add(new, directory, name)

    async def _add(self, new: NewSession, directory: Path, name: str) -> tuple[Actor, str, Launch]:
        session = Session(
            id=secrets.token_hex(4),
            name=name,
            provider=new.provider,
            directory=str(directory),
            created=self.clock.now(),
            model=new.model,
            parent=new.parent,
            foreground=new.foreground,
            attempt=new.attempt,
            scope=new.scope,
            handoff_at=new.handoff_at,
            policy=self.policies.checked_policy(str(directory)).handing_off_at(new.handoff_at),
        )
        record = LaunchRecord(new.arguments, new.model, new.command)
        token, launch = self.prepared(session, record, new.env, headless=new.headless)
        self.documents.prepare(session.directory)
        session, document = await self._with_handoff(session, new, launch)
        await self.store.add(session, token, record, document)
        if document is not None:
            self.handoffs.note(document.channel)
        self.sessions.set_token(session.id, token)
        self.sessions.launches[session.id] = record
        return self.actor_factory.register(session), token, launch

    async def _with_handoff(self, session: Session, new: NewSession, launch: Launch) -> tuple[Session, Handoff | None]:
        """Return the session with the handoff it begins from, or with what is offered to it instead."""
        handoffs = self.handoffs
        if new.handoff is None:
            shown = handoff_offers.gets_offer(session.policy, new.parent)
            return (replace(session, offer=await handoffs.offer(session.directory)) if shown else session), None
        taken = await handoffs.wanted(session, new.handoff, launch.conversation)
        return replace(session, rotation=taken_up(taken, self.clock.now())), taken

    async def restore(
        self,
        session: str,
        env: Mapping[str, str],
        arguments: tuple[str, ...] | None = None,
        *,
        force: bool = False,
        headless: bool = False,
    ) -> Session:
        """Start an ended session again; `arguments` of the client instead of those it had.

        With `force` also one whose client has ended again and again without work.
        """
        actor = self.sessions.find(session)
        old = actor.session
        hint = f"sm attach {as_argument(old.name, old.id)}"
        if not old.ended:
            raise error("alive", f"Session {old.name} is alive ({old.shown_status.value})", hint)
        if old.id in self.sessions.restoring:
            raise error("alive", f"Session {old.name} is being restored", hint)
        refused = None if force else stays_down(old, self.clock.now())
        if refused is not None:
            raise SmError(refused)
        with self.sessions.being_restored(old.id):
            return await self._restore(actor, env, arguments, headless=headless)

    async def _restore(
        self, actor: Actor, env: Mapping[str, str], arguments: tuple[str, ...] | None, *, headless: bool
    ) -> Session:
        old = actor.session
        existing_directory(old.directory)
        if not await self.terminations.over(old.id):
            raise error("still_ending", f"The last client of {old.name} has not ended yet", "try again in a moment")
        await self._left(old)
        started, kept = self.next_start(old)
        record = kept if arguments is None else replace(kept, arguments=arguments)
        token, launch = self.prepared(started, record, env, self._resumable(old), again=True, headless=headless)
        await self.store.renew(old.id, token, kept)
        if not await self._takes_again(actor):
            started, kept = self.next_start(actor.session)
            record = kept if arguments is None else replace(kept, arguments=arguments)
            resume = self._resumable(actor.session)
            token, launch = self.prepared(started, record, env, resume, again=True, headless=headless)
            await self.store.renew(old.id, token, kept)
        self.sessions.set_token(old.id, token)
        self.sessions.launches[old.id] = kept
        await self.panes.clear(old.id)
        await self._run(actor, launch, started.provider)
        return actor.session

    def prepared_switch(
        self, session: Session, switch: Switch, env: Mapping[str, str]
    ) -> tuple[str, Launch, LaunchRecord]:
        """Return the token of the client that takes the place of the session's own, and how it is started."""
        record = successor(session, self.sessions.launch_of(session), switch, self.providers)
        token, launch = self.prepared(replace(session, provider=switch.to), record, env, again=True)
        return token, launch, record

    def next_start(self, session: Session) -> tuple[Session, LaunchRecord]:
        """Return the session as its next client has it, and how that is started; SmError if none may be."""
        own, target = self.sessions.launch_of(session), session.next_provider
        if target == session.provider or session.rotation is None or session.rotation.switch is None:
            return session, own
        record = successor(session, own, session.rotation.switch, self.providers)
        return replace(session, provider=target), record

    async def _takes_again(self, actor: Actor) -> bool:
        """Take the document that was given back when the session ended; False if by now another has it."""
        session = actor.session
        left = handoff_offers.left_behind(None, session.rotation, session.kept)
        if left is None:
            return True
        try:
            await self.store.take(left, session)
        except SmError as problem:
            if problem.refused.code not in NOT_TO_BE_HAD:
                raise
            at, reason = self.clock.now(), problem.refused.message
            await actor.ask(ev.HandoffWithdrawn(at=at, handoff=left.id, reason=reason))
            return False
        self.handoffs.note(left.channel)
        return True

    def _resumable(self, session: Session) -> str | None:
        """Return the conversation to continue; None if a handoff is to be taken up, or it holds no reply yet."""
        current, provider = session.conversation, self.providers.get(session.provider)
        if current is None or provider is None or (session.rotation is not None and session.rotation.unfinished):
            return None
        transcript = transcript_of(provider, session)
        return current.id if transcript and provider.resumable(transcript) else None

    def prepared(
        self,
        session: Session,
        record: LaunchRecord,
        env: Mapping[str, str],
        resume: str | None = None,
        *,
        again: bool = False,
        headless: bool = False,
    ) -> tuple[str, Launch]:
        provider = provider_named(self.providers, session.provider)
        foreground = session.foreground is not None and not again
        kept = self.request(session, record, env)
        asked = replace(kept, resume=resume, foreground=foreground, again=again, headless=headless)
        token = new_token()
        launch = provider.launch(asked, token)
        if any("\0" in text for text in (*launch.argv, *launch.env, *launch.env.values())):
            raise error("bad_request", "Arguments, model and environment of a client must not contain NUL characters")
        program = launch.program or launch.argv[0]
        if shutil.which(program, path=launch.env.get("PATH")) is None:
            hint = f"install it, name one with --client, or set {provider.name}.command in the configuration"
            raise error("client_not_found", f"Client not found: {program}", hint)
        found = provider.running(launch.config, launch.continues) if launch.continues else None
        if found is not None:
            living, way = self.sessions.living(), provider.traits.exit_command
            raise SmError(second_client(launch.continues, found.pid, found.terminal, living, way))
        return token, launch

    def request(self, session: Session, record: LaunchRecord, env: Mapping[str, str]) -> LaunchRequest:
        """What every start of a session's client asks for."""
        return LaunchRequest(
            session=session.id,
            name=session.name,
            directory=session.directory,
            env=env,
            model=record.model,
            arguments=record.arguments,
            command=record.command,
            documents=str(self.documents.folder(session.directory)),
            messages=str(self.documents.message_folder(session.id)),
            gate=session.policy.gate,
            counted=not session.policy.baseline,
        )

    async def _run(self, actor: Actor, launch: Launch, provider: str = "") -> None:
        try:
            await self.run(actor, launch, provider)
        except (OSError, ValueError, PaneError) as problem:
            reason = f"the client could not be started: {problem}"
            await actor.ask(ev.LaunchFailed(at=self.clock.now(), reason=reason))
            raise error("launch_failed", reason, "sm doctor looks for the cause") from problem
        except BaseException:  # whatever it was: nothing else would end the session that seems to start
            actor.put(ev.LaunchFailed(at=self.clock.now(), reason="the client could not be started"))
            raise

    async def run(self, actor: Actor, launch: Launch, provider: str = "", *, in_place: bool = False) -> PaneStatus:
        """Start the client, of another provider where one is named, in the place of one that was ended for it."""
        session, own = actor.session, provider or actor.session.provider
        pane = await self.panes.create(session, launch, self.documents.log(session.id))
        launched = ev.SessionLaunched(
            at=self.clock.now(),
            pane=pane.pane,
            pid=pane.pid,
            conversation=launch.conversation,
            config=launch.config,
            asked=launch.asked,
            plugin=launch.plugin,
            no_plugin=launch.no_plugin,
            mode=launch.mode,
            limits=self.providers[own].limits(launch.config, session.directory, launch.asked),
            provider=provider,
            in_place=in_place,
        )
        await actor.ask(launched)
        return pane

    async def _left(self, session: Session) -> None:
        """Wait for a client whose terminal has gone: it ends by itself, and until then has its conversation open."""
        provider, current = self.providers.get(session.provider), session.conversation
        if provider is None or current is None or lost_at(session) is None:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_TIMEOUT_S):
                while (found := provider.running(session.config, current.id)) and found.pid == session.pid:
                    await asyncio.sleep(POLL_INTERVAL_S)


NOT_TO_BE_HAD = frozenset({"handoff_taken", "handoff_closed"})
