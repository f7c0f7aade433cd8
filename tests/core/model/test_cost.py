"""What requests have used, and what it costs where the price is known."""

from dataclasses import replace

import pytest

from sm.core.model.cost import Price, Spending, TokenCount, price_of, spending, together
from sm.core.model.history import Context
from sm.core.model.session_cost import family, of_run, session_costs
from tests.core.playbook import idle_session

SONNET = Price(3.0, 15.0, 3.75, 6.0, 0.3)
OPUS = Price(15.0, 75.0, 18.75, 30.0, 1.5)
PRICES = {"claude-opus": OPUS, "claude-sonnet-4": SONNET, "claude-opus-9": SONNET}
MILLIONS = TokenCount(1_000_000, 1_000_000, 1_000_000, 1_000_000, 1_000_000, 7)


def test_each_kind_of_token_has_its_own_price():
    assert SONNET.of(MILLIONS) == pytest.approx(3 + 3.75 + 6 + 0.3 + 15)
    assert MILLIONS.total == 5_000_000


def test_counts_are_added_and_taken_away():
    assert MILLIONS.plus(MILLIONS).plus(MILLIONS, -1) == MILLIONS


@pytest.mark.parametrize(
    ("model", "price"),
    [("claude-opus-4-20250514", OPUS), ("claude-opus-9-1", SONNET), ("claude-haiku", None), ("", None)],
)
def test_the_longest_beginning_of_a_models_name_has_its_price(model, price):
    assert price_of(model, PRICES) == price


def test_a_model_without_a_price_is_named_and_the_rest_is_a_lower_bound():
    found = spending({"claude-sonnet-4-5": MILLIONS, "other": TokenCount(output=5, requests=1)}, PRICES)
    assert (found.usd, found.unpriced) == (pytest.approx(28.05), ("other",))
    assert (found.tokens.output, found.tokens.requests) == (1_000_005, 8)
    assert spending({}, PRICES) == Spending()


def test_several_are_added_by_model():
    one = TokenCount(input=1, requests=1)
    assert together([{"a": one}, {"a": one, "b": one}]) == {"a": TokenCount(input=2, requests=2), "b": one}


def member(name, parent=None):
    return replace(idle_session(), id=name, parent=parent)


def test_a_session_has_the_sum_of_its_contexts_and_its_tree_that_of_its_children():
    one = {"claude-sonnet-4": TokenCount(output=1_000_000, requests=1)}
    sessions = [member("boss"), member("kid", "boss"), member("other")]
    used = {
        "boss": [(Context(1, "c1", "/t1", 1.0, 0), one), (Context(2, "c2", None, 2.0, 0), {})],
        "kid": [(Context(1, "c3", "/t3", 3.0, 0), one)],
        "other": [],
    }
    boss, kid, other = session_costs(sessions, used, PRICES)
    assert (boss.spent.usd, boss.tree.usd, boss.tree.tokens.requests) == (15.0, 30.0, 2)
    assert [found.spent.usd for found in boss.contexts] == [15.0, 0.0]
    assert (kid.spent, kid.tree) == (boss.spent, boss.spent)
    assert (other.spent, other.contexts) == (Spending(), ())


def test_a_family_that_bites_its_tail_is_finite():
    assert family("a", [member("a", "b"), member("b", "a"), member("c")]) == ["a", "b"]


def test_a_run_has_the_sessions_of_its_attempts_with_their_children_and_no_other():
    def session(known, **values):
        return replace(idle_session(), id=known, **values)

    ours = [session("a", attempt="R-1/FEAT-1/1"), session("b", parent="a"), session("c", parent="b")]
    others = [session("d", attempt="R-12/FEAT-1/1"), session("e", parent="d"), session("f")]
    assert of_run("R-1", [*others, *ours]) == ours
