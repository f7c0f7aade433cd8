"""Starts a session's client, the first time and again.

A session exists in the store before its client runs, so that the client's first hook already finds it. A restored
session goes on with its last conversation, or, if a handoff was not finished, begins a new one with that document.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from sm.core import events as ev
from sm.core.errors import SmError, error
from sm.core.ids import free_name, token_hash
from sm.core.model.foreground import Foreground
from sm.core.model.handoff import Handoff
from sm.core.model.message import SendRequest
from sm.core.model.session import Session
from sm.core.ports.panes import Launch, PaneError
from sm.core.ports.provider import LaunchRequest, Provider
from sm.core.ports.store import LaunchRecord
from sm.core.rules import handoff_offers
from sm.core.rules.rotation import taken_up
from sm.core.rules.session.refusals import stays_down
from sm.engine.actor import Actor
from sm.engine.supervisor import Supervisor, check_name
from sm.engine.transcripts import transcript_of

TOKEN_BYTES = 32
MOST_SHOWN = 200
"""Characters of a path that a refusal repeats."""


@dataclass(frozen=True, slots=True)
class NewSession:
    directory: str
    env: Mapping[str, str]
    """Of whoever asks: sent with the request, never stored."""
    provider: str
    name: str | None = None
    model: str | None = None
    prompt: str | None = None
    arguments: tuple[str, ...] = ()
    command: str | None = None
    parent: str | None = None
    handoff: str | None = None
    """What it begins from: a handoff's id, a file's path, or, empty, what waits in the project; None for nothing."""
    foreground: Foreground | None = None
    """Of a client that the caller starts itself, in a terminal of its own."""


async def create(supervisor: Supervisor, new: NewSession) -> Session:
    if new.prompt and new.prompt.strip():
        supervisor.messages.check_first("", new.prompt)
    actor, _, launch = await add(supervisor, new)
    await _run(supervisor, actor, launch)
    if new.prompt and new.prompt.strip():
        await supervisor.send(actor.session.id, "", SendRequest(new.prompt))
    return actor.session


async def add(supervisor: Supervisor, new: NewSession) -> tuple[Actor, str, Launch]:
    """A session in the store, its token, and how its client is started; others that begin meanwhile get other names."""
    directory = existing_directory(new.directory)
    if new.name is not None:
        check_name(new.name)
    name = new.name or free_name(directory.name or "root", supervisor.taken_names())
    supervisor.names_in_use.append(name)
    try:
        return await _add(supervisor, new, directory, name)
    finally:
        supervisor.names_in_use.remove(name)


async def _add(supervisor: Supervisor, new: NewSession, directory: Path, name: str) -> tuple[Actor, str, Launch]:
    session = Session(
        id=secrets.token_hex(4),
        name=name,
        provider=new.provider,
        directory=str(directory),
        created=supervisor.clock.now(),
        model=new.model,
        parent=new.parent,
        foreground=new.foreground,
        policy=supervisor.policies.checked_policy(str(directory)),
    )
    record = LaunchRecord(new.arguments, new.model, new.command)
    token, launch = _prepare(supervisor, session, record, new.env)
    supervisor.documents.prepare(session.directory)
    session, document = await _beginning(supervisor, session, new, launch)
    await supervisor.store.add(session, token, record, document)
    if document is not None:
        supervisor.handoffs.note(document.channel)
    supervisor.tokens[token_hash(token)] = session.id
    supervisor.launches[session.id] = record
    return supervisor.register(session), token, launch


async def _beginning(
    supervisor: Supervisor, session: Session, new: NewSession, launch: Launch
) -> tuple[Session, Handoff | None]:
    """The session with the handoff it begins from, or with what it is told of instead."""
    handoffs = supervisor.handoffs
    if new.handoff is None:
        told = session.policy.offer and new.parent is None
        return (replace(session, offer=await handoffs.offer(session.directory)) if told else session), None
    taken = await handoffs.wanted(session, new.handoff, launch.conversation)
    return replace(session, rotation=taken_up(taken, supervisor.clock.now())), taken


async def restore(
    supervisor: Supervisor,
    session: str,
    env: Mapping[str, str],
    arguments: tuple[str, ...] | None = None,
    *,
    force: bool = False,
) -> Session:
    """Start an ended session again; `arguments` of the client instead of those it had.

    With `force` also one whose client has ended again and again without work.
    """
    actor = supervisor.find(session)
    old = actor.session
    if not old.ended:
        raise error("alive", f"Session {old.name} is alive ({old.shown_status.value})", f"sm attach {old.name}")
    if old.id in supervisor.restoring:
        raise error("alive", f"Session {old.name} is being restored", f"sm attach {old.name}")
    refused = None if force else stays_down(old, supervisor.clock.now())
    if refused is not None:
        raise SmError(refused)
    supervisor.restoring.add(old.id)
    try:
        return await _restore(supervisor, actor, env, arguments)
    finally:
        supervisor.restoring.discard(old.id)


async def _restore(
    supervisor: Supervisor, actor: Actor, env: Mapping[str, str], arguments: tuple[str, ...] | None
) -> Session:
    old = actor.session
    existing_directory(old.directory)
    if not await supervisor.terminations.over(old.id):
        raise error("still_ending", f"The last client of {old.name} has not ended yet", "try again in a moment")
    record = supervisor.launches.get(old.id, LaunchRecord())
    if arguments is not None:
        record = replace(record, arguments=arguments)
    token, launch = _prepare(supervisor, old, record, env, resume=_resumable(supervisor, old), again=True)
    await supervisor.store.renew(old.id, token)
    if not await _takes_again(supervisor, actor):
        token, launch = _prepare(supervisor, old, record, env, resume=_resumable(supervisor, actor.session), again=True)
        await supervisor.store.renew(old.id, token)
    supervisor.tokens = {known: one for known, one in supervisor.tokens.items() if one != old.id}
    supervisor.tokens[token_hash(token)] = old.id
    await supervisor.panes.clear(old.id)
    await _run(supervisor, actor, launch)
    return actor.session


async def _takes_again(supervisor: Supervisor, actor: Actor) -> bool:
    """Take the document that was given back when the session ended; False if by now another has it."""
    session = actor.session
    left = handoff_offers.left_behind(None, session.rotation, session.kept)
    if left is None:
        return True
    try:
        await supervisor.store.take(left, session)
    except SmError as problem:
        if problem.refused.code not in NOT_TO_BE_HAD:
            raise
        at, reason = supervisor.clock.now(), problem.refused.message
        await supervisor.ask(actor, ev.HandoffWithdrawn(at=at, handoff=left.id, reason=reason))
        return False
    supervisor.handoffs.note(left.channel)
    return True


NOT_TO_BE_HAD = frozenset({"handoff_taken", "handoff_closed"})


def _resumable(supervisor: Supervisor, session: Session) -> str | None:
    """The conversation to go on with; None if a handoff is to be taken up, or it holds no reply yet."""
    current, provider = session.conversation, supervisor.providers.get(session.provider)
    if current is None or provider is None or (session.rotation is not None and session.rotation.unfinished):
        return None
    transcript = transcript_of(provider, session)
    return current.id if transcript and provider.resumable(transcript) else None


def _prepare(
    supervisor: Supervisor,
    session: Session,
    record: LaunchRecord,
    env: Mapping[str, str],
    *,
    resume: str | None = None,
    again: bool = False,
) -> tuple[str, Launch]:
    provider = supervisor.adapter(session.provider)
    foreground = session.foreground is not None and not again
    wish = request(supervisor, session, record, env)
    wish = replace(wish, resume=resume, foreground=foreground, again=again)
    token = secrets.token_urlsafe(TOKEN_BYTES)
    launch = provider.launch(wish, token)
    if any("\0" in text for text in (*launch.argv, *launch.env, *launch.env.values())):
        raise error("bad_request", "Arguments, model and environment of a client must not contain NUL characters")
    if shutil.which(launch.argv[0], path=launch.env.get("PATH")) is None:
        hint = f"install it, name one with --client, or set {provider.name}.command in the configuration"
        raise error("client_not_found", f"Client not found: {launch.argv[0]}", hint)
    if launch.continues:
        _refuse_second_client(supervisor, provider, launch)
    return token, launch


def _refuse_second_client(supervisor: Supervisor, provider: Provider, launch: Launch) -> None:
    """Two clients on one conversation would write one transcript, each without the other's half."""
    found = provider.running(launch.config, launch.continues)
    if found is None:
        return
    where = found.terminal or "without a terminal"
    living = (one.session for one in supervisor.actors.values() if not one.session.ended)
    holder = next((one for one in living if one.pid == found.pid), None)
    shown = f"pid {found.pid}, {where}" if holder is None else f"session {holder.name}, pid {found.pid}, {where}"
    way = f"{provider.traits.exit_command} in its terminal, or kill {found.pid}"
    raise error(
        "running_elsewhere",
        f"Another client has conversation {launch.continues} open: {shown}",
        f"end that client first ({way}), then run this command again"
        if holder is None or holder.pane is None
        else f"sm attach {holder.name} shows it",
    )


