"""C45: what the tests are started from, and what a failed one leaves, must make no other fail."""

import asyncio
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from sm.tmux.client import TmuxClient, TmuxServerSettings
from sm.tmux.panes import NewPane, PaneOperations, Program
from tests.fakes.clock import run_on_virtual_time
from tests.tmux.rig import ENVIRONMENT, until

ROOT = Path(__file__).parents[1]
IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
SHOWN = "import signal; print([signal.getsignal(number) is signal.SIG_IGN for number in (1, 2, 15)])"


def test_what_a_test_starts_does_not_ignore_what_we_were_started_to_ignore():
    """As by nohup, and by a script that starts us in its background."""
    program = f"""
        import os, signal, subprocess, sys
        for number in {[*map(int, IGNORED)]}:
            signal.signal(number, signal.SIG_IGN)
        child = [sys.executable, "-S", "-c", {SHOWN!r}]
        subprocess.run(child, check=True)
        import tests.conftest
        subprocess.run(child, check=True)
        os.kill(os.getpid(), signal.SIGHUP)
        subprocess.run(child, check=True)
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == [str([True] * 3), *[str([False] * 3)] * 2]


def test_a_process_that_a_failed_test_leaves_is_ended_with_it(tmp_path):
    (tmp_path / "conftest.py").write_text("from tests.conftest import ends_what_it_started\n")
    (tmp_path / "test_it.py").write_text(
        "import subprocess\n"
        "def test_one():\n"
        "    print('left', subprocess.Popen(['sleep', '600']).pid)\n"
        "    raise AssertionError\n"
        "def test_two():\n"
        "    pass\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:randomly", "-p", "no:cacheprovider", "-W", "default", "-q"]
    ran = subprocess.run(
        [*command, "--rootdir", str(tmp_path), str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert "1 failed, 1 passed" in ran.stdout, ran.stdout
    pid = next(line.split()[1] for line in ran.stdout.splitlines() if line.startswith("left "))
    assert not Path(f"/proc/{pid}").exists()


@pytest.fixture
def ignoring():
    """As a server has it that was started by nohup."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in IGNORED}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


async def test_a_client_in_a_pane_ignores_nothing_that_the_server_was_started_to_ignore(tmp_path, ignoring):
    settings = TmuxServerSettings(tmp_path / "s", ENVIRONMENT, umask=0o022)
    async with TmuxClient(settings) as client:
        try:
            log = tmp_path / "log"
            program = Program((sys.executable, "-c", SHOWN), tmp_path, ENVIRONMENT, log)
            await PaneOperations(client).create(NewPane("0a1b2c3d", "a", program))
            await until(lambda: b"]" in log.read_bytes())
            assert str([False] * 3).encode() in log.read_bytes()
        finally:
            await client.kill_server()


async def test_time_passes_on_a_virtual_clock_only_where_nothing_happens():
    loop = asyncio.get_running_loop()
    run_on_virtual_time(loop)
    began = loop.time()
    await asyncio.gather(asyncio.sleep(3600), asyncio.sleep(60))
    assert loop.time() - began == pytest.approx(3600)
