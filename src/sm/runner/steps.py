"""How a step of a workflow is run: what it finds is kept as JSON; one that cannot be done for now is tried again."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import msgspec

from sm.core.errors import SmError
from sm.runner.outcome import Refusal, Result

T = TypeVar("T")
FIRST_PAUSE_S, PAUSE_GROWTH, MAX_PAUSE_S = 1.0, 1.5, 10.0
"""Between two looks, and between two tries: eight hours are 3,000 of them."""
MAX_RETRIES = 400
"""Of a step that the server, or another process, does not let through now: more than an hour."""
PASSING = frozenset({"unavailable", "not_answering", "start_failed", "database_busy", "issues_busy", "git_locked"})
"""Errors that are over once a server runs again, or another process has done its work."""


class Steps(Protocol):
    """What the durable engine does for a workflow."""

    def step(self, name: str, function: Callable[[], str]) -> str:
        """Run the function and keep what it returns; where that is kept already, return it instead."""

    def sleep(self, seconds: float) -> None: ...


class StepFailedError(Exception):
    """A step cannot be done: the work on this issue ends."""

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(reason)
        self.refusal = Refusal(Result.NEEDS_YOU, reason, hint)


class EndedError(Exception):
    """The work on this issue ends here, and why."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.reason)
        self.refusal = refusal


def done(steps: Steps, name: str, kind: type[T], function: Callable[[], Any]) -> T:
    """Return what a step has found; StepFailedError if it cannot be done."""
    pause = FIRST_PAUSE_S
    for _ in range(MAX_RETRIES):
        answer = msgspec.json.decode(steps.step(name, lambda: _answer(function)), type=_Answer)
        if answer.failed is None:
            return msgspec.json.decode(answer.found, type=kind)
        if not answer.passing:
            break
        steps.sleep(pause)
        pause = min(pause * PAUSE_GROWTH, MAX_PAUSE_S)
    raise StepFailedError(f"{name}: {answer.failed}", answer.hint)


class _Answer(msgspec.Struct):
    """What a step stores: what it has found, or why it could not be done."""

    found: msgspec.Raw = msgspec.Raw(b"null")
    failed: str | None = None
    hint: str = ""
    passing: bool = False


def _answer(function: Callable[[], Any]) -> str:
    try:
        found = msgspec.Raw(msgspec.json.encode(function()))
    except SmError as problem:
        refused = problem.refused
        answer = _Answer(failed=refused.message, hint=refused.hint, passing=refused.code in PASSING)
    except (OSError, ValueError, subprocess.SubprocessError) as problem:
        answer = _Answer(failed=str(problem) or type(problem).__name__)
    else:
        answer = _Answer(found)
    return msgspec.json.encode(answer).decode()
