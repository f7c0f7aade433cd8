"""Sessions of unattended runs: one for each attempt, whatever happened at its first start."""

import asyncio
from dataclasses import replace

import pytest

from sm.core import events as ev
from sm.core.model.capacity import Threshold
from sm.core.model.context import Policy
from sm.core.rules.session.refusals import MAX_FAILED_STARTS
from tests.api.rig import house

ATTEMPT = "R-1/FEAT-012/1"
CONVERSATION = "11111111-2222-3333-4444-555555555555"


async def begin(api, tmp_path, **more):
    body = {"dir": str(tmp_path), "env": {"PATH": "/usr/bin:/bin"}, "command": "/bin/true", "prompt": "work on it"}
    return await api.call("POST", "/sessions", body={**body, "attempt": ATTEMPT, **more})


async def waiting(api):
    """The bodies of all messages that wait."""
    numbers = await api.engine.ports.store.queued_numbers()
    return [(await api.engine.ports.store.stored_message(row[3])).body for row in numbers]


async def test_an_attempt_that_is_asked_for_again_is_the_session_that_has_it(api, tmp_path):
    answers = [await begin(api, tmp_path) for _ in range(3)]
    assert [status for status, _ in answers] == [201, 201, 201]
    assert len({view["id"] for _, view in answers}) == 1
    assert {view["attempt"] for _, view in answers} == {ATTEMPT}
    assert await waiting(api) == ["work on it"]


async def test_an_attempt_that_is_asked_for_at_once_begins_once(api, tmp_path):
    answers = await asyncio.gather(*(begin(api, tmp_path) for _ in range(5)))
    assert len({view["id"] for _, view in answers}) == 1
    assert len(api.engine.ports.panes.living) == 1
    assert await waiting(api) == ["work on it"]


async def test_only_an_attempt_has_no_screen(api, tmp_path):
    status, refused = await begin(api, tmp_path, attempt="", headless=True)
    assert (status, refused["code"]) == (400, "bad_request")


async def test_another_attempt_is_another_session(api, tmp_path):
    first = (await begin(api, tmp_path))[1]
    second = (await begin(api, tmp_path, attempt="R-1/FEAT-012/2"))[1]
    assert first["id"] != second["id"]


async def test_a_server_that_died_before_the_prompt_was_queued_queues_it_when_asked_again(api, tmp_path):
    await begin(api, tmp_path, prompt=None)
    assert await waiting(api) == []
    await begin(api, tmp_path)
    assert await waiting(api) == ["work on it"]


async def test_after_a_restart_of_the_server_it_is_the_same_session_with_one_prompt(tmp_path):
    async with house(tmp_path) as first:
        before = (await begin(first, tmp_path))[1]["id"]
        panes = first.engine.ports.panes
    async with house(tmp_path) as second:
        second.engine.ports.panes.living |= panes.living
        assert (await begin(second, tmp_path))[1]["id"] == before
        assert await waiting(second) == ["work on it"]


async def test_one_that_has_ended_is_shown_as_it_is_and_given_no_prompt(api, tmp_path):
    session = (await begin(api, tmp_path, prompt=None))[1]["id"]
    await api.call("DELETE", f"/sessions/{session}")
    status, view = await begin(api, tmp_path)
    assert (status, view["id"], view["status"]) == (201, session, "exited")
    assert await waiting(api) == []


async def work(api, session):
    """Have its client begin a turn."""
    actor = api.engine.sessions.actors[session]
    await actor.ask(ev.ConversationStarted(at=1.0, conversation=actor.session.conversation.id, transcript="/t"))
    await actor.ask(ev.PromptSubmitted(at=2.0, conversation=actor.session.conversation.id, text="work on it"))


async def crash(api, session):
    actor = api.engine.sessions.actors[session]
    await actor.ask(ev.ClientExited(at=api.engine.ports.clock.now(), signal=9))
    api.engine.ports.panes.living.clear()


CONTINUES = "Scope.\n[sm run] Your client ended in the middle of this work and was started again."


