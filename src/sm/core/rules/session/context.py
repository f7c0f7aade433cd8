"""Which events measure a session's context, and which hook's reply carries a warning.

When one is due: `core/rules/context_thresholds.py`. With it the gate, and the events that follow.
"""

from __future__ import annotations

from collections.abc import Callable

from sm.core import events as ev
from sm.core.effects import (
    AddContext,
    DenyTool,
    KeepDocument,
    Outcome,
    ReadContext,
    TellParent,
)
from sm.core.model import capacity, context_warnings
from sm.core.model.capacity import Lesson
from sm.core.model.client_traits import ClientTraits
from sm.core.model.compaction import CompactionHold
from sm.core.model.context import ContextReading, Level, Monitor
from sm.core.model.handoff import Handoff, HandoffType
from sm.core.model.primer import primer
from sm.core.model.session import Conversation, Session, Status, changed
from sm.core.rules import context_thresholds, gate, loop_guard
from sm.core.values import replace


def follow_context(session: Session, event: ev.Event, traits: ClientTraits) -> Outcome:
    handler = CONTEXT_HANDLERS.get(type(event))
    current = session.conversation
    if handler is None or current is None:
        return session, ()
    return handler(session, event, current, traits)


def with_monitor(session: Session, current: Conversation, monitor: Monitor) -> Session:
    return replace(session, conversation=replace(current, monitor=monitor))


def handed_off(session: Session) -> bool:
    """True if the agent itself has written down how to continue; a document made without it is only a safeguard."""
    current = session.rotation
    return current is not None and current.active and not is_safeguard(current.handoff)


def is_safeguard(handoff: Handoff | None) -> bool:
    """Whether it was made when the client was about to compact, without its agent."""
    return handoff is not None and handoff.type is HandoffType.COMPACTION


def _judged(session: Session, monitor: Monitor, at: float, traits: ClientTraits) -> Monitor:
    if loop_guard.needed_tokens(session, monitor) is not None:
        return monitor  # its agent may not hand off yet
    in_turn = session.status in {Status.WORKING, Status.SILENT, Status.WAITING}
    given = (monitor, session.policy, at, advice(session, traits))
    return context_thresholds.decide(*given, handed_off=handed_off(session), in_turn=in_turn)


def advice(session: Session, traits: ClientTraits) -> context_warnings.Advice:
    if session.adopted:
        by_tool = not session.only_watched
        return context_warnings.advice_by_tool(traits) if by_tool else context_warnings.advice_for_user(traits)
    tool = traits.handoff_tool if session.driver is ev.DrivenBy.MOD else ""
    return context_warnings.advice_of(context_warnings.handoff_file(session.id), tool)


def _tool_used(session: Session, event: ev.ToolUsed, current: Conversation, traits: ClientTraits) -> Outcome:
    policy = session.policy
    monitor = context_thresholds.counted(current.monitor, event.tool, event.work, policy)
    saved = bool(event.document) and session.adopted and not event.failed
    monitor = context_thresholds.saved(monitor, event.at) if saved else monitor
    due = context_thresholds.is_due(monitor.tool_calls, policy)
    monitor = _judged(session, monitor, event.at, traits) if due else monitor
    session, effects = _tell(with_monitor(session, current, monitor))
    if due:
        effects += (read_context(current, settle=True),)
    return session, (*effects, KeepDocument(event.document)) if saved else effects


def _tool_asked(session: Session, event: ev.ToolAsked, current: Conversation, traits: ClientTraits) -> Outcome:
    """The gate: past the critical level only what serves the handoff, until one is pending."""
    policy = session.policy
    closed = policy.gate and policy.enabled and not session.adopted and not handed_off(session)
    closed = closed and loop_guard.needed_tokens(session) is None
    if not closed or event.permitted or context_thresholds.level(current.monitor, policy) is not Level.CRITICAL:
        return session, ()
    return session, (DenyTool(gate.reason(session.id, traits, with_tool=session.driver is ev.DrivenBy.MOD)),)


