"""What sessions have used, over their contexts and with their children; who may see it."""

import pytest

from sm.core import events as ev
from tests.api.rig import house
from tests.providers.test_claude_usage import NOW, line


@pytest.fixture
async def api(tmp_path):
    async with house(tmp_path) as found:
        yield found


async def costs(api, token=None, query=""):
    status, found = await api.call("GET", f"/cost{query}", *([token] if token else []))
    assert status == 200, found
    return {cost["name"]: cost for cost in found}


async def record_context(api, session, conversation, text):
    path = api.home.root / f"{conversation}.jsonl"
    path.write_text(text)
    started = ev.ConversationStarted(
        at=api.clock.now(), conversation=conversation, transcript=str(path), origin=ev.Origin.CLEAR
    )
    await api.engine.sessions.actors[session].ask(started)
    return path


@pytest.fixture
async def family_of_three(api):
    boss = await api.new("boss")
    kid = await api.new("kid", parent=boss)
    grandkid = await api.new("grandkid", parent=kid)
    await record_context(api, boss, "b1", line(1, NOW) + line(2, NOW))
    await record_context(api, boss, "b2", line(3, NOW + 3_600))
    await record_context(api, kid, "k1", line(4, NOW, model="claude-small"))
    await record_context(api, grandkid, "g1", line(5, NOW))
    return boss, kid, grandkid


async def test_each_context_each_session_and_each_tree_has_its_sum(api, family_of_three):
    found = await costs(api)
    assert {name: cost["spent"]["requests"] for name, cost in found.items()} == {"boss": 3, "kid": 1, "grandkid": 1}
    assert {name: cost["tree"]["requests"] for name, cost in found.items()} == {"boss": 5, "kid": 2, "grandkid": 1}
    contexts = {context["conversation"]: context["spent"]["requests"] for context in found["boss"]["contexts"]}
    assert (contexts["b1"], contexts["b2"]) == (2, 1)
    assert found["boss"]["tree"]["unpriced"] == ["claude-small", "claude-x"]
    assert found["boss"]["tree"]["usd"] is None


async def test_prices_are_those_of_the_configuration_now(api, family_of_three, tmp_path):
    (tmp_path / "config.toml").write_text('[cost]\nprices = ["claude-x 900000 0"]\n')
    found = await costs(api)
    assert (found["boss"]["spent"]["usd"], found["boss"]["spent"]["unpriced"]) == (2.7, [])
    assert (found["boss"]["tree"]["usd"], found["boss"]["tree"]["unpriced"]) == (3.6, ["claude-small"])
    assert found["kid"]["spent"]["usd"] is None


async def test_only_what_was_used_since_then(api, family_of_three):
    found = await costs(api, query=f"?since={NOW + 1_800}")
    assert {name: cost["spent"]["requests"] for name, cost in found.items()} == {"boss": 1, "kid": 0, "grandkid": 0}
    assert found["kid"]["spent"]["usd"] == 0


async def test_a_report_goes_on_where_the_last_one_ended(api, family_of_three):
    boss = family_of_three[0]
    path = await record_context(api, boss, "b3", line(6))
    assert (await costs(api))["boss"]["spent"]["requests"] == 4
    with path.open("a") as file:
        file.write(line(7))
    assert (await costs(api))["boss"]["spent"]["requests"] == 5


async def test_a_session_sees_itself_and_its_children_only(api, family_of_three):
    assert list(await costs(api, api.tokens[family_of_three[1]])) == ["kid", "grandkid"]


@pytest.mark.parametrize("since", ["yesterday", "-1", "nan", "1e400"])
async def test_a_time_that_is_none_is_refused(api, since):
    status, found = await api.call("GET", f"/cost?since={since}")
    assert (status, found["code"]) == (400, "bad_request")


async def test_a_run_is_asked_for_its_own_attempts_with_their_children(api, family_of_three):
    boss = family_of_three[0]
    await api.alter(boss, attempt="R-1/FEAT-012/1")
    await record_context(api, await api.new("other"), "o1", line(6))
    found = await costs(api, query="?run=R-1")
    assert {name: cost["attempt"] for name, cost in found.items()} == {
        "boss": "R-1/FEAT-012/1",
        "kid": None,
        "grandkid": None,
    }
    assert found["boss"]["tree"]["requests"] == 5
    assert await costs(api, query="?run=R") == {}


async def test_each_context_is_read_as_the_client_wrote_it_in_which_it_was(api):
    session = await api.new("boss")
    await record_context(api, session, "b1", line(1, NOW) + line(2, NOW))
    await api.alter(session, provider="codex")
    await record_context(api, session, "b2", line(3, NOW))
    contexts = {
        context["conversation"]: context["spent"]["requests"] for context in (await costs(api))["boss"]["contexts"]
    }
    assert (contexts["b1"], contexts["b2"]) == (2, 0)
