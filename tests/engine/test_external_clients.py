"""Whose hooks come with the user's token, and which session they make or belong to; on fake panes."""

import asyncio
import json
import os

import pytest

from sm.engine.engine import Engine
from tests.api.rig import USER, house
from tests.engine.test_engine import next_life, until

C0, C1 = "c0000000-0000-4000-8000-000000000000", "c1111111-0000-4000-8000-000000000000"
PID = os.getpid()
"""Of a process that lives: another would count as ended."""


@pytest.fixture
async def api(tmp_path):
    async with house(tmp_path) as found:
        yield found


async def hook(api, name, conversation=C0, pid=PID, token=USER, **members):
    place = api.home.root.parent / "project"
    place.mkdir(exist_ok=True)
    transcript = f"{api.home.root}/claude/projects/-p/{conversation}.jsonl"
    common = {"session_id": conversation, "transcript_path": transcript, "cwd": str(place), "hook_event_name": name}
    header = {} if pid is None else {"X-SM-Client-Pid": str(pid)}
    body = json.dumps({**common, **members}).encode()
    status, answer = await api.call("POST", "/hooks/claude", token, body, **header)
    assert status == 200
    return answer


def sessions(api):
    return [actor.session for actor in api.engine.sessions.actors.values()]


async def test_the_first_hook_of_an_unknown_conversation_makes_a_session(api):
    assert await hook(api, "SessionStart", source="startup") == {}
    [session] = sessions(api)
    assert (session.adopted, session.name, session.pid, session.pane) == (True, "project", PID, None)
    assert session.conversation.id == C0
    assert session.config == f"{api.home.root}/claude"
    assert (await api.call("GET", f"/sessions/{session.id}"))[1]["adopted"] is True


async def test_hooks_that_come_at_once_make_one_session(api):
    await asyncio.gather(*(hook(api, "UserPromptSubmit", prompt=str(number)) for number in range(20)))
    assert len(sessions(api)) == 1


async def test_clear_and_resume_stay_in_the_session_by_the_process(api):
    await hook(api, "SessionStart", source="startup")
    await hook(api, "SessionStart", C1, source="clear")
    await hook(api, "Stop", C0)
    [session] = sessions(api)
    assert (session.conversation.id, session.past) == (C1, (C0,))
    await hook(api, "UserPromptSubmit", "c2", prompt="x")
    [session] = sessions(api)
    assert (session.conversation.id, session.past) == ("c2", (C0, C1))


async def test_a_subagents_call_and_a_hook_of_an_unknown_process_make_none(api):
    await hook(api, "PostToolUse", agent_id="a1", tool_name="Bash")
    await hook(api, "PostToolUse", pid=None, tool_name="Bash")
    await hook(api, "Notification")
    assert sessions(api) == []


async def test_another_client_in_the_same_project_is_another_session_of_another_name(api):
    await hook(api, "SessionStart", source="startup")
    await hook(api, "SessionStart", C1, pid=os.getppid(), source="startup")
    assert sorted(session.name for session in sessions(api)) == ["project", "project-2"]


async def test_a_server_started_again_knows_it_and_sees_when_it_has_ended(api):
    await hook(api, "SessionStart", source="startup")
    [session] = sessions(api)
    async with next_life(api) as again:
        assert isinstance(again, Engine)
        assert again.external_clients.known(C0, None) is again.sessions.actors[session.id]
        await until(lambda: again.sessions.actors[session.id].session.status.value == "unknown")
    gone = await ended_process()
    await hook(api, "SessionStart", C0, pid=gone, source="resume")
    await until(lambda: sessions(api)[0].ended)
    assert sessions(api)[0].detail == "the client has ended"


async def ended_process():
    process = await asyncio.create_subprocess_exec("true")
    await process.wait()
    return process.pid


async def test_stop_is_never_kept_from_happening(api):  # case A26
    await hook(api, "SessionStart", source="startup")
    for active in (False, True):
        assert await hook(api, "Stop", stop_hook_active=active) == {}


