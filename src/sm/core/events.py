"""What can happen to a session: a closed set of immutable facts, named in the past tense.

Don't subclass elsewhere. An event is made at the edge (a hook, the client's files, the screen, the clock, a command)
and carries no payload bodies but `text`, which the events that are kept do not hold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Concatenate, ParamSpec, TypeVar, cast

from sm.core.model.ask import AskKind, AskRequest, Decision
from sm.core.model.budget import BudgetShare
from sm.core.model.capacity import NO_LIMITS, ClientLimits
from sm.core.model.context import ContextReading, Policy, ToolWork
from sm.core.model.foreground import Foreground
from sm.core.model.handoff import Handoff
from sm.core.model.message import Message, Mode, StoredMessage
from sm.core.model.message_queue import Refill
from sm.core.model.rotation import Switch
from sm.core.model.usage_limit import UsageLimit


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that has happened to a session."""

    at: float
    """UTC, seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class BackgroundTask:
    """What a turn left running."""

    id: str
    kind: str
    """The client's word: `subagent`, `shell`, …"""
    description: str = ""


class Origin(StrEnum):
    """Why a conversation started."""

    STARTUP = "startup"
    RESUME = "resume"
    CLEAR = "clear"
    COMPACT = "compact"
    FORK = "fork"
    CLIENT_STATE = "witness"
    """No hook told us: the client's own files show the new conversation."""


STARTS = frozenset({Origin.STARTUP, Origin.RESUME})
"""The client itself has just been started."""


# --- the client's own hooks -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationStarted(Event):
    """The client began a conversation, or continued one (SessionStart)."""

    conversation: str
    transcript: str | None = None
    origin: Origin = Origin.STARTUP
    pid: int | None = None
    model: str | None = None
    log_end: int = 0
    """Bytes the terminal had shown by then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptMoved(Event):
    """The client writes the conversation's transcript to another place, as after a move into a worktree."""

    conversation: str
    transcript: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationEnded(Event):
    """The client left a conversation (SessionEnd)."""

    conversation: str
    reason: str = ""
    log_end: int = 0
    """Bytes the terminal had shown by then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSubmitted(Event):
    """A prompt became the agent's turn, whoever typed it (UserPromptSubmit, or found in the transcript)."""

    conversation: str
    text: str
    """What the client is about to send; kept only where it comes after a handoff's document."""
    replayed: bool = False
    """True if it was found in the transcript afterwards: there is no hook left to answer."""
    mode: str = ""
    """The client's permission mode, where its hook tells."""
    position: int = 0
    """Bytes the transcript had by then; known where a message waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUsed(Event):
    """The agent's tool call came back (PostToolUse, PostToolUseFailure)."""

    conversation: str
    tool: str
    work: ToolWork = field(default_factory=ToolWork)
    failed: bool = False
    mode: str = ""
    """The client's permission mode, where its hook tells."""
    document: str = ""
    """The path of the handoff document or continuation prompt that it wrote, if it did."""
    written: str = ""
    """The path of the file that it wrote, whatever it is."""
    position: int = 0
    """Bytes the transcript had by then; known where a message waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAsked(Event):
    """The agent is about to call a tool (PreToolUse). Only where the gate is on."""

    conversation: str
    tool: str
    permitted: bool
    """True if the call serves a handoff."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionAsked(Event):
    """The client is about to show a dialog; no key may be sent until it is answered."""

    conversation: str
    tool: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskOpened(Event):
    """The client asks its user something and waits for an answer through sm too; also when it asks again."""

    ask: str
    """Its id, as in the events below."""
    kind: AskKind
    tool: str
    agent: str = ""
    request: AskRequest
    """Without secrets; not kept with the event."""
    reason: str = ""
    """Why one that was answered is open again."""


