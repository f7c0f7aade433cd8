"""The hostile agent: it has its session's token, and no limit that it makes up concerns the other sessions."""

import asyncio
import json
import sys

import pytest

from tests.api.rig import house
from tests.api.test_inside import call

FOR_EVER = "Claude AI usage limit reached|9999999999"
NOTICE = "You've hit your weekly limit"
WEEK = 7 * 86_400
CLIENT = """
import json, sys
from sm import hook
for line in sys.stdin:
    url, token, body = json.loads(line)
    print(hook.exchange(url, hook.request_bytes("POST", "/hooks/claude", token, body.encode()), 10)[0], flush=True)
"""


@pytest.fixture
async def place(tmp_path):
    async with house(tmp_path) as api, api.listening() as port:
        yield api, port, await api.new("agent"), await api.new("other")


def refused(api, session, text):
    return {
        "hook_event_name": "StopFailure",
        "session_id": api.conversation(session),
        "error": "rate_limit",
        "last_assistant_message": text,
    }


async def limits(api, *sessions):
    """What limit each session has, once its actor has taken in all that it was sent."""
    for session in (*sessions, *sessions):
        await api.alter(session)
    return [api.engine.sessions.actors[session].session.limit for session in sessions]


async def with_client(api, session):
    """Let a process be the session's client that sends the hooks which it is given."""
    pipes = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE}
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", CLIENT, **pipes)
    await api.alter(session, pid=process.pid)
    return process


async def transcribe(api, session, root, text):
    """Let the session's transcript end with such a notice of its client."""
    path = root / "claude" / "projects" / "p" / f"{api.conversation(session)}.jsonl"
    path.parent.mkdir(parents=True)
    message = {"role": "assistant", "model": "<synthetic>", "content": [{"type": "text", "text": text}]}
    path.write_text(json.dumps({"type": "assistant", "isApiErrorMessage": True, "message": message}) + "\n")
    return path


@pytest.mark.parametrize("text", [FOR_EVER, NOTICE])
async def test_what_a_process_of_an_agent_says_of_a_limit_holds_for_its_session_alone(place, text):
    """The process is below the client and claims to be it."""
    api, port, agent, other = place
    assert await call(port, api.tokens[agent], "POST", "/hooks/claude", refused(api, agent, text)) == [200, None]
    own, others = await limits(api, agent, other)
    assert others is None
    assert own.ends_at(api.clock.now()) - api.clock.now() <= WEEK
    late = await api.new("late")
    assert await limits(api, late) == [None]


async def test_what_the_client_itself_says_holds_for_the_account_for_as_long_as_a_limit_lasts(place):
    api, port, agent, other = place
    client = await with_client(api, agent)
    order = [f"http://127.0.0.1:{port}", api.tokens[agent], json.dumps(refused(api, agent, FOR_EVER))]
    client.stdin.write(json.dumps(order).encode() + b"\n")
    assert await client.stdout.readline() == b"200\n"
    _, others = await limits(api, agent, other)
    assert others.proven
    assert others.resets_at is None
    client.stdin.close()
    await client.wait()


async def test_a_hook_from_elsewhere_is_believed_if_the_transcript_has_the_notice(place, tmp_path):
    """As a command hook; what the hook itself says of the end does not count then."""
    api, port, agent, other = place
    for session in (agent, other):
        await api.alter(session, config=str(tmp_path / "claude"))
    await transcribe(api, agent, tmp_path, NOTICE)
    assert await call(port, api.tokens[agent], "POST", "/hooks/claude", refused(api, agent, FOR_EVER)) == [200, None]
    own, others = await limits(api, agent, other)
    assert own.kind == others.kind == "seven_day"
    assert own.proven


async def test_a_file_that_a_hook_calls_the_transcript_proves_nothing(place, tmp_path):
    api, port, agent, other = place
    path = await transcribe(api, agent, tmp_path, NOTICE)
    body = {**refused(api, agent, FOR_EVER), "transcript_path": str(path)}
    assert await call(port, api.tokens[agent], "POST", "/hooks/claude", body) == [200, None]
    assert (await limits(api, other)) == [None]


async def test_a_limit_that_ends_on_a_day_that_there_is_not_is_one_all_the_same(place):
    api, port, agent, _ = place
    text = f"{NOTICE} · resets Feb 29, 3pm (UTC)"
    assert await call(port, api.tokens[agent], "POST", "/hooks/claude", refused(api, agent, text)) == [200, None]
    assert (await limits(api, agent))[0].kind == "seven_day"


async def test_the_status_line_tells_of_its_own_session(place):
    api, port, agent, other = place
    client = await with_client(api, agent)
    order = [f"http://127.0.0.1:{port}", api.tokens[agent], json.dumps(refused(api, agent, NOTICE))]
    client.stdin.write(json.dumps(order).encode() + b"\n")
    await client.stdout.readline()
    resets_at = api.clock.now() + 60
    shares = {"seven_day": {"used_percentage": 100, "resets_at": resets_at}}
    body = {"session_id": api.conversation(agent), "rate_limits": shares}
    await call(port, api.tokens[agent], "POST", "/status/claude", body)
    assert [limit.resets_at for limit in await limits(api, agent, other)] == [resets_at, None]
    client.stdin.close()
    await client.wait()