async def test_it_is_not_killed_and_has_no_output(api):
    await hook(api, "SessionStart", source="startup")
    [session] = sessions(api)
    for method, path in (("DELETE", ""), ("GET", "/output"), ("GET", "/attach")):
        status, answer = await api.call(method, f"/sessions/{session.id}{path}")
        assert (status, answer["code"]) == (409, "adopted")
    assert not sessions(api)[0].ended


# --- the status line -----------------------------------------------------------------------------------------------


def line(conversation=C0, window=200_000, tokens=100_000):
    told = {"context_window_size": window, "total_input_tokens": tokens}
    return json.dumps({"session_id": conversation, "cwd": "/p", "context_window": told}).encode()


async def test_the_status_line_tells_the_window_and_gets_the_session(api):
    await hook(api, "SessionStart", source="startup")
    [session] = sessions(api)
    status, view = await api.call("POST", "/status/claude", USER, line())
    assert (status, view["id"]) == (200, session.id)
    await until(lambda: sessions(api)[0].window == 200_000)
    await api.call("POST", "/status/claude", USER, line())
    await asyncio.sleep(0.05)
    events = (await api.call("GET", f"/sessions/{session.id}/events?lines=100"))[1]["events"]
    assert [event["kind"] for event in events].count("WindowTold") == 1


async def test_the_status_line_of_an_unknown_or_a_left_conversation_is_nobodys(api):
    assert await api.call("POST", "/status/claude", USER, line("unknown")) == (200, None)
    ours = await api.new("a")
    assert await api.call("POST", "/status/claude", api.tokens[ours], line("left")) == (200, None)
    status, view = await api.call("POST", "/status/claude", api.tokens[ours], line(api.conversation(ours)))
    assert (status, view["id"]) == (200, ours)


@pytest.mark.parametrize("body", [b"[]", b"{}", b"no json", b'{"session_id": 5}', b"[" * 200_000])
async def test_what_is_no_status_is_refused(api, body):
    assert (await api.call("POST", "/status/claude", USER, body))[1]["code"] == "bad_payload"


# --- the plugin in such a client ------------------------------------------------------------------------------------


def payload(api, name, conversation=C0, **members):
    place = api.home.root.parent / "project"
    place.mkdir(exist_ok=True)
    transcript = f"{api.home.root}/claude/projects/-p/{conversation}.jsonl"
    common = {"session_id": conversation, "transcript_path": transcript, "cwd": str(place), "hook_event_name": name}
    return {**common, **members}


def shows(api, conversation=C0, pid=PID):
    """What the client's own files say."""
    state = api.home.root / "claude" / "sessions" / f"{pid}.json"
    state.parent.mkdir(parents=True, exist_ok=True)
    state.write_text(json.dumps({"sessionId": conversation, "status": "idle"}))


async def says(api, hook=None, pid=PID, token=None, peer="unix", **body):
    body = {"generation": "g1", **({} if hook is None else {"hook": hook}), **body}
    return await api.call("POST", "/link/claude", token, body, (peer, pid))


async def test_a_client_with_the_plugin_is_a_session_that_hands_off(api):
    assert (await says(api))[1]["code"] == "no_session"
    shows(api)
    status, answer = await says(api, payload(api, "SessionStart", source="startup"))
    assert (status, answer) == (200, {"orders": [], "rotate": "ask"})
    [session] = sessions(api)
    assert (session.adopted, session.pid, session.driver, session.only_watched) == (True, PID, "mod", False)
    assert (await says(api, handoff="# Handoff\n\ngoal"))[0] == 200
    assert sessions(api)[0].rotation.handoff is not None


async def test_its_settings_hooks_are_not_counted_twice(api):
    shows(api)
    await says(api, payload(api, "SessionStart", source="startup"))
    [session] = sessions(api)
    await says(api, payload(api, "UserPromptSubmit", prompt="x"))
    assert await hook(api, "UserPromptSubmit", prompt="x") == {}
    await asyncio.sleep(0.05)
    events = (await api.call("GET", f"/sessions/{session.id}/events?lines=100"))[1]["events"]
    assert [event["kind"] for event in events].count("PromptSubmitted") == 1


