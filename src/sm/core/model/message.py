"""Text for an agent: what a message is, what may be typed, and how it is recognised when the client has taken it.

A message has four shapes: `SendRequest` (what a sender asks for), `StoredMessage` (its row in the table), `Message`
(what the agent gets) and `InFlight` (in `message_queue`: left for the agent, not confirmed).
"""

from __future__ import annotations

import hashlib
import unicodedata
from dataclasses import dataclass
from enum import StrEnum

from sm.core.model.client_traits import ClientTraits
from sm.core.values import replace


class MessageState(StrEnum):
    QUEUED = "queued"
    DELIVERED = "delivered"
    """On its way: given to a hook's reply or typed; the client has not shown yet that it took it."""
    CONFIRMED = "confirmed"
    UNCONFIRMED = "unconfirmed"
    EXPIRED = "expired"
    FAILED = "failed"


class Mode(StrEnum):
    """How urgent a message is: when it may reach an agent that works."""

    SEQUENTIAL = "sequential"
    """At the end of the turn."""
    IMPORTANT = "important"
    """At the next tool boundary."""
    STEER = "steer"
    """The same, and never to an idle agent: it is about the turn that runs."""
    URGENT = "urgent"
    """At once: a reply that is being written is cut off, a command that runs goes to the background."""


RANK = {Mode.URGENT: 0, Mode.IMPORTANT: 1, Mode.STEER: 1, Mode.SEQUENTIAL: 2}
"""Who goes first to an agent that takes messages; within a rank the older one."""


class Channel(StrEnum):
    """How a message reached its agent."""

    PASTE = "paste"
    """Typed as a prompt of an idle agent."""
    PROMPT = "prompt"
    """With the reply to UserPromptSubmit, beside a message that was typed."""
    TOOL = "tool"
    """With the reply to PostToolUse."""
    PLUGIN = "plugin"
    """By the plugin in the client, during a turn: the turn's next request carries it."""
    STOP = "stop"
    """With the reply to Stop: the turn continues."""
    URGENT = "urgent"
    """Typed into the client's own queue while it worked, and sent on at once."""
    COMMAND = "command"
    """Typed as a command of the client."""


TYPED_CHANNELS = frozenset({Channel.URGENT, Channel.COMMAND})


@dataclass(frozen=True, slots=True)
class SendRequest:
    """What a sender asks for."""

    body: str
    mode: Mode = Mode.SEQUENTIAL
    expires: float | None = None
    """Seconds from now after which it is not delivered any more."""
    notify_on_stop: bool = False
    """Tell the sender when the target stops."""
    wait: float | None = None
    """Tell the sender so many seconds after the delivery how the target is."""
    command: bool = False
    """A command of the client: it is typed alone and as it is."""


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """What the table keeps of a message: its body and all that it is framed with, so that it can be made again."""

    id: str
    target: str
    body: str
    sender: str = ""
    """Session id, or empty for the user or `sm` itself."""
    frame: str = ""
    """As the line above it names the sender; empty for words of `sm` itself, which have no such line."""
    number: int = 0
    """Its place in the order of all messages; 0 before it has one."""
    mode: Mode = Mode.SEQUENTIAL
    expires: float | None = None
    """UTC seconds after which it is not delivered any more."""
    command: bool = False
    notify_on_stop: bool = False
    wait: float | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """What an agent gets, in a reply to a hook or typed."""

    id: str
    text: str
    """As the agent reads it beside other things: its frame, and at most `framing.inline_limit` characters."""
    digest: str
    """Of what is typed: see `digest`."""
    sender: str = ""
    """Session id, or empty for the user or `sm` itself."""
    number: int = 0
    """Its place in the order of all messages; 0 for what is in no table."""
    mode: Mode = Mode.SEQUENTIAL
    typed: str = ""
    """What is typed where that differs from `text`: bare for the user, a file's name for several lines."""
    expires: float | None = None
    """UTC seconds after which it is not delivered any more."""
    command: bool = False
    """A command of the client: it goes alone and as it is."""
    tries: int = 0
    """How often it was delivered and did not arrive."""

    @property
    def pasted(self) -> str:
        return self.typed or self.text

    @property
    def rank(self) -> tuple[int, int]:
        return RANK[self.mode], self.number

    def expired(self, at: float) -> bool:
        return self.expires is not None and self.expires <= at


def message(message_id: str, text: str, sender: str = "", *, typed: str = "") -> Message:
    return Message(message_id, text, digest(typed or text), sender, typed=typed)


def pointer(message: Message) -> Message:
    """Return the prompt that makes an agent read a message which its last turn ended without."""
    text = f"[sm] Message {message.id} came as your last turn ended. Read it above."
    return replace(message, text=text, typed=text, digest=digest(text))


def fits_composer(text: str, traits: ClientTraits) -> bool:
    """Return whether the client takes a text for a prompt as it is; what it does not goes through a file."""
    plain = not text.startswith(traits.special_prefixes) and not text.endswith("\\") and text == text.strip()
    return (
        plain
        and text.casefold() not in traits.exit_words
        and len(text) <= traits.typed_characters
        and text.count("\n") + 1 <= traits.typed_lines
        and bool(text)
        and survives_composer(text.replace("\n", ""))
    )


def survives_composer(line: str) -> bool:
    """False for a line the client would not submit as it is: it composes letters and drops invisible characters."""
    return line.isprintable() and unicodedata.is_normalized("NFC", line)


def digest(text: str) -> str:
    """Fingerprint that survives what a composer does to text: line ends and the blanks around it."""
    lines = [line.rstrip() for line in text.replace("\r\n", "\n").replace("\r", "\n").strip().split("\n")]
    return hashlib.sha256("\n".join(lines).encode("utf-8", "replace")).hexdigest()
