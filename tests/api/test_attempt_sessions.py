"""An attempt's session, through the HTTP of a real server on fake panes."""

import asyncio

import pytest

from sm.client import Client
from sm.core.errors import SmError
from sm.runner.attempt import AgentSessions, SessionOptions, attempt_name, mark
from sm.runner.outcome import Prepared, Workplace
from tests.api.rig import USER, house


def prepared(directory):
    place = Workplace(str(directory), "sm/FEAT-012", "trunk", str(directory))
    return Prepared("FEAT-012", "Log in", "true", place, "f", "[sm run R-1] Work on it.", "[sm run R-1] Scope.")


async def test_a_session_is_begun_once_looked_at_and_ended_twice(tmp_path):
    async with house(tmp_path) as api, api.listening() as port:
        options = SessionOptions(
            {"PATH": "/usr/bin:/bin"}, command="/bin/true", arguments=("--permission-mode", "plan")
        )
        sessions = AgentSessions(lambda: Client(f"http://127.0.0.1:{port}", USER), options)
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


def test_an_issue_is_marked_by_a_name_that_branches_directories_and_servers_take():
    assert mark("R-1", "FEAT-012") == "R-1/FEAT-012"
    odd = mark("R-1", "log in / ünïcode\n..")
    assert odd.startswith("R-1/log-in-n-code-")
    assert odd.isascii()
    assert odd.count("/") == 1
    assert odd != mark("R-1", "log in / unicode\n..")
