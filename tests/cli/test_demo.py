"""Nothing is left of `sm demo`, however it ends; on the stand-in for the client, and once on the real one."""

import asyncio
import contextlib
import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

from tests.cli.rig import Ran
from tests.e2e.rig import REAL_CLIENT

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def theatre(bare):
    """A desk whose temporary directory is its own, so that what a demo leaves can be seen."""
    bare.temporary = Path(f"/tmp/d{os.getpid()}")  # short: a socket path has 107 bytes
    bare.temporary.mkdir()
    client = bare.root / "claude"
    client.write_text(f'#!/bin/sh\nexec {sys.executable} -m sm.testing.agent "$@"\n')
    client.chmod(0o700)
    bare.client = str(client)
    yield bare
    left = started_below(bare.temporary)
    shutil.rmtree(bare.temporary)
    assert not left


def started_below(directory):
    """Processes whose home is in the directory."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and f"HOME={directory}".encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return found


def demo(theatre, *arguments, client=None, **streams):
    words = ("demo", "--client", client or theatre.client, *arguments)
    return theatre.start(*words, env={"TMPDIR": str(theatre.temporary)}, **streams)


async def finished(process):
    out, err = await process.communicate()
    return Ran(process.returncode, out.decode(), err.decode())


@pytest.mark.e2e
async def test_every_step_is_confirmed_by_the_real_client_and_nothing_is_left(theatre):
    ran = await finished(await demo(theatre, "--json", client=str(REAL_CLIENT)))
    assert (ran.code, ran.data["ok"], ran.data["missing"]) == (0, True, [])
    assert not list(theatre.temporary.iterdir())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("moment", ["Working directory", "started"])
@pytest.mark.often("Working directory-2", "started-15")
async def test_a_signal_ends_it_at_any_moment_with_all_that_it_has_started(theatre, number, moment):
    process = await demo(theatre)
    async for line in process.stdout:
        if moment in line.decode():
            break
    process.send_signal(number)
    process.send_signal(number)
    assert (await finished(process)).code == (130 if number is signal.SIGINT else -number)
    assert not list(theatre.temporary.iterdir())
    assert not started_below(theatre.temporary)


@pytest.mark.e2e
@pytest.mark.soak
async def test_a_signal_ends_the_real_client_too(theatre):
    process = await demo(theatre, client=str(REAL_CLIENT))
    async for line in process.stdout:
        if b"warned" in line:
            break
    process.send_signal(signal.SIGHUP)
    await process.wait()
    assert not list(theatre.temporary.iterdir())
    assert not started_below(theatre.temporary)


@pytest.mark.e2e
@pytest.mark.soak
async def test_a_demo_that_is_kept_ends_with_a_signal_too(theatre):
    process = await demo(theatre, "--keep", client=str(REAL_CLIENT), stdin=asyncio.subprocess.PIPE)
    async for line in process.stdout:
        if b"sm attach demo" in line:
            break
    assert line
    process.send_signal(signal.SIGTERM)
    await process.wait()
    assert not started_below(theatre.temporary)


async def test_one_whose_words_cannot_be_written_leaves_nothing(theatre):
    with Path("/dev/full").open("wb") as full:
        process = await demo(theatre, stdout=full)
        _, err = await process.communicate()
    assert (process.returncode, err.decode()) == (1, "Error: No space left on device\n")
    assert not list(theatre.temporary.iterdir())


async def test_a_client_that_fails_is_the_reason_given(theatre):
    client = theatre.root / "broken"
    client.write_text("#!/bin/sh\necho out of order\nexit 3\n")
    client.chmod(0o700)
    ran = await finished(await demo(theatre, "--json", client=str(client)))
    assert (ran.code, ran.data["ok"]) == (1, False)
    assert "out of order" in ran.data["problem"]
