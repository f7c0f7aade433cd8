"""`sm auto` with clients that have no screen: the same issue, continuation, asks and deaths, by the plugin alone."""

import pytest

from sm.testing.scenario import Call, Say, Turn, scenario
from tests.e2e.people import AWOKE, DOCUMENT, HANDED_OFF, WROTE, person_settings
from tests.e2e.rig import Rig
from tests.e2e.test_auto import (
    BEGUN,
    COMMITTED,
    DONE,
    ENDS,
    ORDERED,
    READ,
    WORKS,
    auto,
    delivered_though_killed,
    is_delivered,
    repository,
)

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

HANDS_OFF = [WROTE, HANDED_OFF, Say("Handed off.")]
HEADLESS = '[runner]\nmode = "headless"\n'


@pytest.mark.soak
async def test_an_issue_is_worked_on_over_a_continuation_without_a_screen():
    full = READ.but(context=50_000)
    script = scenario(
        Turn(BEGUN, steps=[full, *[WORKS] * 4, Say("Not full yet.")]),
        Turn(context=ORDERED, steps=HANDS_OFF, times=1),
        Turn(ORDERED, steps=HANDS_OFF, times=1),  # without a screen the client may keep it until the turn is over
        Turn(AWOKE, steps=[COMMITTED, DONE]),
    )
    async with Rig(script, config=HEADLESS) as rig:
        repository(rig)
        code, data = await auto(rig, "--handoff-threshold", "25")
        outcome = is_delivered(rig, code, data)
        assert (outcome["attempts"], outcome["continuations"]) == (1, 1)
        second = await rig.model.wait_for(lambda request: AWOKE in request.user_text)
        assert "| Write login.txt." in second.all_text
        assert DOCUMENT.strip() in second.all_text
        assert b'"type":"result"' in rig.home.log(outcome["session"]).read_bytes()


@pytest.mark.soak
@pytest.mark.parametrize("ends", ENDS)
async def test_a_context_that_ends_without_a_handoff_is_continued(ends):
    async with Rig(scenario(*ENDS[ends], Turn(AWOKE, steps=[COMMITTED, DONE])), config=HEADLESS) as rig:
        repository(rig)
        rig.env |= {"DISABLE_AUTO_COMPACT": "1"}
        outcome = is_delivered(rig, *await auto(rig))
        assert (outcome["attempts"], outcome["continuations"]) == (1, 1)


async def test_a_client_that_is_not_there_is_said_at_once():
    async with Rig(scenario(), config=HEADLESS) as rig:
        repository(rig)
        rig.client = "/nowhere/claude"
        code, data = await auto(rig)
        (outcome,) = data["outcomes"]
        assert (code, outcome["reason"]) == (1, "ensure_session: Client not found: /nowhere/claude")


@pytest.mark.soak
async def test_what_an_agent_asks_is_denied_where_that_is_configured():
    asks = Turn(BEGUN, steps=[READ, Call("Bash", command="touch asked"), COMMITTED, DONE])
    async with Rig(scenario(asks), config=HEADLESS) as rig:
        repository(rig)
        person_settings(rig, permissions={"allow": ["Bash", "Read"], "ask": ["Bash(touch:*)"]})
        is_delivered(rig, *await auto(rig, "--on-ask", "deny"))
        assert not (rig.project / "asked").exists()


@pytest.mark.soak
@pytest.mark.parametrize("victim", ["runner", "server", "client", "machine"])
async def test_what_is_killed_while_an_agent_works_loses_nothing(victim):
    await delivered_though_killed(victim, HEADLESS)
