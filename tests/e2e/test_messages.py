"""Messages between sessions on the real client: each arrives once, by its channel, and its receipt says so."""

import asyncio

import pytest

from sm.providers.scripted.scenario import Call, Say, Turn, scenario
from tests.e2e.people import GOES_ON, HANDED_OFF, SLOW, WROTE, box_shows, client_is
from tests.e2e.rig import Rig

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

WORK = Turn("work on it", steps=[Call("Bash", command="sleep 3"), Call("Bash", command="sleep 2"), Say("Done.")])
ALLOWED = '[primer]\nenabled = false\n'
MODES = ("sequential", "important", "urgent", "steer")


def agents(*turns):
    return scenario(WORK, *turns, otherwise=Say("ok"))


async def idle(rig, session):
    await rig.wait_status(session, "idle")


async def sent(rig, session, text, **options):
    return str((await rig.ask("POST", f"/sessions/{session}/messages", {"text": text, **options}))["id"])


async def receipt(rig, message):
    return dict(await rig.ask("GET", f"/messages/{message}"))


async def confirmed(rig, message, channel=None):
    async def look():
        while (found := await receipt(rig, message))["state"] not in {"confirmed", "unconfirmed", "failed", "expired"}:
            await asyncio.sleep(0.05)
        return found

    found = await asyncio.wait_for(look(), 40)
    assert (found["state"], found["channel"]) == ("confirmed", channel or found["channel"])
    assert found["queued"] <= found["delivered"] <= found["confirmed"]
    return found


def arrivals(rig, words):
    """How often the model has been told these words, over the whole of each conversation's last request."""
    last = {request.session: request for request in rig.model.main_requests}
    return sum(request.all_text.count(words) for request in last.values())


def working(rig, *arguments):
    return rig.new("work on it", "--allowedTools", "Bash(sleep:*)", *arguments, name="b")


@pytest.mark.parametrize(
    ("mode", "channel"),
    [("sequential", "stop"), ("important", "tool"), ("urgent", "urgent"), ("steer", "tool")],
)
async def test_a_message_to_an_agent_that_works_arrives_once_by_the_channel_of_its_mode(mode, channel):
    async with Rig(agents()) as rig:
        session = await working(rig)
        await rig.model.wait_for(lambda request: "work on it" in request.user_text)
        await asyncio.sleep(0.5)
        message = await sent(rig, session, "look at the tests", mode=mode)
        await confirmed(rig, message, channel)
        await idle(rig, session)
        assert arrivals(rig, "look at the tests") == 1


@pytest.mark.parametrize("mode", ["sequential", "important", "urgent"])
async def test_a_message_to_an_idle_agent_is_typed_as_its_next_prompt(mode):
    async with Rig(agents()) as rig:
        session = await rig.new("hello", name="b")
        await rig.wait_event(session, "TurnEnded")
        message = await sent(rig, session, "look at the tests", mode=mode)
        await confirmed(rig, message, "paste")
        request = await rig.model.wait_for(lambda request: "look at the tests" in request.user_text)
        assert request.user_text.strip() == "look at the tests"
