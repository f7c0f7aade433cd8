"""One agent sends another a message: its name stands above it, in states that `test_messages.py` tries as a person."""

import asyncio

import pytest

from sm.testing.scenario import Call, Say, Turn, scenario
from tests.e2e.people import GOES_ON, HANDED_OFF, SLOW, WROTE, box_shows, dialog, paste
from tests.e2e.rig import Rig
from tests.e2e.test_messages import WORK, arrivals, confirmed, idle, receipt, working

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

SCRIPT = scenario(
    WORK,
    Turn("hand off", steps=[WROTE, HANDED_OFF, SLOW]),
    GOES_ON,
    Turn("make it", steps=[Call("Bash", command="touch made", dangerouslyDisableSandbox=True), Say("Made.")]),
    otherwise=Say("ok"),
)
TEXT = "look at the tests"
DRAFT = "and then look\nat the seams"


async def begun(rig, state):
    """A session in that state."""
    if state in {"working", "draft at work"}:
        session = await working(rig)
        await rig.model.wait_for(lambda request: "work on it" in request.user_text)
    elif state == "rotating":
        session = await rig.new("please hand off", name="b")
        await rig.wait_phase(session, "pending")
    elif state == "asking":
        session = await rig.new("make it", name="b")
        await rig.wait_screen(session, dialog())
    else:
        session = await rig.new("hello", name="b")
        await rig.wait_event(session, "TurnEnded")
    if state.startswith("draft"):
        await asyncio.sleep(1)
        paste(rig, session, DRAFT)
        await box_shows(rig, session, DRAFT)
    return session


@pytest.mark.not_in_terminal("with a dialog as above; a draft of several lines is waited for")
@pytest.mark.parametrize(
    ("state", "mode"),
    [
        ("idle", "sequential"),
        ("working", "sequential"),
        ("rotating", "steer"),
        ("asking", "urgent"),
        ("draft", "important"),
        ("draft at work", "important"),
        ("draft at work", "steer"),
    ],
)
@pytest.mark.often("draft at work-important")
async def test_it_arrives_once_with_its_sender_above_it_and_disturbs_nothing(state, mode):
    async with Rig(SCRIPT) as rig:
        sender = await rig.new(name="a")
        await rig.wait_status(sender, "idle")
        session = await begun(rig, state)
        message = await rig.say(sender, session, TEXT, mode=mode)
        if state == "asking":
            await asyncio.sleep(2)
            assert not (rig.project / "made").exists()
            assert (await receipt(rig, message))["state"] == "queued"
            rig.press(session, "Enter")
        await confirmed(rig, message)
        await idle(rig, session)
        assert arrivals(rig, f"[Input from: a ({sender}) via sm send] (message {message})\n{TEXT}") == 1
        assert arrivals(rig, TEXT) == 1
        if state.startswith("draft"):
            await box_shows(rig, session, DRAFT)
            assert not any("at the seams" in request.all_text for request in rig.model.requests)
        if state == "rotating":
            assert (await rig.wait_phase(session, "done"))["rotations"] == 1
