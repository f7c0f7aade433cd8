"""Commands that failed, and what followed: another failure, nothing, or a run that went well and what was said then."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from sm.digest.keywords import LOOKING
from sm.digest.outputs import complaint
from sm.digest.sentences import has
from sm.digest.shell import Invocation, is_question, steps
from sm.digest.transcript_events import Ran

REMEMBERED = 2_000
"""Commands; the oldest that never failed again goes first."""
SAID_AFTER = 3
"""So many happenings after a run may pass until somebody says what it means."""

LONGEST_GUESS = 300
"""Of a text that is about a failure alone."""


@dataclass(slots=True)
class Failure:
    command: str
    steps: list[Invocation]
    times: int = 0
    error: str = ""
    first: int = 0
    """Number of the happening."""
    last: int = 0
    settled: int | None = None
    """When it went well afterwards."""
    worked: bool = False
    """Something was changed between the failure and the run that went well."""
    suspected: str = ""
    """What the agent said when it had failed."""
    said: str = ""
    """What the agent said when it went well again."""

    @property
    def open(self) -> bool:
        return self.settled is None

    @property
    def is_question(self) -> bool:
        return is_question(self.command)

    def settled_by(self, run: list[Invocation]) -> bool:
        return bool(self.steps) and all(any(one.covers(step) for one in run) for step in self.steps)


@dataclass(slots=True)
class Failures:
    redact: Callable[[str], str]
    known: OrderedDict[str, Failure] = field(default_factory=OrderedDict)
    _open: dict[str, Failure] = field(default_factory=dict)
    """Those that no run has settled, by their command."""
    _explaining: list[Failure] = field(default_factory=list)
    _last_change: int = -1

    def ran(self, run: Ran, number: int) -> None:
        key = " ".join(run.command.split())
        if run.failed:
            self._failed(key, run, number)
        elif self._open:
            done = steps(run.command)
            for name in [name for name, one in self._open.items() if name == key or one.settled_by(done)]:
                failure = self._open.pop(name)
                failure.settled = number
                failure.worked = self._last_change > failure.first
                self._explaining.append(failure)

    def _failed(self, key: str, run: Ran, number: int) -> None:
        tried = steps(run.command)
        name = next((name for name, one in self._open.items() if name == key or _alike(one.steps, tried)), None)
        failure = Failure(run.command.strip(), tried, first=number)
        if name is not None:
            failure = self._open.pop(name)
            self.known.pop(name, None)
            failure.command, failure.steps = run.command.strip(), tried
        failure.times += 1
        failure.last = number
        failure.error = complaint(self.redact(run.output)) or failure.error
        self.known.pop(key, None)
        self.known[key] = self._open[key] = failure
        if len(self.known) > REMEMBERED:
            self._open.pop(self.known.popitem(last=False)[0], None)

    def changed(self, number: int) -> None:
        self._last_change = number

    def said(self, text: str, number: int) -> None:
        if has(LOOKING, text) and len(text) <= LONGEST_GUESS:
            return
        for failure in self._explaining:
            if failure.settled is not None and number - failure.settled <= SAID_AFTER and not failure.said:
                failure.said = text
        self._explaining.clear()
        newest = next(reversed(self._open.values()), None)
        if newest and number - newest.last < SAID_AFTER and len(text) <= LONGEST_GUESS:
            newest.suspected = text


def _alike(one: list[Invocation], other: list[Invocation]) -> bool:
    return bool(one) and [(step.program, step.targets) for step in one] == [
        (step.program, step.targets) for step in other
    ]
