"""What the engine needs of one kind of client, as protocols, one for each part; `bootstrap.py` brings what has them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from sm.core.events import Activity, Event
from sm.core.model.ask import AskAnswer, AskDetails, AskRequest
from sm.core.model.capacity import ClientLimits
from sm.core.model.client_traits import ClientTraits
from sm.core.model.context import ContextReading
from sm.core.model.cost import TokenCount
from sm.core.model.rights import Rights
from sm.core.model.usage_limit import UsageLimit, UsedShare
from sm.core.ports.panes import Launch, Pane


@dataclass(frozen=True, slots=True)
class HookReply:
    """What a hook's answer may carry; each provider has its own form for it."""

    context: str = ""
    block: str | None = None
    """Why what the hook asks about is refused."""
    shown: str = ""
    """For the user at the client; the agent does not see it."""
    whole: str = ""
    """A document of which the context holds a part, all of it: for the plugin in the client, which has no limit."""


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
    ask: AskRequest | None = None
    """What the client asks its user; it takes an answer in the reply, as long as its dialog is open."""


@dataclass(frozen=True, slots=True)
class StatusLine:
    """What the client tells its status line."""

    conversation: str
    window: int | None
    """The model's context window in tokens."""
    shares: tuple[UsedShare, ...] = ()
    """How much of the account's usage limits is used."""


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    session: str
    name: str
    directory: str
    env: Mapping[str, str]
    """Of the process that asked for the session."""
    model: str | None = None
    arguments: tuple[str, ...] = ()
    resume: str | None = None
    """A conversation to continue, instead of a new one."""
    command: str | None = None
    """The client's executable, instead of the configured one."""
    documents: str = ""
    """The directory of its channel's handoff documents, which the agent reads without a permission."""
    messages: str = ""
    """That of messages to it that are too long to be typed, which it reads as well."""
    gate: bool = False
    """Ask before each tool call."""
    counted: bool = False
    """Tell of each tool call what it returned: the context is counted by that alone."""
    foreground: bool = False
    """In the user's own terminal."""
    again: bool = False
    """The user's arguments that name a conversation to continue were for the first start."""
    prompt: str | None = None
    """The first prompt, as an argument in place of the user's own."""
    headless: bool = False
    """Without a screen: it is driven from inside alone."""


@dataclass(frozen=True, slots=True)
class ClientState:
    """What the client's own state file says."""

    activity: Activity
    detail: str
    conversation: str
    since: float = 0.0
    """When it began to be like that, UTC seconds; 0 where it does not say."""
    lags: bool = False
    """What it says of its activity comes much too late: only hooks tell."""
    leads: bool = False
    """It shows a new conversation before any hook tells of it."""


@dataclass(frozen=True, slots=True)
class RunningClient:
    """A process that has a conversation open, by the client's own files."""

    pid: int
    terminal: str
    """Where the user finds it; empty if nothing tells."""


Leave = Callable[[], bool]
"""Returns True once what a driver does shall give way to something else."""
ReportHold = Callable[[str], None]
"""Takes why nothing may be typed, whenever the reason changes and every HOLD_REPORT_INTERVAL_S while it lasts."""
HOLD_REPORT_INTERVAL_S = 20.0


@dataclass(frozen=True, slots=True)
class ReadyOptions:
    """What a driver waits for before it may be given a prompt."""

    own: tuple[str, ...] = ()
    """Texts of `sm` that may be in the input box: they are removed."""
    busy: bool = False
    """A client that works will do as well."""
    patience: float | None = None
    """Seconds to wait for a user who types; None for as long as they do."""


class NoAnswerError(Exception):
    """What was asked of the plugin in a client got no answer: whether it was done is unknown."""


@dataclass(frozen=True, slots=True)
class ClientOrder:
    """Something for the plugin in a client to do."""

    kind: str
    """`rotate`: clear the context. `prompt`: submit the text. `tell`: add it to what the next request carries. `fork`:
    have the agent's model answer it, over the whole context and apart from the conversation."""
    text: str = ""
    as_user: bool = False
    """Without a frame that names the plugin."""


@dataclass(frozen=True, slots=True)
class OrderResult:
    refused: str = ""
    """Why it was not done."""
    text: str = ""
    """What the model has answered."""


class ClientCalls(Protocol):
    """What the plugin in a client does on request."""

    @property
    def alive(self) -> bool:
        """Whether there is one, and it has asked for orders within the last half minute."""

    async def ask(self, order: ClientOrder, number: int | None = None) -> OrderResult:
        """Have it carried out; NoAnswerError. Of one number the plugin carries out one order, whoever asks again."""


@dataclass(frozen=True, slots=True)
class ConnectedSession:
    """The session whose client the server is connected to."""

    id: str
    name: str
    directory: str
    pid: int


