"""Parents and children: starts a child for a session, clears one's context, ends one, brings one back.

A child gets the permission mode its parent is in and whatever restricts its parent, and never a client argument that an
agent has chosen. Where its client is of another kind, it gets the mode that allows no more, and is refused where
something restricts its parent that has no counterpart there. Who may ask for it is the API's to check.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from sm.core import events as ev
from sm.core.errors import SmError, error
from sm.core.ids import free_name
from sm.core.model.message import SendRequest
from sm.core.model.session import Session
from sm.core.ports.clock import Clock
from sm.core.ports.documents import Documents
from sm.core.ports.panes import PaneError
from sm.core.ports.policies import Policies
from sm.core.ports.provider import Launcher
from sm.core.rules.session.refusals import external_client
from sm.core.rules.team import already_ended, family_of, may_clear, may_remove, may_spawn
from sm.engine.actor import Actor
from sm.engine.launch import SessionLauncher
from sm.engine.messages import Messages
from sm.engine.new_session import NewSession
from sm.engine.notifications import Notifications
from sm.engine.reminders import Reminders
from sm.engine.rights import mapped_arguments
from sm.engine.sessions import Sessions, provider_named
from sm.engine.termination import Terminations


@dataclass(frozen=True, slots=True)
class NewChild:
    directory: str
    env: Mapping[str, str]
    """Of whoever asks, beside what the parent's client was started with: an agent's tools are not given all of it."""
    prompt: str
    provider: str | None = None
    name: str | None = None
    model: str | None = None
    track: float | None = None
    notify: bool = True


@dataclass(frozen=True, slots=True)
class Team:
    sessions: Sessions
    launcher: SessionLauncher
    messages: Messages
    reminders: Reminders
    notifications: Notifications
    terminations: Terminations
    documents: Documents
    clock: Clock
    providers: Mapping[str, Launcher]
    policies: Policies
    spawn_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while a child is started: one at a time."""

    async def check_directory(self, parent: str, directory: str) -> None:
        """SmError for a directory outside the parent's own, its repository and that repository's worktrees."""
        own = self.sessions.actor(parent).session.directory
        if not await asyncio.to_thread(self.documents.may_work_in, own, directory):
            message = (
                f"{directory} lies outside this session's directory, its repository and that repository's worktrees"
            )
            raise error("forbidden", message, "name a directory inside, or ask the user to run sm new there")

    async def spawn(self, parent: str, child: NewChild) -> Session:
        if not child.prompt.strip():
            raise error("bad_request", "The child has no task", "sm spawn PROMPT")
        self.messages.check_first(parent, child.prompt)
        self.reminders.check(parent, child.track, every=True, more=child.notify + (child.track is not None))
        env = {**await self.launcher.panes.environment(parent), **child.env}
        async with self.spawn_lock:  # the limits hold for two calls at once
            session = await self.launcher.create(self._new(parent, replace(child, env=env)))
        try:
            await self.messages.send(session.id, parent, SendRequest(child.prompt, notify_on_stop=child.notify))
            if child.track is not None:
                await self.reminders.track(parent, session.id, child.track)
        except SmError:  # a child without its task would only wait
            await self.sessions.kill(session.id, parent)
            raise
        return self.sessions.actor(session.id).session

    def _new(self, parent: str, child: NewChild) -> NewSession:
        above = self.sessions.actor(parent).session
        self._check_spawn(above)
        record = self.sessions.launch_of(above)
        same_client = child.provider in {None, above.provider}
        return NewSession(
            directory=child.directory,
            env=child.env,
            provider=child.provider or above.provider,
            name=child.name or free_name(f"{above.name[:50].rstrip()}-child", self.sessions.taken_names()),
            model=child.model or (record.model if same_client else None),
            arguments=self._arguments(above, child.provider or above.provider, child.directory),
            command=record.command if same_client else None,
            parent=parent,
        )

    def _check_spawn(self, parent: Session) -> None:
        sessions = {session.id: session for session in self.sessions.all()}
        refused = may_spawn(parent, sessions, self.policies.team_limits(parent.directory))
        if refused is not None:
            raise SmError(refused)

    def _arguments(self, parent: Session, provider: str, directory: str) -> tuple[str, ...]:
        adapter = provider_named(self.providers, provider)
        given = self.sessions.launch_of(parent).arguments
        if provider == parent.provider:
            return adapter.child_arguments(given, parent.mode)
        return mapped_arguments(parent, given, self.providers[parent.provider], adapter, directory)

    async def clear(self, child: str, by: str, prompt: str | None, *, notify: bool) -> None:
        """Clear the context of a session once its turn has ended, and give it another task."""
        actor = self.sessions.actor(child)
        _check_clear(actor)
        if prompt is None or not prompt.strip():
            await actor.ask(ev.ClearRequested(at=self.clock.now()))
            return
        request = SendRequest(prompt, notify_on_stop=notify and bool(by))  # the user sees it themselves
        stored, message = await self.messages.accept(actor, by, request)
        _check_clear(actor)
        await self.messages.put(actor, stored, message, cleared=True)

    async def kill(self, session: str, by: str, *, children: bool) -> tuple[Session, ...]:
        """End a session, and with `children` everything below it; return those that had not ended before."""
        found = self.sessions.actor(session).session
        below = family_of(session, self.sessions.all()) if children else ()
        ending = self.terminations.is_under_way
        living = tuple(member for member in (found, *below) if not member.ended or ending(member.id))
        if not living:
            raise SmError(already_ended(found))
        if living[0].id == session and living[0].adopted and not living[0].ended:
            raise SmError(external_client(living[0]))  # before any of its children is ended
        ends = await asyncio.gather(*(self.sessions.kill(member.id, by) for member in living), return_exceptions=True)
        problem = next((end for end in ends if end is not None), None)
        if problem is not None:  # the others were asked to end all the same
            raise problem
        return living

    async def remove(self, session: str) -> Session:
        """Remove an ended session from the list; return it. Its documents stay, its logs as the archive keeps them."""
        found = self.sessions.find(session).session
        if self.terminations.is_under_way(found.id) or found.id in self.sessions.restoring:
            raise error("still_ending", f"Session {found.name} is just ending or starting", "try again in a moment")
        refused = may_remove(found, self.sessions.all())
        if refused is not None:
            raise SmError(refused)
        with self.sessions.being_restored(found.id):  # no restore comes in between
            await self.notifications.forget(found.id)
            await self.sessions.store.remove(found.id)
            with suppress(PaneError):  # a pane that has ended keeps all that it showed until then
                await self.sessions.panes.clear(found.id)
        self.reminders.forget(found.id)
        self.messages.user_spoke(found.id)
        self.sessions.drop(found.id)
        return found

    async def restore_child(self, child: str, env: Mapping[str, str]) -> Session:
        """Bring a child back for its parent, with no more than the parent may now."""
        session = self.sessions.find(child).session
        parent = self.sessions.actor(session.parent or "").session
        async with self.spawn_lock:
            self._check_spawn(parent)
            return await self.launcher.restore(
                session.id, env, self._arguments(parent, session.provider, session.directory)
            )


def _check_clear(actor: Actor) -> None:
    refused = may_clear(actor.session, actor.traits)
    if refused is not None:
        raise SmError(refused)
