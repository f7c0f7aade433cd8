"""What a session has used: each of its contexts, all of them, and all of it with its children."""

from __future__ import annotations

from dataclasses import dataclass

from sm.core.model.cost import Spending
from sm.core.model.history import Context
from sm.core.model.session import Session


@dataclass(frozen=True, slots=True)
class ContextCost:
    context: Context
    spent: Spending


@dataclass(frozen=True, slots=True)
class SessionCost:
    session: Session
    spent: Spending
    contexts: tuple[ContextCost, ...]
    tree: Spending
    """With all its children and theirs."""
