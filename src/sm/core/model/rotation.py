"""How far a rotation is: its phases, and what is known of one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sm.core.model.handoff import Handoff


class Phase(StrEnum):
    PENDING = "pending"
    """Waits for the turn to end."""
    RESERVED = "reserved"
    """The turn has ended; waits for the client to be idle at its prompt."""
    SNAPSHOT = "snapshot"
    """The client is idle; waits for the terminal's history to be saved."""
    CLEARING = "clearing"
    """`/clear` goes out; waits for the new conversation."""
    EMPTY = "empty"
    """The context is new; waits for the prompt."""
    PROMPTING = "prompting"
    """The wake prompt goes out; waits for the client to submit exactly it."""
    DONE = "done"
    """The agent works in the new context."""
    FAILED = "failed"
    """The user has to decide; a context that was cleared still gets the document."""
    CANCELLED = "cancelled"
    """Taken back, or its session was killed; the document is kept."""


@dataclass(frozen=True, slots=True)
class PhaseEntered:
    """That a rotation has entered a phase, as it is kept beside the event that moved it."""

    at: float
    event: str
    """The kind of that event."""
    phase: str
    handoff: str
    """The handoff's id; empty where nothing is carried over."""


BEFORE_CLEAR = frozenset({Phase.RESERVED, Phase.SNAPSHOT, Phase.CLEARING})
AFTER_CLEAR = frozenset({Phase.EMPTY, Phase.PROMPTING})
OVER = frozenset({Phase.DONE, Phase.FAILED, Phase.CANCELLED})
UNDER_WAY = BEFORE_CLEAR | AFTER_CLEAR
IN_ORDER = tuple(phase for phase in Phase if phase not in {Phase.FAILED, Phase.CANCELLED})
"""The phases of a rotation that goes well."""
CANCELLABLE = frozenset({Phase.PENDING, Phase.RESERVED, Phase.SNAPSHOT})


@dataclass(frozen=True, slots=True)
class Switch:
    """Another client continues from the document, in the same session."""

    to: str
    """Its provider."""
    arguments: tuple[str, ...] = ()
    """Arguments for it that the user has given."""
    left: str = ""
    """The provider of the client that is left for it, from the moment at which that is ended."""
    back: bool = False
    """The new client did not start: the one before is to take up the document."""


@dataclass(frozen=True, slots=True)
class Rotation:
    handoff: Handoff | None
    """None for `sm clear`: nothing is carried over, and what is queued for the session begins the new context."""
    phase: Phase = Phase.PENDING
    since: float = 0.0
    """When the phase was entered."""
    deadline: float | None = None
    note: str = ""
    """What holds it, or why it ended, in words for the user."""
    attempts: int = 0
    snapshot: str | None = None
    stopped: float | None = None
    """When the Stop hook came that this rotation runs on."""
    finished: float | None = None
    background: tuple[str, ...] = ()
    cleared: bool = False
    """The context is gone: from here only forward."""
    scheduled: tuple[str, ...] = ()
    waiting_background: bool = False
    announced: bool = False
    """True if a SessionStart reply could carry the document."""
    began: str = ""
    """The conversation that began empty."""
    answered: bool = False
    """The agent has gone on in the new context: only now could it do without the document."""
    taken_over: bool = False
    """A server's new life looks for what the old one may have typed: what is not there yet may still come."""
    woken_in: str = ""
    """The conversation the wake prompt went to."""
    progress: bool = True
    """The user asked for it, or a file was changed or committed in the context that it leaves."""
    paused: bool = False
    """It waits for the user: see `core/rules/loop_guard.py`."""
    said: tuple[str, ...] = ()
    """Prompts that came after the document and before the clear: the context that they were said in is gone."""
    next: str = ""
    """The conversation that `sm run` starts its client again for."""
    in_place: bool = False
    """In a client that the user started: the agent has no permission for files of `sm`, and the plugin gives it all."""

    switch: Switch | None = None

    @property
    def changes_client(self) -> bool:
        """One client is ended and the other one started."""
        return self.switch is not None and bool(self.switch.left) and self.phase is Phase.CLEARING

    @property
    def may_turn_back(self) -> bool:
        """The client before can still take the document up: the new one has not shown that it works."""
        switch, begins = self.switch, self.phase is Phase.CLEARING or self.phase in AFTER_CLEAR
        return switch is not None and bool(switch.left) and not switch.back and begins

    @property
    def active(self) -> bool:
        return self.phase not in OVER

    @property
    def unfinished(self) -> bool:
        """The next context begins from the document: it is owed to an agent whose context is gone or will be."""
        return self.active or (self.phase in {Phase.FAILED, Phase.CANCELLED} and self.cleared)

    @property
    def holds_messages(self) -> bool:
        """Messages wait for the new context; after a failure past the clear too, until the user retries."""
        return self.active or (self.phase is Phase.FAILED and self.cleared)


def phase_entered(before: Rotation | None, after: Rotation | None) -> tuple[Phase, str] | None:
    """Return the phase, and the id of the handoff, if the rotation has entered another phase or is another one."""
    now, last = _phase_of(after), _phase_of(before)
    return None if now == last else now


def _phase_of(rotation: Rotation | None) -> tuple[Phase, str] | None:
    if rotation is None:
        return None
    return rotation.phase, rotation.handoff.id if rotation.handoff else ""
