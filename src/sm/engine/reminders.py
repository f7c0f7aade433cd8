"""Keeps the reminders, waits and stop notifications of all sessions, with one timer for the earliest.

The rules are in `core/rules/reminders.py`. What an event moves is written in that event's transaction, what is said
in one with the end of the reminder; the table here follows what is on disk. A reminder waits for an owner that has
ended.

What is said is a row until a message was made of it under the same id: a server killed anywhere in between says it
once. So this knows nothing of how messages are kept.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace

from sm.core import events as ev
from sm.core.effects import DropReminder, QueueNotice, Record, RecordReminder, ReminderRecord
from sm.core.errors import SmError, error
from sm.core.model import notices
from sm.core.model.reminder import Kind, Notice, Reminder
from sm.core.model.session import Session
from sm.core.ports.clock import Clock
from sm.core.ports.store import Store
from sm.core.rules import reminders
from sm.engine.errors import logged

NAP = 30.0
"""Seconds: the loop's own clock stands still while the machine sleeps, so the timer looks at ours this often."""
TAKEN_OVER = 3.0
"""Seconds a new server leaves the clients to show what they do, before it says of one that it has stopped."""
AGAIN = 1.0
"""Seconds after a reminder that could not be written: a disk that is full must not keep us busy."""
WATCHES = frozenset({Kind.WAIT, Kind.STOP})


@dataclass(slots=True)
class Reminders:
    store: Store
    clock: Clock
    session: Callable[[str], Session]
    post: Callable[[Notice], Awaitable[None]]
    """Make a message of a text; the same one twice is one."""
    about: dict[str, dict[str, Reminder]] = field(default_factory=dict)
    """By target, then by id."""
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    said: asyncio.Queue[Notice] = field(default_factory=asyncio.Queue)

    # --- what the actors tell ------------------------------------------------------------------------------------

    def follow(
        self, before: Session, after: Session, event: ev.Event, records: tuple[Record, ...]
    ) -> tuple[ReminderRecord, ...]:
        """What an event means for reminders: to be written in its transaction."""
        meant = self.about.get(after.id)
        if meant is None and not isinstance(event, ev.TaskCompleted):
            return ()
        return reminders.follow((meant or {}).values(), reminders.moment(before, after, event, records))

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
        if reminder.id in meant:  # one that has spoken meanwhile does not come back
            meant[reminder.id] = reminder
            self.woken.set()

    def _drop(self, identity: str) -> None:
        for target, meant in tuple(self.about.items()):
            if meant.pop(identity, None) is not None and not meant:
                del self.about[target]

    # --- the timer -----------------------------------------------------------------------------------------------

    async def load(self) -> None:
        """Take over what an earlier life of the server has left."""
        soonest = self.clock.now() + TAKEN_OVER
        for one in await self.store.reminders():
            watching = one.kind in WATCHES and one.due is not None
            self._hold(replace(one, due=max(one.due or 0.0, soonest)) if watching else one)
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

    async def deliver(self) -> None:
        """Make messages of what was said, in order."""
        while True:
            notice = await self.said.get()
            while not await self._posted(notice):
                await asyncio.sleep(AGAIN)

    async def _posted(self, notice: Notice) -> bool:
        with logged("notice not queued", message=notice.id) as piece:
            await self.post(notice)
            await self.store.forget_notice(notice.id)
        return piece.problem is None

    async def _speak(self) -> float:
        """Let everything that is due speak; seconds until the next one."""
        now = self.clock.now()
        waiting = [one for one in self._all() if one.due is not None and not self.session(one.owner).ended]
        for reminder in sorted((one for one in waiting if one.due is not None and one.due <= now), key=_when):
            with logged("reminder failed", reminder=reminder.id) as piece:
                await self._fire(reminder, now)
            if piece.problem is not None:
                return AGAIN
        left = [one.due for one in self._all() if one.due is not None and not self.session(one.owner).ended]
        return min(NAP, max(0.0, min(left, default=now + NAP) - self.clock.now()))

    async def _fire(self, reminder: Reminder, now: float) -> None:
        meant = self.about.get(reminder.target, {})
        if meant.get(reminder.id) is not reminder:
            return  # an event, or one that spoke before it, has moved or ended it
        others = tuple(one for one in meant.values() if one is not reminder)
        due = notices.Due(reminder, self.session(reminder.owner), self.session(reminder.target), now, others)
        records = notices.fire(due)
        await self.store.note(records)
        self.noted(records)

    def _all(self) -> Iterator[Reminder]:
        return (one for meant in tuple(self.about.values()) for one in tuple(meant.values()))

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
        """Tell `owner` once `target` is idle, or after some seconds; True if it is told at once."""
        if owner == target:
            raise error("bad_request", "A session cannot wait for itself", "sm remind DELAY TEXT")
        self.check(owner, seconds)
        now = self.clock.now()
        found = self.session(target)
        if found.ended or notices.idle(found):
            records = (notices.already_idle(Reminder(secrets.token_hex(4), Kind.WAIT, owner, target, now), found),)
            await self.store.note(records)
            self.noted(records)
            return True
        await self._add(Kind.WAIT, owner, target, seconds, deadline=now + seconds)
        return False

    async def watch_stop(self, owner: str, target: str, message: str = "") -> Reminder:
        """Tell `owner` once the task has ended that `target` gets with `message`, or with its next prompt.

        To be called before the message may have been delivered.
        """
        self.check(owner, None)
        return await self._add(Kind.STOP, owner, target, None, message=message)

    async def check_after(self, owner: str, target: str, message: str, seconds: float) -> Reminder:
        """Tell `owner` how `target` stands, so long after it was given `message`."""
        self.check(owner, seconds)
        return await self._add(Kind.CHECK, owner, target, None, message=message, every=seconds)

    async def reported(self, sender: str, owner: str) -> None:
        """`sender` has told `owner` something: a stop notification right behind it would only repeat that."""
        records = reminders.reported(self.about.get(sender, {}).values(), owner, self.clock.now())
        if records:
            await self.store.note(records)
            self.noted(records)

    async def cancel(self, owner: str, identity: str) -> None:
        if identity not in {one.id for one in self.owned(owner)}:
            raise error("not_found", f"No reminder {identity} of this session", "sm remind list")
        records = (DropReminder(identity),)
        await self.store.note(records)
        self.noted(records)

    def owned(self, owner: str) -> list[Reminder]:
        return sorted((one for one in self._all() if one.owner == owner), key=lambda one: one.created)

    def check(self, owner: str, delay: float | None, *, every: bool = False, more: int = 1) -> None:
        """SmError if the session may have no such reminder, or not so many more."""
        refused = reminders.check(delay, every=every, owned=len(self.owned(owner)), more=more)
        if refused is not None:
            raise SmError(refused)

    async def _add(self, kind: Kind, owner: str, target: str, delay: float | None, **values: object) -> Reminder:
        now = self.clock.now()
        due = None if delay is None else now + delay
        reminder = Reminder(secrets.token_hex(4), kind, owner, target, now, due, **values)  # type: ignore[arg-type]
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