ASKED = (PermissionAsked, AskOpened)
"""A dialog is about to open; the first comes alone where the client does not wait for an answer through sm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskAnswered(Event):
    """It was answered through sm; the first answer counts."""

    ask: str
    decision: Decision
    always: bool = False
    by: str = ""
    """The session that answered; empty for the user."""
    text: str = ""
    """The words of the answer, without secrets; kept with the ask only."""
    answers: tuple[str, ...] = ()
    """The answer to each question, word for word; empty where a secret was taken out. Kept with the ask only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskExpired(Event):
    """The client no longer waits for an answer through sm; its dialog is still open."""

    ask: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AskWithdrawn(Event):
    """The dialog is gone, and sm did not answer it."""

    ask: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnded(Event):
    """The agent's turn is over (Stop)."""

    conversation: str
    background: tuple[BackgroundTask, ...] = ()
    scheduled: tuple[str, ...] = ()
    """Jobs that will submit a prompt later by themselves; they survive `/clear`."""
    continued: bool = False
    """True if a Stop hook has already kept this turn going."""
    replayed: bool = False
    """True if it was found out afterwards: there is no hook left to answer."""
    text: str = ""
    """The last line the agent has said, bounded; kept only where somebody waits for this stop."""
    position: int = 0
    """Bytes the transcript had by then; known where a message waits."""
    signal: str = ""
    """The run that its final message asks to continue in a fresh context."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFailed(Event):
    """The turn ended with an error of the model's API (StopFailure)."""

    conversation: str
    error: str = "unknown"
    limit: UsageLimit | None = None
    """The limit of the account that it met, if it was one."""
    refusal: str = ""
    """The client's words where it will not continue in this context, as ClientBlocked has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionStarted(Event):
    """The client is about to compact (PreCompact)."""

    conversation: str
    automatic: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionEnded(Event):
    """The client has compacted: the handoff came too late (PostCompact)."""

    conversation: str


# --- witnesses ----------------------------------------------------------------------------------------------------


AWAITED = "the plugin in the client has not answered yet"
"""Why the keys drive a client that was started with its plugin, until that answers."""


class DrivenBy(StrEnum):
    """How a client is cleared and given prompts."""

    KEYS = "keys"
    """By keys in its pane."""
    MOD = "mod"
    """By the plugin in the client, or by the server that the client is."""


class Activity(StrEnum):
    """What the client says of itself."""

    IDLE = "idle"
    BUSY = "busy"
    WAITING = "waiting"
    STOPPED = "stopped"
    """Its process does not run, as after Ctrl-Z, and takes no key."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityChanged(Event):
    """The client's own state file has changed."""

    activity: Activity
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientBlocked(Event):
    """The client refuses to continue, as at its context limit."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientExited(Event):
    """The client's process has ended."""

    code: int | None = None
    signal: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverChanged(Event):
    """The client is cleared and given prompts in another way: `keys` in its pane, or `mod`, by the plugin in it."""

    driver: DrivenBy
    reason: str = ""
    """Why not by the plugin any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextReported(Event):
    """The plugin in the client reports how full the context is, as the client counts it, while a turn runs."""

    conversation: str
    tokens: int
    """Prompt side of the last request."""
    window: int
    usable: int | None
    """Tokens at which the client would compact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRead(Event):
    """A reading of the context was taken."""

    conversation: str
    epoch: int
    reading: ContextReading
    usable: int | None
    """Tokens at which the client would compact; None if the window is unknown."""
    position: int = 0
    """Bytes the transcript had by then; known where a message waits."""


# --- results of what we did; `step` says for which order -------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult(Event):
    """The result of an order to the pane."""

    step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposerReady(StepResult):
    """The client is idle at its prompt, no dialog is open, and the user is not typing."""

    position: int = 0
    """Bytes the transcript had by then; known where a message waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxFree(StepResult):
    """The input box may be typed into, whether the client works or not."""

    position: int = 0
    """Bytes the transcript had by then; known where a message waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposerHeld(StepResult):
    """Nothing may be typed now, and why; sm keeps waiting."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TypingRefused(StepResult):
    """The text was not submitted and nothing of it is left in the box."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed(StepResult):
    """Text and Enter went out. No proof that the client took it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotTaken(StepResult):
    """The pane's history was saved, or could not be."""

    path: str | None = None
    """None if it failed: that never stops a rotation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptMissing(StepResult):
    """Looked for in the transcript after a restart or a timeout, and not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartTaken(StepResult):
    """`sm run` is about to end its client and to start it again for `conversation`."""

    conversation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyLost(Event):
    """The hook did not wait for the answer; what the answer carried is delivered again."""

    notices: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    """Ids."""
    document: str = ""
    """The handoff whose document it carried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagesSought(Event):
    """The transcript was searched for messages that had been delivered."""

    asked: tuple[str, ...]
    """Ids."""
    found: tuple[str, ...]
    unreadable: tuple[str, ...] = ()
    """Of these the transcript could not be read."""
    kept: tuple[str, ...] = ()
    """These the client has for its next request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagesFetched(Event):
    """The next queued messages were read from the database."""

    refill: Refill
    messages: tuple[Message, ...]
    left: int
    """How many of those asked about wait there still."""


