"""An attempt's session, through the HTTP of a real server on fake panes."""

import asyncio
from dataclasses import replace

import pytest

from sm.client import Client
from sm.core.errors import SmError
from sm.core.model.session import Status
from sm.runner.attempt import AgentSessions, SessionOptions, Transcripts, attempt_name, mark
from sm.runner.outcome import Prepared, Workplace
from tests.api.rig import USER, house
from tests.api.test_asks import asking

SAYS_NOTHING = Transcripts(lambda _: False, lambda _: None)


def prepared(directory):
    place = Workplace(str(directory), "sm/FEAT-012", "trunk", str(directory), "")
    return Prepared("FEAT-012", "Log in", "true", place, "f", "[sm run R-1] Work on it.", "[sm run R-1] Scope.")


async def test_a_session_is_begun_once_looked_at_and_ended_twice(tmp_path):
    async with house(tmp_path) as api, api.listening() as port:
        options = SessionOptions(
            {"PATH": "/usr/bin:/bin"}, command="/bin/true", arguments=("--permission-mode", "plan")
        )
        sessions = AgentSessions(lambda: Client(f"http://127.0.0.1:{port}", USER), options, SAYS_NOTHING)
        attempt = attempt_name("R-1", "FEAT-012", 1)
        first = await asyncio.to_thread(sessions.ensured, attempt, prepared(tmp_path))
        assert await asyncio.to_thread(sessions.ensured, attempt, prepared(tmp_path)) == first
        session = api.engine.sessions.actors[first].session
        assert (session.attempt, session.scope) == ("R-1/FEAT-012/1", "[sm run R-1] Scope.")
        assert api.engine.sessions.launches[first].arguments == ("--permission-mode", "plan")
        look = await asyncio.to_thread(sessions.look, first)
        assert (look.id, look.status, look.at_rest, look.rotations) == (first, "starting", False, 0)
        for _ in range(2):
            await asyncio.to_thread(sessions.end, first)
        assert (await asyncio.to_thread(sessions.look, first)).status == "exited"
        with pytest.raises(SmError) as refused:
            await asyncio.to_thread(sessions.look, "ffffffff")
        assert refused.value.refused.code == "not_found"
        await asyncio.to_thread(sessions.end, "ffffffff")


@pytest.mark.parametrize(
    ("status", "runs", "in_request"),
    [
        (Status.WORKING, False, True),
        (Status.SILENT, False, True),
        (Status.WORKING, True, False),
        (Status.IDLE, False, False),
    ],
)
async def test_a_client_that_is_at_work_and_runs_no_command_is_in_a_request(tmp_path, status, runs, in_request):
    async with house(tmp_path) as api, api.listening() as port:
        client = Client(f"http://127.0.0.1:{port}", USER)
        sessions = AgentSessions(
            lambda: client, SessionOptions({}, command="/bin/true"), Transcripts(lambda _: runs, lambda _: None)
        )
        known = await asyncio.to_thread(sessions.ensured, "R-1/FEAT-012/1", prepared(tmp_path))
        await api.alter(known, status=status)
        assert (await asyncio.to_thread(sessions.look, known)).in_request is in_request


async def test_a_record_of_the_transcript_is_a_sign_of_work(tmp_path):
    async with house(tmp_path) as api, api.listening() as port:
        client = Client(f"http://127.0.0.1:{port}", USER)
        sessions = AgentSessions(lambda: client, SessionOptions({}, command="/bin/true"), SAYS_NOTHING)
        known = await asyncio.to_thread(sessions.ensured, "R-1/FEAT-012/1", prepared(tmp_path))
        transcript = tmp_path / "t.jsonl"
        transcript.write_text("{}\n")
        current = api.engine.sessions.actors[known].session.conversation
        await api.alter(known, conversation=replace(current, transcript=str(transcript)))
        assert (await asyncio.to_thread(sessions.look, known)).last_activity == transcript.stat().st_mtime


async def test_what_its_client_asks_is_seen_and_denied_once(api):
    session = await api.new("me")
    async with api.listening() as port, asking(api, session) as client:
        sessions = AgentSessions(lambda: Client(f"http://127.0.0.1:{port}", USER), SessionOptions({}), SAYS_NOTHING)
        look = await asyncio.to_thread(sessions.look, session)
        assert (look.asks, look.waits) == ((client.id,), True)
        for _ in range(2):
            await asyncio.to_thread(sessions.deny, (client.id, "ffffffff"), "Nobody is there.")
        _, answer = await client.hook
        assert answer["hookSpecificOutput"]["decision"] == {"behavior": "deny", "message": "Nobody is there."}
        assert (await asyncio.to_thread(sessions.look, session)).asks == ()


def test_an_issue_is_marked_by_a_name_that_branches_directories_and_servers_take():
    assert mark("R-1", "FEAT-012") == "R-1/FEAT-012"
    odd = mark("R-1", "log in / ünïcode\n..")
    assert odd.startswith("R-1/log-in-n-code-")
    assert odd.isascii()
    assert odd.count("/") == 1
    assert odd != mark("R-1", "log in / unicode\n..")