async def test_one_whose_client_has_ended_is_started_again_and_told_once_to_continue(api, tmp_path):
    session = (await begin(api, tmp_path, prompt=None, scope="Scope."))[1]["id"]
    await work(api, session)
    await crash(api, session)
    for _ in range(2):
        status, view = await begin(api, tmp_path, prompt=None, scope="Scope.")
        assert (status, view["id"], view["status"]) == (201, session, "starting")
    (told,) = await waiting(api)
    assert told.startswith(CONTINUES)


async def test_one_whose_client_has_ended_at_rest_is_told_nothing(api, tmp_path):
    session = (await begin(api, tmp_path, prompt=None))[1]["id"]
    await work(api, session)
    actor = api.engine.sessions.actors[session]
    await actor.ask(ev.TurnEnded(at=3.0, conversation=actor.session.conversation.id))
    await crash(api, session)
    assert (await begin(api, tmp_path, prompt=None))[1]["status"] == "starting"
    assert await waiting(api) == []


async def test_one_that_stays_down_is_shown_as_it_is(api, tmp_path):
    session = (await begin(api, tmp_path, prompt=None))[1]["id"]
    statuses = []
    for _ in range(MAX_FAILED_STARTS):
        await work(api, session)
        await crash(api, session)
        statuses.append((await begin(api, tmp_path, prompt=None))[1]["status"])
    assert statuses == [*["starting"] * (MAX_FAILED_STARTS - 1), "crashed"]


async def test_a_removed_session_leaves_its_attempt_to_another(api, tmp_path):
    session = (await begin(api, tmp_path))[1]["id"]
    await api.call("DELETE", f"/sessions/{session}")
    while api.engine.ports.panes.living:
        api.engine.ports.panes.living.clear()
    status, _ = await api.call("POST", f"/sessions/{session}/remove")
    assert status == 200
    assert (await begin(api, tmp_path))[1]["id"] != session


@pytest.mark.parametrize("attempt", ["R-1", "R-1/FEAT-1", "R-1/FEAT-1/0", "R-1/FEAT-1/x", "a/b/c/1", "a\n/b/1"])
async def test_an_attempt_is_named_by_run_issue_and_number(api, tmp_path, attempt):
    assert (await begin(api, tmp_path, attempt=attempt))[0] == 400


async def test_the_database_itself_refuses_a_second_session_of_an_attempt(api, tmp_path):
    session = (await begin(api, tmp_path))[1]["id"]
    actor = api.engine.sessions.actors[session]
    actor.session = replace(actor.session, attempt="")
    status, answer = await begin(api, tmp_path)
    assert (status, answer["code"]) == (409, "attempt_taken")


async def test_its_own_threshold_to_hand_off_counts_over_what_is_configured(api, tmp_path):
    session = (await begin(api, tmp_path, handoff_threshold=30))[1]["id"]
    actor = api.engine.sessions.actors[session]
    assert actor.session.policy.critical == Threshold(0.3)
    await api.alter(session, policy=Policy())  # as a server of another configuration has left it
    api.engine.configuration_monitor.renew_policy(actor)
    await actor.ask(ev.LatchesReset(at=1.0))
    assert actor.session.policy.critical == Threshold(0.3)
    assert actor.inbox.empty()
    for threshold in (0, 101, "30"):
        assert (await begin(api, tmp_path, handoff_threshold=threshold))[0] == 400


async def test_a_session_is_at_rest_once_a_turn_has_ended_and_nothing_waits(api, tmp_path):
    session = (await begin(api, tmp_path))[1]["id"]
    actor = api.engine.sessions.actors[session]

    async def at_rest():
        return (await api.call("GET", f"/sessions/{session}"))[1]["at_rest"]

    assert not await at_rest()
    from sm.core.model.message_queue import MessageQueue
    from sm.core.model.session import Status

    rested = replace(actor.session, status=Status.IDLE, at_prompt=True, dialog=None)
    await api.alter(session, **{name: getattr(rested, name) for name in ("status", "at_prompt", "dialog")})
    assert not await at_rest()  # its prompt waits
    await api.alter(session, outbox=MessageQueue())
    assert await at_rest()
    await api.alter(session, background=(ev.BackgroundTask("t1", "subagent", "looks"),))
    assert not await at_rest()
