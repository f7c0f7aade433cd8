"""Event, state and what an event records go in one transaction, without what was said."""

import sqlite3
from dataclasses import replace

import pytest

from sm.core import effects as ef
from sm.core import events as ev
from sm.core.errors import SmError
from sm.core.model.handoff import HandoffState
from sm.core.model.history import Context, Document
from sm.core.model.message import message
from sm.core.model.notification import Episode
from sm.core.model.notify_rules import NotificationKind
from sm.core.model.rotation import Phase, PhaseEntered, Rotation, Switch
from sm.core.ports.store import EventCommit, LaunchRecord
from sm.store import contexts, events
from sm.store.events import event_data
from tests.core.playbook import HANDOFF, advance, idle_session

SECRET = "sk-ant-api03-TESTTESTTEST"


async def test_a_session_comes_back_as_it_was(store):
    await store.commit(EventCommit(idle_session(rotations=3), ev.ServerStarted(at=1.0)))
    assert await store.sessions() == [idle_session(rotations=3)]


async def test_what_cannot_be_recorded_leaves_neither_event_nor_state(store):
    await store.database.run(lambda connection: connection.execute("DROP TABLE handoffs"))
    record = ef.RecordHandoff(HANDOFF, HandoffState.PENDING)
    with pytest.raises(sqlite3.OperationalError):
        await store.commit(
            EventCommit(idle_session(rotations=3), ev.HandoffRequested(at=1.0, handoff=HANDOFF), (record,))
        )
    assert await store.sessions() == [idle_session()]
    assert await store.events_after(0) == []


async def test_a_handoff_is_one_row_however_often_its_state_changes(store):
    for state in (HandoffState.PENDING, HandoffState.CONSUMED):
        record = ef.RecordHandoff(HANDOFF, state)
        await store.commit(EventCommit(idle_session(), ev.ServerStarted(at=1.0), (record,)))
    assert [(entry.handoff.id, entry.state) for entry in await store.handoffs(None)] == [(HANDOFF.id, "consumed")]


@pytest.mark.parametrize(
    "event",
    [
        ev.PromptSubmitted(at=1.0, conversation="c0", text=SECRET),
        ev.MessageQueued(at=1.0, message=message("m1", SECRET)),
    ],
)
def test_an_event_keeps_the_size_of_what_was_said_and_not_the_words(event):
    assert SECRET not in event_data(event)
    assert "_size" in event_data(event)


async def test_a_living_sessions_name_is_its_own(store):
    with pytest.raises(SmError, match="is alive"):
        await store.add(replace(idle_session(), id="b" * 8), "other", LaunchRecord())


async def test_a_renewed_session_has_the_new_token_alone(store):
    before = await store.tokens()
    await store.renew("a" * 8, "another")
    after = await store.tokens()
    assert list(after.values()) == ["a" * 8]
    assert before.keys() != after.keys()


async def test_old_events_are_forgotten(store):
    now = store.clock.now()
    for at in (now - 31 * 86_400, now):
        await store.commit(EventCommit(idle_session(), ev.ServerStarted(at=at)))
    await store.forget_old_events()
    assert [event["at"] for event in await store.events_after(0)] == [now]


def begun(conversation, transcript, at, log_start=0):
    return ef.RecordContext(conversation, transcript, at, log_start)


async def test_contexts_are_counted_and_learn_their_transcript(store):
    for record in (
        begun("c0", None, 1.0),
        begun("c0", "/t0", 1.5, 90),
        begun("c1", "/t1", 2.0, 500),
        begun("c0", "/t0", 3.0, 900),
    ):
        await store.commit(EventCommit(idle_session(), ev.ServerStarted(at=1.0), (record,)))
    assert await store.contexts() == {
        "a" * 8: (
            Context(1, "c0", "/t0", 1.0, 0),
            Context(2, "c1", "/t1", 2.0, 500),
            Context(3, "c0", "/t0", 3.0, 900),
        )
    }


async def test_documents_are_told_with_their_state(store):
    record = ef.RecordHandoff(HANDOFF, HandoffState.ACTIVE)
    await store.commit(EventCommit(idle_session(), ev.ServerStarted(at=1.0), (record,)))
    assert await store.documents() == {"a" * 8: (Document(HANDOFF.id, "c0", HANDOFF.copy, 1.0, "active"),)}


async def test_events_that_are_committed_together_are_written_all_or_none(store):
    first, last = idle_session(rotations=1), idle_session(rotations=2)
    numbers = await store.commit(
        EventCommit(first, ev.ServerStarted(at=1.0)), EventCommit(last, ev.LatchesReset(at=2.0))
    )
    found = await store.events_of(last.id, 10)
    assert [(row["number"], row["kind"]) for row in found] == [
        (numbers[0], "ServerStarted"),
        (numbers[1], "LatchesReset"),
    ]
    await store.database.run(lambda connection: connection.execute("DROP TABLE handoffs"))
    record = ef.RecordHandoff(HANDOFF, HandoffState.PENDING)
    with pytest.raises(sqlite3.OperationalError):
        await store.commit(
            EventCommit(idle_session(rotations=3), ev.ServerStarted(at=3.0)),
            EventCommit(idle_session(rotations=4), ev.ServerStarted(at=4.0), (record,)),
        )
    assert [session.rotations for session in await store.sessions()] == [2]
    assert len(await store.events_of(last.id, 10)) == 2


