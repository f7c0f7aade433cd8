"""What is to be done about an event: a closed set of immutable values, named in the imperative.

The core only decides; `engine/effect_runner.py` has one function per effect. An effect that touches the pane carries
the session's `step`: its result names it, and a result of an older step is dropped.
"""

from __future__ import annotations

from dataclasses import dataclass

from sm.core.model.ask import Ask, AskRequest
from sm.core.model.handoff import Handoff, HandoffState, HandoffType
from sm.core.model.message import Channel, MessageState, StoredMessage
from sm.core.model.message_queue import InFlight, Refill
from sm.core.model.notification import Episode
from sm.core.model.reminder import Notice, Reminder
from sm.core.model.session import Session


@dataclass(frozen=True, slots=True)
class Effect:
    """Something to do."""


# --- replies to the hook that brought the event ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AddContext(Effect):
    """Let the agent read `text` with its next request."""

    text: str
    notices: tuple[str, ...] = ()
    """What is owed again if the hook continued without the reply."""
    messages: tuple[str, ...] = ()
    """Ids of the messages in it, which are queued again then."""


@dataclass(frozen=True, slots=True)
class InjectHandoff(Effect):
    """Reply to SessionStart with the document, which is read now."""

    handoff: Handoff
    snapshot: str | None
    until: float = 0.0
    """When the work ended that may have come after the document; 0 for when it was handed off."""
    said: tuple[str, ...] = ()
    """What was said to the agent after the document."""


@dataclass(frozen=True, slots=True)
class BlockPrompt(Effect):
    """Keep a submitted prompt from becoming a request; the client puts it back into the box."""

    reason: str


@dataclass(frozen=True, slots=True)
class DenyTool(Effect):
    """Keep a tool from being called; the agent reads why."""

    reason: str


@dataclass(frozen=True, slots=True)
class BlockCompaction(Effect):
    """Keep the client from compacting now; it asks again before its next request."""

    reason: str


@dataclass(frozen=True, slots=True)
class TellUser(Effect):
    """Let the client show `text` to its user; the agent does not see it."""

    text: str


# --- the pane: one of these at a time -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PaneCommand(Effect):
    """Something to do in the pane; replaces the previous order."""

    step: int


@dataclass(frozen=True, slots=True)
class AwaitComposer(PaneCommand):
    """Watch until the client is idle and its input box is empty or can be set aside; report what prevents it."""

    own: tuple[str, ...] = ()
    """Texts of `sm` that may still be in the box: they are removed, the user's draft never is."""
    after: float = 0.0
    """UTC seconds before which nothing is ready: a dialog that was asked for may not show yet."""
    patience: float | None = None
    """Seconds to wait for a user who types; None for as long as they do."""


@dataclass(frozen=True, slots=True)
class AwaitBox(PaneCommand):
    """Watch until the input box of a client that works, or is idle, may be typed into."""

    own: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TakeSnapshot(PaneCommand):
    """Keep the pane's whole history as a file."""


@dataclass(frozen=True, slots=True)
class ClearContext(PaneCommand):
    """Let the client begin a new, empty conversation."""


@dataclass(frozen=True, slots=True)
class TypeText(PaneCommand):
    """Type a prompt and send it."""

    text: str
    now: bool = False
    """The client may be at work: what it queues it is to send on at once."""


@dataclass(frozen=True, slots=True)
class RestartClient(PaneCommand):
    """Let `sm run` end the client and start it again, in a terminal in which sm cannot type."""


@dataclass(frozen=True, slots=True)
class FindPrompt(PaneCommand):
    """Search the transcript for a prompt typed by sm that no hook has reported."""

    conversation: str
    transcript: str | None
    digest: str
    position: int = 0
    """Bytes of the transcript: a prompt of the same words before them is another one."""


@dataclass(frozen=True, slots=True)
class LeavePane(PaneCommand):
    """Stop the order in progress, before its next key."""


# --- everything else ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReadContext(Effect):
    """Take a reading of the transcript."""

    conversation: str
    transcript: str | None
    epoch: int
    settle: bool = False
    """True if the newest record may not be on disk yet: read once more within 200 ms."""


