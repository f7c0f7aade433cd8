"""What a server's next life takes up, whose hooks are believed, and what a full disk does; on fake panes."""

import asyncio
import contextlib
import json
import os
from dataclasses import replace
from typing import ClassVar

import pytest

from sm.bootstrap import engine_on, engine_running
from sm.core import effects as ef
from sm.core import events as ev
from sm.core.errors import SmError
from sm.core.model.message import SendRequest, StoredMessage
from sm.core.model.session import Session
from sm.core.ports.panes import PaneStatus
from sm.core.ports.store import EventCommit, LaunchRecord
from sm.engine.client_monitor import ClientMonitor
from sm.providers.claude.traits import CLAUDE
from tests.api.rig import house

ENV = {"PATH": "/usr/bin:/bin"}
START = {"hook_event_name": "SessionStart", "source": "startup"}


@pytest.fixture
async def api(tmp_path):
    async with house(tmp_path) as found:
        yield found


@contextlib.asynccontextmanager
async def next_life(api):
    """Another server on the same database and the same panes."""
    again = engine_on(api.engine.ports, lambda *_: None)
    async with engine_running(again):
        yield again


async def until(expected):
    async with asyncio.timeout(5):
        while not expected():
            await asyncio.sleep(0.001)


async def document(api, session):
    """A session that is idle in its conversation, and a document it may hand off."""
    engine = api.engine
    path = api.home.root / "handoff.md"
    path.write_text("# Handoff\n")
    api.clock.time = path.stat().st_mtime
    await engine.sessions.actor(session).ask(
        ev.PromptSubmitted(at=1.0, conversation=api.conversation(session), text="x")
    )
    return str(path)


async def unwritable(api):
    await api.engine.ports.store.database.run(lambda connection: connection.execute("PRAGMA query_only = ON"))


# --- the next life -------------------------------------------------------------------------------------------------


async def test_a_killed_session_whose_client_outlived_the_server_is_ended_by_the_next(api):
    session = await api.new("a")
    end, api.engine.ports.panes.end = api.engine.ports.panes.end, nothing
    await api.engine.sessions.kill(session)
    api.engine.ports.panes.end = end
    assert len(api.engine.ports.panes.living) == 1
    async with next_life(api):
        await until(lambda: not api.engine.ports.panes.living)


async def nothing(*_):
    pass


async def test_a_client_whose_start_the_server_did_not_survive_is_ended_and_its_session_says_so(api):
    session = Session(id="abcd1234", name="b", provider="claude", directory="/", created=1.0)
    await api.engine.ports.store.add(session, "token", LaunchRecord())
    api.engine.ports.panes.living["%7"] = PaneStatus("%7", os.getpid(), session.id, dead=False)
    async with next_life(api) as again:
        await until(lambda: again.sessions.actors[session.id].session.ended and not api.engine.ports.panes.living)
        assert "while the client was being started" in again.sessions.actors[session.id].session.detail


async def test_a_living_session_whose_pane_is_gone_has_ended(api):
    session = await api.new("a")
    api.engine.ports.panes.living.clear()
    async with next_life(api) as again:
        await until(lambda: again.sessions.actors[session].session.ended)
        assert again.sessions.actors[session].session.detail == "pane lost (tmux stopped or machine rebooted)"


async def test_a_message_that_was_kept_and_not_queued_is_taken_up(api):
    session = await api.new("a")
    actor = api.engine.sessions.actor(session)
    kept = ef.KeepMessage(StoredMessage("m1", session, "hello", number=7))
    await api.engine.ports.store.commit(EventCommit(actor.session, ev.ServerStarted(at=1.0), (kept,)))
    async with next_life(api) as again:
        await until(lambda: [queued.id for queued in again.sessions.actors[session].session.outbox.queue] == ["m1"])


# --- a pane's number that is another's by now ----------------------------------------------------------------------


