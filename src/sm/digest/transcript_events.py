"""What can happen in a conversation, whoever the client is: what a provider reads out of its transcript, in order.

Words of a person are `Said` and nothing else. What a tool put out, a file, a hook, another agent or the client itself
said is never among them; another agent's, which may be what the session is for, are `Told`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Change(StrEnum):
    CREATED = "created"
    EDITED = "edited"
    DELETED = "deleted"
    RENAMED = "renamed"


class TodoState(StrEnum):
    OPEN = "pending"
    STARTED = "in_progress"
    DONE = "completed"


@dataclass(frozen=True, slots=True)
class Said:
    """A person's own words."""

    text: str
    interrupting: bool = False
    """Said while the agent worked: as a message in between, or as the reason of a refusal."""
    pasted: int = 0
    """Lines that were pasted with it and are left out."""
    beside: str = ""
    """The call that was approved or refused with these words."""
    refusing: bool = False


@dataclass(frozen=True, slots=True)
class Told:
    """Words of another agent that were put to this one as a prompt, or beside other things."""

    sender: str
    text: str


@dataclass(frozen=True, slots=True)
class Rewound:
    """The person went back to before one of their earlier words, which with all that followed no longer counts."""

    said: int
    """How many of their words still do, those of other agents counted with them."""


@dataclass(frozen=True, slots=True)
class Replied:
    """Text of the agent for the person."""

    text: str
    closing: bool
    """It ended a turn."""


@dataclass(frozen=True, slots=True)
class Ran:
    """A command has ended."""

    command: str
    failed: bool
    output: str = ""
    """Of a command that failed or made a commit; of others it is left out."""


@dataclass(frozen=True, slots=True)
class Touched:
    """A tool has changed a file."""

    path: str
    change: Change


@dataclass(frozen=True, slots=True)
class Planned:
    """The to-do list as it is from now on."""

    todos: tuple[tuple[str, TodoState], ...]


@dataclass(frozen=True, slots=True)
class Chose:
    """The person has answered a question, with one of the choices or in their own words."""

    question: str
    answer: str
    notes: str = ""


@dataclass(frozen=True, slots=True)
class Proposed:
    """A plan was put before the person, who has decided on it."""

    plan: str
    approved: bool


@dataclass(frozen=True, slots=True)
class RanByUser:
    """The person has run a command in the client's box."""

    command: str
    output: str


@dataclass(frozen=True, slots=True)
class Forked:
    """All that came before was copied from another conversation, and what follows is this one's own."""


@dataclass(frozen=True, slots=True)
class TaskStarted:
    """Something runs in the background."""

    id: str
    name: str
    command: str = ""


@dataclass(frozen=True, slots=True)
class TaskEnded:
    id: str


@dataclass(frozen=True, slots=True)
class CutShort:
    """A call has no result: it was interrupted, refused, or the client died in it."""

    what: str
    path: str | None = None
    """The file it would have changed."""
    refused: bool = False
    """The person did not want it."""


@dataclass(frozen=True, slots=True)
class Inherited:
    """The conversation began from a handoff; this is its document."""

    id: str
    document: str


@dataclass(frozen=True, slots=True)
class Compacted:
    """The client has replaced what came before by a summary of its own."""


@dataclass(frozen=True, slots=True)
class Workplace:
    """Where the agent is at work, as far as the records tell."""

    directory: str
    branch: str


Happening = (
    Said
    | Told
    | Rewound
    | Replied
    | Ran
    | Touched
    | Planned
    | Chose
    | Proposed
    | RanByUser
    | Forked
    | TaskStarted
    | TaskEnded
    | CutShort
    | Inherited
    | Compacted
    | Workplace
)
