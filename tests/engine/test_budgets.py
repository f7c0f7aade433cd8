"""A budget warns and pauses by what transcripts say; only the user's own configuration and words decide it."""

import asyncio
import json

import pytest

from sm.core.model.budget import BudgetLevel
from tests.api.rig import USER, house
from tests.engine.test_costs import record_context
from tests.providers.test_claude_usage import NOW, line

PRICES = 'prices = ["claude-x 0 100000"]\n'
"""A reply costs a dollar."""


@pytest.fixture
async def api(tmp_path):
    async with house(tmp_path) as found:
        yield found


def configure(tmp_path, text):
    path = tmp_path / "config.toml"
    path.write_text(f"[cost]\n{text}")


def replies(*numbers, **values):
    return "".join(line(number, NOW, **values) for number in numbers)


async def levels(api):
    await api.engine.budgets.look()
    actors = api.engine.sessions.actors.values()
    for actor in actors:
        while not actor.inbox.empty() or not actor.inbox._getters:  # it is still committing one
            await asyncio.sleep(0)
    return {actor.session.name: actor.session.budget.level for actor in actors}


async def send(api, to, token):
    status, sent = await api.call("POST", "/messages", token, {"to": to, "text": "go on"})
    assert status < 300, sent


async def test_a_budget_warns_then_pauses_and_the_users_message_continues(api, tmp_path):
    configure(tmp_path, PRICES + 'budget = "$5"\n')
    one, other = await api.new("one"), await api.new("other")
    transcript = await record_context(api, one, "c1", replies(1, 2, 3, 4))
    assert await levels(api) == {"one": BudgetLevel.WARNED, "other": BudgetLevel.NONE}
    transcript.write_text(replies(1, 2, 3, 4, 5))
    assert (await levels(api))["one"] is BudgetLevel.PAUSED
    words = "budget used: $5.00 of $5.00; nothing is sent to it until you continue it: sm send"
    _, view = await api.call("GET", f"/sessions/{one}")
    assert (view["budget"], view["detail"]) == ({"level": "paused", "text": words}, words)

    # the hostile agent, and one that would help it
    refused = await api.call("POST", "/messages", api.tokens[one], {"to": one, "text": "go on"})
    assert refused[0] >= 400
    await send(api, one, api.tokens[other])
    for token in (api.tokens[one], api.tokens[other]):
        assert (await api.call("POST", f"/sessions/{one}/handoff/retry", token))[0] >= 400
        assert (await api.call("POST", f"/sessions/{one}/limit/resume", token))[0] >= 400
    assert (await levels(api))["one"] is BudgetLevel.PAUSED

    await send(api, one, USER)
    assert (await levels(api))["one"] is BudgetLevel.NONE
    transcript.write_text(replies(*range(1, 10)))
    assert (await levels(api))["one"] is BudgetLevel.WARNED


async def test_a_tree_is_paused_whole_and_its_top_continues_it(api, tmp_path):
    configure(tmp_path, "tree_budget = 1000\n")
    boss = await api.new("boss")
    kid = await api.new("kid", parent=boss)
    await api.new("stranger")
    await record_context(api, boss, "b1", replies(1, output_tokens=500))
    await record_context(api, kid, "k1", replies(2, output_tokens=600))
    found = await levels(api)
    assert found == {"boss": BudgetLevel.PAUSED, "kid": BudgetLevel.PAUSED, "stranger": BudgetLevel.NONE}
    await send(api, kid, api.tokens[boss])
    assert (await levels(api))["kid"] is BudgetLevel.PAUSED
    await send(api, boss, USER)
    assert set((await levels(api)).values()) == {BudgetLevel.NONE}


async def test_what_has_no_price_pauses_nothing_and_a_larger_budget_continues(api, tmp_path):
    configure(tmp_path, 'budget = "$2"\n')
    one = await api.new("one")
    await record_context(api, one, "c1", replies(1, 2, 3))
    assert (await levels(api))["one"] is BudgetLevel.UNKNOWN
    _, view = await api.call("GET", f"/sessions/{one}")
    assert "the price of claude-x is unknown" in view["detail"]
    configure(tmp_path, PRICES + 'budget = "$2"\n')
    assert (await levels(api))["one"] is BudgetLevel.PAUSED
    configure(tmp_path, PRICES + 'budget = "$20"\n')
    assert (await levels(api))["one"] is BudgetLevel.NONE
    configure(tmp_path, PRICES + 'budget = "$2"\n')
    assert (await levels(api))["one"] is BudgetLevel.PAUSED
    configure(tmp_path, PRICES)
    assert (await levels(api))["one"] is BudgetLevel.NONE


async def test_no_project_sets_a_budget(api, tmp_path):
    configure(tmp_path, PRICES + 'budget = "$2"\n')
    project = tmp_path / "project"
    project.mkdir()
    one = await api.new("one", directory=project)
    (project / ".sm").mkdir(exist_ok=True)
    (project / ".sm/config.toml").write_text('[cost]\nbudget = "$1000"\nprices = ["claude-x 0 0"]\n')
    await record_context(api, one, "c1", replies(1, 2))
    assert (await levels(api))["one"] is BudgetLevel.PAUSED


async def test_a_pause_outlives_the_server(tmp_path):
    configure(tmp_path, PRICES + 'budget = "$2"\n')
    async with house(tmp_path) as api:
        one = await api.new("one")
        await record_context(api, one, "c1", replies(1, 2))
        assert (await levels(api))["one"] is BudgetLevel.PAUSED
    async with house(tmp_path) as api:
        assert api.engine.sessions.actors[one].session.budget.paused
        events = await api.engine.ports.store.events_of(one, 1_000)
        await levels(api)
        again = await api.engine.ports.store.events_of(one, 1_000)
        count = [sum("BudgetRead" in json.dumps(found, default=str) for found in each) for each in (events, again)]
        assert count == [1, 1]
