"""What a session has used: each of its contexts, all of them, and all of it with its children."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sm.core.model.cost import ByModel, Price, Spending, spending, together
from sm.core.model.history import Context
from sm.core.model.session import Session


@dataclass(frozen=True, slots=True)
class ContextCost:
    context: Context
    spent: Spending


@dataclass(frozen=True, slots=True)
class SessionCost:
    session: Session
    spent: Spending
    contexts: tuple[ContextCost, ...]
    tree: Spending
    """With all its children and theirs."""


def session_costs(
    sessions: Sequence[Session],
    used: Mapping[str, Sequence[tuple[Context, ByModel]]],
    prices: Mapping[str, Price],
) -> list[SessionCost]:
    """Return what each session has cost; `used` is what each of its contexts has used."""
    own = {session.id: together(by_model for _, by_model in used[session.id]) for session in sessions}
    return [
        SessionCost(
            session,
            spending(own[session.id], prices),
            tuple(ContextCost(context, spending(by_model, prices)) for context, by_model in used[session.id]),
            spending(together(own[member] for member in family(session.id, sessions)), prices),
        )
        for session in sessions
    ]


def of_run(run: str, sessions: Iterable[Session]) -> list[Session]:
    """Return the sessions that work on attempts of the run, their children and theirs."""
    known = list(sessions)
    roots = [session.id for session in known if session.attempt.startswith(f"{run}/")]
    members = {member for root in roots for member in family(root, known)}
    return [session for session in known if session.id in members]


def family(session: str, sessions: Iterable[Session]) -> list[str]:
    """Return the session, its children and theirs."""
    known = list(sessions)
    found = [session]
    for member in found:  # it grows while it is read
        found += [child.id for child in known if child.parent == member and child.id not in found]
    return found
