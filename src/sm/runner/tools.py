"""What the steps of a workflow do, on the real issues, sessions and repository of one project."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

import msgspec

from sm.core.errors import SmError
from sm.core.model.client_traits import ClientTraits
from sm.runner import leaks, merges, worktrees
from sm.runner.attempt import AgentSessions, mark
from sm.runner.budgets import NO_BUDGETS, RunBudgets, spent_by
from sm.runner.check import checked
from sm.runner.git import paths
from sm.runner.issues.filters import IssueFilter
from sm.runner.issues.issue import Issue, IssueStatus
from sm.runner.issues.order import planned
from sm.runner.issues.source import IssueSource
from sm.runner.outcome import (
    Checked,
    Conflict,
    Delivered,
    IssueOutcome,
    Prepared,
    Refusal,
    Result,
    RunOutcome,
    SessionLook,
    Spent,
    Work,
    Workplace,
)
from sm.runner.progress import news
from sm.runner.prompts import first_prompt, scope, with_conflict
from sm.runner.pull_requests import pull_request
from sm.runner.readiness import not_ready
from sm.runner.report import in_words
from sm.runner.review import Reviewers
from sm.runner.turns import turn

DENIED = (
    "The user is away and cannot answer in this unattended run. Continue without it; where that is not possible, write "
    "what you need as your last message and end your turn."
)
"""What an agent reads whose ask is denied."""
MAX_MESSAGE = 2_000
"""Characters of the end of an agent's last message that are kept."""
MAX_OFFSETS = 1_000
"""Of ports: numbers of issues that are so far apart have the same."""
PROTECTED = (".issues", ".sprints")
STATUSES = {
    Result.DELIVERED: IssueStatus.DONE,
    Result.NEEDS_YOU: IssueStatus.NEEDS_YOU,
    Result.UNFINISHED: IssueStatus.OPEN,
}


@dataclass(frozen=True, slots=True)
class RunRules:
    check: str = ""
    """The command for an issue that names none."""
    check_limit: float = 1_800.0
    setup: str = ""
    """The command that each worktree is set up by."""
    deliver: Literal["merge", "branch", "pull-request"] = "merge"
    port_step: int = 0
    """Ports that each issue has for itself."""
    time_limit: float = 7_200.0
    idle_limit: float = 1_800.0
    denies_asks: bool = False
    """Otherwise they wait for the user."""
    ask_limit: float = 3_600.0
    max_continuations: int = 3
    max_failures: int = 3
    reviews: bool = False
    budgets: RunBudgets = NO_BUDGETS


class Survey(msgspec.Struct, frozen=True):
    """How it was when the work on an issue began."""

    clean: bool
    """The issue's file had no changes of the user's own."""
    rules: RunRules
    files: dict[str, str]
    """What was not committed in the main checkout."""


