"""What is kept of the contexts a session has been through, and how long."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sm.core.model.handoff import HandoffState

UNFINISHED = frozenset({HandoffState.PENDING.value, HandoffState.ACTIVE.value})
DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Context:
    """One of a session's contexts; they are counted from 1."""

    number: int
    conversation: str
    transcript: str | None
    started: float
    log_start: int
    """Bytes the terminal had shown when it began."""


@dataclass(frozen=True, slots=True)
class Document:
    """A handoff document as we keep it."""

    id: str
    conversation: str
    path: str
    created: float
    state: str


@dataclass(frozen=True, slots=True)
class SessionHistory:
    """One session, as the archive knows it."""

    session: str
    provider: str
    ended: bool
    last_activity: float
    contexts: tuple[Context, ...]
    documents: tuple[Document, ...] = ()
    snapshot: str | None = None
    """The snapshot that its newest rotation has named or will name to an agent."""

    @property
    def waits(self) -> bool:
        """Ended with a handoff that a restart would continue from: then nothing of it is removed."""
        return self.ended and any(document.state in UNFINISHED for document in self.documents)

    def context_at(self, at: float) -> int:
        """Return the number of the context that was current at that time."""
        return max((context.number for context in self.contexts if context.started <= at), default=1)

    def context_of(self, conversation: str) -> int:
        return next((context.number for context in self.contexts if context.conversation == conversation), 1)


@dataclass(frozen=True, slots=True)
class LogRange:
    """The part of a terminal's log that is one context's."""

    context: Context
    start: int
    end: int
    paint: int
    """The position from which its screen is to be painted: its start, or before it."""
    closed: bool
    """Another context has followed."""


@dataclass(frozen=True, slots=True)
class Artefact:
    """A file of the archive."""

    kind: str
    """`log`, `snapshot`, `transcript` or `handoff`."""
    session: str
    contexts: tuple[int, ...]
    path: str
    size: int
    at: float
    """When it was last written, UTC seconds."""
    current: bool = False
    """A terminal log that is still written to, or the segment just before it."""


@dataclass(frozen=True, slots=True)
class Retention:
    keep: float
    """Seconds that what an ended session left is kept; 0 for ever."""
    total: int
    """Bytes of all logs and snapshots; 0 for no limit."""
    max_log: int = 64 << 20
    """Bytes at which a log is rotated; 0 for never."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that holds what was searched for."""

    at: float
    session: str
    context: int | None
    kind: str
    """`terminal`, `transcript` or `handoff`."""
    path: str
    line: str
    marks: tuple[tuple[int, int], ...]
    """Where in the line the words are."""


PRUNED_KINDS = frozenset({"log", "snapshot"})
"""The kinds that pruning removes: a transcript is the client's, and documents are small."""


def expired(history: SessionHistory, retention: Retention, now: float) -> bool:
    return history.ended and not history.waits and bool(retention.keep) and history.last_activity < now - retention.keep


def to_prune(
    artefacts: Iterable[Artefact], histories: Iterable[SessionHistory], retention: Retention, now: float
) -> list[Artefact]:
    """Return what to remove, by age and then by size; never what a living session or an open handoff needs."""
    known = {history.session: history for history in histories}
    gone: list[Artefact] = []
    left: list[Artefact] = []
    for artefact in artefacts:
        if artefact.kind in PRUNED_KINDS:
            (gone if _too_old(artefact, known.get(artefact.session), retention, now) else left).append(artefact)
    too_much = sum(artefact.size for artefact in left) - retention.total if retention.total else 0
    for unit in _by_age(left, known):
        if too_much <= 0:
            break
        gone += unit
        too_much -= sum(artefact.size for artefact in unit)
    return gone


def _too_old(artefact: Artefact, history: SessionHistory | None, retention: Retention, now: float) -> bool:
    if history is None:  # of a session that the database does not know
        return bool(retention.keep) and artefact.at < now - retention.keep
    return expired(history, retention, now)


def _by_age(artefacts: list[Artefact], known: Mapping[str, SessionHistory]) -> list[list[Artefact]]:
    """Group files that are removed together, those of the sessions that ended first, then the oldest of the living.

    A log comes last of its session, together with the segment before it, by which its positions are known.
    """
    units: dict[object, list[Artefact]] = {}
    ranks: dict[object, tuple[bool, float, bool, float]] = {}
    for artefact in artefacts:
        history = known.get(artefact.session)
        if _needed(artefact, history):
            continue
        key = (artefact.session, "log") if artefact.current else artefact.path
        units.setdefault(key, []).append(artefact)
        living = history is not None and not history.ended
        ended = 0.0 if living else artefact.at if history is None else history.last_activity
        ranks[key] = (living, ended, artefact.current, artefact.at)
    return [units[key] for key in sorted(units, key=lambda key: ranks[key])]


def _needed(artefact: Artefact, history: SessionHistory | None) -> bool:
    if history is None:
        return False
    if history.waits:
        return True
    return not history.ended and (artefact.current or artefact.path == history.snapshot)
