"""When a run ends before its issues do: one failure after the other says that something else is wrong."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sm.runner.outcome import IssueOutcome, Result

FAILED = frozenset({Result.NEEDS_YOU, Result.UNFINISHED})
STOPPED = "the sprint stops at the first issue that is not delivered"
DIGITS = re.compile(r"\d+")


def halted(outcomes: Sequence[IssueOutcome], *, stops: bool, max_failures: int) -> str:
    """Return why no further issue is begun, given those that have ended, in that order; empty to continue.

    With `max_failures` 0 no number of failures ends a run.
    """
    if stops and any(outcome.result is not Result.DELIVERED for outcome in outcomes):
        return STOPPED
    row = _failures_in_a_row(outcomes) if max_failures else []
    if len(row) >= max_failures > 0:
        return f"{len(row)} issues in a row were not delivered (runner.max_failures)"
    if len(row) > 1 and row[-1].result is Result.NEEDS_YOU and _failure(row[-1]) == _failure(row[-2]):
        return f"{row[-2].issue} and {row[-1].issue} failed in the same way: {row[-1].reason}"
    return ""


def _failures_in_a_row(outcomes: Sequence[IssueOutcome]) -> list[IssueOutcome]:
    """Return those at the end; an issue that was not begun is neither a failure nor a success."""
    row: list[IssueOutcome] = []
    for outcome in reversed([outcome for outcome in outcomes if outcome.branch]):
        if outcome.result not in FAILED:
            break
        row.insert(0, outcome)
    return row


def _failure(outcome: IssueOutcome) -> tuple[str, ...]:
    """Return what is the same for the same failure in two issues: their names, and how long it took, are not."""
    output = "" if outcome.checked is None else outcome.checked.output
    return tuple(DIGITS.sub("#", text.replace(outcome.issue, "")) for text in (outcome.reason, output))
