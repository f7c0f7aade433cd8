"""The port `Panes`, on tmux and in memory: which sessions have a pane, and what is left of one that was ended."""

import asyncio
import os
import sys

import pytest

from sm.core.model.session import Session
from sm.core.ports.panes import Launch, PaneError
from sm.tmux.adapter import TmuxPanes
from tests.fakes.clock import FakeClock
from tests.fakes.panes import FakePanes
from tests.tmux.conftest import rig  # noqa: F401  # a fixture

PROGRAM = (sys.executable, "-c", "print('READY', flush=True); import time; time.sleep(600)")


@pytest.fixture(params=["in memory", "tmux"])
def panes(request):
    if request.param == "in memory":
        return FakePanes()
    return TmuxPanes(request.getfixturevalue("rig").panes, FakeClock())


@pytest.fixture
def start(panes, tmp_path):
    async def started(number):
        session = Session(
            id=f"{number:08x}", name=f"s{number}", provider="claude", directory=str(tmp_path), created=1.0
        )
        launch = Launch(PROGRAM, {"PATH": os.environ["PATH"], "LINES": "one=1\n-two\n\nthree"}, "c0", "/c")
        return await panes.create(session, launch, tmp_path / f"{session.id}.log")

    return started


async def test_each_session_has_a_pane_of_its_own(panes, start):
    first, second = await start(1), await start(2)
    assert first.pane != second.pane
    assert (await panes.all()).keys() == {"00000001", "00000002"}
    status = await panes.status(second.pane)
    assert (status.session, status.dead, status.pid) == ("00000002", False, second.pid)


async def test_what_is_cleared_or_ended_is_gone_and_nothing_else(panes, start):
    first, second, third = await start(1), await start(2), await start(3)
    await panes.clear(first.session)
    await panes.end(second.session, 0.5)
    assert (await panes.all()).keys() == {third.session}
    assert await panes.status(first.pane) is None
    with pytest.raises(PaneError):
        await panes.attach(second.pane, inside_tmux=False)
    assert await panes.attach(third.pane, inside_tmux=False)


async def test_a_pane_gets_no_number_that_another_one_had(panes, start):
    first, second = await start(1), await start(2)
    await panes.clear(first.session)
    assert (await start(1)).pane not in {first.pane, second.pane}


async def test_clearing_what_has_no_pane_does_nothing(panes, start):
    kept = await start(1)
    await panes.clear("ffffffff")
    await panes.end("ffffffff", 0.1)
    assert (await panes.all()).keys() == {kept.session}


async def test_a_pane_that_no_terminal_shows_has_none(panes, start):
    await start(1)
    assert await panes.terminals() == []


async def test_what_is_emptied_keeps_its_pane_and_the_environment_of_its_client(panes, start):
    first, second = await start(1), await start(2)
    await panes.empty(first.session, 0.5)
    await until_dead(panes, first.pane)
    assert not (await panes.status(second.pane)).dead
    assert (await panes.environment(first.session))["PATH"] == os.environ["PATH"]
    assert (await panes.environment(first.session))["LINES"] == "one=1\n-two\n\nthree"
    await panes.clear(first.session)
    assert await panes.environment(first.session) == {}
    await panes.empty("00000009", 0.0)


async def until_dead(panes, pane):
    async with asyncio.timeout(5):
        while not (await panes.status(pane)).dead:
            await asyncio.sleep(0.02)
