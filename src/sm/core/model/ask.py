"""What a client asks its user in a dialog: a permission, a question of the agent, a plan to approve.

The dialog is open in the client's terminal as usual; whoever answers first wins, the user there or through `sm`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class AskKind(StrEnum):
    PERMISSION = "permission"
    QUESTION = "question"
    PLAN = "plan"


class AskState(StrEnum):
    OPEN = "open"
    ANSWERED = "answered"
    """Through `sm`."""
    EXPIRED = "expired"
    """The client no longer waits for `sm`: the dialog may still be open, and is answered in its terminal only."""
    WITHDRAWN = "withdrawn"
    """The dialog is gone: answered in its terminal, interrupted, or its client has ended."""


class Decision(StrEnum):
    ALLOW = "allow"
    DENY = "deny"
    ANSWER = "answer"


@dataclass(frozen=True, slots=True)
class Ask:
    id: str
    kind: AskKind
    tool: str
    asked: float
    """UTC seconds."""
    agent: str = ""
    """The subagent that asks; empty for the main agent."""
    seen: bool = False
    """Whether the client showed a dialog while a subagent's ask was open."""
    state: AskState = AskState.OPEN
    changed: float = 0.0
    reason: str = ""
    """Why it is over, where it was not answered, or why it is open again."""
    decision: Decision | None = None
    always: bool = False
    """What it asks for is allowed from now on."""
    by: str = ""
    """The session that answered it; empty for the user."""
    hidden: bool = False
    """Its client shows the dialog only once `sm` has let go of its hook."""

    @property
    def unseen(self) -> bool:
        """Whether no dialog is open for it, as far as is known: its client waits for `sm` before it shows one.

        A client does so for a subagent that works in the background (2.1.328, 2.1.290); the dialog of any other is
        open while `sm` is asked.
        """
        shows_none = self.hidden or (bool(self.agent) and not self.seen)
        return shows_none and self.state is AskState.OPEN


@dataclass(frozen=True, slots=True)
class AskRequest:
    """What the client asks."""

    kind: AskKind
    tool: str
    input: str = "{}"
    """What the tool was given, as JSON."""
    suggestions: str = "[]"
    """The lasting permissions that the client offers with it, as JSON, in its own form."""
    agent: str = ""
    hidden: bool = False
    """Its client shows the dialog only once `sm` has let go of its hook."""
    stays: bool = False
    """Its client asks in another view as well all the while: no hook is to be let go of."""


@dataclass(frozen=True, slots=True)
class StoredAsk:
    ask: Ask
    session: str
    request: AskRequest
    """Without secrets; an input that is too large is not kept."""
    answer: str = ""
    """Its words, without secrets."""
    answers: tuple[str, ...] = ()
    """The answer to each question, word for word; empty where a secret was taken out of them."""


@dataclass(frozen=True, slots=True)
class AskOption:
    label: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    options: tuple[AskOption, ...] = ()
    several: bool = False
    """More than one may be chosen."""


@dataclass(frozen=True, slots=True)
class AskDetails:
    """What a request says, for people."""

    questions: tuple[Question, ...] = ()
    always: tuple[str, ...] = ()
    """What is allowed from now on, if it is allowed for always."""


AskReply = str | int | list[int]
"""The answer to one question: own words, the number of an option from 1, or several of them."""


@dataclass(frozen=True, slots=True)
class AskAnswer:
    """What the client gets."""

    decision: Decision
    text: str = ""
    """DENY: what the agent reads."""
    always: bool = False
    answers: tuple[str, ...] = ()
    """ANSWER: one for each question."""

    @property
    def words(self) -> str:
        return "; ".join(self.answers) or self.text
