"""Which issues are chosen: by type, priority and label, or by name. All that is given has to fit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sm.runner.issues.issue import Issue, IssueList, IssueType


@dataclass(frozen=True, slots=True)
class IssueFilter:
    """Empty: every issue. Of several types, priorities or labels one is enough."""

    types: tuple[IssueType, ...] = ()
    priorities: tuple[int, ...] = ()
    labels: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    """Names of issues; an epic means the issues in it."""
    skip: tuple[str, ...] = ()
    max_issues: int | None = None

    def fits(self, issue: Issue) -> bool:
        """Whether type, priority and labels do."""
        labels = {label.casefold() for label in issue.labels}
        return (
            (not self.types or issue.type in self.types)
            and (not self.priorities or issue.priority in self.priorities)
            and (not self.labels or not labels.isdisjoint(label.casefold() for label in self.labels))
        )


def chosen_issues(found: IssueList, chosen: IssueFilter) -> tuple[Issue, ...]:
    """Return the chosen ones in the list's order; SmError that names every unknown one of `only` and `skip`."""
    unknown = [name for name in (*chosen.only, *chosen.skip) if not (found.known(name) or found.problem(name))]
    if unknown:
        raise found.unknown(unknown)
    only = _with_children(found, [found.find(name) for name in chosen.only])
    skip = _with_children(found, [issue for name in chosen.skip if (issue := found.known(name))])
    return tuple(
        issue
        for issue in found.issues
        if (not chosen.only or issue.id in only) and issue.id not in skip and chosen.fits(issue)
    )


def _with_children(found: IssueList, issues: Iterable[Issue]) -> set[str]:
    return {known.id for issue in issues for known in (issue, *children(found, issue))}


def children(found: IssueList, issue: Issue) -> tuple[Issue, ...]:
    """Return the issues in an epic, and those in epics in it; none for another issue."""
    inside = {issue.id}
    grown = issue.type is IssueType.EPIC
    while grown:
        below = {
            other.id
            for other in found.issues
            if other.parent and other.id not in inside and (parent := found.known(other.parent)) and parent.id in inside
        }
        inside |= below
        grown = bool(below)
    return tuple(
        other for other in found.issues if other.id in inside - {issue.id} and other.type is not IssueType.EPIC
    )
