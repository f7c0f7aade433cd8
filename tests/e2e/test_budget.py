"""The real client, whose session has used its budget: nothing is sent to it until its user continues it."""

import asyncio
import json

import pytest

from sm.testing.scenario import Call, Say, Turn, Usage, scenario
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
        await rig.wait_event(other, "TurnEnded")  # by keys it is idle before it has its first prompt
        before = len(rig.model.main_requests)
        await rig.say(other, session, "from another")
        assert "budget used: $1.10 of $1.00" in rig.sm("list").stderr
        view = await rig.view(session)
        assert (view["queued"], len(rig.model.main_requests)) == (1, before)
        rig.sm("send", "a", "go on")
        await rig.model.wait_for(lambda request: "go on" in json.dumps(request.messages, default=str), 20)
        await rig.wait_view(session, lambda view: view["queued"] == 0, "both are sent")
        assert not is_paused(await rig.view(session))


@pytest.mark.soak
async def test_a_used_budget_pauses_and_the_users_message_continues():
    await paused_and_continued("auto", restart=False)


@pytest.mark.soak
async def test_it_does_so_with_the_keys_and_over_a_restart_of_the_server():
    await paused_and_continued("keys", restart=True)


TREE = PRICED.replace("budget", "tree_budget")
SPAWN = Call("Bash", command="sm spawn --name kid do part one").but(usage=LITTLE)


@pytest.mark.soak
@pytest.mark.parametrize("drives", ["auto", "keys"])
async def test_a_tree_is_paused_whole_and_a_message_to_its_top_continues_it(drives):
    lead = Turn("lead the work", steps=[SPAWN, Say("Waiting.").but(usage=LITTLE)])
    part = Turn("do part one", steps=[Say("Part one is done.", delay=1).but(usage=USED)])
    otherwise = Say("ok").but(usage=LITTLE)
    async with Rig(scenario(lead, part, otherwise=otherwise), config=f'{TREE}[claude]\ndriver = "{drives}"\n') as rig:
        boss = await rig.new("lead the work", name="boss")
        await rig.wait_view(boss, lambda view: view["children"], "with a child")
        kid = (await rig.ask("GET", f"/sessions/{boss}/children"))[0]["id"]
        for session in (boss, kid):
            await rig.wait_view(session, is_paused, "paused")
            await rig.wait_status(session, "idle")
        shown = [row.split() for row in rig.sm("cost").stdout.splitlines()]
        assert [(row[0], row[-1]) for row in shown[1:]] == [("boss", "$1.10"), ("kid", "$1.10")]
        before = len(rig.model.main_requests)
        await rig.say(boss, kid, "from your parent")
        assert (await rig.view(kid))["queued"] == 1
        await asyncio.sleep(2)  # long enough for what must not come
        assert len(rig.model.main_requests) == before
        rig.sm("send", "boss", "go on")
        for text in ("go on", "from your parent"):
            await rig.model.wait_for(lambda request: text in request.all_text, 20)  # noqa: B023
        for session in (boss, kid):
            await rig.wait_view(session, lambda view: view["queued"] == 0 and not is_paused(view), "free")
