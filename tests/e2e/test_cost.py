"""What `sm cost` shows is what the client has sent and received, over a handoff and with a subagent."""

import json

import pytest

from sm.testing.scenario import Call, Say, Turn, Usage, scenario
from tests.e2e.people import AWOKE, HANDED_OFF, WROTE, wake_request
from tests.e2e.rig import Rig

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(150)]

PRICED = '[cost]\nprices = ["claude-sonnet-4-5 3 15"]\n'
USAGE = Usage(input=7, cache_read=1_000, cache_creation=50, output=11)
LOOKS = Call("Agent", description="look around", prompt="sub work", subagent_type="general-purpose")


def using(*steps):
    return [step.but(usage=USAGE) for step in steps]


async def test_every_reply_of_every_context_and_of_subagents_is_counted_once():
    script = scenario(
        Turn("sub work", steps=using(Call("Bash", command="true"), Say("sub done"))),
        Turn("hand off", steps=using(LOOKS, WROTE, HANDED_OFF, Say("Handed off."))),
        Turn(AWOKE, steps=using(Say("Going on."))),
        otherwise=Say("ok").but(usage=USAGE),
    )
    async with Rig(script, config=PRICED) as rig:
        session = await rig.new("please hand off")
        await wake_request(rig)
        await rig.wait_phase(session, "done")
        await rig.wait_status(session, "idle")

        def found():
            return json.loads(rig.sm("cost", "--json").stdout)["data"][0]

        sent = len(rig.model.main_requests)
        await rig.until(lambda: found()["spent"]["requests"] >= sent, f"{sent} requests, {found()}")
        spent, contexts = found()["spent"], found()["contexts"]
        assert spent == {
            "requests": sent,
            "tokens": sent * 1_068,
            "input": sent * 7,
            "cache_writes": sent * 50,
            "long_cache_writes": 0,
            "cache_reads": sent * 1_000,
            "output": sent * 11,
            "usd": pytest.approx(sent * (7 * 3 + 50 * 3.75 + 1_000 * 0.3 + 11 * 15) / 1e6, abs=1e-6),
            "unpriced": [],
        }
        assert len(contexts) == 2
        assert sum(context["spent"]["requests"] for context in contexts) == sent
