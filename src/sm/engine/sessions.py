"""The sessions of this server: which there are, whose token is whose, and what is asked of one by id or name."""

from __future__ import annotations

import difflib
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from sm.core import events as ev
from sm.core.errors import SmError, error
from sm.core.ids import PREFIX_RULE, as_argument, is_prefix, name_fault, token_hash, too_short
from sm.core.model.notices import who
from sm.core.model.session import Session
from sm.core.ports.clock import Clock
from sm.core.ports.panes import Panes
from sm.core.ports.provider import Launcher
from sm.core.ports.store import LaunchRecord, Store
from sm.core.rules.session.refusals import external_client
from sm.core.rules.team import already_ended
from sm.engine.actor import Actor
from sm.engine.termination import Terminations
from sm.processes import alive

MIN_SIMILARITY = 0.7
"""A name that is as similar to one of a session counts as a misspelling of it."""
MIN_BEGINNING = 2
"""Characters with which a name may be meant that begins so."""


@dataclass(slots=True)
class Sessions:
    store: Store
    clock: Clock
    panes: Panes
    terminations: Terminations
    actors: dict[str, Actor] = field(default_factory=dict)
    """By session id."""
    tokens: dict[str, str] = field(default_factory=dict)
    """Session id by token hash."""
    launches: dict[str, LaunchRecord] = field(default_factory=dict)
    """How each session's client was started, by session id."""
    names_in_use: list[str] = field(default_factory=list)
    """Names of the sessions that are being made."""
    restoring: set[str] = field(default_factory=set)
    """Sessions whose client is being started again: one at a time."""

    # --- the registry --------------------------------------------------------------------------------------------

    async def load(self) -> None:
        """Read the tokens and launches that the store has."""
        self.tokens = await self.store.tokens()
        self.launches = await self.store.launches()

    def add(self, actor: Actor) -> None:
        self.actors[actor.session.id] = actor

    def drop(self, session: str) -> None:
        """Forget a session that the store has forgotten."""
        self.actors.pop(session).retire()
        self.tokens = {known: owner for known, owner in self.tokens.items() if owner != session}
        self.launches.pop(session, None)

    def set_token(self, session: str, token: str) -> None:
        """Let this token, and no earlier one, prove to be the session."""
        others = {known: owner for known, owner in self.tokens.items() if owner != session}
        self.tokens = {**others, token_hash(token): session}

    def by_token(self, hashed: str) -> str | None:
        return self.tokens.get(hashed)

    @contextmanager
    def reserved(self, name: str) -> Iterator[None]:
        """Keep the name for a session that is being made."""
        self.names_in_use.append(name)
        try:
            yield
        finally:
            self.names_in_use.remove(name)

    @contextmanager
    def being_restored(self, session: str) -> Iterator[None]:
        self.restoring.add(session)
        try:
            yield
        finally:
            self.restoring.discard(session)

    def launch_of(self, session: Session) -> LaunchRecord:
        """Return how the client that it has was started: its next one may already be noted."""
        record = self.launches.get(session.id, LaunchRecord())
        others = record.before is not None and record.provider != session.provider
        return record.before if others and record.before is not None else record

    # --- looking one up ------------------------------------------------------------------------------------------

    def actor(self, session: str) -> Actor:
        actor = self.actors.get(session)
        if actor is None:
            raise error("not_found", f"Session {session} not found", "sm list shows the sessions")
        return actor

    def find(self, name: str) -> Actor:
        """Return the session with that id, or the living, else the newest ended one of that name.

        Where there is none, the one whose id begins so; SmError if two are meant: an agent may have taken the
        beginning of another session's id as its name.
        """
        if name in self.actors:
            return self.actors[name]
        named = self.called(name)
        others = [actor for actor in self._beginning_with(name) if actor.session.name != name]
        return self._by_prefix(name, others if named is None else [named, *others])

    def called(self, name: str) -> Actor | None:
        """Return the session with that very id, or the living, else the newest ended one of that name."""
        if name in self.actors:
            return self.actors[name]
        named = [actor for actor in self.actors.values() if actor.session.name == name]
        named.sort(key=lambda actor: (not actor.session.ended, actor.session.created))
        return named[-1] if named else None

    def _beginning_with(self, text: str) -> list[Actor]:
        begun = text.lower() if is_prefix(text) else None
        return [actor for actor in self.actors.values() if begun and actor.session.id.startswith(begun)]

    def _by_prefix(self, text: str, found: list[Actor]) -> Actor:
        if len(found) == 1:
            return found[0]
        if found:
            shown = ", ".join(who(actor.session) for actor in found)
            raise error("ambiguous", f"{text} means several sessions: {shown}", "give more of the id")
        meant = [f"did you mean {name}?" for name in self._similar(text)]
        if not meant and too_short(text):
            meant = [f"{PREFIX_RULE};"]
        raise error("not_found", f"Session {text} not found", " ".join([*meant, "sm list shows the sessions"]))

    def _similar(self, text: str) -> list[str]:
        """Return the name of a session that was probably meant, as a command takes it; a living one rather."""
        sessions = sorted(self.all(), key=lambda session: session.ended)
        names = {session.name: as_argument(session.name, session.id) for session in reversed(sessions)}
        nearest = difflib.get_close_matches(text, [*names], n=1, cutoff=MIN_SIMILARITY)
        longer = [name for name in [*names][::-1] if len(text) >= MIN_BEGINNING and name.startswith(text)]
        return [names[name] for name in (nearest or longer)[:1]]

    def all(self) -> list[Session]:
        return [actor.session for actor in self.actors.values()]

    def living(self) -> list[Session]:
        return [session for session in self.all() if not session.ended]

    def as_argument(self, session: str) -> str:
        """What a printed command calls it: its id where it is forgotten, or its name cannot be typed as it is."""
        actor = self.actors.get(session)
        return session if actor is None else as_argument(actor.session.name, session)

    def who(self, session: str) -> str:
        """Name and id; of a session that is forgotten the id alone."""
        actor = self.actors.get(session)
        return session if actor is None else who(actor.session)

    def taken_names(self) -> frozenset[str]:
        """Return the names of what lives or is being made."""
        return frozenset([*(session.name for session in self.living()), *self.names_in_use])

    def has_ended(self, session: str) -> bool:
        """False while its client is being started again: its first hook may be faster than the event of its start."""
        actor = self.actors.get(session)
        return actor is not None and actor.session.ended and session not in self.restoring

    async def pane_of(self, session: Session) -> str | None:
        """Return the session's pane while it exists. A new tmux counts from the start: its number may be another's."""
        status = await self.panes.status(session.pane) if session.pane is not None else None
        return status.pane if status is not None and status.session == session.id else None

    def problems(self) -> list[str]:
        """Return what the user should know of events that cannot be written, in words."""
        owing = [actor for actor in self.actors.values() if actor.owed]
        if not owing:
            return []
        count = sum(len(actor.owed) for actor in owing)
        what = "1 event waits" if count == 1 else f"{count} events wait"
        return [f"{owing[0].trouble}; {what} to be written, and no handoff takes place until there is room"]

    # --- commands ------------------------------------------------------------------------------------------------

    async def rename(self, session: str, name: str) -> None:
        check_name(name)
        actor = self.actor(session)
        if any(other.name == name for other in self.living() if other.id != actor.session.id):
            raise error("name_taken", f"A session named {name!r} is alive", "choose another name")
        await actor.ask(ev.SessionRenamed(at=self.clock.now(), name=name))

    async def kill(self, session: str, by: str = "") -> None:
        """Return once the client has ended; SmError if it has not in time, while the termination continues."""
        actor = self.actor(session)
        if actor.session.adopted and not actor.session.ended:
            raise SmError(external_client(actor.session))
        reason = f"killed by {self.actor(by).session.name}" if by else "killed"
        if not actor.session.ended:
            await actor.ask(ev.SessionKilled(at=self.clock.now(), reason=reason, by=by))
        elif not self.terminations.is_under_way(session):
            raise SmError(already_ended(actor.session))
        over, pid = await self.terminations.over(session), actor.session.pid
        if not over and pid is not None and alive(pid):
            raise error("still_ending", f"The client (pid {pid}) has not ended yet", "sm keeps trying")

    def release(self) -> None:
        """Answer whoever waits for a command: the server is about to stop."""
        for actor in self.actors.values():
            actor.pane_queue.release()
            actor.link.release()


TOKEN_BYTES = 32


def new_token() -> str:
    """Return a secret by which the client of one session, and what it starts, is known."""
    return secrets.token_urlsafe(TOKEN_BYTES)


Kind = TypeVar("Kind", bound=Launcher)


def check_name(name: str) -> None:
    if (wrong := name_fault(name)) is not None:
        raise error("bad_name", f"Invalid name {name!r}: {wrong}", "choose another name")


def provider_named(providers: Mapping[str, Kind], name: str) -> Kind:
    found = providers.get(name)
    if found is None:
        raise error("unknown_provider", f"No provider {name!r}", f"one of {', '.join(providers)}")
    return found
