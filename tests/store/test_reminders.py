"""A reminder is a row; what is said and the end of the reminder go in one transaction."""

import sqlite3

import pytest

from sm.core import events as ev
from sm.core.effects import DropReminder, QueueNotice, RecordReminder
from sm.core.model.reminder import Kind, Notice, Reminder
from sm.core.ports.store import EventCommit
from tests.core.playbook import idle_session

ME = "a" * 8
PLAIN = Reminder("r1", Kind.ONCE, ME, ME, created=1.0, due=2.0, text="look")
FULL = Reminder(
    "r2", Kind.STOP, ME, ME, 2.0, None, "last", 3.0, 4.0, message="m", running=True, unanswered=2, reported=5.0
)
NOTICE = Notice("n1", ME, "[sm remind] look")


@pytest.fixture
async def store(store):
    for reminder in (PLAIN, FULL):
        await store.add_reminder(reminder)
    return store


async def test_a_reminder_comes_back_as_it_was(store):
    assert await store.reminders() == [PLAIN, FULL]


@pytest.mark.parametrize("way", ["note", "commit"])
async def test_what_was_said_is_a_notice_and_the_reminder_is_gone(store, way):
    records = (DropReminder("r1"), QueueNotice(NOTICE))
    if way == "note":
        await store.note(records)
    else:
        await store.commit(EventCommit(idle_session(), ev.ServerStarted(at=1.0), records))
    assert await store.reminders() == [FULL]
    assert await store.notices() == [NOTICE]
    await store.forget_notice("n1")
    assert await store.notices() == []


async def test_one_that_has_spoken_does_not_come_back_with_a_later_change(store):
    await store.note((DropReminder("r1"),))
    await store.note((RecordReminder(PLAIN),))
    assert await store.reminders() == [FULL]


async def test_what_cannot_be_said_leaves_the_reminder_as_it_was(store):
    await store.note((QueueNotice(NOTICE),))
    with pytest.raises(sqlite3.IntegrityError):
        await store.note((DropReminder("r1"), QueueNotice(NOTICE)))
    assert await store.reminders() == [PLAIN, FULL]
