"""Work on an issue that was begun in one checkout and is continued in another, as on another machine: it begins again.

A worktree, a session and a branch are where they were made. What a step has returned in one checkout says nothing in
another, where the issue gets a worktree and a session again. What was merged there by then is delivered all the same.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

from sm.runner.outcome import IssueOutcome, Result
from sm.runner.steps import Steps
from sm.runner.workflow import IssueWork

MOVED = "moved"
"""What a step in another checkout returns; all others return JSON objects."""


class MovedError(Exception):
    """The work has begun in another checkout than this one."""


def checkout(top: Path) -> str:
    """Return what names a checkout among those of all machines."""
    return f"{socket.gethostname()}:{top}"


class LocalSteps:
    """The steps of work that belongs to the checkout in which its first step ran."""

    def __init__(self, steps: Steps, here: str) -> None:
        self._steps = steps
        self._here = here
        self.begun_in = steps.step("where", lambda: here)

    def step(self, name: str, function: Callable[[], str]) -> str:
        found = self._steps.step(name, lambda: function() if self._here == self.begun_in else MOVED)
        if found == MOVED:
            raise MovedError
        return found

    def sleep(self, seconds: float) -> None:
        self._steps.sleep(seconds)


def worked_anywhere(steps: Steps, here: str, begin: Callable[[Steps], IssueWork]) -> IssueOutcome:
    """Return how the work on an issue has ended, which is begun again in each checkout to which it moves."""
    while True:
        local = LocalSteps(steps, here)
        work = begin(local)
        try:
            return work.outcome()
        except MovedError:
            if work.delivered is not None:
                note = (
                    f"was delivered in {local.begun_in}, which has not ended it: look there for its status and worktree"
                )
                return IssueOutcome(result=Result.DELIVERED, notes=(note,), **work.delivered)