def _tell(session: Session) -> Outcome:
    """Let this hook's reply carry what is owed."""
    current = session.conversation
    if current is None or not current.monitor.owed or handed_off(session):
        return session, ()
    owed = current.monitor.owed
    return with_monitor(session, current, replace(current.monitor, owed=())), (AddContext("\n".join(owed), owed),)


def read_context(current: Conversation, *, settle: bool) -> ReadContext:
    return ReadContext(current.id, current.transcript, current.epoch, settle)


def _prompt_submitted(session: Session, event: ev.PromptSubmitted, _: Conversation, __: ClientTraits) -> Outcome:
    return (session, ()) if event.replayed else _tell(session)


def _turn_over(session: Session, _: ev.Event, current: Conversation, __: ClientTraits) -> Outcome:
    return session, (read_context(current, settle=True),)


def _went_idle(session: Session, event: ev.ActivityChanged, current: Conversation, _: ClientTraits) -> Outcome:
    """A Stop hook that takes its time holds back the record of the turn's last reply: it is there once all is idle."""
    idle = event.activity is ev.Activity.IDLE
    return session, (read_context(current, settle=True),) if idle else ()


def _context_reported(
    session: Session, event: ev.ContextReported, current: Conversation, traits: ClientTraits
) -> Outcome:
    """The client's own count decides at once; the weight of the reply to it comes with the transcript."""
    reading = replace(current.monitor.reading, window=event.window, assumed=False)
    usable = capacity.taught(event.usable, session.lesson, reading.model or session.model)
    monitor = replace(current.monitor, reported=event.tokens)
    if session.policy.baseline:
        monitor = context_thresholds.measured(monitor, context_thresholds.as_reported(reading, event.tokens), usable)
        monitor = _judged(session, monitor, event.at, traits)
    session = replace(with_monitor(session, current, monitor), window=event.window)
    return session, (read_context(current, settle=True),)


def _context_read(session: Session, event: ev.ContextRead, current: Conversation, traits: ClientTraits) -> Outcome:
    if event.epoch != current.epoch:
        return session, ()
    session, effects = _notice_boundary(session, current, event.reading)
    current = session.conversation or current
    last = current.monitor.reading
    reading = event.reading if session.policy.baseline else context_thresholds.without_usage(event.reading, last)
    model = capacity.named(event.reading.model, session.model)
    usable = capacity.taught(event.usable, session.lesson, model)
    if session.policy.baseline and session.driver is ev.DrivenBy.MOD:
        reading = context_thresholds.as_reported(reading, current.monitor.reported)
    monitor = context_thresholds.measured(current.monitor, reading, usable)
    monitor = _judged(session, monitor, event.at, traits)
    session = changed(with_monitor(session, current, monitor), model=model)
    session, told = _tell(session) if session.can_be_told else (session, ())
    return session, (*effects, *told)


def _window_told(session: Session, event: ev.WindowTold, current: Conversation, traits: ClientTraits) -> Outcome:
    reading = replace(current.monitor.reading, window=event.window, assumed=False)
    usable = capacity.taught(event.usable, session.lesson, reading.model or session.model)
    monitor = _judged(session, replace(current.monitor, reading=reading, usable=usable), event.at, traits)
    return replace(with_monitor(session, current, monitor), window=event.window), ()


def _notice_boundary(session: Session, current: Conversation, reading: ContextReading) -> Outcome:
    """A boundary that was not there before: the client compacted before a handoff came."""
    fresh = reading.boundary is not None and reading.boundary != current.boundary and current.looked
    boundary = reading.boundary if reading.boundary is not None else current.boundary
    if not current.looked or boundary != current.boundary:
        current = replace(current, boundary=boundary, looked=True)
        session = replace(session, conversation=current)
    if not fresh or reading.boundary is None:
        return session, ()
    before, after = reading.boundary
    session = _learned(session, current, reading)
    ordered = current.ordered
    current = replace(current, monitor=Monitor(tool_calls=current.monitor.tool_calls), ordered=False)
    session = replace(session, conversation=current)
    if ordered:
        return session, ()
    session = replace(session, too_late=session.too_late + 1)
    return session, (TellParent(context_warnings.too_late_notice(session.name, before, after)),)


