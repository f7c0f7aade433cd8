"""The route of the plugin in a client: who may use it, and what it takes and gives."""

import asyncio
import json
from dataclasses import replace

import pytest

from sm.core.model.rotation import Phase
from sm.core.ports.provider import ClientOrder, OrderResult
from tests.api.rig import USER

HELLO = {"generation": "g1"}


@pytest.fixture
async def session(api):
    return await api.new("me")


def client_of(api, session):
    return "unix", api.engine.sessions.actors[session].session.pid


async def exchange(api, session, **body):
    path, token = f"/sessions/{session}/link", api.tokens[session]
    return await api.call("POST", path, token, {**HELLO, **body}, client_of(api, session))


async def test_a_client_that_speaks_is_driven_by_its_plugin(api, session):
    _, before = await api.call("GET", f"/sessions/{session}")
    assert await exchange(api, session) == (200, {"orders": []})
    _, after = await api.call("GET", f"/sessions/{session}")
    assert (before["driver"], after["driver"], after["driver_note"]) == ("keys", "mod", "")
    assert await exchange(api, session) == (200, {"orders": []})
    _, events = await api.call("GET", f"/sessions/{session}/events")
    assert [event["kind"] for event in events["events"]].count("DriverChanged") == 1


async def test_a_poll_gets_the_order_and_its_result_comes_back(api, session):
    actor = api.engine.sessions.actors[session]
    await exchange(api, session)
    async with asyncio.TaskGroup() as group:
        asked = group.create_task(actor.link.ask(ClientOrder("prompt", "hello", as_user=True)))
        await asyncio.sleep(0)
        _, answer = await exchange(api, session, hold=25)
        [order] = answer["orders"]
        assert order == {"id": order["id"], "kind": "prompt", "text": "hello", "as_user": True}
        await exchange(api, session, done=[{"id": order["id"], "dropped": "the session was stopped", "row": 7}])
    assert asked.result() == OrderResult("the session was stopped")


async def test_what_the_agents_model_has_answered_comes_back_with_the_result(api, session):
    await exchange(api, session)
    async with asyncio.TaskGroup() as group:
        asked = group.create_task(api.engine.sessions.actors[session].link.ask(ClientOrder("fork", "write it"), -7))
        await asyncio.sleep(0)
        _, answer = await exchange(api, session, hold=25)
        assert answer["orders"] == [{"id": -7, "kind": "fork", "text": "write it"}]
        await exchange(api, session, done=[{"id": -7, "text": "# Handoff"}])
    assert asked.result() == OrderResult("", "# Handoff")


async def test_the_document_of_the_tool_is_what_the_next_context_begins_from(api, session):
    assert (await exchange(api, session, handoff="# Handoff\n\ngoal"))[0] == 200
    _, rotation = await api.call("GET", f"/sessions/{session}/handoff")
    assert (rotation["phase"], rotation["path"]) == ("pending", rotation["copy"])
    with open(rotation["copy"]) as copy:  # noqa: PTH123  # a path of the answer
        assert copy.read().endswith("# Handoff\n\ngoal")


async def test_a_handoff_that_is_refused_says_why(api, session):
    await exchange(api, session, handoff="first")
    rotation = api.engine.sessions.actors[session].session.rotation
    await api.alter(session, rotation=replace(rotation, phase=Phase.CLEARING))
    status, answer = await exchange(api, session, handoff="second")
    assert status == 409
    assert answer["error"]


async def test_the_context_that_the_client_counts_is_the_sessions(api, session):
    actor = api.engine.sessions.actors[session]
    said = {"conversation": actor.session.conversation.id, "tokens": 123_456, "window": 1_000_000}
    await exchange(api, session, context=said)
    await exchange(api, session, context={**said, "conversation": "of-a-grandchild", "tokens": 7})
    async with asyncio.timeout(5):
        while actor.session.conversation.monitor.reported is None:
            await asyncio.sleep(0.001)
    _, context = await api.call("GET", f"/sessions/{session}/context")
    assert (context["tokens"], context["window"]) == (123_456, 1_000_000)


async def test_a_document_that_is_longer_than_a_hooks_reply_is_given_whole_and_once(api, session):
    document = "# Handoff\n\n" + "A line of the document.\n" * 1000
    await exchange(api, session, handoff=document)
    actor = api.engine.sessions.actors[session]
    started = {"hook_event_name": "SessionStart", "source": "clear", "session_id": "c-2", "cwd": "/"}
    await api.alter(session, rotation=replace(actor.session.rotation, phase=Phase.CLEARING, next="c-2"))
    pid = {"X-SM-Client-Pid": str(actor.session.pid)}
    status, reply = await api.call("POST", "/hooks/claude", api.tokens[session], json.dumps(started).encode(), **pid)
    assert (status, "Read the whole of it first" in str(reply)) == (200, True)
    _, answer = await exchange(api, session, started=True)
    assert document.strip() in answer["document"]["whole"]
    assert "Read the whole of it first" in answer["document"]["part"]
    assert await exchange(api, session, started=True) == (200, {"orders": []})


async def test_a_document_that_was_not_asked_for_is_not_given_to_a_later_context(api, session):
    link = api.engine.sessions.actors[session].link
    link.offer("whole", "part")
    started = {"hook_event_name": "SessionStart", "source": "compact", "cwd": "/"}
    started["session_id"] = api.conversation(session)
    pid = {"X-SM-Client-Pid": str(api.engine.sessions.actors[session].session.pid)}
    status, _ = await api.call("POST", "/hooks/claude", api.tokens[session], json.dumps(started).encode(), **pid)
    assert status == 200
    assert await exchange(api, session, started=True) == (200, {"orders": []})


@pytest.mark.parametrize("wrong", [{"tokens": -1}, {"window": 0}, {"tokens": "many"}, {"conversation": None}])
async def test_a_context_that_cannot_be_is_refused(api, session, wrong):
    said = {"conversation": "c", "tokens": 1, "window": 1, **wrong}
    status, answer = await exchange(api, session, context=said)
    assert (status, answer["code"]) == (400, "bad_request")


@pytest.mark.parametrize("hold", [26, -1, "long"])
async def test_a_poll_is_held_for_25_seconds_at_most(api, session, hold):
    status, answer = await exchange(api, session, hold=hold)
    assert (status, answer["code"]) == (400, "bad_request")


async def test_nobody_but_the_sessions_own_client_is_let_in(api, session):
    """Not the user, another session, what the agent has started, nor whoever has its token over the network."""
    other = await api.new("other")
    await api.alter(other, pid=1234)
    peer, path = client_of(api, session), f"/sessions/{session}/link"
    order = asyncio.create_task(api.engine.sessions.actors[session].link.ask(ClientOrder("rotate")))
    await asyncio.sleep(0)
    for token, caller in [
        (USER, peer),
        (api.tokens[other], peer),
        (api.tokens[other], client_of(api, other)),
        (api.tokens[session], client_of(api, other)),
        (api.tokens[session], ("unix", 1)),
        (api.tokens[session], ("127.0.0.1", peer[1])),
        (api.tokens[session], None),
    ]:
        body = {**HELLO, "hold": 1, "handoff": "mine", "done": [{"id": 1}]}
        status, answer = await api.call("POST", path, token, body, caller)
        assert (status, answer["code"]) == (403, "not_client")
    now = api.engine.sessions.actors[session]
    assert (now.session.driver, now.session.rotation, now.link.generation, order.done()) == ("keys", None, "", False)
    order.cancel()
