"""What the engine needs from the outside, as protocols; `bootstrap.py` brings the implementations."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sm.core.capacity import ClientLimits
from sm.core.channel import Location
from sm.core.context import ContextReading, Policy
from sm.core.effects import Record, ReminderRecord
from sm.core.events import Activity, Event
from sm.core.handoff import Entry, Handoff, HandoffState, HandoffType
from sm.core.keeping import Foreign, Prompt
from sm.core.limit import UsageLimit
from sm.core.mailbox import Mode
from sm.core.outbox import Refill
from sm.core.past import Artefact, Context, Document, Hit, Past, Stretch
from sm.core.post import Limits
from sm.core.reminder import Notice, Reminder
from sm.core.session import Session
from sm.core.team import TeamLimits


class Clock(Protocol):
    def now(self) -> float:
        """UTC, seconds since the epoch; never goes back."""


@dataclass(frozen=True, slots=True)
class HookReply:
    """What a hook's answer may carry; each provider has its own form for it."""

    context: str = ""
    block: str | None = None
    """Why what the hook asks about must not go on."""
    shown: str = ""
    """For the person at the client, who alone sees it."""


@dataclass(frozen=True, slots=True)
class HookEvent:
    """A payload, parsed once at the edge."""

    name: str
    conversation: str
    event: Event | None
    """None for what changes nothing: a subagent's call, a notification."""
    pid: int | None = None
    """Of the client that sent it, where the transport tells."""
    directory: str = ""
    transcript: str | None = None


@dataclass(frozen=True, slots=True)
class StatusLine:
    """What the client tells its status line."""

    conversation: str
    directory: str
    window: int | None
    """The model's context window in tokens."""
    tokens: int | None
    limits: tuple[tuple[str, float], ...] = ()
    """Kinds of usage limits of the account that are used up, and when they end, UTC seconds."""


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start a client."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    conversation: str
    """Empty if the person's arguments let the client choose it."""
    config: str
    """The client's configuration directory, where its state files are."""
    asked: tuple[tuple[str, str], ...] = ()
    """What the launch itself says about where the client compacts: variables and arguments with their values."""
    farewell: tuple[str, ...] = ()
    """The lines that the client leaves on the terminal when it ends, as how to resume its conversation."""
    continues: str = ""
    """The conversation that it opens again, where that is known before the start."""


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    session: str
    name: str
    directory: str
    env: Mapping[str, str]
    """Of whoever asked for the session."""
    model: str | None = None
    arguments: tuple[str, ...] = ()
    resume: str | None = None
    """A conversation to go on with, instead of a new one."""
    command: str | None = None
    """The client's executable, instead of the configured one."""
    documents: str = ""
    """The directory of its channel's handoff documents, which the agent reads without asking anybody."""
    messages: str = ""
    """That of messages to it that are too long to be typed, which it reads as well."""
    gate: bool = False
    """Ask before each tool call."""
    foreground: bool = False
    """In the person's own terminal."""
    again: bool = False
    """What the person's arguments say about the conversation to go on with was for the first start."""
    prompt: str | None = None
    """The first prompt, as an argument in place of the person's own."""


@dataclass(frozen=True, slots=True)
class Witness:
    """What the client's own state file says."""

    activity: Activity
    detail: str
    conversation: str
    background: bool = False
    """Idle at the prompt while something runs in the background."""


@dataclass(frozen=True, slots=True)
class RunningClient:
    """A process that has a conversation open, by the client's own files."""

    pid: int
    terminal: str
    """Where the user finds it; empty if nothing tells."""


@dataclass(frozen=True, slots=True)
class View:
    """One look at a pane."""

    lines: tuple[str, ...]
    """The visible screen, with its escape sequences."""
    cursor: tuple[int, int]
    dead: bool
    typed_ago: float | None
    """Seconds since a person's last key, to about one second; None while no person's terminal shows the pane."""


class Key:
    """The only keys that are ever pressed."""

    ENTER = "Enter"
    STASH = "C-s"
    SEND_NOW = ("C-x", "C-s")
    """The client's chord for what it has queued. On an empty queue its second key would stash."""
    BACKSPACE = "BSpace"
    LEFT = "Left"
    """Only where text stands in the box: in an empty one it opens another view."""


class PaneError(Exception):
    """The pane, or tmux itself, did not do it; the message says why."""


class Pane(Protocol):
    async def look(self) -> View: ...
    async def paste(self, text: str) -> None: ...
    async def press(self, key: str, times: int = 1) -> None: ...
    async def chord(self, keys: tuple[str, ...]) -> None:
        """Keys that belong together, with nothing in between."""

    async def history(self) -> str: ...


