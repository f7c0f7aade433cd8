"""The real client, whose agent hands off again and again: it is kept to its work, and then its user is asked."""

import pytest

from sm.testing.scenario import Call, Say, Turn, scenario
from tests.e2e.rig import Rig
from tests.e2e.test_inside import DOCUMENT, WAKE, driven

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(150)]

BY_MOD = '[claude]\ndriver = "auto"\n'
HANDS_OFF = Call("mcp__sm__handoff", document=DOCUMENT)


@pytest.mark.soak
async def test_a_context_that_has_just_begun_is_not_handed_off_again():
    script = scenario(
        Turn("hand off", steps=[HANDS_OFF, Say("Handed off.")]),
        Turn(WAKE, steps=[Call("Bash", command="true"), HANDS_OFF, Say("Going on.")]),
        otherwise=Say("ok"),
    )
    async with Rig(script, config=BY_MOD, guarded=True) as rig:
        session = await driven(rig, "please hand off")
        await rig.wait_phase(session, "done")
        refused = await rig.model.wait_for(
            lambda request: any("it may be handed off" in result.text for result in request.tool_results), 20
        )
        assert any("continue the work" in result.text for result in refused.tool_results)
        view = await rig.wait_view(session, lambda view: view["loop_guard"]["needed"] is not None, "its size is known")
        guard = view["loop_guard"]
        assert (view["rotations"], view["handoff"]["phase"]) == (1, "done")
        assert guard["needed"] == guard["start"] + 40_000
        assert (guard["without_progress"], guard["limit"], guard["paused"]) == (0, 3, False)
        listed = rig.sm("list", "--json").stdout
        assert '"loop_guard"' in listed


@pytest.mark.soak
@pytest.mark.parametrize("driver", ["keys", "mod"])
async def test_an_agent_that_only_hands_off_waits_for_its_user(driver):
    command = Call("Bash", command="sm handoff - <<'END'\n# Handoff\nEND")
    steps = [HANDS_OFF if driver == "mod" else command, Say("Handed off.")]
    script = scenario(Turn("hand off", steps=steps), Turn(WAKE, steps=steps), otherwise=Say("ok"))
    config = f'[claude]\ndriver = "{driver}"\n[handoff]\nmin_growth = 0\n'
    async with Rig(script, config=config, guarded=True) as rig:
        session = await rig.new("please hand off")
        await rig.wait_view(session, lambda view: view["loop_guard"]["paused"], "paused")
        view = await rig.wait_status(session, "idle")
        assert (view["handoff"]["phase"], view["rotations"]) == ("pending", 4)
        assert "paused: 3 handoffs in a row without" in rig.sm("list").stderr
        rig.sm("handoff", "--retry", "--session", session)
        await rig.wait_view(session, lambda view: view["rotations"] == 5, "continues")
