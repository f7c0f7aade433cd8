"""Commands that failed, and what followed: another failure, nothing, or a run that passed and what was said then."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from sm.digest.keywords import LOOKING
from sm.digest.outputs import error_lines
from sm.digest.sentences import has
from sm.digest.shell import Invocation, invocations, is_query
from sm.digest.transcript_events import CommandRan

MAX_REMEMBERED = 2_000
"""Commands; the one whose last failure is oldest goes first."""
MAX_EVENTS_BETWEEN = 3
"""An explanation comes within so many events after the run."""

MAX_GUESS_CHARS = 300
"""Of a text that is about one failure."""


@dataclass(slots=True)
class Failure:
    command: str
    invocations: list[Invocation]
    times: int = 0
    error: str = ""
    first: int = 0
    """Number of the event."""
    last: int = 0
    passed_at: int | None = None
    """Number of the event when it passed afterwards."""
    fixed_by_change: bool = False
    """A file was changed between the failure and the run that passed."""
    suspicion: str = ""
    """What the agent said when it had failed."""
    said: str = ""
    """What the agent said when it passed again."""

    @property
    def open(self) -> bool:
        return self.passed_at is None

    @property
    def is_query(self) -> bool:
        return is_query(self.command)

    def passed_by(self, run: list[Invocation]) -> bool:
        return bool(self.invocations) and all(
            any(invocation.covers(step) for invocation in run) for step in self.invocations
        )


@dataclass(slots=True)
class Failures:
    redact: Callable[[str], str]
    known: OrderedDict[str, Failure] = field(default_factory=OrderedDict)
    _open: dict[str, Failure] = field(default_factory=dict)
    """Those that have not passed since, by their command."""
    _explaining: list[Failure] = field(default_factory=list)
    _last_change: int = -1

    def ran(self, run: CommandRan, number: int) -> None:
        key = " ".join(run.command.split())
        if run.failed:
            self._failed(key, run, number)
        elif self._open:
            done = invocations(run.command)
            for name in [name for name, failure in self._open.items() if name == key or failure.passed_by(done)]:
                failure = self._open.pop(name)
                failure.passed_at = number
                failure.fixed_by_change = self._last_change > failure.first
                self._explaining.append(failure)

    def _failed(self, key: str, run: CommandRan, number: int) -> None:
        tried = invocations(run.command)
        name = next(
            (name for name, failure in self._open.items() if name == key or _same_programs(failure.invocations, tried)),
            None,
        )
        failure = Failure(run.command.strip(), tried, first=number)
        if name is not None:
            failure = self._open.pop(name)
            self.known.pop(name, None)
            failure.command, failure.invocations = run.command.strip(), tried
        failure.times += 1
        failure.last = number
        failure.error = error_lines(self.redact(run.output)) or failure.error
        self.known.pop(key, None)
        self.known[key] = self._open[key] = failure
        if len(self.known) > MAX_REMEMBERED:
            self._open.pop(self.known.popitem(last=False)[0], None)

    def changed(self, number: int) -> None:
        self._last_change = number

    def said(self, text: str, number: int) -> None:
        if has(LOOKING, text) and len(text) <= MAX_GUESS_CHARS:
            return
        for failure in self._explaining:
            if failure.passed_at is not None and number - failure.passed_at <= MAX_EVENTS_BETWEEN and not failure.said:
                failure.said = text
        self._explaining.clear()
        newest = next(reversed(self._open.values()), None)
        if newest and number - newest.last < MAX_EVENTS_BETWEEN and len(text) <= MAX_GUESS_CHARS:
            newest.suspicion = text


def _same_programs(one: list[Invocation], other: list[Invocation]) -> bool:
    return bool(one) and [(step.program, step.targets) for step in one] == [
        (step.program, step.targets) for step in other
    ]
