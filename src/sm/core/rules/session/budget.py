"""What a used budget means to a session: it is left alone after its turn, until its user sends it a message.

That message lets it use its budgets once more. A larger budget, or none, continues it too. What has no price pauses
nothing.
"""

from __future__ import annotations

from sm.core import events as ev
from sm.core.effects import Outcome
from sm.core.model.budget import NEAR, BudgetLevel, BudgetShare, BudgetUse
from sm.core.model.client_traits import ClientTraits
from sm.core.model.message import StoredMessage
from sm.core.model.session import Session, changed
from sm.core.values import replace

OWN, TREE = "budget", "budget with its children"
PAUSED = "{} used: {}; nothing is sent to it until you continue it: sm send"
WARNED = "{} nearly used: {}"
UNKNOWN = "{} cannot be followed, and pauses nothing: the price of {} is unknown (cost.prices)"
ORDER = (BudgetLevel.NONE, BudgetLevel.UNKNOWN, BudgetLevel.WARNED, BudgetLevel.PAUSED)


def follow_budget(session: Session, event: ev.Event, _: ClientTraits) -> Outcome:
    match event:
        case ev.BudgetRead():
            return changed(session, budget=_read(session.budget, event)), ()
        case ev.MessageQueued(stored=stored) if session.budget.paused and _is_users(stored):
            use = session.budget
            return replace(session, budget=BudgetUse(own_granted=use.own, tree_granted=use.tree)), ()
    return session, ()


def _is_users(stored: StoredMessage | None) -> bool:
    """Whether it is the user's own: words of `sm` have no frame."""
    return stored is not None and not stored.sender and bool(stored.frame)


def _read(known: BudgetUse, event: ev.BudgetRead) -> BudgetUse:
    tree_granted = max(known.tree_granted, event.tree_granted)
    found = [_judged(TREE, event.tree, tree_granted), _judged(OWN, event.own, known.own_granted)]
    level, words = max(found, key=lambda judged: ORDER.index(judged[0]))
    own, tree = (0.0 if share is None else share.used for share in (event.own, event.tree))
    return BudgetUse(level, words, own, tree, known.own_granted, tree_granted)


def _judged(name: str, share: BudgetShare | None, granted: float) -> tuple[BudgetLevel, str]:
    """Return the level, and why; the part that has a price may alone be too much."""
    if share is None:
        return BudgetLevel.NONE, ""
    used = share.used - granted
    if used >= 1:
        return BudgetLevel.PAUSED, PAUSED.format(name, share.words)
    if used >= NEAR:
        return BudgetLevel.WARNED, WARNED.format(name, share.words)
    if share.unpriced:
        return BudgetLevel.UNKNOWN, UNKNOWN.format(name, ", ".join(share.unpriced))
    return BudgetLevel.NONE, ""