async def test_a_pane_of_another_session_with_the_same_number_is_neither_shown_nor_ended(api):
    session = await api.new("a")
    await api.engine.sessions.kill(session)
    other = PaneStatus("%0", os.getpid(), "another1", dead=False)
    api.engine.ports.panes.living["%0"] = other
    for path, code in (("output", "client_gone"), ("attach", "ended")):
        assert (await api.call("GET", f"/sessions/{session}/{path}"))[1]["code"] == code
    await api.call("POST", f"/sessions/{session}/restore", body={"env": ENV})
    assert api.engine.ports.panes.living["%0"] == other


async def test_of_two_restores_at_once_one_is_refused(api):
    session = await api.new("a")
    await api.engine.sessions.kill(session)
    await until(lambda: not api.engine.ports.panes.living)
    both = [api.call("POST", f"/sessions/{session}/restore", body={"env": ENV}) for _ in range(2)]
    assert sorted(status for status, _ in await asyncio.gather(*both)) == [200, 409]
    assert len(api.engine.ports.panes.living) == 1


# --- whose hooks are believed --------------------------------------------------------------------------------------


async def start(api, session, conversation, pid, **members):
    payload = json.dumps({**START, "session_id": conversation, **members}).encode()
    return await api.engine.hooks.answer(session, "claude", payload, pid)


async def test_a_start_told_by_a_process_that_is_not_ours_is_ignored(api):
    session = await api.new("a")
    before = api.conversation(session)
    assert await start(api, session, "11111111-2222-4333-8444-555555555555", 1) == {}
    assert await start(api, session, "11111111-2222-4333-8444-555555555555", 1, source="fork") == {}
    assert api.conversation(session) == before


async def test_a_second_start_hook_for_the_same_new_context_carries_no_second_document(api):
    session = await api.new("a")
    await api.engine.handoffs.request(session, await document(api, session))
    ours = os.getpid()
    replies = [await start(api, session, "new-one", ours, source="clear") for _ in range(2)]
    assert "=== HANDOFF LOADED" in str(replies[0])
    assert replies[1] == {}


# --- what cannot be written ----------------------------------------------------------------------------------------


async def test_a_handoff_whose_copy_cannot_be_kept_is_refused_and_nothing_is_cleared(api):
    session = await api.new("a")
    path = await document(api, session)
    api.home.handoffs.write_text("no directory")
    with pytest.raises(SmError, match="handoffs"):
        await api.engine.handoffs.request(session, path)
    assert api.engine.sessions.actor(session).session.rotation is None


async def test_a_handoff_that_the_database_does_not_take_is_refused(api):
    session = await api.new("a")
    path = await document(api, session)
    await unwritable(api)
    with pytest.raises(SmError, match="readonly"):
        await api.engine.handoffs.request(session, path)
    assert api.engine.sessions.actor(session).session.rotation is None


async def test_a_hook_whose_event_cannot_be_written_is_answered_and_the_session_is_as_it_was(api):
    session = await api.new("a")
    before = api.engine.sessions.actor(session).session
    await unwritable(api)
    assert await start(api, session, before.conversation.id, os.getpid()) == {}
    assert api.engine.sessions.actor(session).session is before


async def test_a_message_whose_file_cannot_be_written_is_refused_and_never_delivered(api):
    session = await api.new("a")
    api.home.messages.write_text("no directory")
    with pytest.raises(SmError, match="messages"):
        await api.engine.messages.send(session, "", SendRequest("too long\n" * 10))
    assert await api.engine.ports.store.queued_numbers() == []


# --- one session's fault -------------------------------------------------------------------------------------------


class MonitorWithAFault(ClientMonitor):
    """It fails at the session "a"; `looked_at` has the others."""

    looked_at: ClassVar[set] = set()

    async def look(self, actor):
        if actor.session.name == "a":
            raise ValueError("a fault of ours")
        self.looked_at.add(actor.session.id)