Held = Callable[[str], None]
"""Told why nothing may be typed, whenever the reason changes and every HELD_EVERY seconds while it lasts."""
HELD_EVERY = 20.0


@dataclass(frozen=True, slots=True)
class Wait:
    """What is waited for before text is typed."""

    own: tuple[str, ...] = ()
    """Texts of ours that may stand in the box."""
    busy: bool = False
    """A client that works will do as well."""
    patience: float | None = None
    """Seconds a person who types is waited for; None for as long as they do."""


class Composer(Protocol):
    """Drives one client's input box. Every method gives way as soon as `leave` says so."""

    async def ready(self, wait: Wait, held: Held, leave: Callable[[], bool]) -> bool:
        """Wait until text may be typed, with texts of ours removed; False if it gave way."""

    async def submit(self, text: str, leave: Callable[[], bool], *, now: bool = False) -> str | None:
        """Type and send `text`; a reason if it was not sent, with nothing of it left in the box.

        With `now` the client may be at work: what it queues it is then told to send on at once.
        """


class Transcript(Protocol):
    """One conversation's file, read as it grows."""

    def read(self) -> ContextReading: ...
    def scan(self) -> bool:
        """Count a stretch of the file for the whole-file counts; True once nothing is left."""


class Provider(Protocol):
    @property
    def name(self) -> str: ...
    def launch(self, request: LaunchRequest, token: str) -> Launch: ...
    def decode(self, payload: bytes, at: float, pid: int | None) -> HookEvent: ...
    def encode(self, hook: str, reply: HookReply) -> dict[str, object]: ...
    def decode_status(self, payload: bytes) -> StatusLine: ...
    def witness(self, config: str, pid: int) -> Witness | None: ...
    def running(self, config: str, conversation: str) -> RunningClient | None:
        """A client that has the conversation open now, whoever started it."""

    def composer(
        self, pane: Pane, witness: Callable[[], Witness | None], background: Callable[[], bool]
    ) -> Composer: ...
    def transcript(self, path: str) -> Transcript: ...
    def asked(self, env: Mapping[str, str], arguments: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
        """What the environment and arguments of a client say about where it compacts."""

    def limits(self, config: str, directory: str, asked: tuple[tuple[str, str], ...]) -> ClientLimits:
        """That, together with what the client's settings say now. Cheap where nothing has changed."""

    def sized(
        self, reading: ContextReading, limits: ClientLimits, assumed: int | None
    ) -> tuple[ContextReading, int | None]:
        """The reading with its window, `assumed` where nothing tells it, and the tokens at which it compacts."""

    def configuration(self, env: Mapping[str, str]) -> str:
        """The client's configuration directory."""

    def configuration_of(self, transcript: str) -> str:
        """The same, of a client whose environment nobody knows, by where its transcript is."""

    def submitted(self, transcript: str, digest: str, position: int) -> str | None:
        """The text of a prompt of that digest near the end of the transcript and not older, or None."""

    def shown(self, transcript: str, marks: Mapping[str, int]) -> frozenset[str] | None:
        """Which of the marks the agent was told, each behind its position; None if the transcript cannot be read."""

    def utterance(self, line: bytes) -> Utterance | None:
        """What a record of the transcript says in words, for the search; None for what says nothing."""

    def resumable(self, transcript: str) -> bool:
        """True if the client can go on with that conversation."""

    def child_arguments(self, arguments: tuple[str, ...], mode: str) -> tuple[str, ...]:
        """What a child of a client that was started with `arguments` and is in permission mode `mode` is started with:
        whatever restricts the parent, and nothing that gives the child more.
        """

    def found_transcript(self, config: str, conversation: str) -> str | None:
        """The transcript of a conversation whose hooks never reached us, if it has one."""

    def account(self, transcript: str, directory: str, leaves_out: tuple[str, ...]) -> str:
        """A document to hand off, made of what the transcript shows, without a model; `leaves_out` as in Policy.

        May take seconds; OSError.
        """

    def finished(self, transcript: str) -> bool:
        """True if the transcript's end shows a turn that ended by itself: not interrupted, not failed."""

    def usage_limit(self, transcript: str, now: float) -> UsageLimit | None:
        """The usage limit that keeps the client from going on, if its transcript's end says so."""

    def refusal(self, transcript: str) -> str | None:
        """Why the client refuses to go on, if its transcript's end says so."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """What was said or done in a conversation, in words."""

    text: str
    at: float | None = None
    """UTC seconds, where the record tells."""


@dataclass(frozen=True, slots=True)
class PaneStatus:
    pane: str
    pid: int
    session: str
    dead: bool
    code: int | None = None
    signal: int | None = None
    logged: bool = True
    """Whether what it shows goes into its log."""


class Panes(Protocol):
    async def create(self, session: Session, launch: Launch, log: Path) -> PaneStatus: ...
    async def status(self, pane: str) -> PaneStatus | None: ...
    async def all(self) -> dict[str, PaneStatus]:
        """Every pane of ours by session id."""

    async def log_again(self, pane: str, log: Path) -> None:
        """Take up the log of a pane whose writer has ended; PaneError while it cannot be written."""

    async def end(self, session: str, grace: float) -> None:
        """End the session's client and all it started, by force after `grace` seconds, then its pane.

        PaneError if tmux does not answer: what runs has been ended as far as it is found without, and the pane stays.
        """

    async def clear(self, session: str) -> None:
        """Take away what is left of the session's last pane, with whatever still runs in it."""

    def pane(self, pane: str) -> Pane: ...
    async def attach(self, pane: str, *, inside_tmux: bool) -> list[str]:
        """What a person's terminal runs to show the pane."""


@dataclass(frozen=True, slots=True)
class LaunchRecord:
    """What starting a session's client again needs; the environment comes with each request and is never stored."""

    arguments: tuple[str, ...] = ()
    model: str | None = None
    command: str | None = None


@dataclass(frozen=True, slots=True)
class KeptMessage:
    """What a message is made of again: the store keeps its body, not how it is put."""

    id: str
    target: str
    sender: str
    frame: str
    body: str
    number: int
    mode: Mode
    expires: float | None
    command: bool


class Store(Protocol):
    async def add(self, session: Session, token: str, launch: LaunchRecord, taken: Handoff | None = None) -> None:
        """SmError if a living session has the name, or if the handoff it begins from is not to be had."""

    async def renew(self, session: str, token: str) -> None:
        """The session lives again, with a new token; SmError if its name is taken by now."""

    async def commit(self, session: Session, event: Event, records: tuple[Record, ...]) -> int:
        """Write the event, the state after it and what it records in one transaction; the event's number."""

    async def sessions(self) -> list[Session]: ...
    async def launches(self) -> dict[str, LaunchRecord]: ...
    async def tokens(self) -> dict[str, str]:
        """Session id by token hash."""

    async def last_number(self) -> int:
        """The number of the newest message there is; 0 if there is none."""

    async def queued_numbers(self) -> list[tuple[str, Mode, int, str]]:
        """(target, mode, number, id) of every message that waits, in order."""

    async def kept_message(self, message: str) -> KeptMessage | None: ...
    async def next_messages(self, target: str, refill: Refill) -> tuple[list[KeptMessage], int]:
        """The next messages of a window, and how many of those it knows of wait behind them."""

    async def exchanges(self) -> dict[tuple[str, str], int]:
        """Messages from one agent to another since a person last spoke to either."""

    async def count_exchange(self, sender: str, target: str) -> None: ...
    async def forget_exchanges(self, session: str) -> None:
        """A person has spoken to the session."""

    async def expire_messages(self) -> None:
        """End the messages that wait though their time is over."""

    async def add_reminder(self, reminder: Reminder) -> None: ...
    async def note(self, records: tuple[ReminderRecord, ...]) -> None:
        """Write what no event brought about, in one transaction."""

    async def reminders(self) -> list[Reminder]: ...
    async def notices(self) -> list[Notice]:
        """Texts of `sm`'s own that no message was made of yet, in order."""

    async def forget_notice(self, notice: str) -> None: ...

    async def take(self, handoff: Handoff, session: Session) -> None:
        """Let the session have the handoff; SmError if another has it, or nobody may."""

    async def handoff(self, handoff: str) -> Entry | None: ...
    async def handoffs(self, channel: str | None, limit: int = 500) -> list[Entry]:
        """The newest first; of every channel, or of one."""

    async def waiting(self) -> list[Entry]:
        """What any session may take up, the newest first."""

    async def channels(self) -> list[str]:
        """Those that have handoffs."""

    async def close(self, ids: Sequence[str], state: HandoffState, reason: str) -> int:
        """End those of them that wait; how many that were."""

    async def settle(self) -> None:
        """Before anything else at a start: give back what an ended session holds, and date what is from the future."""


class Policies(Protocol):
    """What is configured for sessions in a directory."""

    def policy(self, directory: str) -> Policy: ...
    def checked_policy(self, directory: str) -> Policy:
        """The same for a new session; SmError if the configuration is broken."""

    def limits(self) -> Limits:
        """What the mailbox takes."""

    def team_limits(self, directory: str) -> TeamLimits:
        """How many children a session there may have, and how deep."""

    def instructions(self, directory: str) -> str:
        """The person's text that goes with each injected handoff."""


class PastStore(Protocol):
    """What the store knows of past contexts, by session."""

    async def contexts(self) -> dict[str, tuple[Context, ...]]: ...
    async def documents(self) -> dict[str, tuple[Document, ...]]: ...


class Archive(Protocol):
    """The files of past contexts. Everything here may take long: never on the loop."""

    def tend(self, pasts: list[Past], now: float) -> None:
        """Turn over what has grown, take in what is new for the search, prune once a day."""

    def stretches(self, past: Past) -> list[Stretch]:
        """From where to where each context goes in the log of the session's terminal."""

    def artefacts(self, past: Past) -> list[Artefact]: ...
    def prune(self, pasts: list[Past], now: float, *, dry_run: bool = False) -> list[Artefact]: ...
    def search(self, query: str, sessions: tuple[str, ...] | None, limit: int) -> list[Hit]:
        """The newest hits; SmError if there is no word in the query."""


class Documents(Protocol):
    """The handoff documents and snapshots as files."""

    def schedule(
        self, session: Session, path: Path, at: float, reason: str, kind: HandoffType, *, confined: bool = False
    ) -> Handoff:
        """Check the agent's file and keep a copy; SmError with the reason if it is not fit to be handed off.

        `confined` to what an agent may hand off: a file of the session's directory, or a document of its repository.
        """

    def adopt(self, session: Session, path: Path, conversation: str, at: float) -> Handoff:
        """Keep a copy of a person's file for a session that is to begin from it."""

    def keep(self, session: Session, text: str, kind: HandoffType, at: float) -> Handoff:
        """Keep a document that was made for the session."""

    def channel(self, directory: str) -> str:
        """The channel of a directory."""

    def location(self, directory: str) -> Location:
        """A directory with what is checked out there."""

    def is_same_place(self, one: str, other: str) -> bool:
        """Whether two directories of one channel are in one work tree: of a worktree the other has nothing."""

    def folder(self, directory: str) -> Path:
        """Where the handoff documents of a directory's channel are."""

    def checked(self, handoff: Handoff) -> Handoff:
        """The handoff, for another session; SmError if its document is gone or another's."""

    def foreign(self, directory: str, entries: Sequence[Entry]) -> tuple[Foreign, ...]:
        """Documents in a project that are no copy of these handoffs, or that git tracks."""

    def prompt(self, directory: str, entries: Sequence[Entry], since: float) -> Prompt | None:
        """A continuation prompt in a project, written since then, of which an expired one of these is a copy."""

    def project(self, channel: str, entries: Sequence[Entry]) -> None:
        """Bring a channel's manifest in step with its rows."""

    def set_aside(self, known: Collection[str]) -> None:
        """Move documents of no handoff that is known out of the way."""

    def prepare(self, directory: str) -> None:
        """Make a project ready for the documents an agent writes there; one we may not write to stays as it is."""

    def message_folder(self, session: str) -> Path:
        """Where the bodies of messages to a session are, and nobody else's."""

    def message_file(self, session: str, message: str, body: str) -> str:
        """Keep a body that is too long to be typed; its path."""

    def may_work_in(self, own: str, other: str) -> bool:
        """Whether a directory lies in another, or in its repository or one of that repository's worktrees."""

    def text(self, handoff: Handoff) -> str:
        """The document; SmError if what lies there is another's."""

    def written(self, handoff: Handoff) -> float:
        """When the agent last wrote it, UTC seconds."""

    def holds(self, handoff: Handoff) -> bool:
        """Whether the agent's own file still holds the document that was handed off."""

    def refresh(self, handoff: Handoff, written: str, at: float) -> None:
        """Copy the agent's own file again, if that is the file which its tools have just written."""

    def snapshot(self, session: str, at: float, text: str) -> str:
        """Keep what a pane has shown, without secrets; its path. May take long: never on the loop."""

    def rewrite(self, handoff: Handoff, text: str, at: float) -> None:
        """Put a newer text into a document that was kept."""

    def log(self, session: str) -> Path: ...
    def log_kept(self, session: str) -> tuple[Path | None, bool]:
        """The log of the session's terminal, if one was kept, and whether its file holds all of it."""

    def log_end(self, session: str) -> int:
        """Bytes the session's terminal has shown since its first start."""
