"""The line below a session's pane: who it is, how full its context is, what waits, and who else waits for the user."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sm.core.model.session import Session, Status

MAX_NAMED = 3
"""Other sessions that wait and are named."""


def pane_line(session: Session, waiting: Sequence[str]) -> str:
    """Return the text; `waiting` are the names of the other sessions that wait for the user."""
    others = [name for name in waiting if name != session.name]
    return " · ".join([*_others(others), session.name, *_own(session)])  # a narrow terminal cuts the end


def waits_for_user(session: Session) -> bool:
    """Whether it does nothing until the user has looked at it."""
    paused = session.rotation is not None and session.rotation.paused
    paused = paused or session.budget.paused
    return not session.ended and (paused or session.shown_status in {Status.WAITING, Status.BLOCKED})


def _own(session: Session) -> Iterator[str]:
    if session.rotation is not None and session.rotation.active:
        yield f"handoff {session.rotation.phase.value}"
    if session.limit is not None:
        yield "usage limit"
    if session.budget.paused:
        yield "budget used"
    if session.outbox.waiting:
        yield f"{session.outbox.waiting} message{'' if session.outbox.waiting == 1 else 's'} queued"
    monitor = session.conversation.monitor if session.conversation is not None else None
    if monitor is not None and monitor.projected is not None:
        yield f"{monitor.projected:,} tokens" if monitor.percent is None else f"context {monitor.percent:.0f}%"


def _others(names: Sequence[str]) -> Iterator[str]:
    if names:
        more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
        yield f"{', '.join(names[:MAX_NAMED])}{more} {'waits' if len(names) == 1 else 'wait'} for you"
