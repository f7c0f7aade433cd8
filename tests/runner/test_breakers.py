"""When one failure after the other ends a run."""

from sm.runner.breakers import STOPPED, halted
from sm.runner.outcome import Checked, IssueOutcome, Result


def ended(number, result=Result.NEEDS_YOU, reason="", output=None, branch="sm/x"):
    checked = None if output is None else Checked("head", 1, 1.0, output)
    issue = f"FEAT-{number}"
    return IssueOutcome(
        issue=issue, title="", result=result, reason=reason or f"reason of {number}…", branch=branch, checked=checked
    )


def reason(*outcomes, stops=False, max_failures=3):
    return halted(list(outcomes), stops=stops, max_failures=max_failures)


ONE, TWO, THREE = (ended(number, reason=text) for number, text in ((1, "a"), (2, "b"), (3, "c")))
WORKED = ended(4, Result.DELIVERED)


def test_three_failures_in_a_row_end_a_run_and_a_delivery_begins_the_count_again():
    assert reason(ONE, TWO, THREE) == "3 issues in a row were not delivered (runner.max_failures)"
    assert reason(ONE, TWO) == ""
    assert reason(ONE, TWO, WORKED, THREE) == ""
    assert reason(ONE, TWO, THREE, max_failures=0) == ""


def test_what_was_never_begun_is_no_failure_and_ends_no_row():
    refused = ended(5, reason="no command says whether it is done", branch="")
    assert reason(refused, refused, refused) == ""
    assert reason(ONE, refused, TWO, ended(6, Result.SKIPPED, branch=""), THREE) != ""


def test_the_same_failure_in_two_issues_ends_a_run():
    first = ended(1, reason="its check failed: make test", output="FEAT-1: 3 failed in 1.23 s")
    second = ended(2, reason="its check failed: make test", output="FEAT-2: 3 failed in 2.01 s")
    assert reason(first, second) == "FEAT-1 and FEAT-2 failed in the same way: its check failed: make test"
    other = ended(2, reason="its check failed: make test", output="FEAT-2: no such file")
    assert reason(first, other) == ""
    assert reason(first, WORKED, second) == ""
    assert reason(first, second, max_failures=0) == ""


def test_issues_that_are_too_large_are_no_failure_of_anything_else():
    large = [ended(number, Result.UNFINISHED, "3 continuations were not enough") for number in (1, 2)]
    assert reason(*large) == ""


def test_a_sprint_may_stop_at_the_first():
    assert reason(ONE, stops=True) == STOPPED
    assert reason(WORKED, stops=True) == ""
