"""A server that hangs or is gone costs its agents next to nothing, on the real client."""

import contextlib
import itertools
import json
import os
import signal
import sqlite3

import pytest

from sm.testing.scenario import Call, Say, Turn, scenario
from tests.e2e.conftest import BY_KEYS
from tests.e2e.people import client_is, hands_off, wake_request
from tests.e2e.rig import Rig

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

CALLS = 20
FEW = 5
SLOW = 0.7
"""Seconds that a hook which waits for its timeout adds to each call."""
TRUE = Call("Bash", command="true")


def script(calls=CALLS):
    return scenario(
        Turn("hello", steps=[*([TRUE] * FEW), Say("Hello.")]),
        Turn("many tools", steps=[*([TRUE] * calls), Say("All done.")]),
        otherwise=Say("ok"),
    )


def most_are_quick(rig):
    """Whether most calls took no longer than with the server that answered the first prompt: a machine may be slow."""
    times = [request.at for request in rig.model.main_requests]
    served, pauses = (
        sorted(later - earlier for earlier, later in itertools.pairwise(part))
        for part in (times[: FEW + 1], times[FEW + 1 :])
    )
    return pauses[len(pauses) * 3 // 4] < served[len(served) // 2] + SLOW, (served, pauses)


@pytest.mark.soak
async def test_a_stopped_server_delays_the_first_tool_calls_only_and_hears_again_afterwards():
    async with Rig(script()) as rig:
        session = await rig.new("hello")
        await rig.wait_event(session, "TurnEnded")
        os.kill(rig.server.pid, signal.SIGSTOP)
        rig.type(session, "many tools")
        await rig.wait_screen(session, "many tools")
        rig.press(session, "Enter")
        await rig.model.wait_for(lambda _: len(rig.model.main_requests) >= FEW + CALLS + 2, within=60)
        quick, found = most_are_quick(rig)
        os.kill(rig.server.pid, signal.SIGCONT)

        assert quick, found
        await rig.until(rig._answers, "the server answers again")
        await rig.wait_event(session, "TurnEnded", 2)  # before that it would be told at the turn's end, by a hook
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
        await rig.model.wait_for(lambda _: len(rig.model.main_requests) >= FEW + CALLS + 2, within=60)
        quick, found = most_are_quick(rig)
        assert quick, found

        await rig.start_server()
        await rig.wait_status(session, "idle")


@pytest.mark.soak
async def test_a_handoff_whose_turn_ended_while_the_server_was_stopped_is_carried_out_once_it_goes_on():
    async with Rig(hands_off(Say("Handed off.", delay=1.5))) as rig:
        session = await rig.new("please hand off")
        await rig.wait_event(session, "HandoffRequested")
        os.kill(rig.server.pid, signal.SIGSTOP)
        await rig.wait_screen(session, "Handed off.")
        await (rig.wait_screen(session, "Worked for") if rig.codex else client_is(rig, "idle"))
        os.kill(rig.server.pid, signal.SIGCONT)
        await wake_request(rig)
        assert (await rig.wait_phase(session, "done"))["rotations"] == 1


@pytest.mark.claude_only("the app-server sends no hooks")
@pytest.mark.soak
async def test_a_whole_rotation_over_the_private_socket_leaves_no_hook_on_the_port():
    async with Rig(hands_off(), config='[hooks]\ntransport = "command"\n') as rig:
        session = await rig.new("please hand off")
        settings = json.loads(rig.home.launch_settings(session).read_text())
        kinds = {hook["type"] for groups in settings["hooks"].values() for group in groups for hook in group["hooks"]}
        assert kinds == {"command"}
        await wake_request(rig)
        assert (await rig.wait_phase(session, "done"))["rotations"] == 1
        os.kill(rig.server.pid, signal.SIGSTOP)
        rig.type(session, "one more")
        await rig.wait_screen(session, "one more")
        rig.press(session, "Enter")
        await rig.model.wait_for(lambda r: "one more" in r.user_text, within=20)
        os.kill(rig.server.pid, signal.SIGCONT)
        await rig.until(rig._answers, "the server answers again")
        await rig.wait_status(session, "idle")


async def test_a_handoff_that_cannot_be_kept_is_refused_and_the_context_stays():
    async with Rig(hands_off()) as rig:
        rig.home.handoffs.write_text("no directory")
        session = await rig.new("please hand off")
        request = await rig.model.wait_for(lambda r: "Error: " in r.all_text, within=30)
        assert str(rig.home.handoffs) in request.all_text
        await rig.wait_event(session, "TurnEnded")
        view = await rig.wait_status(session, "idle")
        assert (view["handoff"]["phase"], view["past_conversations"]) == (None, [])


@BY_KEYS
@pytest.mark.soak
async def test_a_database_that_is_locked_for_a_while_costs_the_agent_nothing_and_nothing_is_missed():
    async with Rig(script(FEW)) as rig:
        session = await rig.new("hello")
        await rig.wait_event(session, "TurnEnded")
        with contextlib.closing(sqlite3.connect(rig.home.database, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            rig.type(session, "many tools")
            await rig.wait_screen(session, "many tools")
            rig.press(session, "Enter")
            await rig.model.wait_for(lambda _: len(rig.model.main_requests) >= 2 * FEW + 2, within=60)
            quick, found = most_are_quick(rig)
            assert quick, found
            other.execute("ROLLBACK")
        await rig.wait_event(session, "TurnEnded", 2)
        assert len(await rig.events(session, "ToolUsed")) == 2 * FEW
