"""What the page says of runs: what is kept of each, joined with the sessions that work for it now.

A run that only its sessions tell of, as one in a shared PostgreSQL, is shown with these alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sm.fleet import Row
from sm.runner.known_runs import RUN_NAME, KnownIssue, KnownRun
from sm.runner.run_id import begun_at

MARKS = {
    "works": ("●", "working"),
    "waits": ("◌", "starting"),
    "interrupted": ("!", "blocked"),
    "failed": ("✗", "crashed"),
    "ended": ("·", "exited"),
    "delivered": ("✓", "done"),
    "needs_you": ("?", "waiting"),
    "unfinished": ("…", "silent"),
    "skipped": ("·", "exited"),
    "left_out": ("·", "exited"),
}
"""By state: its shape, and the state of a session whose colour it has."""
UNKNOWN = ("~", "unknown")
OPEN = frozenset({"works", "waits"})


class InState:
    """What is drawn by its state."""

    __slots__ = ()
    state: str

    @property
    def mark(self) -> str:
        return MARKS.get(self.state, UNKNOWN)[0]

    @property
    def kind(self) -> str:
        return MARKS.get(self.state, UNKNOWN)[1]


@dataclass(frozen=True, slots=True)
class IssueView(InState):
    issue: str
    state: str
    title: str
    step: str
    session: str
    """The one that works on it, or has worked on it last; a link where it is known."""
    row: Row | None
    attempts: int
    spent: str
    reason: str
    hint: str


@dataclass(frozen=True, slots=True)
class RunView(InState):
    name: str
    project: str
    state: str
    begun: float | None
    issues: tuple[IssueView, ...]
    spent: str

    @property
    def counts(self) -> str:
        """Return `2 delivered · 1 needs you`."""
        states = [issue.state for issue in self.issues]
        return " · ".join(f"{states.count(state)} {words(state)}" for state in dict.fromkeys(states))

    @property
    def working(self) -> tuple[IssueView, ...]:
        return tuple(issue for issue in self.issues if issue.state == "works")

    @property
    def key(self) -> tuple[Any, ...]:
        """Return what of it is news: not that time passes."""
        return self.state, self.spent, tuple(_issue_key(issue) for issue in self.issues)


def words(state: str) -> str:
    return state.replace("_", " ")


def _issue_key(issue: IssueView) -> tuple[Any, ...]:
    row = issue.row and (issue.row.name, issue.row.state)
    return issue.issue, issue.state, issue.title, issue.step, row, issue.attempts, issue.spent, issue.reason


def run_views(known: Iterable[KnownRun], rows: Sequence[Row]) -> list[RunView]:
    """Return the runs, those first that only sessions tell of."""
    attempts: dict[str, list[Row]] = {}
    for row in rows:
        mark, _, number = (row.attempt or "").rpartition("/")
        if number and RUN_NAME.fullmatch(mark.partition("/")[0]):
            attempts.setdefault(mark, []).append(row)
    kept = {run.run: run for run in known if RUN_NAME.fullmatch(run.run)}
    others = dict.fromkeys(mark.partition("/")[0] for mark in attempts if mark.partition("/")[0] not in kept)
    by_id = {row.id: row for row in rows}
    return [*(_of_sessions(run, attempts) for run in others), *(_view(run, attempts, by_id) for run in kept.values())]


def _of_sessions(name: str, attempts: dict[str, list[Row]]) -> RunView:
    issues = tuple(
        _issue(
            KnownIssue(issue, mark, "works" if any(not row.ended for row in found) else "ended"),
            found,
            {row.id: row for row in found},
        )
        for mark, found in attempts.items()
        for run, _, issue in (mark.partition("/"),)
        if run == name
    )
    state = "works" if any(issue.state == "works" for issue in issues) else "ended"
    return RunView(name, "", state, begun_at(name), issues, "")


def _view(known: KnownRun, attempts: dict[str, list[Row]], by_id: dict[str, Row]) -> RunView:
    issues = tuple(_issue(issue, attempts.get(issue.mark, []), by_id) for issue in known.issues)
    return RunView(known.run, known.project, known.state, known.begun, issues, known.spent)


def _issue(known: KnownIssue, own: Sequence[Row], by_id: dict[str, Row]) -> IssueView:
    newest = max(own, key=_number, default=None)
    named = newest.id if newest else known.session
    usd = sum(row.usd or 0.0 for row in own)
    return IssueView(
        issue=known.issue,
        state=known.state,
        title=known.title,
        step=words(known.step),
        session=named,
        row=by_id.get(named),
        attempts=known.attempts or (_number(newest) if newest else 0),
        spent=known.spent or (f"${usd:,.2f}" if usd else ""),
        reason=known.reason,
        hint=known.hint,
    )


def _number(row: Row) -> int:
    number = (row.attempt or "").rpartition("/")[2]
    return int(number) if number.isascii() and number.isdecimal() and len(number) < 9 else 0  # noqa: PLR2004  # a count
