"""What is known of an issue that a run works on, as values: each is what a step has found, and is stored as JSON."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from sm.core.model.session import Status


class Result(StrEnum):
    DELIVERED = "delivered"
    NEEDS_YOU = "needs_you"
    """The user has to decide something; the branch and its worktree are kept."""
    UNFINISHED = "unfinished"
    """Its contexts are used up; the branch and its worktree are kept, and the issue stays open."""
    SKIPPED = "skipped"
    """It could not be worked now, and nothing was begun for it."""


class Workplace(msgspec.Struct, frozen=True):
    """Where one issue is worked on."""

    worktree: str
    branch: str
    target: str
    """The branch of the main checkout, to which it is delivered."""
    directory: str
    """Of its session: the part of the worktree that the project is of its repository."""
    base: str
    """The commit of the target that the branch has, before an agent works on it."""


class Prepared(msgspec.Struct, frozen=True, tag=True):
    id: str
    title: str
    check: str
    """The command that says whether it is done, as it was when the work began."""
    place: Workplace
    fingerprint: str
    """Of everything that the issue says but its status."""
    prompt: str
    scope: str
    port_offset: int = 0
    """What PORT_OFFSET says to the set-up command, the agent and the check; 0 where it is not used."""

    @property
    def environment(self) -> dict[str, str]:
        return {"PORT_OFFSET": str(self.port_offset)} if self.port_offset else {}


class Refusal(msgspec.Struct, frozen=True, tag=True):
    """Why a step has ended the work on an issue."""

    result: Result
    reason: str
    hint: str = ""


class SessionLook(msgspec.Struct, frozen=True):
    """What the server shows of an attempt's session."""

    id: str
    status: str
    detail: str
    at_rest: bool
    rotations: int
    last_activity: float
    """Its last sign of work: a hook, or a record of its transcript."""
    lost_at: float | None = None
    """When its client ended without an order to."""
    in_request: bool = False
    """It is at work and runs no command: a sign of that has to come before long."""
    asks: tuple[str, ...] = ()
    """The ids of what its client asks its user."""
    document: str = ""
    """The path of the document that its newest handoff has."""
    paused: bool = False
    """Its next context waits for the user: those before it have left nothing behind."""
    held: str = ""
    """Which budget of `cost.*` is used: once its turn has ended the server leaves it to its user."""
    used_up: str = ""
    """Which budget of the run or the issue is used."""

    @property
    def waits(self) -> bool:
        """Whether its client waits for an answer of its user."""
        return bool(self.asks) or self.status == Status.WAITING

    def rests_since(self, before: SessionLook | None) -> bool:
        """Whether it was at rest at the look before too, and has given no sign of work in between."""
        known = before is not None and before.at_rest and before.last_activity == self.last_activity
        return self.at_rest and known


class Spent(msgspec.Struct, frozen=True):
    """What sessions have used."""

    tokens: int
    usd: float
    """Of the models whose price is known."""
    unpriced: tuple[str, ...] = ()
    """The other models."""


class Work(msgspec.Struct, frozen=True, tag=True):
    """What the branch of an issue holds."""

    head: str
    commits: int


class Conflict(msgspec.Struct, frozen=True, tag=True):
    """The target has gained commits that cannot be merged into the branch without a decision."""

    target: str
    files: tuple[str, ...]


class Checked(msgspec.Struct, frozen=True):
    """One run of the check command."""

    head: str
    code: int | None
    """Null if it was ended for taking too long."""
    seconds: float
    output: str
    """The end of it."""

    @property
    def passed(self) -> bool:
        return self.code == 0

    @property
    def failure(self) -> str:
        """How it went wrong, in words that follow its name."""
        return "took too long" if self.code is None else f"failed with exit code {self.code}"


class Review(msgspec.Struct, frozen=True, tag=True):
    """What a second agent has said of the change."""

    session: str
    passed: bool | None
    """Null without a verdict."""
    objection: str = ""


class Delivered(msgspec.Struct, frozen=True, tag=True):
    merge: str
    """The merge commit; empty if the target has moved, and has to be taken in first."""
    offered: str = ""
    """The branch, or the pull request, where the merge is the user's."""


class IssueOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """How the work on one issue has ended."""

    issue: str
    title: str
    result: Result
    reason: str = ""
    hint: str = ""
    session: str = ""
    attempts: int = 0
    continuations: int = 0
    """Contexts after the first one."""
    branch: str = ""
    commits: int = 0
    check: str = ""
    checked: Checked | None = None
    review: Review | None = None
    merge: str = ""
    offered: str = ""
    """The branch, or the pull request, that is the user's to merge."""
    said: str = ""
    """The last message of its agent, where the issue is not delivered: it may be a question. No evidence."""
    document: str = ""
    """That of its last handoff."""
    spent: Spent | None = None
    """By all of its sessions; null where none was begun, or nothing says."""
    notes: tuple[str, ...] = ()
    """What the user should know besides."""


class RunOutcome(msgspec.Struct, frozen=True):
    run: str
    project: str
    outcomes: tuple[IssueOutcome, ...]

    @property
    def complete(self) -> bool:
        return bool(self.outcomes) and all(found.result is Result.DELIVERED for found in self.outcomes)

    @property
    def spent(self) -> Spent:
        """What all of its issues have used."""
        known = [outcome.spent for outcome in self.outcomes if outcome.spent is not None]
        unpriced = sorted({model for spent in known for model in spent.unpriced})
        return Spent(sum(spent.tokens for spent in known), sum(spent.usd for spent in known), tuple(unpriced))
