"""Parents and children: who may have how many, how deep, and when one may be cleared. Killing a parent leaves its
children at work; they stay listed below it, and the user may end them. The table of the routes says who may ask.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sm.core.errors import Refused
from sm.core.ids import as_argument
from sm.core.model.client_traits import ClientTraits
from sm.core.model.rotation import UNDER_WAY
from sm.core.model.session import Session


@dataclass(frozen=True, slots=True)
class TeamLimits:
    """The `limits.*` of the configuration that concern children; `settings.py` has their meaning and defaults."""

    children: int
    depth: int


def may_spawn(parent: Session, sessions: Mapping[str, Session], limits: TeamLimits) -> Refused | None:
    if parent.ended:
        return Refused("ended", f"Session {parent.name} has ended", "sm restore brings it back")
    living = sum(not child.ended for child in children_of(parent.id, sessions.values()))
    if living >= limits.children:
        hint = "sm children lists them; sm kill CHILD ends one"
        return Refused("too_many", f"A session has at most {limits.children} living children", hint)
    if generation(parent, sessions) >= limits.depth:
        return Refused("too_deep", f"At most {limits.depth} generations of children", "do this part yourself")
    return None


def already_ended(session: Session) -> Refused:
    message = f"Session {session.name} has already ended ({session.detail})"
    return Refused("ended", message, f"sm restore {as_argument(session.name, session.id)} brings it back")


def may_remove(session: Session, sessions: Iterable[Session]) -> Refused | None:
    """Why a session stays in the list: it lives, or sessions that it started do, which report to it."""
    name = as_argument(session.name, session.id)
    if not session.ended:
        message = f"Session {session.name} has not ended ({session.shown_status.value})"
        return Refused("alive", message, f"sm kill {name} ends it")
    living = [child.name for child in children_of(session.id, sessions) if not child.ended]
    if living:
        message = f"Session {session.name} has living children: {', '.join(living)}"
        return Refused("alive", message, f"sm restore {name} brings it back to them; sm kill ends them")
    return None


def may_clear(session: Session, traits: ClientTraits) -> Refused | None:
    if session.ended:
        hint = f"sm restore {as_argument(session.name, session.id)} brings it back"
        return Refused("ended", f"Session {session.name} has ended ({session.detail})", hint)
    if session.foreground is not None:
        foreground = f"Session {session.name} runs in the user's own terminal"
        return Refused("in_foreground", foreground, f"type {traits.clear_command} there")
    current = session.rotation
    if current is not None and (current.phase in UNDER_WAY or current.handoff is None) and current.active:
        return Refused("rotating", f"Its context is being cleared already ({current.phase.value})", "sm children")
    return None


def children_of(parent: str, sessions: Iterable[Session]) -> tuple[Session, ...]:
    return tuple(session for session in sessions if session.parent == parent)


def family_of(session: str, sessions: Iterable[Session]) -> tuple[Session, ...]:
    """Return everything below the session, parents before their children."""
    known = tuple(sessions)
    found = list(children_of(session, known))
    for below in found:
        found.extend(child for child in children_of(below.id, known) if child not in found)
    return tuple(found)


def generation(session: Session, sessions: Mapping[str, Session]) -> int:
    """Return how many sessions are above it: 0 for one that the user started."""
    number = 0
    while session.parent is not None and session.parent in sessions:
        session, number = sessions[session.parent], number + 1
    return number
