"""What a client of another kind is started with: the rights of the one that it is started for, and no more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sm.core.errors import error
from sm.core.model.rotation import Switch
from sm.core.model.session import Session
from sm.core.ports.provider import Launcher
from sm.core.ports.store import LaunchRecord


def mapped_arguments(
    session: Session, given: tuple[str, ...], own: Launcher, other: Launcher, directory: str
) -> tuple[str, ...]:
    """Return what starts another kind of client with the rights that the session's own has; SmError if none can be."""
    restricting = own.restrictions(given)
    if restricting:
        message = (
            f"What restricts session {session.name} has no counterpart in another client: {', '.join(restricting)}"
        )
        raise error("rights", message, "keep to its own client, or ask the user, who may say what the other one may do")
    return other.arguments_for(own.rights(session.mode), directory)


def successor(session: Session, own: LaunchRecord, switch: Switch, providers: Mapping[str, Launcher]) -> LaunchRecord:
    """Return how the client is started that continues in the place of the session's own; SmError if none may be.

    Nothing is passed on of the arguments, the model and the executable of the one before.
    """
    if switch.back:
        return own.before if own.before is not None and own.provider == switch.left else own
    before, other = providers[session.provider], providers[switch.to]
    if switch.arguments:  # the user has said what it may do
        mapped = other.arguments_for(before.rights(session.mode), session.directory)
    else:
        mapped = mapped_arguments(session, own.arguments, before, other, session.directory)
    return LaunchRecord((*mapped, *switch.arguments), provider=switch.to, before=replace(own, before=None))
