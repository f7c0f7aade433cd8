"""The report in the morning: what was delivered on which evidence, and what waits for the user."""

from sm.runner.outcome import Checked, IssueOutcome, Result, RunOutcome, Spent
from sm.runner.report import in_words, report, summary

FAILED = IssueOutcome(
    issue="BUG-001",
    title="Crash \x1b[31m`x`\n# Not a heading",
    result=Result.NEEDS_YOU,
    reason="its check failed with exit code 2: make test",
    hint="sm attach 00000001",
    session="00000001",
    attempts=2,
    continuations=1,
    branch="sm/BUG-001",
    check="make `x`",
    checked=Checked("b" * 40, 2, 1.25, "compiling\n# error\n"),
)
DONE = IssueOutcome(
    issue="FEAT-012",
    title="Log in",
    result=Result.DELIVERED,
    merge="c" * 40,
    commits=2,
    branch="sm/FEAT-012",
    check="make test",
    checked=Checked("a" * 40, 0, 3.0, "ok"),
    session="00000002",
    attempts=1,
    spent=Spent(1_200_000, 5.1, ("claude-x",)),
    notes=("kept it",),
)
LATER = IssueOutcome(
    issue="FEAT-013", title="Log out", result=Result.SKIPPED, reason="waits for BUG-001, which needs you"
)


def test_it_says_what_was_delivered_and_what_waits_with_the_evidence():
    found = RunOutcome("R-1", "/home/dev/pro ject", (FAILED, DONE, LATER))
    assert summary(found) == "run R-1: 1 delivered, 1 needs you, 1 not begun"
    assert in_words(found) == "run R-1: 1 delivered, 1 needs you, 1 not begun; waiting for you: BUG-001"
    text = report(found)
    assert text.index("## Delivered") < text.index("## Needs you") < text.index("## Not begun")
    assert "### BUG-001 Crash ?[31m`x` # Not a heading\n" in text
    assert "- Check: ``make `x```: exit code 2 after 1.2 s at `bbbbbbbbbbbb`\n      compiling\n      # error\n" in text
    assert f"- Merged as `{'c' * 40}`, commits of its own: 2\n" in text
    assert "- Used: 1,200,000 tokens, $5.10 and what has no price\n- Note: kept it" in text
    assert "\n\nUsed by all: 1,200,000 tokens, $5.10 and what has no price\n\n" in text
    assert not found.complete


def test_a_run_is_complete_once_all_of_it_is_delivered():
    assert RunOutcome("R-1", "/p", (DONE,)).complete
    assert not RunOutcome("R-1", "/p", ()).complete
