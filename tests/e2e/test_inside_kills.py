"""SIGKILL of a client that its plugin drives, at two dozen moments around the order to clear it."""

import asyncio
import os
import signal

import pytest

from sm.testing.scenario import Call, Say, Turn, scenario
from tests.e2e.people import AWOKE
from tests.e2e.rig import Rig
from tests.e2e.test_kills import DOCUMENT, reached, requests_with, restored_from_its_document, started

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

BY_MOD = '[claude]\ndriver = "auto"\n'
SCRIPT = scenario(
    Turn("hand off", steps=[Call("mcp__sm__handoff", document=DOCUMENT), Say("Handed off.", delay=0.3)]),
    Turn(AWOKE, steps=[Say("Going on.", delay=0.2)]),
    otherwise=Say("ok"),
)
MOMENTS = range(0, 360, 15)
"""Milliseconds after the order: the whole rotation takes a third of a second."""


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.often("90")
async def test_a_client_killed_at_any_moment_of_its_rotation_goes_on_from_its_document_once_restored(moment):
    async with Rig(SCRIPT, config=BY_MOD) as rig:
        session = await started(rig)
        view = await rig.wait_view(session, lambda view: view["driver"] == "mod", "driven by the plugin")
        await reached(rig, "clearing")
        await asyncio.sleep(moment / 1000)
        os.kill(view["pid"], signal.SIGKILL)
        ended = await rig.wait_status(session, "crashed")
        assert ended["handoff"]["phase"] in {"pending", "failed", "done"}
        await restored_from_its_document(rig, session)
        after = await rig.view(session)
        assert after["driver"] == "mod"
        assert after["rotations"] >= 1
        wake = requests_with(rig, AWOKE)[-1]
        assert wake.session == after["conversation"]
        assert "please hand off" not in wake.all_text
