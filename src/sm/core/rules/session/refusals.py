"""What a session refuses, and why."""

from __future__ import annotations

from collections.abc import Iterable

from sm.core.errors import Refused
from sm.core.ids import as_argument
from sm.core.model.rotation import UNDER_WAY
from sm.core.model.session import Session


def may_hand_off(session: Session) -> Refused | None:
    if session.ended:
        return Refused("ended", f"Session {session.id} has ended", "sm restore brings it back")
    if session.only_watched:
        return external_client(session)
    current = session.rotation
    if current is not None and current.phase in UNDER_WAY:
        return Refused("rotating", f"A handoff is already in progress ({current.phase.value})", "sm handoff --status")
    if current is not None and current.active and current.handoff is None:
        return Refused("rotating", "This context is about to be cleared by the parent or the user", "end your turn")
    return None


def may_switch(session: Session) -> Refused | None:
    """Why no other client can continue the session."""
    if session.adopted:
        return external_client(session)
    if session.foreground is not None:
        message = f"Session {session.name} runs in the user's own terminal: sm starts no other client there"
        return Refused("switch_refused", message, "hand off without --to, or start the session with sm new")
    if session.attempt:
        message = f"Session {session.name} works on an attempt of a run, which keeps its client"
        return Refused("switch_refused", message, "hand off without --to")
    return None


MAX_FAILED_STARTS = 5
FAILED_STARTS_WINDOW_S = 300.0
"""Seconds."""


def stays_down(session: Session, now: float) -> Refused | None:
    """Why the session is not started again: whatever restores it, as a timer, would do so without end."""
    recent = [at for at in session.failed_starts if 0 <= now - at < FAILED_STARTS_WINDOW_S]
    if len(recent) < MAX_FAILED_STARTS:
        return None
    seconds = int(FAILED_STARTS_WINDOW_S - (now - recent[0])) + 1
    message = (
        f"Session {session.name} stays down: its client has ended {len(recent)} times within"
        f" {now - recent[0]:.0f} s without finishing a turn"
    )
    name = as_argument(session.name, session.id)
    hint = f"sm output {name} shows why; restore it in {seconds} s, or now with sm restore {name} --force"
    return Refused("restart_loop", message, hint)


def second_client(conversation: str, pid: int, terminal: str, living: Iterable[Session], exit_command: str) -> Refused:
    """Refuse to start a client on a conversation that the process `pid` has open, by itself or for one of `living`.

    Two clients on one conversation would write one transcript, each without the other's half.
    """
    where = f"pid {pid}, {terminal or 'without a terminal'}"
    holder = next((session for session in living if session.pid == pid), None)
    shown = where if holder is None else f"session {holder.name}, {where}"
    hint = f"end that client first ({exit_command} in its terminal, or kill {pid}), then run this command again"
    if holder is not None and holder.pane is not None:
        hint = f"sm attach {as_argument(holder.name, holder.id)} shows it"
    return Refused("running_elsewhere", f"Another client has conversation {conversation} open: {shown}", hint)


def external_client(session: Session) -> Refused:
    """Refuse what would type into, rotate or end a client that the user started."""
    return Refused("adopted", f"Session {session.name} runs in a terminal of its own: sm only watches it", OWN_TERMINAL)


OWN_TERMINAL = "use that terminal; after it has ended, sm restore continues it in a pane"
