"""A client that was told to end: how long, what if tmux does not answer, and what waits for it."""

import asyncio

import pytest

from sm.core.errors import SmError
from sm.core.ports.panes import PaneError
from sm.engine import termination
from tests.api.rig import house

ENV = {"PATH": "/usr/bin:/bin"}


@pytest.fixture
async def api(tmp_path):
    async with house(tmp_path) as found:
        yield found


class SlowEnd:
    """Stands in for `panes.end`: raises what it is given, one a call, and then ends once it is let."""

    def __init__(self, api, *problems):
        self.api, self.problems = api, list(problems)
        self.let, self.calls = asyncio.Event(), []
        api.engine.ports.panes.end = self

    async def __call__(self, session, grace):
        self.calls.append(session)
        if self.problems:
            raise self.problems.pop(0)
        await self.let.wait()
        await self.api.engine.ports.panes.clear(session)


async def turns():
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_killed_session_is_started_again_only_once_its_old_client_has_ended(api):
    session = await api.new("a")
    end = SlowEnd(api)
    killing = asyncio.ensure_future(api.engine.sessions.kill(session))
    async with asyncio.timeout(5):
        while not api.engine.sessions.actor(session).session.ended:
            await asyncio.sleep(0.001)
    restoring = asyncio.ensure_future(api.engine.launcher.restore(session, ENV))
    await turns()
    assert (killing.done(), restoring.done()) == (False, False)
    end.let.set()
    await asyncio.gather(killing, restoring)
    assert [pane.session for pane in api.engine.ports.panes.living.values()] == [session]
    assert not api.engine.sessions.actor(session).session.ended


async def test_a_client_is_ended_though_tmux_answers_only_the_third_time(api, monkeypatch):
    monkeypatch.setattr(termination, "RETRY_INTERVAL_S", 0.01)
    session = await api.new("a")
    end = SlowEnd(api, PaneError("no reply"), PaneError("no reply"))
    end.let.set()
    await api.engine.sessions.kill(session)
    assert end.calls == [session] * 3
    assert not api.engine.ports.panes.living


async def test_a_client_that_has_not_ended_in_time_is_said_to_live_also_the_second_time(api, monkeypatch):
    monkeypatch.setattr(termination, "TIMEOUT_S", 0.01)
    session = await api.new("a")
    end = SlowEnd(api)
    for _ in range(2):
        status, answer = await api.call("DELETE", f"/sessions/{session}")
        assert (status, answer["code"]) == (503, "still_ending")
    with pytest.raises(SmError, match="has not ended yet"):
        await api.engine.launcher.restore(session, ENV)
    assert end.calls == [session]
    end.let.set()
    await turns()
    assert (await api.call("DELETE", f"/sessions/{session}"))[1]["code"] == "ended"
