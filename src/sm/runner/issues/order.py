"""In which order chosen issues are worked, in which waves, and which are left out for which reason.

Priority first, but nothing before what it waits for: an issue is as urgent as the most urgent one that waits for it.
Among equals the lower number is first. A wave holds what waits only for waves before it.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from sm.runner.issues.filters import IssueFilter, children, chosen_issues
from sm.runner.issues.issue import Issue, IssueList, IssueStatus, IssueType, canonical

Edges = Mapping[str, frozenset[str]]
"""By id, the ids that it waits for."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    id: str
    reason: str


@dataclass(frozen=True, slots=True)
class WorkPlan:
    order: tuple[Issue, ...]
    waves: tuple[tuple[Issue, ...], ...]
    left_out: tuple[LeftOut, ...] = ()
    """Chosen, not over, and not workable now."""
    cycles: tuple[tuple[str, ...], ...] = ()
    """Issues that wait for each other: each for the next one, the last for the first."""
    needs: Edges = field(default_factory=dict)
    """Of each issue of the order."""


def planned(found: IssueList, chosen: IssueFilter) -> WorkPlan:
    """Return what is to be worked of the chosen issues; SmError where the choice names an unknown one."""
    wanted = [issue for issue in chosen_issues(found, chosen) if not children(found, issue)]
    workable = {issue.id: issue for issue in wanted if issue.status.is_workable and issue.type is not IssueType.EPIC}
    reasons = {issue.id: _not_workable(issue) for issue in wanted if issue.id not in workable}
    edges: dict[str, frozenset[str]] = {}
    backwards = _backwards(found)
    for issue in workable.values():
        needs, missing = _needs(found, issue, backwards.get(canonical(issue.id), ()))
        outside = next((need for need in needs if need.id not in workable), None)
        edges[issue.id] = frozenset(need.id for need in needs)
        if missing:
            reasons[issue.id] = missing
        elif outside is not None:
            reasons[issue.id] = f"waits for {outside.id}, which {_state(outside)}"
    cycles = _cycles({known: needs & workable.keys() for known, needs in edges.items()})
    for cycle in cycles:
        reasons |= dict.fromkeys(cycle, f"is in a cycle: {' → '.join((*cycle, cycle[0]))}")
    _pass_on(edges, reasons)
    ready = {known: issue for known, issue in workable.items() if known not in reasons}
    order = _ordered(ready, {known: edges[known] for known in ready})[: chosen.max_issues]
    left_out = tuple(LeftOut(issue.id, reasons[issue.id]) for issue in wanted if reasons.get(issue.id))
    return WorkPlan(order, _waves(order, edges), left_out, cycles, {issue.id: edges[issue.id] for issue in order})


def _state(issue: Issue) -> str:
    if issue.status.is_workable:
        return "is an epic without issues" if issue.type is IssueType.EPIC else "is not chosen"
    return "needs you" if issue.status is IssueStatus.NEEDS_YOU else f"is {issue.status}"


def _not_workable(issue: Issue) -> str:
    """Return why; empty for one that is over, which needs no reason."""
    if issue.status is IssueStatus.NEEDS_YOU:
        return f"needs you: sm issues answer {issue.id} TEXT"
    return "" if issue.status.is_over else _state(issue)


def _backwards(found: IssueList) -> dict[str, list[str]]:
    """Return by the id that an issue blocks who blocks it."""
    blocked: dict[str, list[str]] = {}
    for issue in found.issues:
        for name in issue.blocks:
            known = found.known(name)
            blocked.setdefault(canonical(known.id if known else name), []).append(issue.id)
    return blocked


