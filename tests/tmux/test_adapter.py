"""Ending what a session has started, and nothing else (case A56)."""

import asyncio
import os
import signal
import sys
from dataclasses import replace

import pytest

from sm.core.ids import SESSION_VARIABLE
from sm.core.ports.panes import PaneError
from sm.processes import alive
from sm.tmux.adapter import TmuxPanes
from sm.tmux.client import TmuxClient
from sm.tmux.panes import PaneOperations
from tests.fakes.clock import FakeClock
from tests.tmux.rig import until

SESSION = "0a1b2c3d"
FAMILY = """
import os, signal, subprocess, sys, time
sleep = "import time; time.sleep(600)"
deaf = [sys.executable, "-c", "import signal; [signal.signal(n, signal.SIG_IGN) for n in (1, 15)]; " + sleep]
leave = ["sh", "-c", 'setsid "$@" > /dev/null 2>&1 & echo $!', "sh", sys.executable, "-c", sleep]
orphan = subprocess.run(leave, stdout=-1, text=True).stdout
child = subprocess.Popen(deaf).pid
time.sleep(0.5)
open(sys.argv[1], "w").write(f"{orphan.strip()} {child}")
time.sleep(600)
"""


@pytest.fixture
async def family(rig):
    """A pane with a client, an orphan in a session of its own and a child that ignores being asked."""
    pids = rig.home / "pids"
    variables = {SESSION_VARIABLE: SESSION}
    pane = await rig.start(sys.executable, "-c", FAMILY, str(pids), session_id=SESSION, **variables)
    await until(lambda: pids.exists() and len(pids.read_text().split()) == 2)
    members = [pane.pid, *map(int, pids.read_text().split())]
    yield pane, members
    for pid in members:
        if alive(pid):
            os.kill(pid, signal.SIGKILL)


async def test_history_has_no_spaces_to_the_panes_edge(rig):
    paint = "print('  box' + ' ' * 60); print('a' * 300); print('end ')"
    pane = await rig.start(sys.executable, "-c", f"{paint}; import time; time.sleep(600)", session_id=SESSION)
    tmux_pane = TmuxPanes(rig.panes, FakeClock()).pane(pane.pane_id)
    await until_there(tmux_pane, "end")
    assert (await tmux_pane.history()).split("\n")[:3] == ["  box", "a" * 300, "end"]


@pytest.mark.parametrize(("reads", "behind"), [("time.sleep(600)", True), ("sys.stdin.read()", False)])
async def test_a_client_that_has_not_read_its_keys_is_seen_to_be_behind(rig, reads, behind):
    program = f"import sys, time, tty; tty.setraw(0); print('ready', flush=True); {reads}"
    pane = await rig.start(sys.executable, "-c", program, session_id=SESSION)
    tmux_pane = TmuxPanes(rig.panes, FakeClock()).pane(pane.pane_id)
    await until_there(tmux_pane, "ready")
    assert not (await tmux_pane.look()).behind
    await tmux_pane.paste("text")
    await asyncio.sleep(0.3)
    assert (await tmux_pane.look()).behind is behind
    os.kill(pane.pid, signal.SIGKILL)
    await until_there(tmux_pane, "Pane is dead")
    assert not (await tmux_pane.look()).behind


async def test_what_a_pane_has_printed_is_without_the_words_of_tmux_on_its_end(rig):
    pane = await rig.start("sh", "-c", r"printf 'one\n\n  two\n'; exit 3", session_id=SESSION)
    tmux_pane = TmuxPanes(rig.panes, FakeClock()).pane(pane.pane_id)
    await until_there(tmux_pane, "Pane is dead")
    assert await tmux_pane.printed() == ["one", "  two"]


async def until_there(tmux_pane, text):
    for _ in range(200):
        if text in await tmux_pane.history():
            return
        await asyncio.sleep(0.02)
    raise AssertionError(text)


async def test_everything_a_session_started_ends_with_it_and_nothing_else(rig, family):
    pane, members = family
    stranger = await asyncio.create_subprocess_exec(sys.executable, "-c", "import time; time.sleep(600)")
    adapter = TmuxPanes(rig.panes, FakeClock())
    await adapter.end(SESSION, 0.5)
    await until(lambda: not any(map(alive, members)))
    assert alive(stranger.pid)
    assert await adapter.status(pane.pane_id) is None
    stranger.kill()
    await stranger.wait()


async def test_everything_a_session_started_ends_also_while_tmux_does_not_answer(rig, family):
    pane, members = family
    os.kill(rig.client.identity.pid, signal.SIGSTOP)
    async with TmuxClient(replace(rig.settings, reply_timeout=0.2)) as client:
        with pytest.raises(PaneError):
            await TmuxPanes(PaneOperations(client), FakeClock()).end(SESSION, 0.5)
    assert not any(map(alive, members))
    os.kill(rig.client.identity.pid, signal.SIGCONT)
    assert (await rig.panes.facts(pane.pane_id)).sm_session == SESSION


async def test_what_is_left_of_a_session_is_taken_away_and_what_it_left_running_goes_on(rig):
    pids = rig.home / "pids"
    leave = 'setsid sh -c \'echo $$ > "$0"; exec sleep 600\' "$0" & until [ -s "$0" ]; do sleep 0.01; done'
    await rig.start("sh", "-c", leave, str(pids), session_id=SESSION, **{SESSION_VARIABLE: SESSION})
    other = await rig.start("sleep", "600", session_id="11111111")
    adapter = TmuxPanes(rig.panes, FakeClock())

    async def dead():
        return (await adapter.all())[SESSION].dead

    await until(dead)
    await adapter.clear(SESSION)
    assert {status.pane for status in (await adapter.all()).values()} == {other.pane_id}
    left = int(pids.read_text())
    assert alive(left)
    os.kill(left, signal.SIGKILL)


async def test_what_a_user_types_elsewhere_reaches_the_program_as_it_is_and_counts_as_typing(rig):
    clock = FakeClock()
    program = "import sys, tty; tty.setraw(0); print('ready', flush=True); print(repr(sys.stdin.buffer.raw.read(9)))"
    pane = await rig.start(sys.executable, "-c", f"{program}; import time; time.sleep(600)", session_id=SESSION)
    panes = TmuxPanes(rig.panes, clock)
    tmux_pane = panes.pane(pane.pane_id)
    await until_there(tmux_pane, "ready")
    assert (await tmux_pane.look()).typed_ago is None
    await tmux_pane.user_typed("é\x1b[A\x03-\r".encode())
    await until_there(tmux_pane, r"b'\xc3\xa9\x1b[A\x03-\r'")
    clock.advance(5)
    view = await panes.pane(pane.pane_id).look()
    assert (view.typed_ago, view.size) == (5, (200, 50))
