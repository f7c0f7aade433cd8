"""A run: which of its issues are begun while others are worked on, decided by what has ended before alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

import msgspec

from sm.runner.issues.issue import Issue
from sm.runner.issues.named_files import overlapping
from sm.runner.outcome import IssueOutcome, Result


class OpenRun(msgspec.Struct, frozen=True):
    """A run that was begun and has not ended: what the engine keeps of it."""

    run: str
    issues: tuple[str, ...]
    """In the order of work."""
    stops: bool = False
    """Whether it begins none after the first issue that is not delivered."""
    jobs: int = 1
    """Issues that are worked on at the same time."""
    waits: dict[str, tuple[str, ...]] = {}
    """By issue, the ones before it that have to end first."""
    each: int = 0
    """Issues that each of several workers works on at the same time; 0: whoever has the run works on all."""


class IssueWorkflows(Protocol):
    """What the durable engine does for a run."""

    def raised(self) -> Sequence[str]:
        """Return the issues that the user has put before the others by now, the first one first."""

    def begin(self, issue: str) -> None:
        """Have the issue worked on, beside others."""

    def first_ended(self, issues: Sequence[str]) -> IssueOutcome:
        """Wait for one of those that were begun."""


def worked(
    wanted: OpenRun, engine: IssueWorkflows, halts: Callable[[Sequence[IssueOutcome]], str]
) -> tuple[IssueOutcome, ...]:
    """Return how each issue has ended, in the order of work.

    `halts` says why no further one is begun, given those that have ended, in that order; empty to continue.
    """
    outcomes: dict[str, IssueOutcome] = {}
    running: list[str] = []
    while True:
        reason = halts(tuple(outcomes.values()))
        begun = [] if reason else _next(wanted, engine.raised(), running, outcomes)
        for issue in begun:
            engine.begin(issue)
        running += begun
        if not running:
            return tuple(outcomes.get(issue) or _not_begun(issue, reason) for issue in wanted.issues)
        ended = engine.first_ended(running)
        running.remove(ended.issue)
        outcomes[ended.issue] = ended


def _next(
    wanted: OpenRun, raised: Sequence[str], running: Collection[str], outcomes: Mapping[str, IssueOutcome]
) -> list[str]:
    """Return the issues that begin now: what waits for another does so, however far it was raised."""
    order = dict.fromkeys((*(issue for issue in raised if issue in wanted.issues), *wanted.issues))
    left = (issue for issue in order if issue not in outcomes and issue not in running)
    ready = [issue for issue in left if all(other in outcomes for other in wanted.waits.get(issue, ()))]
    return ready[: wanted.jobs - len(running)]


def _not_begun(issue: str, reason: str) -> IssueOutcome:
    return IssueOutcome(issue=issue, title="", result=Result.SKIPPED, reason=reason)


def waits(order: Sequence[Issue], needs: Mapping[str, Collection[str]]) -> dict[str, tuple[str, ...]]:
    """Return by issue the ones before it that it needs, or that name the same files: it does not run beside those."""
    found = {
        issue.id: tuple(other.id for other in order[:place] if other.id in needs[issue.id] or overlapping(issue, other))
        for place, issue in enumerate(order)
    }
    return {issue: others for issue, others in found.items() if others}