class ClientReports(Protocol):
    """What the connection to a client reports to the engine of its session, and the orders for it."""

    def conversation(self) -> str:
        """Return the one that the session is in, as far as the engine knows; empty while its client starts."""

    def past(self) -> tuple[str, ...]:
        """Return those that it was in before."""

    async def connected(self) -> None:
        """Say that the client can be driven by the connection."""

    def alive(self) -> None:
        """Say that the connection is there, at least twice a minute."""

    async def hook(self, hook: HookEvent) -> HookReply: ...
    async def ask(self, identity: str, hook: HookEvent) -> AskAnswer | None:
        """Wait for the answer to what the client asks; None once there is nothing to answer.

        What it asks again keeps its identity. Cancelled when the client no longer asks.
        """

    def reported(self, conversation: str, tokens: int, window: int) -> None:
        """Tell how full the context is, as the client counts it."""

    def measure(self) -> None:
        """Have the transcript read: the client has written something that counts."""

    async def orders(self) -> Sequence[tuple[int, ClientOrder]]:
        """Wait for orders, a while."""

    def done(self, number: int, result: OrderResult) -> None: ...


class Driver(Protocol):
    """How one client is cleared and given prompts. Every method gives way as soon as `leave` returns True.

    What a method returns is no evidence: the client's hooks, its state and its transcript show what it has taken.
    """

    async def ready(self, options: ReadyOptions, report: ReportHold, leave: Leave) -> bool:
        """Wait until the client takes a prompt, which no draft of the user joins; False if it gave way."""

    async def clear(self, leave: Leave) -> str | None:
        """Begin a new, empty conversation in the same process; return why it was not begun, if it was not."""

    async def prompt(self, text: str, leave: Leave, *, now: bool = False) -> str | None:
        """Submit a prompt; return why it was not submitted, if it was not, with nothing of it left in the input box.

        With `now` the client may be at work: it queues the prompt and is made to read it at once.
        """

    async def withdraw(self) -> str | None:
        """Take one step to remove what was typed and not submitted; return what is left to do, None for nothing."""


class Launcher(Protocol):
    """How a client is started."""

    def launch(self, request: LaunchRequest, token: str) -> Launch: ...
    def configuration(self, env: Mapping[str, str]) -> str:
        """Return the client's configuration directory."""

    def configuration_of(self, transcript: str) -> str:
        """Return the same for a client whose environment is unknown, by where its transcript is."""

    def child_arguments(self, arguments: tuple[str, ...], mode: str) -> tuple[str, ...]:
        """Return what a child of a client with these arguments, in permission mode `mode`, is started with.

        It keeps whatever restricts the parent, and gets nothing that allows it more.
        """

    def rights(self, mode: str) -> Rights:
        """Return what a client may do in that permission mode; of one that is not known, the least."""

    def arguments_for(self, rights: Rights, directory: str) -> tuple[str, ...]:
        """Return what starts a client there, for one of another kind, with no more than these.

        Below full rights that includes nothing that files of the project allow or run: another client may write them.
        """

    def restrictions(self, arguments: tuple[str, ...]) -> tuple[str, ...]:
        """Return which of a client's arguments restrict it in a way that no other kind of client can be given."""


class HookCodec(Protocol):
    """The client's hooks: payloads in, replies out."""

    def decode(self, payload: bytes, at: float, pid: int | None) -> HookEvent:
        """Return what the payload says; ValueError for what is no payload."""

    def encode(self, hook: str, reply: HookReply) -> dict[str, object]: ...
    def ask_details(self, request: AskRequest) -> AskDetails:
        """Return what a dialog asks, for people."""

    def came_back(self, transcript: str, request: AskRequest, since: float) -> bool:
        """Return whether the main agent's call that a dialog asks about has had its result since then."""

    def encode_answer(self, request: AskRequest, answer: AskAnswer) -> dict[str, object]:
        """Return the reply to the hook that asks."""

    def decode_status(self, payload: bytes) -> StatusLine: ...