def request(supervisor: Supervisor, session: Session, record: LaunchRecord, env: Mapping[str, str]) -> LaunchRequest:
    """What every start of a session's client asks for."""
    return LaunchRequest(
        session=session.id,
        name=session.name,
        directory=session.directory,
        env=env,
        model=record.model,
        arguments=record.arguments,
        command=record.command,
        documents=str(supervisor.documents.folder(session.directory)),
        messages=str(supervisor.documents.message_folder(session.id)),
        gate=session.policy.gate,
    )


async def _run(supervisor: Supervisor, actor: Actor, launch: Launch) -> None:
    session = actor.session
    try:
        pane = await supervisor.panes.create(session, launch, supervisor.documents.log(session.id))
    except (OSError, ValueError, PaneError) as problem:
        reason = f"the client could not be started: {problem}"
        await supervisor.ask(actor, ev.LaunchFailed(at=supervisor.clock.now(), reason=reason))
        raise error("launch_failed", reason, "sm doctor looks for the cause") from problem
    except BaseException:  # whatever it was: nobody would ever end the session that seems to start
        actor.put(ev.LaunchFailed(at=supervisor.clock.now(), reason="the client could not be started"))
        raise
    launched = ev.SessionLaunched(
        at=supervisor.clock.now(),
        pane=pane.pane,
        pid=pane.pid,
        conversation=launch.conversation,
        config=launch.config,
        asked=launch.asked,
        limits=supervisor.providers[session.provider].limits(launch.config, session.directory, launch.asked),
    )
    await supervisor.ask(actor, launched)


def existing_directory(directory: str) -> Path:
    """As the file system knows it: without links, and without `..`. A client names its project by that, too."""
    path = Path(directory)
    try:
        if path.is_absolute() and path.is_dir():
            return path.resolve()
        why = ""
    except (OSError, ValueError) as problem:
        why = f" ({getattr(problem, 'strerror', None) or problem})"
    shown = directory if len(directory) <= MOST_SHOWN else f"{directory[:MOST_SHOWN]}…"
    raise error("no_directory", f"No such directory: {shown}{why}", "give an existing directory")
