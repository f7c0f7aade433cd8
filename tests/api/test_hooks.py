"""`POST /hooks/{provider}` with members of kinds that the client does not send today (C27)."""

import json
import os

import pytest

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
    return api.supervisor.actors[session].session


@pytest.mark.parametrize("name", sorted(WHOLE))
async def test_no_member_of_any_hook_is_refused(api, name):
    session = await api.new("a")
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