async def test_a_fault_while_one_client_is_watched_leaves_the_others_watched(api):
    _, good = await api.new("a"), await api.new("b")
    ports = api.engine.ports
    monitor = MonitorWithAFault(api.engine.sessions, ports.panes, ports.clock, ports.providers)
    api.engine.tasks.spawn(monitor.run())
    await until(lambda: monitor.looked_at == {good})
    monitor.looked_at.clear()
    await until(lambda: monitor.looked_at == {good})


async def test_a_plugin_that_does_not_answer_in_five_seconds_is_named_as_the_reason_for_the_keys(api, tmp_path):
    actor = api.engine.sessions.actor(await api.new("a"))
    await api.alter(actor.session.id, config=str(tmp_path), pid=os.getpid(), driver_note=ev.AWAITED)
    (tmp_path / "sessions").mkdir()
    (tmp_path / f"sessions/{os.getpid()}.json").write_text(
        json.dumps({"sessionId": actor.session.conversation.id, "status": "idle"})
    )
    ports = api.engine.ports
    monitor = ClientMonitor(api.engine.sessions, ports.panes, ports.clock, ports.providers)
    await monitor.look(actor)
    api.clock.time += 4.9
    await monitor.look(actor)
    await until(actor.inbox.empty)
    assert actor.session.driver_note == ev.AWAITED
    api.clock.time += 0.2
    await monitor.look(actor)
    await until(lambda: actor.session.driver_note == CLAUDE.plugin_unanswered)
    assert actor.session.driver is ev.DrivenBy.KEYS


async def test_a_changed_configuration_reaches_the_sessions_that_run(api, tmp_path):
    session = await api.new("a")
    (tmp_path / "config.toml").write_text("[context_monitor]\nremind_every = 7\n")
    actor = api.engine.sessions.actor(session)
    await until(lambda: actor.session.policy.remind_every == 7)
    assert replace(actor.session.policy, remind_every=60) != actor.session.policy


async def test_a_broken_configuration_refuses_new_sessions_and_leaves_running_ones_theirs(api, tmp_path):
    session = await api.new("a")
    before = api.engine.sessions.actor(session).session.policy
    (tmp_path / "config.toml").write_text("[context_monitor]\nremind_evry = 7\n")
    status, answer = await api.call("POST", "/sessions", body={"dir": str(tmp_path), "name": "b", "env": ENV})
    assert (status, "remind_every" in answer["hint"] + answer["error"]) == (409, True)
    api.engine.configuration_monitor.renew_policy(api.engine.sessions.actor(session))
    assert api.engine.sessions.actor(session).session.policy == before


async def test_a_pause_of_two_agents_outlives_the_server_until_a_person_speaks(api):
    (api.home.root.parent / "config.toml").write_text("[limits]\nexchanges = 2\n")
    left, right = await api.new("left"), await api.new("right")
    messages = api.engine.messages
    for sender, target in ((left, right), (right, left)):
        await messages.send(target, sender, SendRequest("ping"))
    async with next_life(api) as again:
        assert again.messages.paused(left) == [right]
        with pytest.raises(SmError, match="paused"):
            await again.messages.send(right, left, SendRequest("ping"))
        await again.messages.send(left, "", SendRequest("go on"))
        await again.messages.send(right, left, SendRequest("ping"))
        async with asyncio.timeout(5):
            while await again.ports.store.exchanges() != {(left, right): 1}:
                await asyncio.sleep(0.001)
        assert again.messages.paused(left) == []


async def test_a_terminal_log_that_is_not_written_is_said_and_taken_up_again(api):  # C31
    session = await api.new("a")
    panes, logs = api.engine.ports.panes, api.engine.log_keeper
    (pane,) = panes.living
    await logs.look()
    assert api.engine.problems() == []
    panes.full = True
    panes.living[pane] = replace(panes.living[pane], logged=False)
    await logs.look()
    (problem,) = api.engine.problems()
    assert problem.startswith(f"the terminal log of a ({session}) has a gap")
    assert not panes.living[pane].logged
    panes.full = False
    await logs.look()
    assert panes.living[pane].logged
    assert api.engine.problems() == [problem], "said for a while"
    api.clock.advance(3601)
    assert api.engine.problems() == []
