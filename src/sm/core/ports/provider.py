"""What the engine needs from the outside, as protocols; `bootstrap.py` brings the implementations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from sm.core.events import Activity, Event
from sm.core.model.capacity import ClientLimits
from sm.core.model.client_traits import ClientTraits
from sm.core.model.context import ContextReading
from sm.core.model.usage_limit import UsageLimit
from sm.core.ports.panes import Launch, Pane


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
class ClientState:
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
    @property
    def traits(self) -> ClientTraits:
        """What the rules need to know of the client."""

    def launch(self, request: LaunchRequest, token: str) -> Launch: ...
    def decode(self, payload: bytes, at: float, pid: int | None) -> HookEvent: ...
    def encode(self, hook: str, reply: HookReply) -> dict[str, object]: ...
    def decode_status(self, payload: bytes) -> StatusLine: ...
    def client_state(self, config: str, pid: int) -> ClientState | None: ...
    def running(self, config: str, conversation: str) -> RunningClient | None:
        """A client that has the conversation open now, whoever started it."""

    def composer(
        self, pane: Pane, client_state: Callable[[], ClientState | None], background: Callable[[], bool]
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
