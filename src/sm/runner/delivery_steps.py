"""How what an attempt has left gets into the user's branch, as steps: brought up to date, checked, reviewed, merged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sm.runner.merges import conflict_left
from sm.runner.outcome import Checked, Conflict, Delivered, Prepared, Refusal, Result, Review, Work
from sm.runner.review import ReviewSteps, refusal_of
from sm.runner.steps import EndedError
from sm.runner.tools import Tools

MAX_UPDATES = 5
"""Of a branch whose target moves while it is checked."""


class ConflictError(Exception):
    """Its target has gained what an agent has to bring together with its work."""

    def __init__(self, conflict: Conflict) -> None:
        super().__init__(conflict.target)
        self.conflict = conflict


@dataclass(frozen=True, slots=True)
class DeliverySteps:
    step: Callable[..., Any]
    did: Callable[..., Any]
    """A step whose refusal ends the work on the issue."""
    sleep: Callable[[float], None]
    tools: Tools
    run: str
    known: dict[str, Any]
    """What is known of the outcome so far, by its fields."""
    given_back: bool
    """Whether an agent was asked to resolve a conflict."""
    reviews: bool

    def passed(self, prepared: Prepared, work: Work) -> Work:
        """Return what would be delivered, once it has all of the target and has passed its check and its review."""
        found = self._checked(prepared, work)
        self._review(prepared, found)
        return found

    def merged(self, prepared: Prepared, work: Work) -> Work:
        """Deliver it while no other is; where another was since its check, it is updated and checked again."""
        for _ in range(MAX_UPDATES):
            found: Delivered = self.did("deliver", Delivered | Refusal, self.tools.deliver, self.run, prepared, work)
            if found.merge or found.offered:
                self.known.update(merge=found.merge, offered=found.offered)
                return work
            work = self._checked(prepared, work)
        raise EndedError(Refusal(Result.NEEDS_YOU, f"{prepared.place.target} moves faster than the check", "try again"))

    def _checked(self, prepared: Prepared, work: Work) -> Work:
        found = self._updated(prepared, work)
        checked: Checked = self.step("check", Checked, self.tools.check, prepared)
        self.known.update(commits=found.commits, checked=checked)
        if not checked.passed:
            hint = f"sm restore {self.known['session']} brings its agent back"
            raise EndedError(Refusal(Result.NEEDS_YOU, f"its check {checked.failure}: {prepared.check}", hint))
        if checked.head != found.head:
            reason, hint = "its branch changed while it was checked", f"git log {prepared.place.branch}"
            raise EndedError(Refusal(Result.NEEDS_YOU, reason, hint))
        return found

    def _updated(self, prepared: Prepared, work: Work) -> Work:
        kinds, place = Work | Conflict | Refusal, prepared.place
        found: Work | Conflict = self.did("update", kinds, self.tools.updated, place, work.head)
        if isinstance(found, Work):
            return found
        raise EndedError(conflict_left(place, found)) if self.given_back else ConflictError(found)

    def _review(self, prepared: Prepared, work: Work) -> None:
        """Have a second agent look at what has passed its check."""
        reviewers = self.tools.reviewers
        if reviewers is None or not self.reviews:
            return
        steps = ReviewSteps(self.step, self.sleep, reviewers, self.tools.look)
        found = steps.reviewed(self.run, prepared, work, self.known["attempts"])
        if isinstance(found, Review):
            self.known["review"] = found
        refused = refusal_of(found) if isinstance(found, Review) else found
        if refused is not None:
            raise EndedError(refused)
