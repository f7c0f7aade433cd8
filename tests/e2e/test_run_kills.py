"""SIGKILL of `sm run`, of its client and of the server in every phase of a restart, on the real client."""

import asyncio
import os
import random
import signal

import pytest

from sm.processes import alive
from sm.testing.scenario import Say, Turn, scenario
from tests.e2e.foreground import BY_KEYS, Terminal
from tests.e2e.people import AWOKE, DOCUMENT, HANDED_OFF, WROTE
from tests.e2e.rig import PATIENCE, Rig

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

HANDS_OFF = Turn("hand off", steps=[WROTE, HANDED_OFF, Say("Handed off.", delay=0.3)])
SCRIPT = scenario(HANDS_OFF, Turn(AWOKE, steps=[Say("Going on.", delay=0.2)]), otherwise=Say("ok"))
LONG = scenario(HANDS_OFF, Turn(AWOKE, steps=[Say("Going on.", delay=2.0)]), otherwise=Say("ok"))
"""Time to end a client before its first reply."""
ARGUMENTS = ("--model", "claude-sonnet-4-5", "please hand off")
PHASES = {
    "pending": "kind = 'HandoffRequested'",
    "reserved": "kind = 'TurnEnded'",
    "ordered": "kind = 'ComposerReady'",
    "taken": "kind = 'RestartTaken'",
    "ended": "kind = 'ConversationEnded'",
    "launched": "kind = 'SessionLaunched' AND number > (SELECT min(number) FROM events WHERE kind = 'RestartTaken')",
    "started": "kind = 'ConversationStarted' AND number > (SELECT min(number) FROM events WHERE kind = 'RestartTaken')",
    "prompted": "kind = 'PromptSubmitted' AND number > (SELECT min(number) FROM events WHERE kind = 'RestartTaken')",
}
"""The event that begins each stretch, as the database shows it."""


async def reached(rig, phase):
    await rig.recorded(PHASES[phase])


def wakes(rig):
    return [request for request in rig.model.main_requests if AWOKE in request.user_text]


async def settled(rig, session):
    view = await rig.wait_view(
        session, lambda v: v["handoff"]["phase"] == "done" and v["status"] == "idle", "rotated and idle"
    )
    await asyncio.sleep(1)  # a second copy would come now
    return view


async def goes_on(rig, terminal, session):
    """The work goes on from its document, in this terminal and once."""
    view = await settled(rig, session)
    (wake,) = wakes(rig)
    assert "=== HANDOFF LOADED" in wake.all_text or f"Read {rig.project}/.sm/handoff.md" in wake.user_text
    assert view["rotations"] == 1
    assert alive(view["pid"])
    assert terminal.process.poll() is None
    assert await terminal.quit() == 0
    assert terminal.modes == terminal.before


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.soak
async def test_a_server_killed_in_any_phase_is_caught_up_with_after_its_restart(phase):
    async with Rig(SCRIPT, config=BY_KEYS) as rig:
        with Terminal(rig, ARGUMENTS) as terminal:
            session = await terminal.session()
            await reached(rig, phase)
            await rig.kill_server()
            await rig.start_server()
            await goes_on(rig, terminal, session)


@pytest.mark.parametrize("phase", ["ended", "launched"])  # before, the order may be lost with the server's reply
@pytest.mark.soak
async def test_a_server_that_is_away_while_the_new_client_does_its_work_learns_of_it(phase):
    async with Rig(SCRIPT, config=BY_KEYS) as rig:
        with Terminal(rig, ARGUMENTS) as terminal:
            session = await terminal.session()
            await reached(rig, phase)
            await rig.kill_server()
            await rig.model.wait_for(lambda r: AWOKE in r.user_text, within=PATIENCE)
            await asyncio.sleep(1)
            await rig.start_server()
            await goes_on(rig, terminal, session)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.soak
async def test_a_server_killed_at_any_moment_after_the_turn_is_caught_up_with(seed):
    async with Rig(SCRIPT, config=BY_KEYS) as rig:
        with Terminal(rig, ARGUMENTS) as terminal:
            session = await terminal.session()
            await reached(rig, "reserved")
            await asyncio.sleep(random.Random(seed).uniform(0.0, 1.5))  # noqa: S311
            await rig.kill_server()
            await rig.start_server()
            await goes_on(rig, terminal, session)


@pytest.mark.parametrize("phase", ["pending", "reserved", "ordered", "taken", "launched", "started", "prompted"])
@pytest.mark.soak
async def test_a_client_killed_in_any_phase_ends_sm_run_and_goes_on_from_its_document_once_restored(phase):
    async with Rig(LONG, config=BY_KEYS) as rig:
        with Terminal(rig, ARGUMENTS) as terminal:
            session = await terminal.session()
            await reached(rig, phase)
            os.kill((await rig.view(session))["pid"], signal.SIGKILL)
            assert await terminal.ended() == 137
            assert terminal.modes == terminal.before
            assert terminal.switched_off
            await rig.wait_status(session, "crashed")
            await restored_from_its_document(rig, session)


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.often("taken")
@pytest.mark.soak
async def test_sm_run_killed_in_any_phase_leaves_no_client_and_goes_on_from_its_document_once_restored(phase):
    async with Rig(SCRIPT, config=BY_KEYS) as rig:
        with Terminal(rig, ARGUMENTS) as terminal:
            session = await terminal.session()
            await reached(rig, phase)
            terminal.process.kill()
            view = await rig.wait_view(session, lambda v: v["status"] in {"exited", "crashed"}, "ended")
            assert not alive(view["pid"])
            if view["handoff"]["phase"] != "done":
                await restored_from_its_document(rig, session)


async def restored_from_its_document(rig, session):
    """In a pane by then: its own terminal is gone."""
    before = len(wakes(rig))
    await rig.ask("POST", f"/sessions/{session}/restore", {"env": rig.env})
    view = await settled(rig, session)
    assert view["pane"]
    assert not view["foreground"]
    assert len(wakes(rig)) == before + 1
    assert DOCUMENT.strip() in wakes(rig)[-1].all_text