async def test_a_removed_session_is_loaded_no_more_and_its_row_stays_for_what_names_it(store):
    record = ef.RecordHandoff(HANDOFF, HandoffState.ACTIVE)
    await store.commit(EventCommit(idle_session(), ev.ServerStarted(at=1.0), (record,)))
    session = idle_session().id
    await store.note([ef.OpenEpisode(Episode("e1", NotificationKind.DIED, session, "x", 1.0))])
    await store.remove(session)
    assert (await store.sessions(), await store.launches(), await store.tokens()) == ([], {}, {})
    assert await store.episodes() == []
    assert [entry.handoff.id for entry in await store.handoffs(None)] == [HANDOFF.id]
    assert [event["session"] for event in await store.events_after(0)] == [session]


async def test_what_an_older_sm_has_stored_is_read_as_it_was(store):
    """What it did not know yet is not in its records: another client that continues, and how that is started."""
    handoff = ev.HandoffRequested(at=1.0, handoff=HANDOFF, switch=Switch("codex"))
    session, _ = advance(idle_session(), handoff)
    await store.commit(EventCommit(session, handoff))
    await store.exchange(session.id, "token", LaunchRecord(("-v",), "m", None, "codex", LaunchRecord(("-w",))))
    assert (await store.sessions())[0].rotation.switch == Switch("codex")
    assert (await store.launches())[session.id].before == LaunchRecord(("-w",))

    def forget(connection):
        connection.execute("UPDATE sessions SET state = json_remove(state, '$.rotation.switch')")
        connection.execute("UPDATE sessions SET launch = json_remove(launch, '$.provider', '$.before')")

    await store.database.run(forget)
    assert await store.sessions() == [replace(session, rotation=replace(session.rotation, switch=None))]
    assert await store.launches() == {session.id: LaunchRecord(("-v",), "m")}


async def test_a_context_says_whose_client_it_was_in(store):
    record = ef.RecordContext("c0", "/t0", 1.0, 0, "codex")
    await store.commit(EventCommit(idle_session(), ev.ServerStarted(at=1.0), (record,)))
    assert await store.contexts() == {"a" * 8: (Context(1, "c0", "/t0", 1.0, 0, "codex"),)}


async def test_the_phases_of_a_rotation_are_kept_beside_the_events_that_moved_it(store):
    waits = replace(idle_session(), rotation=Rotation(HANDOFF))
    turned = replace(idle_session(), rotation=Rotation(HANDOFF, Phase.RESERVED))
    await store.commit(
        EventCommit(waits, ev.HandoffRequested(at=1.0, handoff=HANDOFF), before=idle_session()),
        EventCommit(waits, ev.LatchesReset(at=2.0), before=waits),
        EventCommit(turned, ev.TurnEnded(at=3.0, conversation="c0"), before=waits),
        EventCommit(turned, ev.ServerStarted(at=4.0)),
    )
    found = await store.database.read(lambda connection: events.phases(connection, turned.id, 9))
    assert found == (
        PhaseEntered(1.0, "HandoffRequested", "pending", HANDOFF.id),
        PhaseEntered(3.0, "TurnEnded", "reserved", HANDOFF.id),
    )
    assert await store.database.read(lambda connection: events.phases(connection, turned.id, 1)) == found[1:]
    assert await store.database.read(lambda connection: events.phases(connection, "another", 9)) == ()


async def test_the_contexts_of_one_session_are_read_alone(store):
    await store.commit(
        EventCommit(idle_session(), ev.ServerStarted(at=1.0), (ef.RecordContext("c1", "/t.jsonl", 1.0, 0),))
    )
    mine = await store.database.read(lambda connection: contexts.of_session(connection, idle_session().id))
    assert (mine, {idle_session().id: mine}) == (mine, await store.contexts())
    assert [context.conversation for context in mine] == ["c1"]
    assert await store.database.read(lambda connection: contexts.of_session(connection, "another")) == ()


async def test_the_documents_of_one_session_are_read_alone(store):
    await store.commit(
        EventCommit(
            idle_session(), ev.ServerStarted(at=1.0), (ef.RecordHandoff(HANDOFF, HandoffState.PENDING, held=True),)
        )
    )
    mine = await store.database.read(lambda connection: contexts.documents_of(connection, idle_session().id))
    assert await store.documents() == {idle_session().id: mine}
    assert [document.id for document in mine] == [HANDOFF.id]
    assert await store.database.read(lambda connection: contexts.documents_of(connection, "another")) == ()