def _learned(session: Session, current: Conversation, reading: ContextReading) -> Session:
    """Where the client compacted by itself, at work, its limit is, whatever was assumed."""
    before = reading.boundary[0] if reading.boundary is not None else None
    if before is None or not reading.automatic or current.ordered or current.resting:
        return session
    model = capacity.named(reading.model, session.model)
    known = capacity.taught(before, session.lesson, model)
    return replace(session, lesson=Lesson(model, before if known is None else known))


def _started(session: Session, event: ev.ConversationStarted, current: Conversation, traits: ClientTraits) -> Outcome:
    if event.origin is ev.Origin.COMPACT:
        fresh = Monitor(tool_calls=current.monitor.tool_calls)
        current = replace(current, monitor=fresh, looked=True, hold=CompactionHold())
        session = replace(session, conversation=current)
    first = event.origin in {*ev.STARTS, ev.Origin.FORK}
    told = first and session.policy.primer and not session.adopted
    tool = traits.handoff_tool if session.may_have_plugin else ""
    first_words = (AddContext(primer(session.id, tool)),) if told else ()
    return session, (*first_words, read_context(current, settle=False))


def _rearm(session: Session, event: ev.Event, current: Conversation, traits: ClientTraits) -> Outcome:
    monitor = replace(current.monitor, crossed=(), owed=(), told=0.0, fallback_told=False)
    # Nothing new may come to be read of an idle agent: what is known already decides.
    monitor = _judged(session, monitor, event.at, traits)
    return with_monitor(session, current, monitor), (read_context(current, settle=False),)


def _declined(session: Session, event: ev.HandoffDeclined, current: Conversation, _: ClientTraits) -> Outcome:
    return with_monitor(session, current, context_thresholds.saved(current.monitor, event.at)), ()


def _reply_lost(session: Session, event: ev.ReplyLost, current: Conversation, _: ClientTraits) -> Outcome:
    owed = (*event.notices, *(notice for notice in current.monitor.owed if notice not in event.notices))
    return with_monitor(session, current, replace(current.monitor, owed=owed)), ()


ContextHandler = Callable[[Session, ev.Event, Conversation, ClientTraits], Outcome]

CONTEXT_HANDLERS: dict[type[ev.Event], ContextHandler] = dict(
    (
        ev.on(ev.ToolAsked, _tool_asked),
        ev.on(ev.ToolUsed, _tool_used),
        ev.on(ev.PromptSubmitted, _prompt_submitted),
        ev.on(ev.TurnEnded, _turn_over),
        ev.on(ev.TurnFailed, _turn_over),
        ev.on(ev.ContextRead, _context_read),
        ev.on(ev.ContextReported, _context_reported),
        ev.on(ev.ActivityChanged, _went_idle),
        ev.on(ev.WindowTold, _window_told),
        ev.on(ev.ConversationStarted, _started),
        ev.on(ev.LatchesReset, _rearm),
        ev.on(ev.HandoffDeclined, _declined),
        ev.on(ev.ReplyLost, _reply_lost),
    )
)


def derived_events(before: Session, after: Session, event: ev.Event) -> tuple[ev.Event, ...]:
    """Return the events that follow from `event`: the agent was warned, or a compaction came before its handoff."""
    current = after.conversation
    if current is None or before.conversation is None or before.conversation.id != current.id:
        return ()
    found: list[ev.Event] = []
    if after.too_late > before.too_late:
        sizes = current.boundary or (None, None)
        found.append(ev.CompactedTooLate(at=event.at, conversation=current.id, before=sizes[0], after=sizes[1]))
    earlier, now = before.conversation.monitor, current.monitor
    if now.told > earlier.told and not handed_off(after):
        level = next((level for level in WARNED if level in now.crossed_levels), Level.UNKNOWN)
        repeated = level is not Level.UNKNOWN and now.crossed == earlier.crossed
        warned = ev.AgentWarned(
            at=event.at,
            conversation=current.id,
            level=level.value,
            tokens=now.projected,
            percent=now.percent,
            repeated=repeated,
        )
        found.append(warned)
    return tuple(found)


WARNED = (Level.CRITICAL, Level.WARNING)
