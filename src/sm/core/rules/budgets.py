"""What each session has used of its budgets. A tree is counted at its top: it is warned there, and paused whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sm.core import events as ev
from sm.core.model.budget import Budgets
from sm.core.model.session import Session
from sm.core.model.session_cost import SessionCost


def readings(costs: Sequence[SessionCost], budgets: Budgets, at: float) -> Iterator[tuple[Session, ev.BudgetRead]]:
    """Return what concerns each session that has not ended."""
    known = {cost.session.id: cost for cost in costs}
    for cost in costs:
        if not cost.session.ended:
            yield cost.session, _reading(cost, _top(cost, known), budgets, at)


def _top(cost: SessionCost, known: Mapping[str, SessionCost]) -> SessionCost:
    while cost.session.parent is not None and cost.session.parent in known:
        cost = known[cost.session.parent]
    return cost


def _reading(cost: SessionCost, top: SessionCost, budgets: Budgets, at: float) -> ev.BudgetRead:
    own = None if budgets.session is None else budgets.session.share(cost.spent)
    tree = None if budgets.tree is None else budgets.tree.share(top.tree)
    granted = top.session.budget.tree_granted
    if tree is not None and top is not cost and tree.used - granted < 1:
        tree = None
    return ev.BudgetRead(at=at, own=own, tree=tree, tree_granted=granted)


def is_news(session: Session, event: ev.BudgetRead) -> bool:
    """Whether it is worth an event: nothing is, for a session that has used nothing of any budget."""
    use = session.budget
    shares = tuple(0.0 if share is None else share.used for share in (event.own, event.tree))
    unpriced = any(share.unpriced for share in (event.own, event.tree) if share is not None)
    return shares != (use.own, use.tree) or event.tree_granted > use.tree_granted or (unpriced and not use.words)
