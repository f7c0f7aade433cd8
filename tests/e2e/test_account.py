"""The document made without a model, on the real client: what it holds is what that client's transcript told."""

import pytest

from sm.providers.scripted.scenario import Call, Say, Together, Turn, scenario
from tests.e2e.people import AWOKE, person_settings
from tests.e2e.rig import Rig

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

REQUEST = "Add a dry run to the importer. Never touch vendor/."
CHOICE = "Decision: a preview table rather than a log, because people want to sort it."
WORK = [
    Together(Say(CHOICE), Call("Write", file_path="importer.py", content="x = 1\n")),
    Call("Bash", command="sh -c 'echo error: row 7 is bad; exit 3'"),
    Call("Bash", command="sleep 300", description="Soak test", run_in_background=True),
    Call("Bash", command="sm handoff --auto"),
    Say("Handed off."),
]
SCRIPT = scenario(
    Turn("dry run", steps=WORK),
    Turn(AWOKE, steps=[Call("Bash", command="sm handoff --auto"), Say("Handed off again.")], times=1, name="second"),
    Turn(AWOKE, steps=[Say("Going on.")]),
    otherwise=Say("ok"),
)


async def test_an_agent_hands_off_without_writing_a_document():
    async with Rig(SCRIPT, config="[handoff]\nwait_background = 0\n") as rig:
        person_settings(rig, permissions={"allow": ["Bash", "Write"]})
        session = await rig.new(REQUEST)
        first = await rig.model.wait_for(lambda request: AWOKE in request.user_text, within=40)
        for kept in (
            "=== HANDOFF LOADED (ID: HO-",
            "Type: auto",
            '- "Add a dry run to the importer."',
            '- "Never touch vendor/."',
            f"- {CHOICE}",
            "- `importer.py`: created",
            "`sh -c 'echo error: row 7 is bad; exit 3'` failed: error: row 7 is bad",
            "- Still running in the background: Soak test (`sleep 300`)",
        ):
            assert kept in first.all_text
        assert "Interrupted, not applied" not in first.all_text
        assert f"Read {rig.project}/.sm/handoff-auto.md and " in first.user_text

        second = await rig.model.wait_for(
            lambda request: AWOKE in request.user_text and "### From the Handoff Before" in request.all_text, within=40
        )
        assert '- User-Specified Constraints: "Never touch vendor/."' in second.all_text
        assert (await rig.view(session))["past_conversations"]