async def test_clear_stays_in_its_session_and_another_client_is_another(api):
    shows(api)
    await says(api, payload(api, "SessionStart", source="startup"))
    await says(api, payload(api, "SessionStart", C1, source="clear"))
    [session] = sessions(api)
    assert (session.conversation.id, session.past) == (C1, (C0,))
    other = os.getppid()
    shows(api, "c3", pid=other)
    assert (await says(api, payload(api, "SessionStart", "c3", source="startup"), pid=other))[0] == 200
    assert len(sessions(api)) == 2


async def meet(api):
    shows(api)
    assert (await says(api, payload(api, "SessionStart", source="startup")))[0] == 200
    return sessions(api)[-1]


async def refused(api, hook, **caller):
    """Nothing may have come of it: no session, no driver, no document, no orders."""
    before = [(s.id, s.pid, s.driver, s.conversation.id, s.past, s.rotation) for s in sessions(api)]
    status, answer = await says(api, hook, handoff="# Mine", done=[{"id": 1}], **caller)
    assert status in {401, 403, 404}, answer
    assert [(s.id, s.pid, s.driver, s.conversation.id, s.past, s.rotation) for s in sessions(api)] == before
    return answer["code"]


@pytest.fixture
async def child():
    """A process below this one."""
    process = await asyncio.create_subprocess_exec("sleep", "60")
    yield process.pid
    process.kill()
    await process.wait()


async def test_what_an_agent_in_the_users_client_has_started_gets_no_session(api, child):
    """A hostile agent's other processes: they know every conversation, and may write any file of a client."""
    await meet(api)
    shows(api, pid=child)
    assert await refused(api, payload(api, "SessionStart", source="clear"), pid=child) == "not_client"
    assert await refused(api, payload(api, "Stop"), pid=child) == "not_client"
    assert await refused(api, None, pid=child) == "no_session"


async def test_what_the_agent_of_a_session_has_started_gets_none_either_nor_does_its_client(api, child):
    ours = await api.new("ours")
    conversation = api.conversation(ours)
    await api.alter(ours, pid=PID)
    for pid in (child, PID):
        for named in (conversation, C0):
            shows(api, named, pid=pid)
            start = payload(api, "SessionStart", named, source="startup")
            assert await refused(api, start, pid=pid) == "not_client"
    await api.alter(ours, pid=None)


async def test_a_process_that_has_left_its_agent_gets_no_other_clients_session(api):
    """It is below no client any more; what it says of itself, it has to show, and nobody else may have it open."""
    loose = os.getppid()
    ours = await api.new("ours")
    await api.alter(ours, pid=PID)
    start = payload(api, "SessionStart", api.conversation(ours), source="startup")
    assert await refused(api, start, pid=loose) == "no_session"  # the client's files say nothing of it
    shows(api, api.conversation(ours), pid=loose)
    assert await refused(api, start, pid=loose) == "not_client"
    await api.alter(ours, pid=None)


async def test_a_process_with_the_environment_of_a_session_is_no_client_of_the_users(api):
    env = {**os.environ, "CLAUDE_SESSION_MANAGER_ID": "0123abcd"}
    child = await asyncio.create_subprocess_exec("sleep", "60", env=env)
    try:
        shows(api, pid=child.pid)
        assert await refused(api, payload(api, "SessionStart", source="startup"), pid=child.pid) == "not_client"
    finally:
        child.kill()
        await child.wait()


async def test_the_process_alone_is_not_enough_elsewhere(api):
    """Without a token only its own path is open, on the socket alone; a token is worth nothing there."""
    shows(api)
    start = payload(api, "SessionStart", source="startup")
    await says(api, start)
    [session] = sessions(api)
    for method, path in (("GET", "/sessions"), ("POST", f"/sessions/{session.id}/link"), ("POST", "/hooks/claude")):
        status, answer = await api.call(method, path, None, {}, ("unix", PID))
        assert (status, answer["code"]) == (401, "unauthorized")
    assert await refused(api, start, peer="127.0.0.1") == "unauthorized"
    assert await refused(api, start, token=USER) == "not_client"
