"""What is kept of the contexts a session has been through; how long: `core/rules/retention.py`."""

from __future__ import annotations

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
    provider: str = ""
    """Whose client it was in; empty for the session's own."""


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