# --- commands -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class HandoffRequested(Event):
    """The agent called `sm handoff`; the document is copied."""

    handoff: Handoff
    progress: bool = True
    """The user asked for it, or a file was changed or committed in this context; True also if nothing tells."""
    switch: Switch | None = None
    """Another client is to continue from it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchFailed(Event):
    """The client that was to continue from the document could not be started, or did not begin."""

    handoff: str
    reason: str
    ended: bool = True
    """The client before has been ended for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentKept(Event):
    """A document was made for the session, as before a compaction: offered to it afterwards, to others at its end."""

    handoff: Handoff
    rotate: bool = False
    """The agent continues from it in a fresh context, once its turn has ended."""
    progress: bool = True
    """A file was changed or committed in this context; True also if nothing tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentForked(Event):
    """A fork of the agent's model was asked for the text of a document that was made for the session."""

    handoff: str
    problem: str = ""
    """Why the document has none; empty if it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandoffWithdrawn(Event):
    """The session no longer has the document: another session took it, or the user cleared it."""

    handoff: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HandoffCancelled(Event):
    """The agent or the user cancelled the handoff."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandoffRetried(Event):
    """The user, or the agent unless it has to wait for the user, wants a failed or waiting rotation tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentGone(Event):
    """The agent's file no longer contains what was handed off; the saved copy is named instead."""

    handoff: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageQueued(Event):
    """A message was queued."""

    message: Message
    stored: StoredMessage | None = None
    """Its row; None if the table has it already, or need not have it."""
    position: int = 0
    """Bytes the transcript had by then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageCancelled(Event):
    """The sender, or the user, cancels a queued message (`sm message ID --cancel`)."""

    id: str
    mode: Mode
    number: int
    """Its place among all messages."""
    by: str = ""
    """The session that did it, or empty for the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearRequested(Event):
    """Its parent, or the user, wants its context cleared without a document (`sm clear`)."""

    message: Message | None = None
    """The next task, queued in the same transaction: it begins the new context."""
    stored: StoredMessage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusReported(Event):
    """The agent reported what it is doing (`sm status TEXT`)."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCompleted(Event):
    """The agent reported its task as complete (`sm done`)."""

    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLaunched(Event):
    """A client process runs for the session: started by sm, or by the user."""

    pane: str | None = None
    """None if it runs in the user's own terminal."""
    pid: int
    conversation: str
    """Empty if the client chooses it: its SessionStart tells."""
    transcript: str | None = None
    config: str = ""
    asked: tuple[tuple[str, str], ...] = ()
    """What the launch itself says about where the client compacts."""
    limits: ClientLimits = NO_LIMITS
    log_end: int = 0
    """Bytes the terminal had shown by then."""
    foreground: Foreground | None = None
    adopted: bool = False
    """An external client: the user started it in a terminal of their own; only its hooks show what it does."""
    plugin: bool = False
    """It was started with the plugin that drives it from inside, which is still to answer."""
    no_plugin: str = ""
    """Why it was started without."""
    mode: str = ""
    """The permission mode that it starts in, where something tells."""
    provider: str = ""
    """Whose client it is, where the session continues with another one than before."""
    in_place: bool = False
    """The client before was ended for it: of no use to a session that has been killed since."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowTold(Event):
    """The client's status line reported the size of the model's window."""

    conversation: str
    window: int
    usable: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsChanged(Event):
    """The client's settings for where it compacts have changed."""

    limits: ClientLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitTold(Event):
    """The client's status line reported when the session's usage limit resets."""

    conversation: str
    kind: str
    resets_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitShared(Event):
    """Another session of the same account has met a usage limit."""

    limit: UsageLimit


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitEnded(Event):
    """The usage limit is over, or the user wants the work to continue now."""

    resumes: bool = False
    """The work that it interrupted continues: the agent is given a prompt."""
    text: str = ""
    """What that work began with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeAsked(Event):
    """The usage limit is over, and the user is asked whether the work that it interrupted continues."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRead(Event):
    """What it has used was compared with its budgets."""

    own: BudgetShare | None = None
    """None if there is no budget for it."""
    tree: BudgetShare | None = None
    """Of the tree that it belongs to; to a child only once all of it is used."""
    tree_granted: float = 0.0
    """The share that was used when the user let the top of its tree continue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentWarned(Event):
    """The agent was warned of how full its context is; `level` is `unknown` where only its tool calls are counted."""

    conversation: str
    level: str
    tokens: int | None = None
    percent: float | None = None
    repeated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactedTooLate(Event):
    """The client compacted the context before the agent handed off."""

    conversation: str
    before: int | None = None
    """Tokens."""
    after: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchFailed(Event):
    """No client process could be started."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRenamed(Event):
    """The user renamed the session."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionKilled(Event):
    """The user, or its parent, ended the session."""

    reason: str = "killed"
    by: str = ""
    """The session that did it, or empty for the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatchesReset(Event):
    """Crossed thresholds warn again (`sm context --rearm`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandoffDeclined(Event):
    """The user keeps the context of the client that they started: its agent is not told again of the same level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyChanged(Event):
    """The configuration that applies to the session has changed."""

    policy: Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStarted(Event):
    """The server has started and checks again what was in progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmRang(Event):
    """A deadline of the session has passed."""


Owner = TypeVar("Owner")
Kind = TypeVar("Kind")
Base = TypeVar("Base")
Rest = ParamSpec("Rest")
Result = TypeVar("Result")


def on(
    kind: type[Kind], handler: Callable[Concatenate[Owner, Kind, Rest], Result]
) -> tuple[type[Base], Callable[Concatenate[Owner, Base, Rest], Result]]:
    """An entry of a table of functions by kind of event, or of effect: each is given its own kind only."""
    return cast("tuple[type[Base], Callable[Concatenate[Owner, Base, Rest], Result]]", (kind, handler))
