"""The real client, whose session has used its budget: nothing is sent to it until its user continues it."""

import json

import pytest

from sm.testing.scenario import Say, Turn, Usage, scenario
from tests.e2e.rig import Rig

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(150)]

USED = Usage(input=5_000, output=6_000)
LITTLE = Usage(input=1, output=1)
PRICED = '[cost]\nprices = ["claude-sonnet-4-5 100 100"]\nbudget = "$1"\n'
"""A turn uses $1.10."""


def script():
    return scenario(
        Turn("work", steps=[Say("Done.").but(usage=USED)]),
        Turn("from another", steps=[Say("Read.").but(usage=LITTLE)]),
        Turn("go on", steps=[Say("Going on.").but(usage=LITTLE)]),
        otherwise=Say("ok").but(usage=LITTLE),
    )


def is_paused(view):
    return view["budget"] is not None and view["budget"]["level"] == "paused"


async def paused_and_continued(driver, *, restart):
    config = f'{PRICED}[claude]\ndriver = "{driver}"\n'
    async with Rig(script(), config=config) as rig:
        session = await rig.new("please work")
        await rig.wait_view(session, is_paused, "paused")
        await rig.wait_status(session, "idle")
        if restart:
            await rig.kill_server()
            await rig.start_server()
            await rig.wait_view(session, is_paused, "still paused")
        other = await rig.new("hello", name="b")
        await rig.wait_status(other, "idle")
        before = len(rig.model.main_requests)
        await rig.say(other, session, "from another")
        assert "budget used: $1.10 of $1.00" in rig.sm("list").stderr
        view = await rig.view(session)
        assert (view["queued"], len(rig.model.main_requests)) == (1, before)
        rig.sm("send", "a", "go on")
        await rig.model.wait_for(lambda request: "go on" in json.dumps(request.messages, default=str), 20)
        await rig.wait_view(session, lambda view: view["queued"] == 0, "both are sent")
        assert not is_paused(await rig.view(session))


async def test_a_used_budget_pauses_and_the_users_message_continues():
    await paused_and_continued("auto", restart=False)


@pytest.mark.soak
async def test_it_does_so_with_the_keys_and_over_a_restart_of_the_server():
    await paused_and_continued("keys", restart=True)
