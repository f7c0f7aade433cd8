"""C23: what an agent prints, however long its words, holds up no answer of the server."""

import asyncio
from pathlib import Path

import pytest

from sm.processes import alive
from sm.testing.scenario import Call, Say, Turn, scenario
from tests.e2e.people import person_settings
from tests.e2e.rig import Rig

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(150)]

PRINTS = Call("Bash", command="python3 -c \"print('0123456789abcdef' * 1600)\"")


def filling(rig):
    """The process that fills the rig's index."""
    mark = str(rig.home.search).encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if mark in words and b"sm.archive.search.filler" in words:
                found.append(int(entry.name))
    return found


@pytest.mark.soak
async def test_long_words_are_indexed_beside_the_server_and_the_process_ends_with_it():
    script = scenario(
        Turn("print it", steps=[PRINTS, Say("These are the unmistakable last words.")]), otherwise=Say("ok")
    )
    async with Rig(script) as rig:
        person_settings(rig, permissions={"defaultMode": "default", "allow": ["Bash"]})
        session = await rig.new("print it")
        document = rig.project / ".sm" / "handoff.md"
        document.parent.mkdir(exist_ok=True)
        document.write_text("a" * 900_000)
        hits = []
        while not hits:
            await asyncio.to_thread(rig.call, "GET", "/health", timeout=2.0)
            hits = await rig.ask("GET", "/search?q=unmistakable")
            await asyncio.sleep(0.1)
        assert {hit["session"] for hit in hits} == {session}
        [process] = filling(rig)
        await rig.kill_server()
        await rig.until(lambda: not alive(process), "the index's process ends with its server")
