"""Parents and children: starts a child for a session, clears one's context, ends one, brings one back.

A child gets the permission mode its parent is in and whatever restricts its parent, and never a client argument that an
agent has chosen. Who may ask for it is the API's to check.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass

from sm.core import events as ev
from sm.core.errors import SmError, error
from sm.core.ids import free_name
from sm.core.model.message import SendRequest
from sm.core.model.session import Session
from sm.core.ports.store import LaunchRecord
from sm.core.rules.session.refusals import not_ours
from sm.core.rules.team import DEFAULT_MODE, already_ended, family_of, may_clear, may_spawn
from sm.engine.actor import Actor
from sm.engine.launch import NewSession, create, restore
from sm.engine.supervisor import Supervisor

MODE = re.compile(r"[A-Za-z]{1,32}")


@dataclass(frozen=True, slots=True)
class NewChild:
    directory: str
    env: Mapping[str, str]
    prompt: str
    provider: str | None = None
    name: str | None = None
    model: str | None = None
    track: float | None = None
    notify: bool = True


async def check_place(supervisor: Supervisor, parent: str, directory: str) -> None:
    """An agent chooses a directory in its own, or in its repository or one of that repository's worktrees."""
    own = supervisor.actor(parent).session.directory
    if not await asyncio.to_thread(supervisor.documents.may_work_in, own, directory):
        message = f"{directory} lies outside this session's directory, its repository and that repository's worktrees"
        raise error("forbidden", message, "name a directory inside, or ask the user to run sm new there")


async def spawn(supervisor: Supervisor, parent: str, child: NewChild) -> Session:
    if not child.prompt.strip():
        raise error("bad_request", "The child has no task", "sm spawn PROMPT")
    supervisor.messages.check_first(parent, child.prompt)
    supervisor.reminders.check(parent, child.track, every=True, more=child.notify + (child.track is not None))
    async with supervisor.spawn_lock:  # the limits hold for two calls at once
        session = await create(supervisor, _new(supervisor, parent, child))
    try:
        await supervisor.send(session.id, parent, SendRequest(child.prompt, notify_on_stop=child.notify))
        if child.track is not None:
            await supervisor.reminders.track(parent, session.id, child.track)
    except SmError:  # a child without its task would only wait
        await supervisor.kill(session.id, parent)
        raise
    return supervisor.actor(session.id).session


def _new(supervisor: Supervisor, parent: str, child: NewChild) -> NewSession:
    above = supervisor.actor(parent).session
    sessions = {actor.session.id: actor.session for actor in supervisor.actors.values()}
    refused = may_spawn(above, sessions, supervisor.policies.team_limits(above.directory))
    if refused is not None:
        raise SmError(refused)
    taken = frozenset(one.name for one in sessions.values() if not one.ended)
    record = supervisor.launches.get(parent, LaunchRecord())
    same_client = child.provider in {None, above.provider}
    return NewSession(
        directory=child.directory,
        env=child.env,
        provider=child.provider or above.provider,
        name=child.name or free_name(f"{above.name[:50].rstrip()}-child", taken),
        model=child.model or record.model,
        arguments=_arguments(supervisor, above, child.provider or above.provider),
        command=record.command if same_client else None,
        parent=parent,
    )


def _arguments(supervisor: Supervisor, parent: Session, provider: str) -> tuple[str, ...]:
    adapter = supervisor.providers.get(provider)
    if adapter is None or provider != parent.provider:
        return ()
    given = supervisor.launches.get(parent.id, LaunchRecord()).arguments
    return adapter.child_arguments(given, parent.mode if MODE.fullmatch(parent.mode) else DEFAULT_MODE)


async def clear(supervisor: Supervisor, child: str, by: str, prompt: str | None, *, notify: bool) -> None:
    """Clear the context of a session once its turn has ended, and give it another task."""
    actor = supervisor.actor(child)
    _check_clear(actor)
    if prompt is None or not prompt.strip():
        await supervisor.ask(actor, ev.ClearRequested(at=supervisor.clock.now()))
        return
    request = SendRequest(prompt, notify_on_stop=notify and bool(by))  # the user sees it themselves
    stored, message = await supervisor.messages.accept(actor, by, request)
    _check_clear(actor)
    await supervisor.messages.put(actor, stored, message, cleared=True)
    await supervisor.reminders.reported(by, child)


def _check_clear(actor: Actor) -> None:
    refused = may_clear(actor.session, actor.traits)
    if refused is not None:
        raise SmError(refused)


async def kill(supervisor: Supervisor, session: str, by: str, *, children: bool) -> tuple[Session, ...]:
    """End a session, and with `children` everything below it; those that had not ended before."""
    found = supervisor.actor(session).session
    below = family_of(session, [actor.session for actor in supervisor.actors.values()]) if children else ()
    living = tuple(one for one in (found, *below) if not one.ended or one.id in supervisor.terminations.under_way)
    if not living:
        raise SmError(already_ended(found))
    if living[0].id == session and living[0].adopted and not living[0].ended:
        raise SmError(not_ours(living[0]))  # before any of its children is ended
    ends = await asyncio.gather(*(supervisor.kill(one.id, by) for one in living), return_exceptions=True)
    problem = next((one for one in ends if one is not None), None)
    if problem is not None:  # the others were told to end all the same
        raise problem
    return living


async def restore_child(supervisor: Supervisor, child: str, env: Mapping[str, str]) -> Session:
    """Bring a child back for its parent, with no more than the parent may now."""
    session = supervisor.find(child).session
    parent = supervisor.actor(session.parent or "").session
    async with supervisor.spawn_lock:
        sessions = {actor.session.id: actor.session for actor in supervisor.actors.values()}
        refused = may_spawn(parent, sessions, supervisor.policies.team_limits(parent.directory))
        if refused is not None:
            raise SmError(refused)
        return await restore(supervisor, session.id, env, _arguments(supervisor, parent, session.provider))
