"""Commands that check the work: those that were run again after a change, or whose name says so."""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import dataclass, field

from sm.digest.shell import core_command, invocations, is_query
from sm.digest.transcript_events import CommandRan

MAX_REMEMBERED = 300
"""Commands."""
CHECK_NAMES = re.compile(
    r"\b(?:tests?|check|checks|lint|verify|validate|spec|build|compile|typecheck|bench|e2e|ci|clippy|vet|pytest|tox|nox|"
    r"jest|vitest|mocha|rspec|phpunit|ctest|tsc|mypy|ruff|eslint|flake8|pyright|rubocop|gradlew?|mvn|ninja|make)\b|"
    r"(?:conform|test|lint|check)\b"
)
"""Names that most tools give to checking, in any position of a command."""


@dataclass(slots=True)
class Check:
    command: str
    number: int = 0
    """Number of the event when it last ran."""
    passed: bool = False
    after_change: int = 0
    """How often it was run with changes since its previous run."""
    changes: int = -1
    """How many changes were made before it last ran."""


@dataclass(slots=True)
class Checks:
    known: OrderedDict[str, Check] = field(default_factory=OrderedDict)
    _changes: int = 0

    def ran(self, run: CommandRan, number: int) -> None:
        command = core_command(run.command)
        check = self.known.pop(command, None) or Check(command)
        check.number, check.passed = number, not run.failed
        check.after_change += check.changes not in {-1, self._changes}
        check.changes = self._changes
        self.known[command] = check
        if len(self.known) > MAX_REMEMBERED:
            self.known.popitem(last=False)

    def changed(self) -> None:
        self._changes += 1

    def passing(self) -> list[Check]:
        """Return those that passed when they last ran, oldest first."""
        passed = [check for check in self.known.values() if check.passed and invocations(check.command)]
        checking = [check for check in passed if check.after_change or CHECK_NAMES.search(check.command)]
        return [check for check in checking if not is_query(check.command)]
