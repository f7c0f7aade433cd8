"""The driver inside the client, on the real one: no key is pressed, and the handoff is a tool."""

from sm.testing.scenario import Call, Say, Turn, scenario
from tests.e2e.rig import Rig

DOCUMENT = "# Handoff\n\n" + "A fact that the next context needs.\n" * 100 + "\nNext step: run the tests.\n"
SCRIPT = scenario(
    Turn("hand off", steps=[Call("mcp__sm__handoff", document=DOCUMENT), Say("Handed off.")]),
    Turn("continue from where you left off", steps=[Say("Going on.")]),
    otherwise=Say("ok"),
)
BY_MOD = '[claude]\ndriver = "mod"\n'


async def test_the_agent_hands_off_with_a_tool_and_continues_in_a_fresh_context():
    async with Rig(SCRIPT, config=BY_MOD) as rig:
        session = await rig.new("please hand off")
        await rig.wait_phase(session, "done")
        request = await rig.model.wait_for(lambda r: "continue from where you left off" in r.user_text, within=10)
        assert "=== HANDOFF LOADED (ID: HO-" in request.all_text
        assert "Next step: run the tests." in request.all_text
        assert "please hand off" not in request.all_text
        shown = rig.tmux("capture-pane", "-p", "-t", (await rig.view(session))["pane"])
        assert "Prompt from the sm plugin" in shown
