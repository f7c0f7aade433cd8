"""Issues as files below `.issues/`, in any directory there. A number is used once, whatever the type."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath

from sm.core.errors import error
from sm.runner.issues.edit import edit, read_text
from sm.runner.issues.front_matter import front_matter
from sm.runner.issues.issue import Issue, IssueList, IssueProblem, IssueStatus, may_be
from sm.runner.issues.issue_file import id_in_name, looks_like_an_issue, parsed, status_in, with_status
from sm.runner.issues.notes import ANSWER_HEAD, note_head, with_note

_Issues = list[Issue]
_Problems = list[IssueProblem]
DIRECTORY = ".issues"
SUFFIX = ".md"


class FilesSource:
    """The files below one directory; a place is a path from the directory above it."""

    def __init__(self, root: Path) -> None:
        self._name = root.name
        self._root = root.resolve()

    def list(self) -> IssueList:
        return self._listed(self._paths())

    def read(self, issue: str) -> Issue:
        """Read the files with that number alone: each costs a millisecond, and the others say nothing about it."""
        paths = (path for path in self._paths() if (known := self._id(path)) == "" or may_be(known, issue))
        found = self._listed(paths)
        complete = found if found.known(issue) or found.problem(issue) else self.list()
        return complete.find(issue)

    def _listed(self, paths: Iterable[Path]) -> IssueList:
        issues: _Issues = []
        problems: _Problems = []
        for path in paths:
            found = self._read(path)
            if isinstance(found, Issue):
                issues.append(found)
            elif found is not None:
                problems.append(found)
        twice = list(_duplicates(issues))
        taken = {known for problem in twice for known in problem.ids}
        left = sorted((issue for issue in issues if issue.id not in taken), key=lambda issue: issue.number)
        return IssueList(tuple(left), (*twice, *problems))

    def set_status(self, issue: str, status: IssueStatus, note: str = "") -> None:
        known = self.read(issue)
        place = PurePosixPath(known.place)

        def change(text: str) -> str:
            changed = with_status(text, place, status)
            return with_note(changed, note_head(status), note) if note.strip() else changed

        self._edit(known, change)

    def answer(self, issue: str, text: str) -> None:
        known = self.read(issue)
        place = PurePosixPath(known.place)

        def change(old: str) -> str:
            waits = status_in(front_matter(old).values, place).waits_for_answer
            return with_note(with_status(old, place, IssueStatus.OPEN) if waits else old, ANSWER_HEAD, text)

        self._edit(known, change)

    def _edit(self, issue: Issue, change: Callable[[str], str]) -> None:
        try:
            edit(self._root.joinpath(*PurePosixPath(issue.place).parts[1:]), self._root, change)
        except FileNotFoundError:
            raise error("no_issue", f"{issue.place} is gone", "sm issues list shows the issues") from None
        except ValueError as problem:
            raise error("bad_issue", f"{issue.place}: {problem}", "correct the file, then try again") from problem

    def _paths(self) -> Iterator[Path]:
        for directory, names, files in os.walk(self._root):
            names[:] = sorted(name for name in names if not name.startswith("."))
            found = sorted(name for name in files if name.lower().endswith(SUFFIX) and not name.startswith("."))
            yield from (Path(directory, name) for name in found)

    def _place(self, path: Path) -> PurePosixPath:
        return PurePosixPath(self._name, *path.relative_to(self._root).parts)

    def _id(self, path: Path) -> str:
        return id_in_name(self._place(path))

    def _read(self, path: Path) -> Issue | IssueProblem | None:
        """Read one file; None for one that is no issue."""
        place = self._place(path)
        text = ""
        try:
            text = read_text(path)
            if looks_like_an_issue(place, text):
                return parsed(text, place)
        except OSError as problem:
            why = "a link is not read" if path.is_symlink() else str(problem.strerror)
            return _problem(place, why) if looks_like_an_issue(place, "") else None
        except ValueError as problem:
            return _problem(place, str(problem)) if looks_like_an_issue(place, text) else None
        return None


def _problem(place: PurePosixPath, why: str) -> IssueProblem:
    known = id_in_name(place)
    return IssueProblem(place.as_posix(), why, (known,) if known else ())


def _duplicates(issues: Iterable[Issue]) -> Iterator[IssueProblem]:
    """Yield a problem for each number that is used more than once: an id would not say which is meant."""
    by_number: defaultdict[int, list[Issue]] = defaultdict(list)
    for issue in issues:
        by_number[issue.number].append(issue)
    for number, same in sorted(by_number.items()):
        if len(same) > 1:
            places = " and ".join(issue.place for issue in same)
            ids = tuple(dict.fromkeys(issue.id for issue in same))
            yield IssueProblem("", f"number {number} is used twice: {places}; give one of them another", ids)