@dataclass(frozen=True, slots=True)
class Tools:
    project: Path
    top: Path
    """The main checkout."""
    source: IssueSource
    sessions: AgentSessions
    rules: RunRules
    traits: ClientTraits
    redact: Callable[[str], str]
    """Takes secrets out of what a check has printed."""
    say: Callable[[str], None]
    now: Callable[[], float]
    """UTC seconds."""
    reviewers: Reviewers | None = None
    """None where nothing can be reviewed."""
    ended: Callable[[IssueOutcome], None] | None = None
    """Is given each issue that has ended."""

    def prepare(self, run: str, name: str) -> Prepared | Refusal:
        """Check that the issue can be worked, make its worktree, and mark it as in progress."""
        used_up = self._used_up(run, name)
        if used_up:
            return Refusal(Result.SKIPPED, used_up)
        found = self.source.list()
        issue = found.find(name)
        left_out = planned(found, IssueFilter(only=(issue.id,))).left_out
        if left_out or issue.status.is_over:
            return Refusal(Result.SKIPPED, left_out[0].reason if left_out else f"is {issue.status}")
        check = issue.check or self.rules.check
        refused = not_ready(issue, check)
        if refused is not None:
            return refused
        with turn(self.top, "git"):
            place = worktrees.workplace(self.project, issue.id)
        if isinstance(place, Refusal):
            return place
        self.source.set_status(issue.id, IssueStatus.IN_PROGRESS)
        self.say(f"{issue.id}: begins in {place.worktree}")
        words = (run, issue, check, self.traits)
        texts = (fingerprint(issue), first_prompt(*words), scope(*words))
        offset = issue.number % MAX_OFFSETS * self.rules.port_step
        return Prepared(issue.id, issue.title, check, place, *texts, offset)

    def look(self, run: str, issue: str, session: str, before: SessionLook | None = None) -> SessionLook:
        """Return how far the session is, and which budget is used: that ends its work within the turn.

        What has changed since the look `before` is said.
        """
        found = self.sessions.look(session)
        words = news(before, found)
        if words:
            self.say(f"{issue}: {words}")
        return msgspec.structs.replace(found, used_up=self._used_up(run, issue))

    def _used_up(self, run: str, issue: str) -> str:
        budgets = self.rules.budgets
        costs = self.sessions.costs(run) if budgets.counted else ()
        return budgets.used_up(costs, mark(run, issue), self.now())

    def spent(self, run: str, issue: str) -> Spent:
        return spent_by(self.sessions.costs(run), mark(run, issue))

    def show(self, issue: str, status: IssueStatus) -> str:
        """Show in the issue itself whether its agent waits for the user."""
        self.source.set_status(issue, status)
        self.say(f"{issue}: {'continues' if status is IssueStatus.IN_PROGRESS else 'its agent asks you: sm asks'}")
        return ""

    def last_message(self, session: str) -> str:
        return self.redact(self.sessions.last_message(session))[-MAX_MESSAGE:].strip()

    def deny(self, issue: str, asks: tuple[str, ...]) -> str:
        self.sessions.deny(asks, DENIED)
        self.say(f"{issue}: denied what its agent asked")
        return ""

    def inspect(self, place: Workplace) -> Work | Refusal:
        return merges.work(place, self.protected())

    def updated(self, place: Workplace, head: str) -> Work | Conflict | Refusal:
        return merges.brought_up_to_date(place, head)

    def with_conflict(self, prepared: Prepared, found: Conflict) -> Prepared:
        """Return what an agent is given that has to resolve it."""
        given = (found.target, found.files, self.traits)
        return msgspec.structs.replace(
            prepared, prompt=with_conflict(prepared.prompt, *given), scope=with_conflict(prepared.scope, *given)
        )

    def set_up(self, prepared: Prepared) -> Refusal | None:
        """Run the set-up command in the worktree; return why nothing can be worked on there."""
        command = self.rules.setup.strip()
        if not command:
            return None
        self.say(f"{prepared.id}: sets up: {command}")
        found = checked(prepared.place.directory, command, self.rules.check_limit, prepared.environment)
        if found.passed:
            return None
        said = merges.one_line(self.redact(found.output).strip().rpartition("\n")[2])
        reason = f"its set-up command {found.failure}: {command}{f' ({said})' if said else ''}"
        return Refusal(Result.NEEDS_YOU, reason, f"run it in {prepared.place.directory}")

    def check(self, prepared: Prepared) -> Checked:
        self.say(f"{prepared.id}: checks: {prepared.check}")
        found = checked(prepared.place.directory, prepared.check, self.rules.check_limit, prepared.environment)
        return msgspec.structs.replace(found, output=self.redact(found.output))

    def deliver(self, run: str, prepared: Prepared, work: Work) -> Delivered | Refusal:
        """Merge what was checked, or offer it to be merged, unless the issue says something else by now."""
        if fingerprint(self.source.read(prepared.id)) != prepared.fingerprint:
            hint = f"sm issues show {prepared.id}, then git merge {prepared.place.branch}"
            return Refusal(Result.NEEDS_YOU, "the issue was changed while it was worked on", hint)
        if self.rules.deliver == "branch":
            return Delivered("", prepared.place.branch)
        if self.rules.deliver == "pull-request":
            return pull_request(self.top, run, prepared, work)
        owner = mark(run, prepared.id)
        asked = merges.Delivery(self.top, prepared.place, owner, prepared.title, self.protected())
        with turn(self.top, "git"):
            return merges.delivered(asked, work.head)

    def record(self, run: str, outcome: IssueOutcome, *, commits: bool) -> tuple[str, ...]:
        """Write the issue's status, and commit its file if asked to; return what the user should know of that."""
        status = IssueStatus.NEEDS_YOU if outcome.offered else STATUSES.get(outcome.result)
        if status is None:
            return ()
        self.source.set_status(outcome.issue, status, note(run, outcome))
        self.say(f"{outcome.issue}: {outcome.result}{f': {outcome.reason}' if outcome.reason else ''}")
        if self.ended is not None:
            self.ended(outcome)
        path = self._own_file(outcome.issue) if commits else None
        if path is None:
            return ()
        with turn(self.top, "git"):
            subject = f"{outcome.issue}: {status.replace('_', ' ')}"
            problem = merges.committed_status(self.top, path, subject, mark(run, outcome.issue))
        return (problem,) if problem else ()

    def tidy(self, place: Workplace, head: str, offered: str) -> tuple[str, ...]:
        with turn(self.top, "git"):
            return worktrees.tidied(self.top, place, head, keeps_branch=bool(offered))

    def delivery_turn(self) -> AbstractContextManager[None]:
        """Keep other deliveries of this repository out. A workflow may wait for it, since a step may not."""
        return turn(self.top, "delivery")

    def notify(self, found: RunOutcome) -> str:
        """Notify the user of the run's end; return why that was not possible: the report is there all the same."""
        try:
            self.sessions.run_ended(found.run, self.project.name, in_words(found))
        except (SmError, OSError) as problem:
            self.say(f"you could not be notified: {problem}")
            return str(problem)
        return ""

    def _own_file(self, issue: str) -> str | None:
        """Return the issue's file by its path from the top of the repository; None for one that is elsewhere."""
        path = Path(self.project, *PurePosixPath(_path(self.source.read(issue))).parts)
        inside = path.is_file() and path.resolve().is_relative_to(self.top)
        return path.resolve().relative_to(self.top).as_posix() if inside else None

    def survey(self, issue: str) -> Survey:
        path = self._own_file(issue)
        clean = path is not None and not paths(self.top, "status", "--porcelain=v1", "-z", "--", path)
        with turn(self.top, "git"):
            return Survey(clean, self.rules, leaks.uncommitted(self.top, self.protected()))

    def leaks(self, place: Workplace, before: Survey) -> tuple[str, ...]:
        """Return what has changed in the main checkout since then, and no run has changed."""
        with turn(self.top, "git"):
            now = leaks.uncommitted(self.top, self.protected())
            return leaks.remarks(self.top, place, before.files, now)

    def protected(self) -> tuple[str, ...]:
        """Return what no attempt may change, by paths from the top of the repository."""
        below = self.project.resolve().relative_to(self.top)
        own = sorted({path for issue in self.source.list().issues if "/" not in (path := _path(issue))})
        return tuple((below / name).as_posix() for name in (*PROTECTED, *own))


def _path(issue: Issue) -> str:
    """Return where an issue is, without the line of a checklist."""
    return re.sub(r":\d+$", "", issue.place)


def fingerprint(issue: Issue) -> str:
    """Return a digest of what the issue asks for: whoever changes it changes what was worked on."""
    text = repr((issue.id, issue.title, issue.check, issue.text))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def note(run: str, outcome: IssueOutcome) -> str:
    """Return what the issue itself keeps of how the work on it has ended."""
    if outcome.offered:
        return f"Run {run}: waits for you to merge it, as {outcome.offered}; `{outcome.check}` succeeded."
    if outcome.result is Result.DELIVERED:
        return f"Run {run}: delivered as {outcome.merge[:12]}; `{outcome.check}` succeeded."
    kept = f" Its branch: {outcome.branch}." if outcome.branch else ""
    parts = [f"Run {run}: {outcome.reason}.{kept}"]
    parts += [f"Next: {outcome.hint}"] if outcome.hint else []
    parts += [f"Its last document: {outcome.document}"] if outcome.document else []
    parts += [f"The last message of its agent:\n\n{outcome.said}"] if outcome.said else []
    return "\n".join(parts)
