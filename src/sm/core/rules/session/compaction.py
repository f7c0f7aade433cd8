"""What is done when the client compacts: its agent gets the time to hand off, and a document is made without it.

How long the client is held: `core/rules/compaction.py`.
"""

from __future__ import annotations

from sm.core import events as ev
from sm.core.effects import BlockCompaction, Effect, MakeDocument, Outcome, RecordHandoff, RefreshDocument
from sm.core.model import context_warnings
from sm.core.model.client_traits import ClientTraits
from sm.core.model.compaction import CompactionHold
from sm.core.model.handoff import Handoff, HandoffState
from sm.core.model.rotation import Phase
from sm.core.model.session import Conversation, Session, Status, changed
from sm.core.rules import compaction, loop_guard, rotation
from sm.core.rules.session.context import advice, handed_off, is_safeguard, read_context
from sm.core.values import replace


def follow_compaction(session: Session, event: ev.Event, traits: ClientTraits) -> Outcome:
    current = session.conversation
    if current is None:
        return session, ()
    match event:
        case ev.CompactionStarted():
            return _started(session, event, current, traits)
        case ev.CompactionEnded():
            ended = replace(session, conversation=replace(current, hold=CompactionHold()))
            return ended, (read_context(current, settle=True),)
        case ev.DocumentKept() | ev.DocumentForked() | ev.ServerStarted():
            return _follow_fork(session, event, current)
    return session, ()


def _follow_fork(session: Session, event: ev.Event, current: Conversation) -> Outcome:
    """Ask a fork once the document is on disk, which a client or a server that ends then leaves behind."""
    made, hold = _made(session, current), current.hold
    if made is None or not hold.fork_asked or hold.fork_answered:
        return session, ()
    if isinstance(event, ev.DocumentForked):
        answered = replace(hold, fork_answered=event.handoff == made.id)
        return replace(session, conversation=replace(current, hold=answered)), ()
    kept = event.handoff if isinstance(event, ev.DocumentKept) else made
    return session, (RefreshDocument(made, fork=True),) if kept == made else ()


def _started(session: Session, event: ev.CompactionStarted, current: Conversation, traits: ClientTraits) -> Outcome:
    """The client asks before it compacts: put off for an agent that can still hand off, never for good."""
    current = replace(current, ordered=not event.automatic, resting=session.at_prompt)
    session = replace(session, conversation=current)
    rotates = _rotates(session)
    hold = _hold(session, event.at, current, traits, rotates=rotates) if event.automatic else None
    if hold is None:
        return _let_go(session, event.at, current)
    monitor = current.monitor
    if rotates and not handed_off(session) and not monitor.owed:
        monitor = replace(monitor, told=event.at, owed=(context_warnings.critical_notice(advice(session, traits)),))
    session = replace(session, status=Status.WORKING, conversation=replace(current, hold=hold, monitor=monitor))
    return session, (BlockCompaction(compaction.HELD), *_documents(session, current.hold, hold, rotates=rotates))


def _rotates(session: Session) -> bool:
    """Whether a rotation is wanted, and can follow."""
    if session.only_watched or session.budget.paused or (session.rotation is not None and session.rotation.paused):
        return False
    wanted = session.foreground.on_compact if session.foreground is not None else session.policy.on_compact
    may = not session.adopted and loop_guard.needed_tokens(session) is None
    return handed_off(session) or (wanted == compaction.ROTATE and may)


def _hold(
    session: Session, at: float, current: Conversation, traits: ClientTraits, *, rotates: bool
) -> CompactionHold | None:
    hold = compaction.held(current.hold, current.monitor, at, traits) if rotates else None
    if not session.can_fork or handed_off(session):
        return hold
    return compaction.held_for_fork(current.hold, hold, current.monitor, at, traits)


def _documents(session: Session, before: CompactionHold, hold: CompactionHold, *, rotates: bool) -> tuple[Effect, ...]:
    """Make a document at once, lest the client ends first; a fork is asked for its text as soon as it is kept."""
    asks = hold.fork_asked > 0 and not before.fork_asked
    if rotates and not (session.rotation is not None and session.rotation.active):
        return (MakeDocument(rotate=True),)
    pending = session.rotation.handoff if rotates and session.rotation is not None else None
    if asks and pending is not None:
        return (RefreshDocument(pending, fork=True),)
    return (MakeDocument(rotate=False),) if asks else ()


def held_in_vain(session: Session) -> Handoff | None:
    """Return the document of a client that refuses to continue after it was held: nothing but a clear helps it."""
    current, pending = session.conversation, session.rotation
    free = session.was_held and not (pending is not None and pending.active)
    return _made(session, current) if current is not None and free else None


def _let_go(session: Session, at: float, current: Conversation) -> Outcome:
    """The client compacts: a rotation that only was to spare it that has nothing left to do.

    What a fork has written stays the session's document, with the newest facts; otherwise one is made by code.
    """
    forked = _made(session, current) if current.hold.fork_answered else None
    after = RefreshDocument(forked, fork=True) if forked is not None else MakeDocument(rotate=False)
    pending = session.rotation
    waiting = pending.handoff if pending is not None and pending.phase is Phase.PENDING else None
    if pending is None or waiting is None or not is_safeguard(waiting):
        return session, (after,)
    moved = rotation.entered(pending, Phase.CANCELLED, at, "the client compacted first")
    state = HandoffState.CLEARED if forked is None else HandoffState.ACTIVE
    record = RecordHandoff(waiting, state, moved.note)
    return changed(replace(session, rotation=moved), kept=forked or session.kept), (record, after)


def _made(session: Session, current: Conversation) -> Handoff | None:
    """Return the document that was made in this conversation without its agent."""
    pending = session.rotation.handoff if session.rotation is not None and session.rotation.active else None
    made = pending if is_safeguard(pending) else session.kept
    return made if made is not None and is_safeguard(made) and made.conversation == current.id else None
