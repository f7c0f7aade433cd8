"""A server that hangs or is gone costs its agents next to nothing, on the real client."""

import itertools
import os
import signal

import pytest

from sm.providers.scripted.scenario import Call, Say, Turn, scenario
from tests.e2e.rig import Rig

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

CALLS = 20
SLOW = 0.7
"""Seconds between two requests that only a hook waiting for its timeout can explain."""


def script():
    return scenario(
        Turn("many tools", steps=[*(Call("Bash", command="true") for _ in range(CALLS)), Say("All done.")]),
        otherwise=Say("ok"),
    )


def pauses(rig):
    times = [request.at for request in rig.model.main_requests]
    return [later - earlier for earlier, later in itertools.pairwise(times)]


async def test_a_stopped_server_delays_the_first_tool_call_and_no_other_and_hears_again_afterwards():
    async with Rig(script()) as rig:
        session = await rig.new("hello")
        await rig.wait_event(session, "TurnEnded")
        os.kill(rig.server.pid, signal.SIGSTOP)
        rig.type(session, "many tools")
        await rig.wait_screen(session, "many tools")
        rig.press(session, "Enter")
        await rig.model.wait_for(lambda _: len(rig.model.main_requests) >= CALLS + 2, within=60)
        slow = [pause for pause in pauses(rig)[1:] if pause > SLOW]
        os.kill(rig.server.pid, signal.SIGCONT)

        assert len(slow) <= 2, slow
        await rig.until(rig._answers, "the server answers again")
        await rig.ask("POST", f"/sessions/{session}/messages", {"text": "are you there"})
        await rig.model.wait_for(lambda r: "are you there" in r.user_text, within=30)


async def test_a_server_that_is_gone_delays_no_tool_call():
    async with Rig(script()) as rig:
        session = await rig.new("hello")
        await rig.wait_event(session, "TurnEnded")
        await rig.kill_server()
        rig.type(session, "many tools")
        await rig.wait_screen(session, "many tools")
        rig.press(session, "Enter")
        await rig.model.wait_for(lambda _: len(rig.model.main_requests) >= CALLS + 2, within=60)
        assert not [pause for pause in pauses(rig)[1:] if pause > SLOW]

        await rig.start_server()
        await rig.wait_status(session, "idle")
