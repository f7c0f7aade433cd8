"""Commands that check the work: those that were run again after a change, or that look for faults by their name."""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import dataclass, field

from sm.digest.shell import is_question, narrowed, steps
from sm.digest.transcript_events import Ran

REMEMBERED = 300
CHECKING = re.compile(
    r"\b(?:tests?|check|checks|lint|verify|validate|spec|build|compile|typecheck|bench|e2e|ci|clippy|vet|pytest|tox|nox|"
    r"jest|vitest|mocha|rspec|phpunit|ctest|tsc|mypy|ruff|eslint|flake8|pyright|rubocop|gradlew?|mvn|ninja|make)\b|"
    r"(?:conform|test|lint|check)\b"
)
"""Names that most tools give to checking, in any position of a command."""


@dataclass(slots=True)
class Pass:
    command: str
    number: int = 0
    """Of the happening when it last ran."""
    passed: bool = False
    after_change: int = 0
    """How often it was run with changes since the time before."""
    changes: int = -1
    """Made before it last ran."""


@dataclass(slots=True)
class Passes:
    known: OrderedDict[str, Pass] = field(default_factory=OrderedDict)
    _changes: int = 0

    def ran(self, run: Ran, number: int) -> None:
        command = narrowed(run.command)
        one = self.known.pop(command, None) or Pass(command)
        one.number, one.passed = number, not run.failed
        one.after_change += one.changes not in {-1, self._changes}
        one.changes = self._changes
        self.known[command] = one
        if len(self.known) > REMEMBERED:
            self.known.popitem(last=False)

    def changed(self) -> None:
        self._changes += 1

    def checks(self) -> list[Pass]:
        """Those that passed when they last ran, oldest first."""
        passed = [one for one in self.known.values() if one.passed and steps(one.command)]
        checking = [one for one in passed if one.after_change or CHECKING.search(one.command)]
        return [one for one in checking if not is_question(one.command)]
