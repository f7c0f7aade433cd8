"""Commands that failed, and what followed: another failure, nothing, or a run that went well and what was said then."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from sm.core.account.happenings import Ran
from sm.core.account.outputs import complaint
from sm.core.account.shell import is_question

REMEMBERED = 2_000
"""Commands; the oldest that never failed again goes first."""
SAID_AFTER = 2
"""So many happenings after the run that went well may pass until somebody says why."""


@dataclass(slots=True)
class Failure:
    command: str
    times: int = 0
    error: str = ""
    first: int = 0
    """Number of the happening."""
    last: int = 0
    settled: int | None = None
    """When it went well afterwards."""
    worked: bool = False
    """Something was changed between the failure and the run that went well."""
    said: str = ""
    """What the agent said about it."""

    @property
    def open(self) -> bool:
        return self.settled is None

    @property
    def is_question(self) -> bool:
        return is_question(self.command)


@dataclass(slots=True)
class Failures:
    redact: Callable[[str], str]
    known: OrderedDict[str, Failure] = field(default_factory=OrderedDict)
    _explaining: list[Failure] = field(default_factory=list)
    _last_change: int = -1

    def ran(self, run: Ran, number: int) -> None:
        key = " ".join(run.command.split())
        failure = self.known.get(key)
        if run.failed:
            self._failed(key, run, number)
        elif failure is not None and failure.open:
            failure.settled = number
            failure.worked = self._last_change > failure.first
            self._explaining.append(failure)

    def _failed(self, key: str, run: Ran, number: int) -> None:
        failure = self.known.pop(key, None)
        if failure is None or not failure.open:
            failure = Failure(run.command.strip(), first=number)
        failure.times += 1
        failure.last = number
        failure.error = complaint(self.redact(run.output)) or failure.error
        self.known[key] = failure
        if len(self.known) > REMEMBERED:
            self.known.popitem(last=False)

    def changed(self, number: int) -> None:
        self._last_change = number

    def said(self, text: str, number: int) -> None:
        for failure in self._explaining:
            if failure.settled is not None and number - failure.settled <= SAID_AFTER and not failure.said:
                failure.said = text
        self._explaining.clear()
