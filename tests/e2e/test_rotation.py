"""The main job on the real client."""

import pytest

from sm.testing.scenario import Call, Say, Turn, scenario
from tests.e2e.people import read_at_wake
from tests.e2e.rig import Rig

pytestmark = [pytest.mark.e2e, pytest.mark.matrix, pytest.mark.timeout(120)]

DOCUMENT = "# Handoff\nThe goal is G.\nNext step: N.\n"
HAND_OFF = [
    Call("Write", file_path=".sm/handoff.md", content=DOCUMENT),
    Call("Bash", command="sm handoff .sm/handoff.md"),
    Say("Handed off."),
]
SCRIPT = scenario(
    Turn("hand off", steps=HAND_OFF),
    Turn("continue from where you left off", steps=[Say("Going on.")]),
    otherwise=Say("ok"),
)


@pytest.mark.codex_too
async def test_clears_the_context_and_wakes_the_agent_with_its_document_as_the_same_session():
    async with Rig(SCRIPT, as_installed=True) as rig:
        session = await rig.new("please hand off")
        before = await rig.wait_status(session, "idle")
        await rig.wait_phase(session, "done")
        request = await rig.model.wait_for(lambda r: "continue from where you left off" in r.user_text, within=10)

        after = await rig.view(session)
        assert (after["id"], after["name"], after["pane"]) == (session, "a", before["pane"])
        assert after["conversation"] != after["past_conversations"][0]
        assert DOCUMENT.strip() in request.all_text
        assert "=== HANDOFF LOADED (ID: HO-" in request.all_text
        named = read_at_wake(after, f"{rig.project}/.sm/handoff.md")
        assert request.user_text.strip() == f"Read {named} and continue from where you left off."
