"""C11: a job that the agent has scheduled in its client survives `/clear`; the new context is told of it."""

import pytest

from sm.testing.scenario import Call, Say
from tests.e2e.people import hands_off, person_settings, woken
from tests.e2e.rig import Rig

pytestmark = [
    pytest.mark.claude_only("Codex has no tool that schedules a prompt"),
    pytest.mark.e2e,
    pytest.mark.timeout(120),
]


@pytest.mark.soak
async def test_the_wake_prompt_names_a_job_that_will_come():
    job = Call("CronCreate", cron="7 9 * * 1", prompt="look at the build", recurring=True)
    async with Rig(hands_off(job, Say("Handed off."))) as rig:
        person_settings(rig, permissions={"defaultMode": "default", "allow": ["CronCreate"]})
        session = await rig.new("please hand off")
        request = await rig.model.wait_for(woken)
        line = request.user_text.strip().splitlines()[-1]
        assert line.startswith("Still scheduled in this client: look at the build (7 9 * * 1, ")
        await rig.wait_phase(session, "done")
