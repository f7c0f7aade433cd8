"""What the engine needs of the database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from sm.core.effects import EpisodeRecord, Record, ReminderRecord
from sm.core.events import Event
from sm.core.model.ask import StoredAsk
from sm.core.model.handoff import Handoff, HandoffState, StoredHandoff
from sm.core.model.history import Context, Document
from sm.core.model.message import Mode, StoredMessage
from sm.core.model.message_queue import Refill
from sm.core.model.notification import Episode
from sm.core.model.reminder import Notice, Reminder
from sm.core.model.session import Session


@dataclass(frozen=True, slots=True)
class LaunchRecord:
    """What starting a session's client again needs; the environment comes with each request and is never stored."""

    arguments: tuple[str, ...] = ()
    model: str | None = None
    command: str | None = None
    provider: str = ""
    """Whose client it starts; empty for the one that the session began with."""
    before: LaunchRecord | None = None
    """Of the client whose place this one takes."""


class EventCommit(NamedTuple):
    """An event to be written, with the session after it and what it records."""

    session: Session
    event: Event
    records: tuple[Record, ...] = ()
    before: Session | None = None
    """The session before it."""


class ContextStore(Protocol):
    async def contexts(self) -> dict[str, tuple[Context, ...]]:
        """Return the contexts of each session, by its id."""


class Store(ContextStore, Protocol):
    async def add(self, session: Session, token: str, launch: LaunchRecord, taken: Handoff | None = None) -> None:
        """SmError if a living session has the name, or if the handoff it begins from is not to be had."""

    async def renew(self, session: str, token: str, launch: LaunchRecord | None = None) -> None:
        """The session lives again, with a new token, and by another record; SmError if its name is taken by now."""

    async def exchange(self, session: str, token: str, launch: LaunchRecord) -> None:
        """Another client takes the place of the session's, with its own token, started so."""

    async def remove(self, session: str) -> None:
        """Forget an ended session: no later start loads it, and what waits for it is over."""

    async def commit(self, *events: EventCommit) -> list[int]:
        """Write events of one session, the state after the last, and what each records; return the events' numbers.

        In one transaction.
        """

    async def sessions(self) -> list[Session]: ...
    async def launches(self) -> dict[str, LaunchRecord]: ...
    async def tokens(self) -> dict[str, str]:
        """Session id by token hash."""

    async def last_number(self) -> int:
        """The number of the newest message there is; 0 if there is none."""

    async def queued_numbers(self) -> list[tuple[str, Mode, int, str]]:
        """(target, mode, number, id) of every message that waits, in order."""

    async def stored_message(self, message: str) -> StoredMessage | None: ...
    async def next_messages(self, target: str, refill: Refill) -> tuple[list[StoredMessage], int]:
        """The next messages of a window, and how many of those it knows of wait behind them."""

    async def exchanges(self) -> dict[tuple[str, str], int]:
        """Count the messages from one agent to another since the user last spoke to either."""

    async def count_exchange(self, sender: str, target: str) -> None: ...
    async def forget_exchanges(self, session: str) -> None:
        """The user has spoken to the session."""

    async def expire_messages(self) -> None:
        """End the messages that wait though their time is over."""

    async def ask(self, prefix: str) -> StoredAsk:
        """Return the one whose id begins so; SmError if there is none, or more than one."""

    async def asks(self, *, standing: bool) -> list[StoredAsk]:
        """The oldest first: those for which a dialog may be open, or the newest of all."""

    async def add_reminder(self, reminder: Reminder) -> None: ...
    async def note(self, records: Sequence[ReminderRecord | EpisodeRecord]) -> None:
        """Write what no event brought about, in one transaction."""

    async def reminders(self) -> list[Reminder]: ...
    async def notices(self) -> list[Notice]:
        """Texts of `sm`'s own that no message was made of yet, in order."""

    async def forget_notice(self, notice: str) -> None: ...

    async def episodes(self) -> list[Episode]:
        """What the user is, or was, to be notified of and that is not over."""

    async def take(self, handoff: Handoff, session: Session) -> None:
        """Let the session have the handoff; SmError if another has it, or none may."""

    async def handoff(self, handoff: str) -> StoredHandoff | None: ...
    async def handoffs(self, channel: str | None, limit: int = 500) -> list[StoredHandoff]:
        """The newest first; of every channel, or of one."""

    async def waiting(self) -> list[StoredHandoff]:
        """What any session may take up, the newest first."""

    async def channels(self) -> list[str]:
        """Those that have handoffs."""

    async def close(self, ids: Sequence[str], state: HandoffState, reason: str) -> int:
        """End those of them that wait; how many that were."""

    async def settle(self) -> None:
        """Before anything else at a start: give back what an ended session holds, and date what is from the future."""


class HistoryStore(ContextStore, Protocol):
    """What the store knows of past contexts, by session."""

    async def documents(self) -> dict[str, tuple[Document, ...]]: ...
