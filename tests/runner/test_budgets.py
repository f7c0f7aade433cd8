"""What a run and an issue may use: compared with what the server counts, while the agent works."""

import dataclasses

import pytest

from sm.core.model.budget import Budget
from sm.runner.budgets import RunBudgets, spent_by
from sm.runner.outcome import Result, Spent
from sm.runner.run_id import begun_at, new_run_id
from sm.runner.tools import RunRules
from sm.runner.workflow import IssueWork
from tests.runner.conftest import NOW, used
from tests.runner.test_workflow import ISSUE, RUN, KeptSteps, KilledError, only_talks, worked

MARK = f"{RUN}/{ISSUE}"
TOKENS, DOLLARS = Budget(10_000, in_usd=False), Budget(5, in_usd=True)
WORKING = {"status": "working", "at_rest": False}


def test_an_issue_has_used_what_all_of_its_sessions_have_with_their_children():
    costs = [used(f"{MARK}/1", 10, 1.0), used(f"{MARK}/2", 5, 0.5, ["x"]), used(f"{MARK}3/1", 9), used(None, 9)]
    assert spent_by(costs, MARK) == Spent(15, 1.5, ("x",))
    assert spent_by(costs, RUN).tokens == 24


@pytest.mark.parametrize(
    ("budgets", "words"),
    [
        (RunBudgets(issue=TOKENS), "its budget is used: 10,000 of 10,000 tokens"),
        (RunBudgets(issue=DOLLARS), "its budget is used: $5.00 of $5.00"),
        (RunBudgets(run=Budget(12_000, in_usd=False)), "the run's budget is used: 12,000 of 12,000 tokens"),
        (RunBudgets(issue=Budget(12_000, in_usd=False)), ""),
        (RunBudgets(), ""),
    ],
)
def test_a_budget_that_is_used_is_named_with_how_much(budgets, words):
    assert budgets.used_up([used(f"{MARK}/1", 10_000, 5.0), used(f"{RUN}/BUG-1/1", 2_000)], MARK, NOW) == words


def test_the_time_of_a_run_is_counted_from_its_id():
    run = new_run_id(NOW, "ab12")
    assert begun_at(run) == NOW
    budgets = RunBudgets(run_time=60.0)
    assert budgets.used_up((), f"{run}/FEAT-012", NOW + 59) == ""
    assert budgets.used_up((), f"{run}/FEAT-012", NOW + 60) == "the run has had its 60 s"
    assert (begun_at("R-1"), begun_at("R-20261399-000000-ab")) == (None, None)


def test_a_budget_that_is_used_ends_the_session_within_its_turn_and_keeps_the_work(repository, tools_of):
    tools = tools_of(only_talks, [WORKING, WORKING, WORKING], budgets=RunBudgets(issue=TOKENS))
    looked = tools.sessions.look

    def look(session):
        tools.sessions.used = [used(f"{MARK}/1", 6_000 * (3 - len(tools.sessions.looks)))]
        return looked(session)

    tools.sessions.look = look
    steps = KeptSteps()
    outcome = worked(tools, steps)
    assert (outcome.result, outcome.reason) == (Result.UNFINISHED, "its budget is used: 12,000 of 10,000 tokens")
    assert steps.names.count("await_outcome") == 3
    assert tools.sessions.ended == [outcome.session]
    assert outcome.spent == Spent(12_000, 0.0)
    assert (repository.root / ".worktrees/FEAT-012").is_dir()


def test_what_is_done_when_its_budget_is_used_is_delivered(tools_of, logs_in):
    def agent(prepared):
        logs_in(prepared)
        tools.sessions.used = [used(f"{MARK}/1", 10_500)]

    tools = tools_of(agent, budgets=RunBudgets(issue=TOKENS))
    outcome = worked(tools)
    assert (outcome.result, outcome.spent) == (Result.DELIVERED, Spent(10_500, 0.0))


def test_once_the_runs_budget_is_used_nothing_more_is_begun(repository, tools_of, logs_in):
    tools = tools_of(logs_in, budgets=RunBudgets(run=TOKENS))
    tools.sessions.used = [used(f"{RUN}/BUG-001/1", 10_000)]
    outcome = worked(tools)
    assert (outcome.result, outcome.reason) == (Result.SKIPPED, "the run's budget is used: 10,000 of 10,000 tokens")
    assert (tools.sessions.sessions, repository.dirty) == ({}, "")


def test_a_run_whose_time_is_over_ends_the_session_that_works(tools_of):
    tools = tools_of(only_talks, [WORKING] * 3, budgets=RunBudgets(run_time=60.0))
    run = new_run_id(NOW - 50, "ab12")
    times = iter([NOW, NOW + 5, NOW + 10])
    object.__setattr__(tools, "now", lambda: next(times))
    outcome = IssueWork(KeptSteps(), tools, run, ISSUE).outcome()
    assert (outcome.result, outcome.reason) == (Result.UNFINISHED, "the run has had its 60 s")


def test_what_has_no_price_is_said_where_dollars_are_counted(tools_of, logs_in):
    tools = tools_of(logs_in, budgets=RunBudgets(issue=DOLLARS))
    tools.sessions.used = [used(f"{MARK}/1", 10, 0.0, ["claude-x"])]
    assert worked(tools).notes == ("its budget leaves out what has no price: claude-x (cost.prices)",)


def test_a_session_that_the_server_leaves_to_its_user_does_not_wait_for_the_end_of_its_time(tools_of):
    steps, held = KeptSteps(), "budget used: 2 of 1 tokens"
    waits = {"status": "idle", "at_rest": False, "held": held}
    outcome = worked(tools_of(only_talks, [waits] * 50), steps)
    assert (outcome.result, outcome.reason, steps.slept) == (Result.UNFINISHED, held, 0.0)


def test_what_is_at_rest_when_its_time_is_over_is_done(tools_of, logs_in):
    assert worked(tools_of(logs_in, [WORKING], time_limit=1.0)).result is Result.DELIVERED


def test_what_works_when_its_time_is_over_is_not(tools_of, logs_in):
    assert worked(tools_of(logs_in, [WORKING] * 2, time_limit=1.0)).result is Result.UNFINISHED


def test_an_issue_is_continued_by_the_rules_that_it_began_with(tools_of, logs_in):
    tools, kept = tools_of(logs_in, [WORKING] * 8), []
    with pytest.raises(KilledError):
        worked(tools, KeptSteps(kept, 9))
    strict = RunRules(time_limit=1.0, max_continuations=0, idle_limit=1.0, budgets=RunBudgets(issue=DOLLARS))
    assert worked(dataclasses.replace(tools, rules=strict), KeptSteps(kept)).result is Result.DELIVERED
