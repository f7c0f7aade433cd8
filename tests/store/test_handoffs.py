"""The handoffs' rows: one statement decides who gets a document."""

import asyncio
import sqlite3
from dataclasses import replace

import pytest

from sm.core import effects as ef
from sm.core import events as ev
from sm.core.errors import SmError
from sm.core.model.handoff import HandoffState, StoredHandoff
from sm.core.ports.store import EventCommit, LaunchRecord
from sm.store.database import MIGRATIONS, Database
from sm.store.sessions import SqliteStore
from tests.core.playbook import HANDOFF, idle_session
from tests.fakes.clock import FakeClock

OWNER = idle_session()
KEPT = replace(HANDOFF, session=OWNER.id)


def named(name):
    return replace(OWNER, id=name * 8, name=name)


@pytest.fixture
async def store(tmp_path):
    async with await Database.open(tmp_path / "sm.db") as database:
        found = SqliteStore(database, FakeClock())
        await found.add(OWNER, "token", LaunchRecord())
        yield found


async def record(store, handoff, state, session=OWNER, **more):
    records = (ef.RecordHandoff(handoff, state, **more),)
    await store.commit(EventCommit(session, ev.ServerStarted(at=1.0), records))


async def test_an_entry_comes_back_as_it_was_written(store):
    await record(store, KEPT, HandoffState.PENDING, reason="because")
    now = store.clock.now()
    assert await store.handoff(HANDOFF.id) == StoredHandoff(
        KEPT, HandoffState.PENDING, now, "because", OWNER.id, KEPT.created, created_pid=1
    )
    assert await store.handoff("HO-none") is None


async def test_of_many_that_take_it_up_one_has_it_and_each_other_is_told_who(store):
    await record(store, KEPT, HandoffState.ACTIVE, held=False)
    wanting = [named(name) for name in "bcdefghij"]

    async def begin(session):
        await store.add(session, f"token {session.id}", LaunchRecord(), KEPT)

    outcomes = await asyncio.gather(*map(begin, wanting), return_exceptions=True)
    refused = [str(outcome) for outcome in outcomes if isinstance(outcome, SmError)]
    holder = (await store.handoff(KEPT.id)).holder
    assert len(refused) == len(wanting) - 1
    assert set(refused) == {f"Handoff {KEPT.id} is being picked up by session {holder[0]} ({holder})"}
    assert {session.id for session in await store.sessions()} == {OWNER.id, holder}


async def test_a_new_document_is_the_sessions_that_brings_it(store):
    heir = named("b")
    await store.add(heir, "token b", LaunchRecord(), replace(HANDOFF, session=heir.id))
    found = await store.handoff(HANDOFF.id)
    assert (found.state, found.holder, found.handoff.session) == (HandoffState.ACTIVE, heir.id, heir.id)


@pytest.mark.parametrize("state", [HandoffState.CONSUMED, HandoffState.CLEARED])
async def test_what_is_over_is_not_to_be_had(store, state):
    await record(store, KEPT, state, held=state is HandoffState.CONSUMED)
    with pytest.raises(SmError) as refused:
        await store.add(named("b"), "token b", LaunchRecord(), KEPT)
    expected = {HandoffState.CONSUMED: "was picked up by session x", HandoffState.CLEARED: "is cleared"}
    assert expected[state] in str(refused.value)


async def test_only_what_nobody_holds_is_ended_from_outside(store):
    await record(store, KEPT, HandoffState.PENDING)
    assert await store.close([KEPT.id], HandoffState.CLEARED, "cleared") == 0
    await record(store, KEPT, HandoffState.ACTIVE, held=False)
    assert await store.close([KEPT.id], HandoffState.CLEARED, "cleared") == 1
    assert await store.waiting() == []


async def test_rows_of_an_older_schema_wait_if_their_session_has_ended_and_are_held_otherwise(tmp_path):
    before = tmp_path / "migrations"
    before.mkdir()
    for script in sorted(MIGRATIONS.glob("*.sql")):
        if script.name.endswith("_handoffs.sql"):
            break
        (before / script.name).write_text(script.read_text())
    async with await Database.open(tmp_path / "sm.db", before) as database:
        await database.run(old_rows)
    async with await Database.open(tmp_path / "sm.db") as database:
        found = {entry.handoff.id: entry for entry in await SqliteStore(database, FakeClock()).handoffs(None)}
    assert {name: (entry.state.value, entry.holder) for name, entry in found.items()} == {
        "living pending": ("pending", "living"),
        "living consumed": ("consumed", "living"),
        "ended pending": ("active", ""),
        "ended consumed": ("consumed", "ended"),
    }
    assert {(entry.handoff.directory, entry.counted) for entry in found.values()} == {("/p", 5.0)}


def old_rows(connection: sqlite3.Connection):
    session = "INSERT INTO sessions (id, name, created, ended, token, launch, state) VALUES (?, ?, 1, ?, ?, '{}', ?)"
    handoff = (
        "INSERT INTO handoffs (id, session, conversation, channel, path, copy, created, type, state, changed)"
        " VALUES (?, ?, 'c', 'global', '/h', '/c', 5, 'agent', ?, 6)"
    )
    for name, over in (("living", 0), ("ended", 1)):
        connection.execute(session, (name, name, over, name, '{"directory": "/p"}'))
        for state in ("pending", "consumed"):
            connection.execute(handoff, (f"{name} {state}", name, state))
