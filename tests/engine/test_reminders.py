"""Reminders on the whole engine: one timer, one row each, told once, over any number of servers."""

import asyncio
import contextlib

import pytest

from sm.core import events as ev
from sm.core.effects import QueueNotice, RecordMessage
from sm.core.errors import SmError
from sm.core.model.message import MessageState, SendRequest
from sm.core.model.reminder import Kind, Notice
from tests.api.rig import house
from tests.engine.test_engine import next_life, until, unwritable

MINUTE = 60.0


@pytest.fixture
async def api(tmp_path):
    async with house(tmp_path) as found:
        yield found


class Told:
    """What the sessions of a house are told."""

    def __init__(self, api):
        self.engine = api.engine

    def of(self, session):
        return [queued.text for queued in self.engine.sessions.actors[session].session.outbox.queue]


async def pass_time(api, seconds, engine=None):
    api.clock.advance(seconds)
    (engine or api.engine).reminders.woken.set()
    await asyncio.sleep(0.02)


@contextlib.asynccontextmanager
async def pair(api):
    """A boss and its child, both known to be idle."""
    boss = await api.new("boss")
    kid = await api.new("kid", parent=boss)
    for identity in (boss, kid):
        await happens(api, identity, ev.ActivityChanged, activity=ev.Activity.IDLE)
    yield boss, kid


async def happens(api, session, kind, engine=None, **values):
    engine = engine or api.engine
    actor = engine.sessions.actors[session]
    if kind in {ev.PromptSubmitted, ev.TurnEnded}:
        values["conversation"] = actor.session.conversation.id
    await actor.ask(kind(at=api.clock.now(), **values))


def reminders(api):
    return api.engine.reminders


async def test_a_reminder_speaks_at_its_time_and_is_gone(api):
    session = await api.new("a")
    await reminders(api).remind(session, MINUTE, "look", every=False)
    await pass_time(api, 59)
    assert Told(api).of(session) == []
    await pass_time(api, 2)
    await until(lambda: Told(api).of(session) == ["[sm remind] look"])
    assert reminders(api).owned(session) == []
    assert await api.engine.ports.store.reminders() == []


async def test_the_earliest_of_many_speaks_first_whatever_their_order(api):
    session = await api.new("a")
    for minutes in (3, 1, 2):
        await reminders(api).remind(session, minutes * MINUTE, f"after {minutes}", every=False)
    await pass_time(api, 200)
    await until(lambda: len(Told(api).of(session)) == 3)
    assert Told(api).of(session) == [f"[sm remind] after {minutes}" for minutes in (1, 2, 3)]


async def test_what_was_due_while_no_server_ran_is_said_once_by_the_next(api):
    session = await api.new("a")
    await reminders(api).remind(session, MINUTE, "once", every=False)
    await reminders(api).remind(session, MINUTE, "every", every=True)
    api.clock.advance(10 * MINUTE + 7)
    async with next_life(api) as again:
        queue = lambda: again.sessions.actors[session].session.outbox.queue
        await until(lambda: len(queue()) == 2)
        await asyncio.sleep(0.02)
        assert sorted(queued.text for queued in queue()) == ["[sm remind] every", "[sm remind] once"]
        [left] = again.reminders.owned(session)
        assert left.due - api.clock.now() == pytest.approx(MINUTE - 7)


async def test_a_clock_that_was_set_back_says_nothing_twice(api):
    session = await api.new("a")
    await reminders(api).remind(session, MINUTE, "every", every=True)
    await pass_time(api, 61)
    await until(lambda: len(Told(api).of(session)) == 1)
    await pass_time(api, -3600)
    await pass_time(api, 3600)
    assert len(Told(api).of(session)) == 1


async def test_an_ended_owner_is_told_when_it_lives_again(api):
    session = await api.new("a")
    await reminders(api).remind(session, MINUTE, "look", every=False)
    await api.engine.sessions.kill(session)
    await until(lambda: not api.engine.ports.panes.living)
    await pass_time(api, 600)
    assert Told(api).of(session) == []
    await api.call("POST", f"/sessions/{session}/restore", body={"env": {"PATH": "/usr/bin:/bin"}})
    await until(lambda: Told(api).of(session) == ["[sm remind] look"])


async def test_what_cannot_be_written_is_not_said_and_comes_again(api, monkeypatch):
    session = await api.new("a")
    await reminders(api).remind(session, MINUTE, "look", every=False)
    monkeypatch.setattr("sm.engine.reminders.RETRY_INTERVAL_S", 0.01)
    await unwritable(api)
    await pass_time(api, 61)
    assert Told(api).of(session) == []
    await api.engine.ports.store.database._writer.call(lambda connection: connection.execute("PRAGMA query_only = OFF"))
    await until(lambda: Told(api).of(session) == ["[sm remind] look"])


async def test_a_reminder_that_cannot_be_kept_is_refused_and_forgotten(api):
    session = await api.new("a")
    await unwritable(api)
    with pytest.raises(SmError):
        await reminders(api).remind(session, MINUTE, "look", every=False)
    assert reminders(api).owned(session) == []


async def test_a_stop_is_told_after_the_task_that_was_meant(api):
    async with pair(api) as (boss, kid):
        await reminders(api).watch_stop(boss, kid)
        await happens(api, kid, ev.TurnEnded)
        await pass_time(api, 5)
        assert Told(api).of(boss) == []
        await happens(api, kid, ev.PromptSubmitted, text="x")
        await happens(api, kid, ev.TurnEnded, text="Finished.")
        await pass_time(api, 5)
        await until(lambda: len(Told(api).of(boss)) == 1)
        assert Told(api).of(boss)[0].endswith('has finished its turn and is idle. Last line: "Finished."')


