"""A session's rotations for a reader: which phases each has entered, for how long, what the running one waits for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from sm.core.model.rotation import IN_ORDER, OVER, Phase, PhaseEntered

MAX_PHASES = 1_000
"""Of a session, the newest: a rotation enters seven, and some more for each time that it waits again."""
MAX_STEPS = 12
MAX_ROTATIONS = 30
WAITS_FOR = {
    Phase.PENDING: "the turn to end",
    Phase.RESERVED: "the client to be idle at its prompt",
    Phase.SNAPSHOT: "the terminal's history to be saved",
    Phase.CLEARING: "the new conversation",
    Phase.EMPTY: "the client to be idle in the new context",
    Phase.PROMPTING: "the client to submit the wake prompt",
}
"""What each phase waits for where its note says nothing closer."""
BEGINNINGS = frozenset({Phase.PENDING, Phase.RESERVED})


@dataclass(frozen=True, slots=True)
class PhaseStep:
    """A phase that was entered."""

    phase: str
    at: float
    seconds: float | None
    """How long it lasted; None for the last one."""


@dataclass(frozen=True, slots=True)
class RotationLine:
    """One rotation from its request to its end."""

    handoff: str
    steps: tuple[PhaseStep, ...]
    outcome: str
    """`done`, `failed`, `cancelled`, `replaced` by the next one; empty while it runs."""
    length: float | None
    """Seconds from the end of the turn that it waited for to its own end; None where the turn did not end."""
    waited: float
    """Seconds before that."""

    @property
    def began(self) -> float:
        return self.steps[0].at


@dataclass(frozen=True, slots=True)
class RunningRotation:
    """The newest rotation while it is not done: what it has gone through, where it is, and what is ahead."""

    phase: str
    since: float
    waits_for: str
    note: str
    path: str
    """Of its document; empty without one."""
    failed: bool
    passed: tuple[PhaseStep, ...] = ()
    left_out: int = 0
    """Earlier steps that are not in `passed`."""
    ahead: tuple[str, ...] = field(default=())


def rotation_lines(entered: Sequence[PhaseEntered]) -> list[RotationLine]:
    """Return the rotations that these phases are of, oldest first."""
    groups: list[list[PhaseEntered]] = []
    for each in entered:
        if not groups or _begins(groups[-1][-1], each):
            groups.append([])
        groups[-1].append(each)
    following = [group[0].at for group in groups[1:]]
    return [_line(group, end) for group, end in zip(groups, [*following, None], strict=False)]


def _begins(last: PhaseEntered, each: PhaseEntered) -> bool:
    """Whether another rotation begins: about another document, or cleared again without one."""
    again = last.phase == Phase.DONE and each.phase in BEGINNINGS
    return each.handoff != last.handoff or each.event == "ClearRequested" or again


def _line(group: list[PhaseEntered], replaced: float | None) -> RotationLine:
    steps = [PhaseStep(each.phase, each.at, after.at - each.at) for each, after in pairwise(group)]
    last = group[-1]
    ended = last.at if last.phase in OVER else replaced
    steps.append(PhaseStep(last.phase, last.at, None if ended is None else ended - last.at))
    turn = next((step.at for step in reversed(steps) if step.phase == Phase.RESERVED), None)
    outcome = last.phase if last.phase in OVER else "replaced" if replaced is not None else ""
    length = None if ended is None or turn is None else ended - turn
    waited = (ended or last.at) - group[0].at - (length or 0.0)
    return RotationLine(last.handoff, tuple(steps), outcome, length, waited)


def running(view: dict[str, Any], lines: Sequence[RotationLine]) -> RunningRotation | None:
    """Return what runs, by the session's answer `view`; None where nothing does, or the last one is over."""
    found = view["handoff"]
    phase = found["phase"]
    if phase is None or phase in {Phase.DONE, Phase.CANCELLED}:
        return None
    line = next((line for line in reversed(lines) if line.handoff == (found.get("id") or "")), None)
    passed = () if line is None else line.steps[:-1] if line.steps[-1].phase == phase else line.steps
    failed = phase == Phase.FAILED
    return RunningRotation(
        phase=phase,
        since=found.get("since") or view["created"],
        waits_for="" if failed else WAITS_FOR[Phase(phase)],
        note=found.get("note") or "",
        path=found.get("path") or "",
        failed=failed,
        passed=passed[-MAX_STEPS:],
        left_out=max(0, len(passed) - MAX_STEPS),
        ahead=() if failed else tuple(IN_ORDER[IN_ORDER.index(Phase(phase)) + 1 :]),
    )


def past(lines: Sequence[RotationLine]) -> list[RotationLine]:
    """Return those that are over, the newest first."""
    return [line for line in reversed(lines) if line.outcome][:MAX_ROTATIONS]