@dataclass(frozen=True, slots=True)
class KeepDocument(Effect):
    """Copy a document that the agent has written, for the context that continues from it."""

    path: str


@dataclass(frozen=True, slots=True)
class RefreshDocument(Effect):
    """Bring a kept document and what is said of it up to date.

    The agent's own document is copied again if the session's own tools have just written its file; otherwise it is only
    seen whether that file still holds it. One that was made of the transcript is made again.
    """

    handoff: Handoff
    written: str = ""
    """The file that the session's own tools have just written."""
    fork: bool = False
    """Begin one that is made again with what a fork of the agent's model answers; it is asked once for a document."""


@dataclass(frozen=True, slots=True)
class MakeDocument(Effect):
    """Make a document from the transcript, without a model, before the client forgets it."""

    rotate: bool
    """True if the agent continues from it in a fresh context, once its turn has ended."""
    kind: HandoffType = HandoffType.COMPACTION


@dataclass(frozen=True, slots=True)
class RecordHandoff(Effect):
    """Store the state of a handoff."""

    handoff: Handoff
    state: HandoffState
    reason: str = ""
    held: bool = True
    """This session has it: no other may take it up."""


@dataclass(frozen=True, slots=True)
class KeepMessage(Effect):
    """Store a message that was just queued."""

    message: StoredMessage


@dataclass(frozen=True, slots=True)
class RecordMessage(Effect):
    """Store the state of a message."""

    message: str
    state: MessageState
    reason: str = ""
    channel: Channel | None = None


@dataclass(frozen=True, slots=True)
class RecordAsk(Effect):
    """Store what the client asks, or its new state."""

    ask: Ask
    request: AskRequest | None = None
    """What it asks, where that is new."""
    answer: str = ""
    answers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordReminder(Effect):
    """Store what a reminder waits for."""

    reminder: Reminder


@dataclass(frozen=True, slots=True)
class DropReminder(Effect):
    """Delete a reminder that is finished."""

    reminder: str


@dataclass(frozen=True, slots=True)
class QueueNotice(Effect):
    """Queue a text of `sm`'s own for a session."""

    notice: Notice


@dataclass(frozen=True, slots=True)
class RecordContext(Effect):
    """Store that a context began, and where in the terminal's log, or where the transcript of the newest one is."""

    conversation: str
    transcript: str | None
    started: float
    log_start: int
    provider: str = ""
    """Whose client it is in."""


@dataclass(frozen=True, slots=True)
class OpenEpisode(Effect):
    """Store that something began of which the user may have to be notified."""

    episode: Episode


@dataclass(frozen=True, slots=True)
class RecordEpisode(Effect):
    """Store whether an episode was sent, and by which channels it still is to be."""

    episode: Episode


@dataclass(frozen=True, slots=True)
class DropEpisode(Effect):
    """Delete an episode that is over."""

    episode: str


ReminderRecord = RecordReminder | DropReminder | QueueNotice
EpisodeRecord = OpenEpisode | RecordEpisode | DropEpisode
Record = RecordHandoff | KeepMessage | RecordMessage | RecordContext | RecordAsk | ReminderRecord | EpisodeRecord
"""Written in the transaction of their event: otherwise a server killed in between would deliver a message twice."""


@dataclass(frozen=True, slots=True)
class FetchMessages(Effect):
    """Read the next queued messages from the database."""

    refill: Refill


@dataclass(frozen=True, slots=True)
class FindMessages(Effect):
    """Search the transcript for messages that a hook's reply carried, or that the client had queued."""

    handed: tuple[InFlight, ...]


@dataclass(frozen=True, slots=True)
class TellParent(Effect):
    """Tell the session's parent, and the log, what went wrong."""

    text: str


@dataclass(frozen=True, slots=True)
class SwitchClient(Effect):
    """End the client and start another one in its place, as the session's rotation says."""


@dataclass(frozen=True, slots=True)
class EndClient(Effect):
    """End the client's whole process group and its pane."""


Outcome = tuple[Session, tuple[Effect, ...]]