class ClientProbe(Protocol):
    """What a client's own files, environment and arguments say of it."""

    def client_state(self, config: str, pid: int) -> ClientState | None:
        """Return None for a client that says nothing of itself, as before it is up, and for one that has ended."""

    def running(self, config: str, conversation: str) -> RunningClient | None:
        """Return a client that has the conversation open now, whoever started it."""

    def asked(self, env: Mapping[str, str], arguments: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
        """Return what the environment and arguments of a client say about where it compacts."""

    def limits(self, config: str, directory: str, asked: tuple[tuple[str, str], ...]) -> ClientLimits:
        """Return that, together with what the client's settings say now. Cheap where nothing has changed."""


class Transcript(Protocol):
    """One conversation's file, read as it grows."""

    problem: str | None
    """Why the last `read` could not look at the file."""

    def read(self) -> ContextReading: ...
    def scan(self) -> bool:
        """Count a part of the file for the whole-file counts; True once nothing is left."""

    def read_whole(self) -> ContextReading:
        """Read with the counts, however long that takes."""


class UsageRecord(Protocol):
    """What one conversation has used of models, its subagents included."""

    def read(self, since: float = 0.0) -> dict[str, TokenCount]:
        """Return the tokens by model, from the minute of `since` on, UTC seconds. May take seconds."""


class TranscriptSource(Protocol):
    """How full a context is, by the client's transcript."""

    def transcript(self, path: str) -> Transcript: ...
    def sized(
        self, reading: ContextReading, limits: ClientLimits, assumed: int | None
    ) -> tuple[ContextReading, int | None]:
        """Return the reading with its window, `assumed` where nothing tells it, and the tokens at which it compacts."""


class TranscriptEvidence(TranscriptSource, Protocol):
    """What a transcript shows of prompts, turns and limits, and what it says in words."""

    def usage(self, transcript: str) -> UsageRecord: ...
    def submitted(self, transcript: str, digest: str, position: int) -> str | None:
        """Return the text of a prompt of that digest near the end of the transcript and not older, or None."""

    def kept(self, transcript: str, marks: Mapping[str, int]) -> frozenset[str]:
        """Return the marks that the client has for its next request, and that none has carried yet."""

    def shown(self, transcript: str, marks: Mapping[str, int]) -> frozenset[str] | None:
        """Return which of the marks the agent has read, each behind its position; None for an unreadable transcript."""

    def utterance(self, line: bytes) -> Utterance | None:
        """Return what a record of the transcript says in words, for the search; None for what says nothing."""

    def parts(self, line: bytes) -> tuple[TranscriptPart, ...]:
        """Return what a record of the transcript holds for a reader, in order; nothing for what says nothing."""

    def resumable(self, transcript: str) -> bool:
        """Return whether the client can continue that conversation."""

    def found_transcript(self, config: str, conversation: str) -> str | None:
        """Return the transcript of a conversation whose hooks reached no server, if it has one."""

    def auto_handoff(self, transcript: str, directory: str, leaves_out: tuple[str, ...]) -> str:
        """Return a handoff document made of what the transcript shows, without a model; `leaves_out` as in Policy.

        May take seconds; OSError.
        """

    def shows_progress(self, transcript: str) -> bool:
        """Return whether a file was changed or a commit made, as far as is seen. May take seconds; OSError."""

    def finished(self, transcript: str) -> bool:
        """Return whether the transcript's end shows a turn that ended by itself: not interrupted, not failed."""

    def failure(self, transcript: str) -> str:
        """Return the error of the transcript's last turn, if it failed and no hook of the client tells of that."""

    def usage_limit(self, transcript: str, now: float) -> UsageLimit | None:
        """Return the usage limit that the client waits for, if its transcript's end says so."""

    def wait_cancelled(self, transcript: str) -> bool:
        """Return whether the user has ended the client's wait for the end of a usage limit."""

    def answered(self, transcript: str) -> bool:
        """Return whether the newest reply in the transcript is the model's: no limit has refused anything since."""

    def task(self, transcript: str) -> str:
        """Return the newest prompt of the transcript that says what to do, empty without one. May take seconds."""

    def refusal(self, transcript: str) -> str | None:
        """Return why the client refuses to continue, if its transcript's end says so."""


class Provider(Launcher, HookCodec, ClientProbe, TranscriptEvidence, Protocol):
    """All that the server needs of one kind of client; its users take the narrowest of these protocols."""

    @property
    def name(self) -> str: ...
    @property
    def traits(self) -> ClientTraits:
        """What the rules need to know of the client."""

    def driver(
        self,
        pane: Pane | None,
        calls: ClientCalls,
        client_state: Callable[[], ClientState | None],
        background: Callable[[], bool],
        restarts: Driver | None = None,
    ) -> Driver:
        """Return what drives a client; None for the pane of one in the user's own terminal, where no key is pressed.

        `background`: only background tasks keep it busy. `restarts` takes over there from a plugin that is gone.
        """

    def connection(self, session: ConnectedSession, reports: ClientReports) -> Coroutine[None, None, None] | None:
        """Return what keeps a connection to a client, until it is cancelled; None for one that connects by itself."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """What was said or done in a conversation, in words."""

    text: str
    at: float | None = None
    """UTC seconds, where the record tells."""


class PartKind(StrEnum):
    """Whose words a part of a transcript holds."""

    USER = "user"
    CLIENT = "client"
    """What the client or a hook has put between the user's words and the agent."""
    AGENT = "agent"
    CALL = "call"
    RESULT = "result"
    COMPACTED = "compacted"


@dataclass(frozen=True, slots=True)
class TranscriptPart:
    """One part of a record, as a reader sees it; its text is as the client has it, secrets included."""

    kind: PartKind
    text: str
    at: float | None = None
    """UTC seconds, where the record tells."""
    tool: str = ""
    call: str = ""
    """The id by which a call and its result belong together."""
    failed: bool = False