def _needs(found: IssueList, issue: Issue, blockers: Iterable[str]) -> tuple[list[Issue], str]:
    """Return the open issues that one waits for, and which name of its is of no issue that can be used."""
    needs: dict[str, Issue] = {}
    above = _ancestors(found, issue)
    for name in (*issue.waits_for, *blockers):
        known = found.known(name)
        if known is None:
            problem = found.problem(name)
            return [], f"waits for {name}: {problem}" if problem else f"waits for {name}, which does not exist"
        if known.id in above or known.status.is_over:
            continue
        inner = children(found, known) if known.type is IssueType.EPIC else ()
        open_ones = [child for child in inner if not child.status.is_over and child.id != issue.id]
        needs |= {need.id: need for need in (open_ones if inner else [known])}
    return list(needs.values()), ""


def _ancestors(found: IssueList, issue: Issue) -> set[str]:
    above: set[str] = set()
    while issue.parent and (parent := found.known(issue.parent)) and parent.id not in above:
        above.add(parent.id)
        issue = parent
    return above


def _pass_on(edges: Edges, reasons: dict[str, str]) -> None:
    """Give whoever waits for an issue that is left out that as its reason."""
    changed = True
    while changed:
        changed = False
        for known, needs in edges.items():
            out = next((need for need in sorted(needs) if reasons.get(need)), None)
            if out is not None and known not in reasons:
                reasons[known] = f"waits for {out}"
                changed = True


def _cycles(edges: Edges) -> tuple[tuple[str, ...], ...]:
    """Return cycles that have no issue in common, until none is left."""
    left = dict(edges)
    found: list[tuple[str, ...]] = []
    while left := _only_in_cycles(left):
        cycle = _cycle_from(min(left), left)
        found.append(cycle)
        left = {known: needs for known, needs in left.items() if known not in cycle}
    return tuple(found)


def _only_in_cycles(edges: Edges) -> dict[str, frozenset[str]]:
    """Return what is left without issues that wait for none, or that none waits for."""
    left = {known: needs & edges.keys() for known, needs in edges.items()}
    while True:
        waited_for = frozenset().union(*left.values()) if left else frozenset()
        inner = {known: needs for known, needs in left.items() if needs and known in waited_for}
        if len(inner) == len(left):
            return inner
        left = {known: needs & inner.keys() for known, needs in inner.items()}


def _cycle_from(start: str, edges: Edges) -> tuple[str, ...]:
    path = [start]
    while (following := min(edges[path[-1]])) not in path:
        path.append(following)
    return tuple(path[path.index(following) :])


def _ordered(issues: Mapping[str, Issue], edges: Edges) -> tuple[Issue, ...]:
    waiting: dict[str, list[str]] = {known: [] for known in issues}
    for known, needs in edges.items():
        for need in needs:
            waiting[need].append(known)
    urgency = _urgency(issues, waiting)
    left = {known: len(needs) for known, needs in edges.items()}
    heap = [(urgency[known], issues[known].number, known) for known, count in left.items() if not count]
    heapq.heapify(heap)
    order: list[Issue] = []
    while heap:
        known = heapq.heappop(heap)[2]
        order.append(issues[known])
        for later in waiting[known]:
            left[later] -= 1
            if not left[later]:
                heapq.heappush(heap, (urgency[later], issues[later].number, later))
    return tuple(order)


def _urgency(issues: Mapping[str, Issue], waiting: Mapping[str, Collection[str]]) -> dict[str, int]:
    """Return for each issue its priority, or the more urgent one of what waits for it."""
    urgency = {known: issue.priority for known, issue in issues.items()}
    changed = True
    while changed:
        changed = False
        for known, later in waiting.items():
            most = min((urgency[other] for other in later), default=urgency[known])
            if most < urgency[known]:
                urgency[known] = most
                changed = True
    return urgency


def _waves(order: Iterable[Issue], edges: Edges) -> tuple[tuple[Issue, ...], ...]:
    level: dict[str, int] = {}
    waves: list[list[Issue]] = []
    for issue in order:
        level[issue.id] = max((level[need] + 1 for need in edges[issue.id]), default=0)
        if level[issue.id] == len(waves):
            waves.append([])
        waves[level[issue.id]].append(issue)
    return tuple(map(tuple, waves))
