"""`POST /hooks/{provider}`: members of kinds that the client does not send today (C27), and a full disk (C41)."""

import asyncio
import json
import os

import pytest

from sm.core.model.session import Status
from sm.engine.hooks import HOOK_BUDGET_S
from sm.providers.claude.limit_notices import CONTINUATIONS
from tests.providers.test_claude_hooks import COMMON, ODD, WHOLE

NEXT = "f2bdcf02-0000-4000-8000-000000000002"


async def post(api, session, name, members, raw=None):
    """One hook of the session's own client; `raw` are members as bytes."""
    whole = {key: json.dumps(value).encode() for key, value in (COMMON | {"hook_event_name": name} | members).items()}
    text = b",".join(b'"%s":%s' % (key.encode(), value) for key, value in (whole | (raw or {})).items())
    token, pid = api.tokens[session], {"X-SM-Client-Pid": str(os.getpid())}
    return await api.call("POST", "/hooks/claude", token, b"{%s}" % text, **pid)


async def settled(api, session):
    """The session once its actor has taken in everything it was sent."""
    await api.alter(session)
    return api.engine.sessions.actors[session].session


@pytest.mark.parametrize("name", sorted(WHOLE))
async def test_no_member_of_any_hook_is_refused(api, name):
    session = await api.new("a")
    api.engine.asks.release()  # nobody answers what the client asks here
    members = {"session_id": api.conversation(session), **WHOLE[name]}
    for member in sorted(COMMON.keys() | members.keys() | {"agent_id"}):
        for value in ODD:
            status, answer = await post(api, session, name, members, {member: value})
            assert status == 200, (member, value[:40], answer)


@pytest.mark.parametrize("odd", sorted(COMMON.keys() - {"session_id"} | {"model", "agent_id", "x"}))
async def test_a_start_with_an_odd_member_moves_the_session_on(api, odd):
    session = await api.new("a")
    for number, value in enumerate(ODD):
        if odd == "agent_id" and value[:1] == b'"' != value[1:2]:
            continue  # a subagent's id
        conversation = f"{NEXT[:-2]}{number:02}"
        await post(api, session, "SessionStart", {"session_id": conversation, "source": "clear"}, {odd: value})
        assert (await settled(api, session)).conversation.id == conversation, value[:40]


@pytest.mark.parametrize("odd", ["background_tasks", "stop_hook_active", "last_assistant_message", "transcript_path"])
async def test_a_stop_with_an_odd_member_ends_the_turn(api, odd):
    session = await api.new("a")
    own = {"session_id": api.conversation(session)}
    for value in ODD:
        await post(api, session, "UserPromptSubmit", {**own, "prompt": "work"})
        assert (await settled(api, session)).status.value == "working"
        await post(api, session, "Stop", own, {odd: value})
        assert (await settled(api, session)).status.value == "idle", value[:40]


async def limit(api, pages):
    """Let the database grow to so many pages: beyond that SQLite says that the disk is full."""
    await api.engine.ports.store.database.run(
        lambda found: found.execute(f"PRAGMA max_page_count = {pages}").fetchone()
    )


async def kinds(api, session):
    _, found = await api.call("GET", f"/sessions/{session}/events?lines=1000")
    return [event["kind"] for event in found["events"]]


async def fill(api, session):
    """Use what room there is in the pages that the database has, down to what the smallest event takes."""
    await limit(api, 1)
    for name in ("x" * 60, "b"):
        for _ in range(1000):
            status, _ = await api.call("PATCH", f"/sessions/{session}", body={"name": name})
            if status == 507:
                break
            await api.call("PATCH", f"/sessions/{session}", body={"name": "a"})
        else:
            raise AssertionError("the disk is never full")


async def test_what_a_full_disk_keeps_from_being_written_is_shown_and_written_later(api):  # C41
    session = await api.new("a")
    own = {"session_id": api.conversation(session)}
    await post(api, session, "UserPromptSubmit", {**own, "prompt": "work"})
    await settled(api, session)
    await fill(api, session)
    assert await post(api, session, "Stop", own) == (200, {})
    assert (await api.call("GET", "/sessions"))[1][0]["status"] == "idle"
    assert await post(api, session, "UserPromptSubmit", {**own, "prompt": "work"}) == (200, {})
    assert (await api.call("GET", "/sessions"))[1][0]["status"] == "working"
    assert (await api.call("GET", f"/sessions/{session}"))[1]["status"] == "working"
    (problem,) = api.engine.problems()
    assert "full" in problem
    await limit(api, 1 << 20)
    async with asyncio.timeout(10):
        while api.engine.problems():
            await asyncio.sleep(0.01)
    assert (await kinds(api, session))[-2:] == ["TurnEnded", "PromptSubmitted"]
    assert (await settled(api, session)).status.value == "working"


async def test_a_handoff_whose_stop_came_while_the_disk_was_full_takes_place_all_the_same(api):  # C41
    session = await api.new("a")
    own = {"session_id": api.conversation(session)}
    await post(api, session, "UserPromptSubmit", {**own, "prompt": "work"})
    document = api.home.root.parent / ".sm" / "handoff.md"
    document.parent.mkdir(exist_ok=True)
    document.write_text("# Goal\nGo on.\n")
    wanted = {"requester_session_id": session, "file_path": str(document)}
    assert (await api.call("POST", f"/sessions/{session}/handoff", api.tokens[session], wanted))[0] == 200
    await fill(api, session)
    await post(api, session, "Stop", own)
    assert (await api.call("GET", f"/sessions/{session}/handoff"))[1]["phase"] == "pending"
    await limit(api, 1 << 20)
    async with asyncio.timeout(10):
        while (await settled(api, session)).rotation.phase.value == "pending":
            await asyncio.sleep(0.01)
    assert "TurnEnded" in await kinds(api, session)


async def test_the_hook_of_the_clients_own_continuation_waits_for_a_slow_server(api, monkeypatch):
    """Blocked too late, work that `sm` has continued would be continued twice."""
    session = await api.new("a")
    own = {"session_id": api.conversation(session)}
    await api.alter(session, resumed=True)
    store = api.engine.ports.store
    commit = store.commit

    async def slow(*parts):
        await asyncio.sleep(3 * HOOK_BUDGET_S)
        return await commit(*parts)

    monkeypatch.setattr(type(store), "commit", lambda _, *parts: slow(*parts))
    status, answer = await post(api, session, "UserPromptSubmit", {**own, "prompt": f"{CONTINUATIONS[0]} Continue"})
    assert (status, answer["decision"]) == (200, "block")
    assert (await settled(api, session)).status is not Status.WORKING
