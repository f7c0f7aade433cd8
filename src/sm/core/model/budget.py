"""What a session, and it with all its children, may use, as the user has set it; and what is known of that."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sm.core.model.cost import Spending

NEAR = 0.8
"""The part of a budget from which on its user is warned."""
HELD_REASON = "waits because a budget is used"
"""Why a rotation does not begin."""


@dataclass(frozen=True, slots=True)
class Budget:
    """US dollars, or tokens."""

    amount: float
    in_usd: bool

    def share(self, spent: Spending) -> BudgetShare:
        used = spent.usd if self.in_usd else float(spent.tokens.total)
        words = f"${used:,.2f} of ${self.amount:,.2f}" if self.in_usd else f"{used:,.0f} of {self.amount:,.0f} tokens"
        return BudgetShare(used / self.amount, words, spent.unpriced if self.in_usd else ())


@dataclass(frozen=True, slots=True)
class Budgets:
    """The `cost.*` of the configuration that concern budgets; None for none."""

    session: Budget | None = None
    tree: Budget | None = None


@dataclass(frozen=True, slots=True)
class BudgetShare:
    """How much of a budget is used; of what has no price nothing counts."""

    used: float
    """1 is all of it."""
    words: str
    unpriced: tuple[str, ...] = ()
    """Models whose price is unknown."""


class BudgetLevel(StrEnum):
    NONE = "none"
    UNKNOWN = "unknown"
    """A part of it has no price, so it cannot be followed."""
    WARNED = "warned"
    PAUSED = "paused"


@dataclass(frozen=True, slots=True)
class BudgetUse:
    """What a session has used of its budgets, and what the user has said to that."""

    level: BudgetLevel = BudgetLevel.NONE
    words: str = ""
    own: float = 0.0
    """The share of its own budget, as it was last reported."""
    tree: float = 0.0
    """That of the session with all its children, or of the tree that it belongs to."""
    own_granted: float = 0.0
    """The share that was used when the user let it continue: it may use as much again."""
    tree_granted: float = 0.0

    @property
    def paused(self) -> bool:
        return self.level is BudgetLevel.PAUSED
