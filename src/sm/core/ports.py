"""What the engine needs from the outside, as protocols; `bootstrap.py` brings the implementations."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sm.core.context import ContextReading
from sm.core.events import Activity, Event
from sm.core.handoff import Handoff, HandoffState
from sm.core.mailbox import MessageState
from sm.core.session import Session


class Clock(Protocol):
    def now(self) -> float:
        """UTC, seconds since the epoch; never goes back."""


@dataclass(frozen=True, slots=True)
class HookReply:
    """What a hook's answer may carry; each provider has its own form for it."""

    context: str = ""
    block: str | None = None


@dataclass(frozen=True, slots=True)
class HookEvent:
    """A payload, parsed once at the edge."""

    name: str
    conversation: str
    event: Event | None
    """None for what changes nothing: a subagent's call, a notification."""
    pid: int | None = None
    """Of the client that sent it, where the transport tells."""


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start a client."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    conversation: str
    config: str
    """The client's configuration directory, where its state files are."""


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


@dataclass(frozen=True, slots=True)
class Witness:
    """What the client's own state file says."""

    activity: Activity
    detail: str
    conversation: str
    background: bool = False
    """Idle at the prompt while something runs in the background."""


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
    BACKSPACE = "BSpace"


class Pane(Protocol):
    async def look(self) -> View: ...
    async def paste(self, text: str) -> None: ...
    async def press(self, key: str, times: int = 1) -> None: ...
    async def history(self) -> str: ...


Held = Callable[[str], None]
"""Told why nothing may be typed, whenever the reason changes and every HELD_EVERY seconds while it lasts."""
HELD_EVERY = 20.0


class Composer(Protocol):
    """Drives one client's input box. Every method gives way as soon as `leave` says so."""

    async def ready(self, own: tuple[str, ...], held: Held, leave: Callable[[], bool]) -> bool:
        """Wait until text may be typed, with texts of ours removed; False if it gave way."""

    async def submit(self, text: str, leave: Callable[[], bool]) -> str | None:
        """Type and send `text`; a reason if it was not sent, with nothing of it left in the box."""


class Transcript(Protocol):
    """One conversation's file, read as it grows."""

    def read(self) -> ContextReading: ...
    def scan(self) -> bool:
        """Count a stretch of the file for the whole-file counts; False once all of it is counted."""


class Provider(Protocol):
    name: str

    def launch(self, request: LaunchRequest) -> Launch: ...
    def decode(self, payload: bytes, at: float, pid: int | None) -> HookEvent: ...
    def encode(self, hook: str, reply: HookReply) -> dict[str, object]: ...
    def witness(self, config: str, pid: int) -> Witness | None: ...
    def composer(self, pane: Pane, witness: Callable[[], Witness | None], background: Callable[[], bool]) -> Composer: ...
    def transcript(self, path: str) -> Transcript: ...
    def usable(self, reading: ContextReading) -> int | None: ...
    def window(self, model: str | None) -> int | None: ...
    def submitted(self, transcript: str, digest: str) -> str | None:
        """The text of a prompt of that digest near the end of the transcript, or None."""

    def refusal(self, transcript: str) -> str | None:
        """Why the client refuses to go on, if its transcript's end says so."""


@dataclass(frozen=True, slots=True)
class PaneStatus:
    pane: str
    pid: int
    session: str
    dead: bool
    code: int | None = None
    signal: int | None = None


class Panes(Protocol):
    async def create(self, session: Session, launch: Launch, log: Path) -> PaneStatus: ...
    async def status(self, pane: str) -> PaneStatus | None: ...
    async def all(self) -> dict[str, PaneStatus]:
        """Every pane of ours by session id."""

    async def kill(self, pane: str) -> None: ...
    def pane(self, pane: str) -> Pane: ...


class Store(Protocol):
    async def commit(self, session: Session, event: Event) -> int:
        """Write the event and the state after it in one transaction; the event's number."""

    async def sessions(self) -> list[Session]: ...
    async def record_handoff(self, handoff: Handoff, session: str, state: HandoffState, reason: str) -> None: ...
    async def record_message(self, message: str, state: MessageState, reason: str) -> None: ...


class Documents(Protocol):
    """The handoff documents and snapshots as files."""

    def text(self, handoff: Handoff) -> str: ...
    def refresh(self, handoff: Handoff) -> bool:
        """Copy the agent's file again; False if it cannot be read any more."""

    def snapshot(self, session: str, at: float, text: str) -> str: ...
    def log(self, session: str) -> Path: ...


Submit = Callable[[Event], Awaitable[None]]
