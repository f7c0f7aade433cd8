"""Events of a conversation, the same for every client: a provider reads them from its transcript, in order.

Words of the user are `UserSaid`, which holds nothing else: no output of a tool, a file, a hook or the client itself.
Messages of other agents, which may be the task of the session, are `AgentMessaged`.
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
class UserSaid:
    """The user's own words."""

    text: str
    interrupting: bool = False
    """Said while the agent worked: as a message in between, or as the reason of a refusal."""
    pasted: int = 0
    """Lines that were pasted with it and are left out."""
    about_call: str = ""
    """The call that was approved or refused with these words."""
    refusing: bool = False


@dataclass(frozen=True, slots=True)
class AgentMessaged:
    """A message of another agent, as a prompt or within other text."""

    sender: str
    text: str


@dataclass(frozen=True, slots=True)
class Rewound:
    """The user went back to before an earlier message, which with all that followed no longer counts."""

    said: int
    """How many messages still count, those of other agents included."""


@dataclass(frozen=True, slots=True)
class AgentReplied:
    """Text of the agent for the user."""

    text: str
    closing: bool
    """It ended a turn."""


@dataclass(frozen=True, slots=True)
class CommandRan:
    """A command has ended."""

    command: str
    failed: bool
    output: str = ""
    """Of a command that failed or made a commit; of others it is left out."""


@dataclass(frozen=True, slots=True)
class FileChanged:
    """A tool has changed a file."""

    path: str
    change: Change
    source: str | None = None
    """What a renamed file was called before."""


@dataclass(frozen=True, slots=True)
class TodosChanged:
    """The to-do list from now on."""

    todos: tuple[tuple[str, TodoState], ...]


@dataclass(frozen=True, slots=True)
class QuestionAnswered:
    """The user has answered a question, with one of the choices or in their own words."""

    question: str
    answer: str
    notes: str = ""


@dataclass(frozen=True, slots=True)
class PlanDecided:
    """The user has approved or refused a plan."""

    plan: str
    approved: bool


@dataclass(frozen=True, slots=True)
class UserRanCommand:
    """The user has run a command in the client's input box."""

    command: str
    output: str


@dataclass(frozen=True, slots=True)
class Forked:
    """All that came before was copied from another conversation; what follows is this one's own."""


@dataclass(frozen=True, slots=True)
class TaskStarted:
    """A task has started in the background."""

    id: str
    name: str
    command: str = ""


@dataclass(frozen=True, slots=True)
class TaskEnded:
    id: str


@dataclass(frozen=True, slots=True)
class CallInterrupted:
    """A call has no result: it was interrupted or refused, or the client died during it."""

    what: str
    path: str | None = None
    """The file it would have changed."""
    refused: bool = False
    """The user refused it."""


@dataclass(frozen=True, slots=True)
class HandoffRead:
    """The conversation began from a handoff, with this document."""

    id: str
    document: str


@dataclass(frozen=True, slots=True)
class Compacted:
    """The client has replaced what came before by a summary of its own."""


@dataclass(frozen=True, slots=True)
class WorkingDirectory:
    """Where the agent works, as far as the records show."""

    directory: str
    branch: str


TranscriptEvent = (
    UserSaid
    | AgentMessaged
    | Rewound
    | AgentReplied
    | CommandRan
    | FileChanged
    | TodosChanged
    | QuestionAnswered
    | PlanDecided
    | UserRanCommand
    | Forked
    | TaskStarted
    | TaskEnded
    | CallInterrupted
    | HandoffRead
    | Compacted
    | WorkingDirectory
)
