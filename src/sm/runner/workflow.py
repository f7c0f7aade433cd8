"""One issue from its file to the user's branch, as small steps that may each run again.

Nothing here waits, looks at a clock or calls anything but through a step: what a step has returned is kept by the
engine, and after an interruption the same decisions follow from it. `durable.py` gives the steps of the engine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from sm.core.model.session import Status
from sm.runner.attempt import attempt_name
from sm.runner.delivery_steps import ConflictError, DeliverySteps
from sm.runner.issues.issue import IssueStatus
from sm.runner.outcome import (
    IssueOutcome,
    Prepared,
    Refusal,
    Result,
    SessionLook,
    Spent,
    Work,
    Workplace,
)
from sm.runner.steps import FIRST_PAUSE_S, MAX_PAUSE_S, PAUSE_GROWTH, EndedError, StepFailedError, Steps, done
from sm.runner.tools import Survey, Tools

T = TypeVar("T")
MAX_ATTEMPTS = 3
"""Sessions for one issue, where clients stay down."""
SETTLE_S = 1.5
"""So long a session has to be at rest: a task that ends in the background can begin another turn at once."""
BLOCKED_TIMEOUT_S = 120.0
"""For the server to make a document of a context that is too long, and to begin a fresh one."""
SHOWN_AFTER_S = 20.0
"""An ask that is answered sooner changes nothing in the issue."""
ASKS = IssueStatus.NEEDS_YOU


@dataclass(slots=True)
class _Waited:
    """What adds up while one session is waited for, in seconds; none of it is work."""

    quiet: float = 0.0
    """Without a sign of work where one should have come."""
    blocked: float = 0.0
    asked: float = 0.0
    shown: bool = False
    """Whether the issue says that its agent waits for the user."""


class IssueWork:
    """The work on one issue in one run."""

    def __init__(self, steps: Steps, tools: Tools, run: str, issue: str) -> None:
        self._steps = steps
        self._tools = tools
        self._run = run
        self._issue = issue
        self._known: dict[str, Any] = {"issue": issue, "title": ""}
        """What is known so far, by the fields of IssueOutcome."""
        self._survey = Survey(clean=False, rules=tools.rules, files={})
        self._place: Workplace | None = None
        self._given_back = False
        """Whether an agent was asked to resolve a conflict."""
        self._rules = self._survey.rules
        """As they were when the work began: what is decided by them is decided again after an interruption."""
        self._earlier = 0
        """Contexts of the attempts before."""
        self._spent = 0.0
        """Seconds of work, over all attempts."""

    def outcome(self) -> IssueOutcome:
        try:
            prepared = self._prepared()
            return self._worked_on(prepared)
        except EndedError as end:
            return self._refused(end.refusal)
        except StepFailedError as problem:
            return self._refused(problem.refusal)

    @property
    def delivered(self) -> dict[str, Any] | None:
        """Return what is known of the issue once it is merged."""
        return self._known if "merge" in self._known else None

    # --- the parts, in their order ------------------------------------------------------------------------------

    def _prepared(self) -> Prepared:
        self._survey = self._step("survey", Survey, self._tools.survey, self._issue)
        self._rules = self._survey.rules
        prepared: Prepared = self._did("prepare", Prepared | Refusal, self._tools.prepare, self._run, self._issue)
        self._known |= {"title": prepared.title, "check": prepared.check, "branch": prepared.place.branch}
        self._place = prepared.place
        self._did("set_up", Refusal | None, self._tools.set_up, prepared)
        return prepared

    def _worked_on(self, prepared: Prepared) -> IssueOutcome:
        """Have it worked on and deliver it; a conflict is an agent's to resolve once, and after that its user's."""
        work = self._attempted(prepared)
        try:
            return self._delivered(prepared, work)
        except ConflictError as problem:
            self._given_back = True
            self._step("end_session", tuple[str, ...], self._end, self._known["session"])
            self._earlier = self._known["continuations"] + 1
            again = self._tools.with_conflict(prepared, problem.conflict)
            return self._delivered(prepared, self._attempted(again, self._known["attempts"] + 1))

    def _attempted(self, prepared: Prepared, first: int = 1) -> Work:
        """Have an agent work on it until a turn of it has ended for good; return what that has left."""
        for number in range(first, first + MAX_ATTEMPTS):
            self._known["attempts"] = number
            if self._worked(attempt_name(self._run, self._issue, number), prepared):
                found: Work = self._did("inspect", Work | Refusal, self._tools.inspect, prepared.place)
                return found
            self._earlier = self._known["continuations"] + 1
        reason = f"its agent's client stays down, {MAX_ATTEMPTS} sessions in a row"
        raise EndedError(Refusal(Result.NEEDS_YOU, reason, f"sm output {self._known['session']} shows how"))

    def _worked(self, attempt: str, prepared: Prepared) -> bool:
        """Whether the session came to rest; a client that has ended is started again until it stays down."""
        lost: float | None = None
        while True:
            session = self._step("ensure_session", str, self._tools.sessions.ensured, attempt, prepared)
            self._known["session"] = session
            look = self._awaited(session)
            if look.at_rest:
                return True
            if look.lost_at is None or look.lost_at == lost:
                return False
            lost = look.lost_at

    def _awaited(self, session: str) -> SessionLook:
        """Wait until the session is at rest, or its client has ended without an order to, or has stopped working."""
        pause, waited, before = FIRST_PAUSE_S, _Waited(), None
        while True:
            look = self._step("await_outcome", SessionLook, self._tools.look, self._run, self._issue, session, before)
            self._known |= {"continuations": self._earlier + look.rotations, "document": look.document}
            if look.status == Status.CRASHED or look.lost_at is not None:
                return look
            self._check_limits(look, waited)
            self._follow_asks(look, waited)
            if waited.quiet > self._rules.idle_limit:
                self._step("end_session", tuple[str, ...], self._end, session)
                return look
            if look.rests_since(before):
                return look
            pause = SETTLE_S if look.at_rest else min(pause * PAUSE_GROWTH, MAX_PAUSE_S)
            self._steps.sleep(pause)
            self._count(look, before, waited, pause)
            before = look

    def _count(self, look: SessionLook, before: SessionLook | None, waited: _Waited, pause: float) -> None:
        """Add what was waited; only time that this run was there for, so that no sleep of the machine counts."""
        same = before is not None and before.last_activity == look.last_activity
        waited.quiet = waited.quiet + pause if same and look.in_request else 0.0
        self._spent += 0.0 if look.status == Status.LIMITED or look.waits else pause
        waited.blocked = waited.blocked + pause if look.status == Status.BLOCKED else 0.0
        waited.asked = waited.asked + pause if look.waits else 0.0

    def _follow_asks(self, look: SessionLook, waited: _Waited) -> None:
        """Deny what is asked, where that is configured; what waits for the user is shown in the issue."""
        if look.asks and self._rules.denies_asks:
            self._step("deny", str, self._tools.deny, self._issue, look.asks)
        shown = look.waits and waited.asked > SHOWN_AFTER_S
        if shown != waited.shown:
            waited.shown = shown
            self._step("show", str, self._tools.show, self._issue, ASKS if shown else IssueStatus.IN_PROGRESS)

    def _check_limits(self, look: SessionLook, waited: _Waited) -> None:
        rules, again = self._rules, f"sm restore {look.id} continues its last context"
        if look.status == Status.EXITED:
            raise EndedError(Refusal(Result.NEEDS_YOU, "its session was ended", f"sm restore {look.id} brings it back"))
        if waited.blocked > BLOCKED_TIMEOUT_S:
            raise EndedError(Refusal(Result.NEEDS_YOU, f"its client refuses to continue: {look.detail}", again))
        if waited.asked > rules.ask_limit:
            reason = f"your answer did not come within {rules.ask_limit:.0f} s: {look.detail}"
            raise EndedError(Refusal(Result.NEEDS_YOU, reason, again))
        self._check_use(look, again)

    def _check_use(self, look: SessionLook, again: str) -> None:
        rules = self._rules
        if look.paused:
            raise EndedError(Refusal(Result.UNFINISHED, f"its contexts lead nowhere: {look.detail}", again))
        if self._known["continuations"] > rules.max_continuations:
            reason = f"{rules.max_continuations} continuations were not enough"
            raise EndedError(Refusal(Result.UNFINISHED, reason, again))
        if look.at_rest:
            return  # its work is over, however much it took: evidence counts
        used = look.used_up or (look.held if look.status == Status.IDLE else "")
        if used:
            raise EndedError(Refusal(Result.UNFINISHED, used, again))
        if self._spent > rules.time_limit:
            state = f"{look.status}{f', {look.detail}' if look.detail else ''}"
            reason = f"it was not done within {rules.time_limit:.0f} s of work; at the end it was {state}"
            raise EndedError(Refusal(Result.UNFINISHED, reason, again))

    def _delivered(self, prepared: Prepared, work: Work) -> IssueOutcome:
        steps, given_back, reviews = (self._step, self._did, self._steps.sleep), self._given_back, self._rules.reviews
        delivery = DeliverySteps(*steps, self._tools, self._run, self._known, given_back, reviews)
        work = delivery.passed(prepared, work)
        with self._tools.delivery_turn():
            work = delivery.merged(prepared, work)
            outcome = self._recorded(IssueOutcome(result=Result.DELIVERED, **self._known))
        return self._tidied(prepared, work, outcome)

    def _tidied(self, prepared: Prepared, work: Work, outcome: IssueOutcome) -> IssueOutcome:
        ended = self._ended(outcome)
        left = self._noted("tidy", self._tools.tidy, prepared.place, work.head, outcome.offered)
        return msgspec.structs.replace(ended, notes=(*ended.notes, *left))

    def _refused(self, refusal: Refusal) -> IssueOutcome:
        outcome = IssueOutcome(result=refusal.result, reason=refusal.reason, hint=refusal.hint, **self._known)
        said = self._last_message(outcome.session) if outcome.session else ""
        return self._ended(self._recorded(msgspec.structs.replace(outcome, said=said)))

    def _last_message(self, session: str) -> str:
        try:
            return self._step("last_message", str, self._tools.last_message, session)
        except StepFailedError:
            return ""

    def _recorded(self, outcome: IssueOutcome) -> IssueOutcome:
        """Write down how it has ended. A fault here changes no result, and none does in what follows."""
        seen = () if self._place is None else self._noted("leaks", self._tools.leaks, self._place, self._survey)
        notes = self._noted("record", self._record, outcome)
        return msgspec.structs.replace(outcome, notes=(*outcome.notes, *seen, *notes))

    def _ended(self, outcome: IssueOutcome) -> IssueOutcome:
        """End its session: it can be restored."""
        notes = self._noted("end_session", self._end, outcome.session) if outcome.session else ()
        return self._with_cost(msgspec.structs.replace(outcome, notes=(*outcome.notes, *notes)))

    def _with_cost(self, outcome: IssueOutcome) -> IssueOutcome:
        """Add what its sessions have used: the last one has ended, so that this is all."""
        if not outcome.session:
            return outcome
        try:
            spent = self._step("cost", Spent, self._tools.spent, self._run, self._issue)
        except StepFailedError as problem:
            return msgspec.structs.replace(outcome, notes=(*outcome.notes, problem.refusal.reason))
        notes = (*outcome.notes, *self._rules.budgets.remarks(spent))
        return msgspec.structs.replace(outcome, spent=spent, notes=notes)

    def _noted(self, name: str, function: Callable[..., tuple[str, ...]], *given: Any) -> tuple[str, ...]:  # noqa: ANN401
        try:
            return self._step(name, tuple[str, ...], function, *given)
        except StepFailedError as problem:
            return (problem.refusal.reason,)

    def _end(self, session: str) -> tuple[str, ...]:
        self._tools.sessions.end(session)
        return ()

    def _record(self, outcome: IssueOutcome) -> tuple[str, ...]:
        return self._tools.record(self._run, outcome, commits=self._survey.clean)

    # --- steps --------------------------------------------------------------------------------------------------

    def _did(self, name: str, kind: Any, function: Callable[..., Any], *given: Any) -> Any:  # noqa: ANN401  # the type that is not Refusal
        """Return what a step has found, unless that is a reason to end."""
        found = self._step(name, kind, function, *given)
        if isinstance(found, Refusal):
            raise EndedError(found)
        return found

    def _step(self, name: str, kind: type[T], function: Callable[..., Any], *given: Any) -> T:  # noqa: ANN401
        return done(self._steps, name, kind, lambda: function(*given))
