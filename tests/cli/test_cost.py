"""`sm cost`: tokens and dollars, unknown where no price is set."""

import pytest

from sm.cli.cost import dollars
from tests.engine.test_costs import record_context
from tests.providers.test_claude_usage import line


@pytest.fixture
async def spent(desk):
    boss = await desk.api.new("boss")
    kid = await desk.api.new("kid", parent=boss)
    await desk.api.new("idle")
    await record_context(desk.api, boss, "b1", line(1, output_tokens=1_000_000) + line(2, cache_read_input_tokens=5))
    await record_context(desk.api, kid, "k1", line(3, model="claude-small", output_tokens=100_000))
    return boss


async def test_it_shows_what_was_used_and_which_model_has_no_price(desk, spent):
    (desk.root / "config.toml").write_text('[cost]\nprices = ["claude-x 3 15"]\n')
    ran = await desk.run("cost")
    lines = [row.split() for row in ran.out.splitlines()]
    assert lines == [
        ["NAME", "REQUESTS", "TOKENS", "CACHED", "OUTPUT", "COST", "TREE"],
        ["boss", "2", "1.00M", "5", "1.00M", "$15.00", "over", "$15.00"],
        ["kid", "1", "100k", "0", "100k", "unknown", "unknown"],
    ]
    assert ran.err.startswith("no price is set for claude-small: cost.prices in config.toml")


async def test_it_shows_one_session_with_its_contexts(desk, spent):
    ran = await desk.run("cost", "boss", "--contexts")
    assert [row.split()[0] for row in ran.out.splitlines()] == ["NAME", "boss", "context", "context"]
    [found] = (await desk.run("cost", spent[:5], "--json")).data
    assert found["tree"]["requests"] == 3


async def test_nothing_used_is_said(desk, spent):
    ran = await desk.run("cost", "--since", "1m")
    assert (ran.code, ran.out, ran.err) == (0, "", "no tokens were used in that time\n")


async def test_a_mistyped_name_is_answered_with_the_one_that_was_meant(desk, spent):
    assert "boss" in (await desk.run("cost", "bos")).err


@pytest.mark.parametrize(("arguments", "code"), [(("nobody",), 1), (("--since", "soon"), 2)])
async def test_a_session_or_time_that_is_none_is_refused(desk, arguments, code):
    assert (await desk.run("cost", *arguments)).code == code


@pytest.mark.parametrize(
    ("usd", "unpriced", "words"),
    [(None, ["m"], "unknown"), (0.0, [], "$0.00"), (1234.5, [], "$1,234.50"), (1.25, ["m"], "over $1.25")],
)
def test_dollars_say_what_is_known(usd, unpriced, words):
    assert dollars({"usd": usd, "unpriced": unpriced}) == words
