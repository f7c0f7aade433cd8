"""The gate on the real client: past critical nothing but the handoff, and the way out works."""

import json

import pytest

from sm.core.rules.gate import reason
from sm.providers.claude.traits import CLAUDE
from sm.testing.scenario import Call, Say, Together, Turn, scenario
from tests.e2e.people import DOCUMENT, GOES_ON, HANDED_OFF, WROTE, person_settings, wake_request
from tests.e2e.rig import Rig

pytestmark = [
    pytest.mark.claude_only("the app-server is given no hook before a tool runs"),
    pytest.mark.e2e,
    pytest.mark.matrix,
    pytest.mark.timeout(120),
]

GATED = '[handoff]\nenforce = "gate"\n'
FULL = 150_000
TOUCH = Call("Bash", command="touch built")
OPENS = "sm: the context is critically full"


def fills_up(*steps, **turns):
    """An agent whose context is critical with its first call; its record is on disk when the next one comes."""
    first, second, *others = Call("Bash", command="true").but(context=FULL), *steps
    return scenario(
        Turn("fill up", steps=[first, second.but(delay=0.5), *others]), GOES_ON, *turns.values(), otherwise=Say("ok")
    )


def denied(rig):
    return [r for r in rig.model.requests if any(OPENS in result.text for result in r.tool_results)]


async def test_past_critical_a_call_is_denied_with_the_way_out_and_the_way_out_works(driver):
    async with Rig(fills_up(TOUCH, WROTE, HANDED_OFF, Say("Handed off.")), config=GATED) as rig:
        person_settings(rig, permissions={"allow": ["Bash"]})
        session = await rig.new("fill up")
        await wake_request(rig)
        await rig.wait_phase(session, "done")
        [request] = denied(rig)
        assert reason(session, CLAUDE, with_tool=driver == "mod") in request.tool_results[0].text
        assert not (rig.project / "built").exists()
        asked = [event["data"] for event in await rig.events(session, "ToolAsked")]
        assert [call["permitted"] for call in asked if call["tool"] != "Read"][-3:] == [False, True, True]


@pytest.mark.soak
async def test_a_compound_command_and_a_document_on_standard_input_go_through():
    both = f"mkdir -p .sm && sm handoff - <<'EOF'\n{DOCUMENT}EOF\n"
    sly = "sm status && touch built"
    steps = [Call("Bash", command=sly), Call("Bash", command=both), Say("Handed off.")]
    async with Rig(fills_up(*steps), config=GATED) as rig:
        person_settings(rig, permissions={"allow": ["Bash"]})
        session = await rig.new("fill up")
        await wake_request(rig)
        await rig.wait_phase(session, "done")
        assert len(denied(rig)) == 1
        assert not (rig.project / "built").exists()


@pytest.mark.soak
async def test_a_pending_handoff_opens_it():
    async with Rig(fills_up(WROTE, HANDED_OFF, TOUCH, Say("Handed off.")), config=GATED) as rig:
        person_settings(rig, permissions={"allow": ["Bash"]})
        await rig.new("fill up")
        await wake_request(rig)
        assert denied(rig) == []
        assert (rig.project / "built").exists()


@pytest.mark.soak
async def test_a_subagents_calls_are_its_own_affair():
    agent = Call("Agent", description="builds", prompt="build it", subagent_type="general-purpose")
    script = scenario(
        Turn("fill up", steps=[Together(agent.but(context=FULL), TOUCH), Say("waits")]),
        Turn("build it", steps=[Call("Bash", command="sleep 1; touch by-the-subagent"), Say("built")]),
        otherwise=Say("ok"),
    )
    async with Rig(script, config=GATED) as rig:
        person_settings(rig, permissions={"allow": ["Bash"]})
        await rig.new("fill up")
        await rig.until((rig.project / "by-the-subagent").exists, "the subagent has worked")


@pytest.mark.soak
async def test_it_fails_open_when_the_server_is_away():
    async with Rig(fills_up(TOUCH, Say("done")), config=GATED) as rig:
        person_settings(rig, permissions={"allow": ["Bash"]})
        session = await rig.new("hello")
        await rig.wait_status(session, "idle")
        await rig.kill_server()
        rig.type(session, "fill up")
        await rig.wait_screen(session, "fill up")
        rig.press(session, "Enter")
        await rig.until((rig.project / "built").exists, "the call went through")


@pytest.mark.parametrize("config", ["", '[handoff]\nenforce = "advise"\n'])
@pytest.mark.soak
async def test_without_the_setting_no_call_is_asked_about(config):
    async with Rig(fills_up(TOUCH, Say("done")), config=config) as rig:
        person_settings(rig, permissions={"allow": ["Bash"]})
        session = await rig.new("fill up")
        await rig.wait_event(session, "TurnEnded")
        assert "PreToolUse" not in json.loads(rig.home.launch_settings(session).read_text())["hooks"]
        assert (rig.project / "built").exists()
        assert await rig.events(session, "ToolAsked") == []