async def test_several_watchers_are_told_each(api):
    async with pair(api) as (boss, kid):
        other = await api.new("other")
        for watcher in (boss, other):
            await reminders(api).watch_stop(watcher, kid)
        await happens(api, kid, ev.PromptSubmitted, text="x")
        await happens(api, kid, ev.TurnEnded)
        await pass_time(api, 5)
        await until(lambda: len(Told(api).of(boss)) == len(Told(api).of(other)) == 1)


async def test_a_message_of_the_child_itself_spares_the_notice(api):
    async with pair(api) as (boss, kid):
        await reminders(api).watch_stop(boss, kid)
        await happens(api, kid, ev.PromptSubmitted, text="x")
        await api.engine.messages.send(boss, kid, SendRequest("I have finished."))
        await happens(api, kid, ev.TurnEnded)
        await pass_time(api, 5)
        await until(lambda: reminders(api).owned(boss) == [])
        assert [text.partition("\n")[2] for text in Told(api).of(boss)] == ["I have finished."]


async def test_a_stop_that_had_settled_when_the_server_was_killed_is_told_by_the_next(api):
    async with pair(api) as (boss, kid):
        await reminders(api).watch_stop(boss, kid)
        await happens(api, kid, ev.PromptSubmitted, text="x")
        await happens(api, kid, ev.TurnEnded)
        async with next_life(api) as again:
            await happens(api, kid, ev.ActivityChanged, again, activity=ev.Activity.IDLE)
            await pass_time(api, 10, again)
            await until(lambda: len(again.sessions.actors[boss].session.outbox.queue) == 1)


async def test_a_child_that_works_again_when_the_next_server_comes_is_not_taken_for_stopped(api):
    async with pair(api) as (boss, kid):
        await reminders(api).watch_stop(boss, kid)
        await happens(api, kid, ev.PromptSubmitted, text="x")
        await happens(api, kid, ev.TurnEnded)
        api.clock.advance(3600)
        async with next_life(api) as again:
            await happens(api, kid, ev.ActivityChanged, again, activity=ev.Activity.BUSY)
            await pass_time(api, 60, again)
            assert again.sessions.actors[boss].session.outbox.queue == ()
            assert [reminder.kind for reminder in again.reminders.owned(boss)] == [Kind.STOP]


async def test_a_wait_for_an_idle_session_is_over_at_once(api):
    async with pair(api) as (boss, kid):
        assert await reminders(api).wait(boss, kid, 60)
        await until(lambda: Told(api).of(boss) == [f"[sm wait] kid ({kid}) is idle already."])
        assert reminders(api).owned(boss) == []


async def test_a_wait_ends_with_its_time(api):
    async with pair(api) as (boss, kid):
        await happens(api, kid, ev.PromptSubmitted, text="x")
        assert not await reminders(api).wait(boss, kid, 60)
        await pass_time(api, 61)
        await until(lambda: Told(api).of(boss) == [f"[sm wait] kid ({kid}) is not idle after 61s: working."])


async def test_nobody_waits_for_itself(api):
    session = await api.new("a")
    with pytest.raises(SmError, match="itself"):
        await reminders(api).wait(session, session, 60)


async def test_a_cancelled_reminder_says_nothing_and_a_foreign_one_is_not_found(api):
    session, other = await api.new("a"), await api.new("b")
    made = await reminders(api).remind(session, MINUTE, "look", every=False)
    with pytest.raises(SmError, match="No reminder"):
        await reminders(api).cancel(other, made.id)
    await reminders(api).cancel(session, made.id)
    await pass_time(api, 61)
    assert Told(api).of(session) == []


async def test_done_is_told_to_the_parent_in_the_events_own_transaction(api):
    async with pair(api) as (boss, kid):
        await happens(api, kid, ev.TaskCompleted, text="built")
        await until(lambda: Told(api).of(boss) == [f'[sm] kid ({kid}) is done: "built"'])


@pytest.mark.parametrize("made", [False, True], ids=["before its message", "behind it"])
async def test_what_was_said_when_the_server_was_killed_is_one_message_in_the_next(api, made):
    session = await api.new("a")
    store = api.engine.ports.store
    notice = Notice("n1", session, "[sm remind] look")
    await store.note((QueueNotice(notice),))
    if made:
        await api.engine.messages.post(notice)
    async with next_life(api) as again:
        await until(lambda: len(again.sessions.actors[session].session.outbox.queue) == 1)
        await asyncio.sleep(0.02)
        assert [queued.id for queued in again.sessions.actors[session].session.outbox.queue] == ["n1"]
        assert await store.notices() == []


async def test_a_check_comes_so_long_after_its_message_was_taken(api):
    async with pair(api) as (boss, kid):
        await reminders(api).check_after(boss, kid, "m1", 60)
        await pass_time(api, 300)
        assert Told(api).of(boss) == []
        actor = api.engine.sessions.actors[kid]
        taken = RecordMessage("m1", MessageState.CONFIRMED)
        event = ev.ServerStarted(at=api.clock.now())
        reminders(api).noted(reminders(api).follow(actor.session, actor.session, event, (taken,)))
        await pass_time(api, 61)
        await until(lambda: Told(api).of(boss) == [f"[sm wait] 1m after your message kid ({kid}) is idle."])
