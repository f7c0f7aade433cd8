"""What a run and each of its issues may use: tokens or dollars as the server counts them, and time by the clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import reduce
from typing import Any

from sm.core.model.budget import Budget
from sm.core.model.cost import Spending, TokenCount
from sm.runner.outcome import Spent
from sm.runner.run_id import begun_at

Costs = Sequence[Mapping[str, Any]]
"""The sessions of a run as the server answers for them: each attempt with all its children is a `tree`."""
UNPRICED = "its budget leaves out what has no price: {} (cost.prices)"


@dataclass(frozen=True, slots=True)
class RunBudgets:
    issue: Budget | None = None
    run: Budget | None = None
    run_time: float | None = None
    """Seconds from the begin of a run, whatever it does in them."""

    @property
    def counted(self) -> bool:
        """Whether anything of the server's count is compared."""
        return self.issue is not None or self.run is not None

    def used_up(self, costs: Costs, mark: str, now: float) -> str:
        """Return which budget is used, of the run or of the issue with that mark; empty while none is."""
        run = mark.partition("/")[0]
        begun = begun_at(run)
        if self.run_time is not None and begun is not None and now - begun >= self.run_time:
            return f"the run has had its {self.run_time:.0f} s"
        for name, budget, owner in (("the run's budget", self.run, run), ("its budget", self.issue, mark)):
            share = None if budget is None else budget.share(spending_of(costs, owner))
            if share is not None and share.used >= 1:
                return f"{name} is used: {share.words}"
        return ""

    def remarks(self, spent: Spent) -> tuple[str, ...]:
        """Return what no budget has counted."""
        in_usd = any(budget is not None and budget.in_usd for budget in (self.issue, self.run))
        return (UNPRICED.format(", ".join(spent.unpriced)),) if in_usd and spent.unpriced else ()


NO_BUDGETS = RunBudgets()


def spending_of(costs: Costs, owner: str) -> Spending:
    """Return what the sessions of a run, or of one issue in it, have used; `owner` is RUN or RUN/ISSUE."""
    trees = (cost["tree"] for cost in costs if (cost["attempt"] or "").startswith(f"{owner}/"))
    return _together(_spending(tree) for tree in trees)


def spent_by(costs: Costs, owner: str) -> Spent:
    found = spending_of(costs, owner)
    return Spent(found.tokens.total, found.usd, found.unpriced)


def _spending(view: Mapping[str, Any]) -> Spending:
    counts = {field.name: view[field.name] for field in fields(TokenCount)}
    return Spending(TokenCount(**counts), view["usd"] or 0.0, tuple(view["unpriced"]))


def _together(every: Iterable[Spending]) -> Spending:
    return reduce(_added, every, Spending())


def _added(one: Spending, other: Spending) -> Spending:
    unpriced = tuple(sorted({*one.unpriced, *other.unpriced}))
    return Spending(one.tokens.plus(other.tokens), one.usd + other.usd, unpriced)
