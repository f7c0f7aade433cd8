"""Keeps the reminders, waits and stop notifications of all sessions, with one timer for the earliest.

The rules are in `core/rules/reminders.py`. What an event moves is written in that event's transaction, what is said
in one with the end of the reminder; the table here follows what is on disk. A reminder waits for an owner that has
ended.

What is said is a row until `Messages` has made a message of it under the same id: a server killed anywhere in between
says it once.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from sm.core import events as ev
from sm.core.effects import DropReminder, QueueNotice, Record, RecordReminder, ReminderRecord
from sm.core.errors import SmError, error
from sm.core.model.message import StoredMessage
from sm.core.model.notices import DueReminder
from sm.core.model.reminder import Kind, Notice, Reminder
from sm.core.model.session import Session
from sm.core.ports.clock import Clock
from sm.core.ports.store import Store
from sm.core.rules import due_reminders, reminders
from sm.engine.errors import logged
from sm.engine.sessions import Sessions

CLOCK_CHECK_INTERVAL_S = 30.0
"""Seconds: the loop's own clock stops while the machine sleeps, so the timer looks at the system's this often."""
TAKE_OVER_S = 3.0
"""Seconds a new server leaves the clients to show what they do, before it says of one that it has stopped."""
RETRY_INTERVAL_S = 1.0
"""Seconds after a reminder that could not be written: a full disk must not keep the server busy."""
WATCHES = frozenset({Kind.WAIT, Kind.STOP})


@dataclass(slots=True)
class Reminders:
    store: Store
    clock: Clock
    sessions: Sessions
    about: dict[str, dict[str, Reminder]] = field(default_factory=dict)
    """By target, then by id."""
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    said: asyncio.Queue[Notice] = field(default_factory=asyncio.Queue)
    """What is on disk and no message yet, in order."""

    def _session(self, session: str) -> Session:
        return self.sessions.actor(session).session

    # --- what events mean for them ------------------------------------------------------------------------------------

    def follow(
        self, before: Session, after: Session, event: ev.Event, records: tuple[Record, ...]
    ) -> tuple[ReminderRecord, ...]:
        """What an event means for reminders: to be written in its transaction."""
        meant = self.about.get(after.id)
        if meant is None and not isinstance(event, ev.TaskCompleted):
            return ()
        return reminders.follow((meant or {}).values(), reminders.session_change(before, after, event, records))

    def noted(self, records: tuple[Record, ...]) -> None:
        """The records are on disk."""
        for record in records:
            if isinstance(record, RecordReminder):
                self._change(record.reminder)
            elif isinstance(record, DropReminder):
                self._drop(record.reminder)
            elif isinstance(record, QueueNotice):
                self.said.put_nowait(record.notice)

    def _change(self, reminder: Reminder) -> None:
        meant = self.about.get(reminder.target, {})
        if reminder.id in meant:  # one that has spoken since does not come back
            meant[reminder.id] = reminder
            self.woken.set()

    def _drop(self, identity: str) -> None:
        for target, meant in tuple(self.about.items()):
            if meant.pop(identity, None) is not None and not meant:
                del self.about[target]

    def forget(self, session: str) -> None:
        """Drop the reminders of a removed session, and those of others about it."""
        for reminder in tuple(self._all()):
            if session in {reminder.owner, reminder.target}:
                self._drop(reminder.id)

    # --- the timer -----------------------------------------------------------------------------------------------

    async def load(self) -> None:
        """Take over what the last server has left."""
        soonest = self.clock.now() + TAKE_OVER_S
        for reminder in await self.store.reminders():
            watching = reminder.kind in WATCHES and reminder.due is not None
            self._hold(replace(reminder, due=max(reminder.due or 0.0, soonest)) if watching else reminder)
        for notice in await self.store.notices():
            self.said.put_nowait(notice)

    async def run(self) -> None:
        while True:
            self.woken.clear()
            pause = await self._speak()
            try:
                async with asyncio.timeout(pause):
                    await self.woken.wait()
            except TimeoutError:
                continue

    async def _speak(self) -> float:
        """Let everything that is due speak; return the seconds until the next one."""
        now = self.clock.now()
        for reminder in sorted((reminder for reminder in self._armed() if _when(reminder) <= now), key=_when):
            with logged("reminder failed", reminder=reminder.id) as attempt:
                await self._fire(reminder, now)
            if attempt.problem is not None:
                return RETRY_INTERVAL_S
        next_due = min(map(_when, self._armed()), default=now + CLOCK_CHECK_INTERVAL_S)
        return min(CLOCK_CHECK_INTERVAL_S, max(0.0, next_due - self.clock.now()))

    async def _fire(self, reminder: Reminder, now: float) -> None:
        meant = self.about.get(reminder.target, {})
        if meant.get(reminder.id) is not reminder:
            return  # an event, or one that spoke before it, has moved or ended it
        others = tuple(other for other in meant.values() if other is not reminder)
        due = DueReminder(reminder, self._session(reminder.owner), self._session(reminder.target), now, others)
        records = due_reminders.fire(due)
        await self.store.note(records)
        self.noted(records)

    def _armed(self) -> list[Reminder]:
        """Return those with a time; one waits for an owner that has ended."""
        timed = (reminder for reminder in self._all() if reminder.due is not None)
        return [reminder for reminder in timed if not self._session(reminder.owner).ended]

    def _all(self) -> Iterator[Reminder]:
        return (reminder for meant in tuple(self.about.values()) for reminder in tuple(meant.values()))

    # --- commands ------------------------------------------------------------------------------------------------

    async def remind(self, owner: str, delay: float, text: str, *, every: bool) -> Reminder:
        """Remind a session of something, once or again and again."""
        if not text.strip():
            raise error("bad_request", "The reminder has no text", "sm remind 10m TEXT")
        self.check(owner, delay, every=every)
        return await self._add(
            Kind.EVERY if every else Kind.ONCE, owner, owner, delay, text=text.strip(), every=delay if every else 0.0
        )

    async def track(self, owner: str, target: str, every: float) -> Reminder:
        """Ask `target` to report, again and again, and tell `owner` when it does not."""
        self.check(owner, every, every=True)
        return await self._add(Kind.TRACK, owner, target, every, every=every)

    async def wait(self, owner: str, target: str, seconds: float) -> bool:
        """Tell `owner` once `target` is idle or has ended, or after `seconds`; True if that is at once."""
        if owner == target:
            raise error("bad_request", "A session cannot wait for itself", "sm remind DELAY TEXT")
        self.check(owner, seconds)
        now = self.clock.now()
        reminder = Reminder(secrets.token_hex(4), Kind.WAIT, owner, target, now)
        over = due_reminders.already_over(reminder, self._session(target))
        if over is not None:
            await self.store.note((over,))
            self.noted((over,))
            return True
        await self._add(Kind.WAIT, owner, target, seconds, deadline=now + seconds)
        return False

    async def promise(self, message: StoredMessage) -> None:
        """Arm the notices that the sender of a message asked for, before the message is queued."""
        if not message.sender and (message.notify_on_stop or message.wait is not None):
            raise error(
                "bad_request",
                "--notify-on-stop and --wait only work from inside a session",
                f"sm tail {self.sessions.as_argument(message.target)} -f shows what it does",
            )
        if message.notify_on_stop:
            await self.watch_stop(message.sender, message.target, message.id)
        if message.wait is not None:
            await self.check_after(message.sender, message.target, message.id, message.wait)

    async def watch_stop(self, owner: str, target: str, message: str = "") -> Reminder:
        """Tell `owner` once the task has ended that `target` gets with `message`, or with its next prompt.

        To be called before the message may have been delivered.
        """
        self.check(owner, None)
        return await self._add(Kind.STOP, owner, target, None, message=message)

    async def check_after(self, owner: str, target: str, message: str, seconds: float) -> Reminder:
        """Tell `owner` the state of `target`, so long after it was given `message`."""
        self.check(owner, seconds)
        return await self._add(Kind.CHECK, owner, target, None, message=message, every=seconds)

    async def reported(self, sender: str, owner: str) -> None:
        """`sender` has told `owner` something: a stop notification right behind it would only repeat that."""
        records = reminders.reported(self.about.get(sender, {}).values(), owner, self.clock.now())
        if records:
            await self.store.note(records)
            self.noted(records)

    async def cancel(self, owner: str, identity: str) -> None:
        if identity not in {reminder.id for reminder in self.owned(owner)}:
            raise error("not_found", f"No reminder {identity} of this session", "sm remind list")
        records = (DropReminder(identity),)
        await self.store.note(records)
        self.noted(records)

    def owned(self, owner: str) -> list[Reminder]:
        own = (reminder for reminder in self._all() if reminder.owner == owner)
        return sorted(own, key=lambda reminder: reminder.created)

    def check(self, owner: str, delay: float | None, *, every: bool = False, more: int = 1) -> None:
        """SmError if the session may have no such reminder, or not so many more."""
        refused = reminders.check(delay, every=every, owned=len(self.owned(owner)), more=more)
        if refused is not None:
            raise SmError(refused)

    async def _add(self, kind: Kind, owner: str, target: str, delay: float | None, **values: object) -> Reminder:
        now = self.clock.now()
        due = None if delay is None else now + delay
        reminder = Reminder(secrets.token_hex(4), kind, owner, target, now, due, **values)  # type: ignore[arg-type]  # its fields
        self._hold(reminder)  # before it is written: an event may come in between
        try:
            await self.store.add_reminder(reminder)
        except BaseException:
            self._drop(reminder.id)
            raise
        return reminder

    def _hold(self, reminder: Reminder) -> None:
        self.about.setdefault(reminder.target, {})[reminder.id] = reminder
        self.woken.set()


def _when(reminder: Reminder) -> float:
    return reminder.due or 0.0
