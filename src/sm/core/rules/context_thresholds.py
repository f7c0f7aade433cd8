"""When a conversation is so full that its agent is warned, and warned again.

Thresholds are compared with `projected` (what the next request will weigh), since that is what the client itself
compares before it compacts. A latch, once set, is reset by a new conversation, a compaction or the user, never because
the number fell.
"""

from __future__ import annotations

from sm.core.model.capacity import CRITICAL, WARNING
from sm.core.model.context import ContextReading, Level, Monitor, Policy, Source, ToolWork
from sm.core.model.context_warnings import ADVICE, Advice, critical_notice, fallback_notice, warning_notice
from sm.core.model.session import Session
from sm.core.values import replace


def estimate(work: ToolWork, policy: Policy) -> int:
    """Tokens a tool call probably added: by the weight of its kind, or else the weight of any call."""
    weight = dict(policy.weights).get(work.kind.value)
    return round(policy.call_base if weight is None else weight * work.amount)


def without_usage(reading: ContextReading, before: ContextReading) -> ContextReading:
    """The reading as one who leaves the client's counts out has it: what a compaction left behind, else nothing."""
    if reading.boundary is not None:
        base = reading.boundary[1] or 0
    else:
        base = (before.tokens or 0) if before.source is Source.ESTIMATE else 0
    return replace(reading, tokens=base, projected=base, source=Source.ESTIMATE, exact=False, lower_bound=True)


def as_reported(reading: ContextReading, tokens: int | None) -> ContextReading:
    """The reading with the client's own figure, where the transcript shows another one, as before it is written."""
    if tokens is None or reading.tokens == tokens:
        return reading
    return replace(
        reading,
        tokens=tokens,
        projected=tokens,
        source=Source.USAGE,
        exact=True,
        stale=False,
        lower_bound=False,
        continues=False,
    )


def measured(monitor: Monitor, reading: ContextReading, usable: int | None) -> Monitor:
    """Return the monitor after a reading. The estimate starts again: the exact value decides.

    Where nothing can be read any more, as of a deleted file, the last value is kept and marked as stale.
    """
    if reading.projected is None and monitor.reading.projected is not None:
        return replace(monitor, reading=replace(monitor.reading, stale=True))
    counts = {
        name: getattr(reading, name) if getattr(reading, name) is not None else getattr(monitor.reading, name)
        for name in ("compactions", "messages", "output_tokens", "malformed")
    }
    reading = replace(reading, **counts)
    moved = (reading.tokens, reading.projected) != (monitor.reading.tokens, monitor.reading.projected)
    return replace(monitor, reading=reading, usable=usable, estimate=0 if moved else monitor.estimate)


def counted(monitor: Monitor, tool: str, work: ToolWork, policy: Policy) -> Monitor:
    """Return the monitor after a tool call, with the call's estimated weight on top."""
    added = estimate(work, policy)
    by_tool = dict(monitor.breakdown)
    by_tool[tool] = by_tool.get(tool, 0) + added
    return replace(
        monitor,
        estimate=monitor.estimate + added,
        breakdown=tuple(by_tool.items()),
        tool_calls=monitor.tool_calls + 1,
    )


def saved(monitor: Monitor, at: float) -> Monitor:
    """Return the monitor after a continuation prompt was written, or the user wanted none: nothing is owed any more."""
    return replace(monitor, saved=at, owed=())


def is_due(tool_calls: int, policy: Policy) -> bool:
    """Whether the context is looked at with the tool call of that number."""
    return policy.enabled and tool_calls % max(1, policy.check_frequency) == 0


def level(monitor: Monitor, policy: Policy) -> Level:
    """Return the level that the projected size reaches now, whatever has been latched before."""
    projected = monitor.projected
    if projected is None:
        return Level.UNKNOWN
    warning, critical = thresholds(monitor, policy)
    if critical is not None and projected >= critical:
        return Level.CRITICAL
    return Level.WARNING if warning is not None and projected >= warning else Level.OK


def thresholds(monitor: Monitor, policy: Policy) -> tuple[int | None, int | None]:
    """Return the tokens at which the agent is warned, and at which it is to hand off."""
    usable = None if monitor.exceeds_window else monitor.usable
    given = (policy.critical.at(usable, CRITICAL.tokens), policy.max_tokens)
    critical = min((limit for limit in given if limit is not None), default=None)
    return policy.warning.at(usable, WARNING.tokens), critical


def turns_left(session: Session) -> int | None:
    """Return how many turns more until its agent is to hand off, if the context grows as it has grown so far.

    None where that is not known, as before the first turn has ended.
    """
    current = session.conversation
    if current is None or not current.turns or current.start is None or current.monitor.projected is None:
        return None
    critical = thresholds(current.monitor, session.policy)[1]
    grown = current.monitor.projected - current.start
    if critical is None or grown <= 0:
        return None
    return max(0, critical - current.monitor.projected) * current.turns // grown


def decide(
    monitor: Monitor, policy: Policy, at: float, advice: Advice = ADVICE, *, handed_off: bool, in_turn: bool = True
) -> Monitor:
    """Return the monitor with what the agent is owed now: each level once, a jump over both the critical one alone.

    While a handoff is pending nothing is owed. An agent that waits for its user is not warned again: it starts a turn.
    """
    if not policy.enabled:
        return monitor
    now = level(monitor, policy)
    if now in {Level.WARNING, Level.CRITICAL} and now not in monitor.crossed_levels:
        return _cross(monitor, now, at, advice, handed_off=handed_off)
    repeat = 0 < policy.remind_every <= at - monitor.told and monitor.saved < monitor.told
    if Level.CRITICAL in monitor.crossed_levels and repeat and in_turn and not handed_off and not monitor.owed:
        return replace(monitor, told=at, owed=(critical_notice(advice),))
    unread = monitor.reading.projected is None and now in {Level.OK, Level.UNKNOWN}
    if unread and monitor.tool_calls >= policy.fallback_tool_count and not monitor.fallback_told:
        notice = fallback_notice(monitor.tool_calls, advice)
        return replace(monitor, fallback_told=True, told=at, owed=(*monitor.owed, notice))
    return monitor


def _cross(monitor: Monitor, now: Level, at: float, advice: Advice, *, handed_off: bool) -> Monitor:
    levels = (Level.WARNING, Level.CRITICAL) if now is Level.CRITICAL else (Level.WARNING,)
    fresh = tuple((level, at) for level in levels if level not in monitor.crossed_levels)
    if not fresh or (now is Level.WARNING and Level.CRITICAL in monitor.crossed_levels):
        return monitor
    notice = (
        critical_notice(advice) if now is Level.CRITICAL else warning_notice(monitor.projected, monitor.percent, advice)
    )
    # The newer notice replaces one that was never carried: two at once would contradict each other.
    return replace(monitor, crossed=monitor.crossed + fresh, told=at, owed=() if handed_off else (notice,))
