"""The driver inside the client, on the real one: no key is pressed, and the handoff is a tool."""

import asyncio

import pytest

from sm.testing.scenario import Call, Say, Turn, scenario
from tests.e2e.people import box_shows
from tests.e2e.rig import Rig

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

DOCUMENT = "# Handoff\n\n" + "A fact that the next context needs.\n" * 100 + "\nNext step: run the tests.\n"
WAKE = "continue from where you left off"
BY_MOD = '[claude]\ndriver = "mod"\n'
DRAFTS = {"one line": "and then the tests", "three lines": "first line\nsecond line\n  third line", "command": "/cle"}


def hands_off(*before):
    tool = Call("mcp__sm__handoff", document=DOCUMENT)
    return scenario(
        Turn("hand off", steps=[*before, tool, Say("Handed off.")]),
        Turn(WAKE, steps=[Say("Going on.")]),
        otherwise=Say("ok"),
    )


async def driven(rig, prompt=None):
    """A session whose plugin has said hello."""
    session = await rig.new(prompt)
    await rig.wait_view(session, lambda view: view["driver"] == "mod", "driven by the plugin")
    return session


async def woken(rig):
    return await rig.model.wait_for(lambda request: WAKE in request.user_text, within=20)


async def test_the_agent_hands_off_with_a_tool_and_continues_in_a_fresh_context():
    async with Rig(hands_off(), config=BY_MOD) as rig:
        session = await driven(rig, "please hand off")
        await rig.wait_phase(session, "done")
        request = await woken(rig)
        assert "=== HANDOFF LOADED (ID: HO-" in request.all_text
        assert "Next step: run the tests." in request.all_text
        assert "please hand off" not in request.all_text
        await rig.wait_screen(session, "Prompt from the sm plugin")
        view = await rig.view(session)
        assert view["conversation"] not in view["past_conversations"]
        assert len(view["past_conversations"]) == 1


@pytest.mark.soak
@pytest.mark.parametrize("draft", DRAFTS.values(), ids=DRAFTS.keys())
async def test_a_draft_stays_where_it_is_over_a_rotation_and_a_message(draft):
    async with Rig(hands_off(Call("Bash", command="sleep 2")), config=BY_MOD) as rig:
        session = await driven(rig)
        rig.tmux("set-buffer", "--", draft)
        rig.tmux("paste-buffer", "-p", "-t", rig.pane(session))
        await box_shows(rig, session, draft)
        await rig.ask("POST", f"/sessions/{session}/messages", {"text": "please hand off"})
        await rig.wait_phase(session, "done")
        await woken(rig)
        await box_shows(rig, session, draft)
        assert not any(draft in request.user_text for request in rig.model.requests)


@pytest.mark.soak
async def test_a_killed_server_takes_up_its_plugin_again():
    async with Rig(hands_off(Call("Bash", command="sleep 3")), config=BY_MOD) as rig:
        session = await driven(rig, "please hand off")
        await rig.kill_server()
        await asyncio.sleep(1)
        await rig.start_server()
        await rig.wait_phase(session, "done")
        assert DOCUMENT.strip()[-20:] in (await woken(rig)).all_text
        assert (await rig.view(session))["driver"] == "mod"
        await rig.wait_screen(session, "Prompt from the sm plugin")
