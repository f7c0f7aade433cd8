"""Reads the runs of this machine for the page: a process of its own, which loads their engine once.

`python -m sm.runner.reader DIRECTORY`. A line of JSON on its standard input asks (`ReadRequest`), one on its standard
output answers (`ReadAnswer`); it ends with its standard input. A database in which nothing has changed is not opened
again. The runs of a shared PostgreSQL are not in the directory: `sm runs` shows them.
"""

from __future__ import annotations

import os
import re
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from sm.core.errors import SmError
from sm.runner.attempt import mark
from sm.runner.database import local_database
from sm.runner.durable import loaded
from sm.runner.known_runs import RUN_NAME, KnownIssue, KnownRun, ReadAnswer, ReadRequest
from sm.runner.outcome import IssueOutcome
from sm.runner.report import report, used
from sm.runner.runs import IssueInRun, Runs, SeenRun, opened

MAX_RUNS = 20
"""The newest, of all projects."""
MAX_OF_PROJECT = 20
FILE = re.compile(r"(.+)-[0-9a-f]{8}")
SETTLES_S = 5.0
Stamp = tuple[int, int, bool]


@dataclass(slots=True)
class Reader:
    directory: Path
    known: dict[Path, tuple[Stamp, tuple[KnownRun, ...]]] = field(default_factory=dict)
    answered: tuple[KnownRun, ...] | None = None

    def answer(self, request: ReadRequest) -> ReadAnswer:
        try:
            loaded()
        except SmError as problem:
            return ReadAnswer(runs=(), problem=f"{problem.refused.message}: {problem.refused.hint}")
        return self._one(request.run) if request.run else self._newest()

    def _newest(self) -> ReadAnswer:
        found: list[KnownRun] = []
        problem = ""
        for file in self._files():
            try:
                found += self._of(file)
            except Exception as fault:  # noqa: BLE001  # one that is damaged, or of another version, hides no other
                found += self.known[file][1] if file in self.known else ()
                problem = problem if _is_being_written(file) else _unreadable(file, fault)
        runs = tuple(sorted(found, key=lambda run: -run.begun)[:MAX_RUNS])
        unchanged = runs == self.answered
        self.answered = runs
        return ReadAnswer(runs=None if unchanged else runs, problem=problem)

    def _one(self, name: str) -> ReadAnswer:
        problem = ""
        for file in self._files():
            try:
                with opened(local_database(file)) as runs:
                    run = next((each for each in runs.all() if each.run == name), None)
                    if run is not None:
                        told = report(run.outcome) if run.outcome is not None else ""
                        return ReadAnswer(runs=(_known(runs, run, file),), report=told)
            except Exception as fault:  # noqa: BLE001  # as above
                problem = _unreadable(file, fault)
        return ReadAnswer(runs=(), problem=problem)

    def _files(self) -> list[Path]:
        return sorted(self.directory.glob("*.sqlite"))

    def _of(self, file: Path) -> tuple[KnownRun, ...]:
        found = file.stat()
        stamp = found.st_mtime_ns, found.st_size, is_worked_on(file)
        before = self.known.get(file)
        if before is None or before[0] != stamp:
            with opened(local_database(file)) as runs:
                newest = [run for run in runs.all()[:MAX_OF_PROJECT] if RUN_NAME.fullmatch(run.run)]
                before = self.known[file] = stamp, tuple(_known(runs, run, file) for run in newest)
        return before[1]


def is_worked_on(file: Path) -> bool:
    """Whether the process that has last worked on that database is alive."""
    try:
        os.kill(int(file.with_suffix(".lock").read_text()), 0)
    except PermissionError:
        return True
    except (OSError, ValueError):
        return False
    return True


def _is_being_written(file: Path) -> bool:
    """Whether it may be readable in a moment, as a database that a run has just begun to make."""
    try:
        return time.time() < file.stat().st_mtime + SETTLES_S  # noqa: TID251  # compared with the file system's own
    except OSError:
        return True


def _unreadable(file: Path, fault: Exception) -> str:
    words = str(getattr(fault, "orig", None) or fault).partition("\n")[0][:200] or type(fault).__name__
    return f"The runs of {_project(file)} cannot be read ({words}): sm runs list in that project says more"


def _project(file: Path) -> str:
    found = FILE.fullmatch(file.stem)
    return found[1] if found else file.stem


def _known(runs: Runs, run: SeenRun, file: Path) -> KnownRun:
    state = "interrupted" if run.state in {"works", "waits"} and not is_worked_on(file) else run.state
    if run.outcome is None:
        issues = tuple(_issue(run.run, each) for each in runs.issues(run))
        return KnownRun(run.run, _project(file), state, run.begun, issues)
    total = run.outcome.spent
    ended = tuple(_ended(run.run, outcome) for outcome in run.outcome.outcomes)
    return KnownRun(run.run, _project(file), state, run.begun, ended, used(total) if total.tokens else "")


def _issue(run: str, found: IssueInRun) -> KnownIssue:
    if found.outcome is not None:
        return _ended(run, found.outcome)
    return KnownIssue(found.issue, mark(run, found.issue), found.state, found.title, found.step, found.session)


def _ended(run: str, outcome: IssueOutcome) -> KnownIssue:
    spent = outcome.spent
    return KnownIssue(
        outcome.issue,
        mark(run, outcome.issue),
        outcome.result.value,
        outcome.title,
        session=outcome.session,
        attempts=outcome.attempts,
        spent=used(spent) if spent is not None else "",
        usd=spent.usd if spent is not None and not spent.unpriced else None,
        reason=outcome.reason,
        hint=outcome.hint,
    )


def main() -> None:
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # whatever a library prints is no answer
    reader = Reader(Path(sys.argv[1]))
    for line in sys.stdin.buffer:
        answers.write(msgspec.json.encode(reader.answer(msgspec.json.decode(line, type=ReadRequest))) + b"\n")


if __name__ == "__main__":
    main()
