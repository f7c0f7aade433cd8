"""An issue as a value, a list of them with what could not be read, and how an id is recognised.

An id names exactly one issue: `FEAT-1` never means `FEAT-12`, whatever else is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from sm.core.errors import SmError, error

DEFAULT_PRIORITY = 3
MAX_PRIORITY = 5
MIN_SIMILARITY = 0.6
"""An id that is as similar to another counts as a misspelling of it."""
MAX_SHOWN_IDS = 20
"""Of those that an error names."""


class IssueType(StrEnum):
    BUG = "BUG"
    FEAT = "FEAT"
    ENH = "ENH"
    EPIC = "EPIC"
    """Holds other issues; it is never worked itself, and done once all of them are."""
    TASK = "TASK"
    """Of a checklist, or of a tracker that does not say."""


class IssueStatus(StrEnum):
    OPEN = "open"
    IN_PROGRESS = "in_progress"
    NEEDS_YOU = "needs_you"
    """Waits for the user: a question, a conflict, an attempt that did not succeed."""
    BLOCKED = "blocked"
    """Somebody has put it off."""
    DONE = "done"
    CLOSED = "closed"
    """Ended without being done."""

    @property
    def is_over(self) -> bool:
        """Whether no issue waits for it any more."""
        return self in {IssueStatus.DONE, IssueStatus.CLOSED}

    @property
    def waits_for_answer(self) -> bool:
        """Whether an answer of the user opens it again."""
        return self in {IssueStatus.NEEDS_YOU, IssueStatus.BLOCKED}

    @property
    def is_workable(self) -> bool:
        return self in {IssueStatus.OPEN, IssueStatus.IN_PROGRESS}


@dataclass(frozen=True, slots=True)
class Issue:
    id: str
    """As its source writes it: `FEAT-012`."""
    type: IssueType
    priority: int
    """0 is the most urgent, 5 the least."""
    number: int
    """Orders what is equally urgent."""
    title: str
    status: IssueStatus
    place: str
    """A path from the project's directory, or a URL."""
    slug: str = ""
    labels: tuple[str, ...] = ()
    blocked_by: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    blocks: tuple[str, ...] = ()
    """Issues that wait for this one: `blocked_by`, written from the other side."""
    parent: str = ""
    check: str = ""
    """The command that says whether it is done; empty where the issue has none."""
    files: tuple[str, ...] = ()
    """Paths that it names."""
    text: str = ""

    @property
    def waits_for(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.blocked_by, *self.depends_on)))


@dataclass(frozen=True, slots=True)
class IssueProblem:
    """An issue that cannot be used: it is left out, and whoever names it is shown why."""

    place: str
    message: str
    ids: tuple[str, ...] = ()
    """Of the issues that it concerns, where they are known."""

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place else self.message


@dataclass(frozen=True, slots=True)
class IssueList:
    issues: tuple[Issue, ...]
    problems: tuple[IssueProblem, ...] = ()
    _by_name: dict[str, Issue] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._by_name.update((name, issue) for issue in self.issues for name in _names(issue.id))

    def known(self, name: str) -> Issue | None:
        return self._by_name.get(_wanted(name))

    def problem(self, name: str) -> IssueProblem | None:
        """Return why the issue of that name is left out; None for any other name."""
        return next(
            (found for found in self.problems if any(_wanted(name) in _names(known) for known in found.ids)), None
        )

    def find(self, name: str) -> Issue:
        """Return the issue of that name; SmError if none has it, or if that one cannot be used."""
        issue = self.known(name)
        if issue is not None:
            return issue
        problem = self.problem(name)
        if problem is not None:
            raise error("bad_issue", str(problem), "correct the file; sm issues list shows every such problem")
        raise self.unknown((name,))

    def unknown(self, names: Iterable[str]) -> SmError:
        """Return the error for names that no issue has."""
        import difflib  # noqa: PLC0415  # for a mistake only

        wrong = list(names)
        ids = [issue.id for issue in self.issues]
        near = [
            *dict.fromkeys(
                match
                for name in wrong
                for match in difflib.get_close_matches(name.upper(), ids, n=1, cutoff=MIN_SIMILARITY)
            )
        ]
        hint = f"the nearest: {', '.join(near)}" if near else "sm issues list --all shows the issues"
        shown = ", ".join(wrong[:MAX_SHOWN_IDS]) + (", …" if len(wrong) > MAX_SHOWN_IDS else "")
        return error("no_issue", f"No such issue: {shown}", hint)


TYPES = "|".join(IssueType)
_NUMBERED = re.compile(rf"(?:P\d-)?({TYPES}|GH)-(\d{{1,18}})(?:-[^/]*)?", re.IGNORECASE)
"""An id with a number, or a whole file name that begins with one."""


def canonical(name: str) -> str:
    """Return an id in the one form that is compared: `feat-012`, `P1-FEAT-12-slug.md` and `FEAT-12` are the same."""
    found = _NUMBERED.fullmatch(name.strip())
    return f"{found[1].upper()}-{int(found[2])}" if found else name.strip().upper()


def _names(known: str) -> tuple[str, ...]:
    """Return what an issue with that id is found by: the id, and its number where it has one."""
    found = canonical(known)
    return (found, found.rpartition("-")[2]) if _NUMBERED.fullmatch(known) else (found,)


def unique_part(known: str) -> str:
    """Return what no two ids may share: the number, whatever the type, or an id without one as it is."""
    return _names(known)[-1]


def may_be(known: str, name: str) -> bool:
    """Whether an issue with that id has the number that a name ends with, whatever its type."""
    return canonical(known).rpartition("-")[2] == _wanted(name).rpartition("-")[2]


def _wanted(name: str) -> str:
    bare = name.strip().removeprefix("#")
    return (bare.lstrip("0") or "0") if bare.isascii() and bare.isdigit() else canonical(name)


_PRIORITY = re.compile(r"P?([0-9])", re.IGNORECASE)


def priority_of(text: str) -> int:
    """Return the priority that `P1` or `1` says; ValueError for anything else."""
    found = _PRIORITY.fullmatch(text.strip())
    if found is None or int(found[1]) > MAX_PRIORITY:
        raise ValueError(f"priority {text.strip()!r}: accepted are P0 to P{MAX_PRIORITY}")
    return int(found[1])


_STATUS_NAMES = {
    **{status.value: status for status in IssueStatus},
    "todo": IssueStatus.OPEN,
    "in_work": IssueStatus.IN_PROGRESS,
    "deferred": IssueStatus.BLOCKED,
    "completed": IssueStatus.DONE,
    "complete": IssueStatus.DONE,
    "cancelled": IssueStatus.CLOSED,
    "canceled": IssueStatus.CLOSED,
    "wontfix": IssueStatus.CLOSED,
}


def status_of(text: str) -> IssueStatus:
    """Return the status that a word says, in any case; ValueError for an unknown word."""
    found = _STATUS_NAMES.get(text.strip().lower().replace("-", "_").replace(" ", "_"))
    if found is None:
        raise ValueError(f"status {text.strip()!r}: accepted are {', '.join(IssueStatus)}")
    return found


_TYPE_NAMES = {
    **{kind.value.lower(): kind for kind in IssueType},
    "feature": IssueType.FEAT,
    "enhancement": IssueType.ENH,
}


def type_of(text: str) -> IssueType:
    """Return the type that a word says, in any case; ValueError for an unknown word."""
    found = _TYPE_NAMES.get(text.strip().lower())
    if found is None:
        raise ValueError(f"type {text.strip()!r}: accepted are {', '.join(IssueType)}")
    return found
