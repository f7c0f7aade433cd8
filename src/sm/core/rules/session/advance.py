"""The life of a session: `advance(session, event, traits) → (session, effects)` is the one entry for every event.

The order of the parts is fixed: what the user sets, which conversation, what status, how full, the rotation, then
delivery. An event of another conversation, and the result of an older step, change nothing. At most one command goes
to the pane at a time.
"""

from __future__ import annotations

from collections.abc import Callable

from sm.core import events as ev
from sm.core.effects import (
    AddContext,
    AwaitComposer,
    Effect,
    EndClient,
    InjectHandoff,
    LeavePane,
    MakeDocument,
    Outcome,
    PaneCommand,
    RecordHandoff,
)
from sm.core.model import budget, usage_limit
from sm.core.model.client_traits import ClientTraits
from sm.core.model.handoff import HandoffState, HandoffType
from sm.core.model.message import Mode
from sm.core.model.message import message as new_message
from sm.core.model.message_queue import placed
from sm.core.model.report import Report, one_line
from sm.core.model.rotation import UNDER_WAY, Phase, Rotation, Switch
from sm.core.model.session import DIALOG_DELAY_S, SILENCE_TIMEOUT_S, Session, Status, changed
from sm.core.model.situation import Situation
from sm.core.rules import foreground_rotation, handoff_offers, hook_delivery, loop_guard, rotation, typed_delivery
from sm.core.rules.foreground_rotation import clears_in_place, counted
from sm.core.rules.loop_guard import follow_loop_guard
from sm.core.rules.session.asks import follow_asks
from sm.core.rules.session.attempt import follow_attempt
from sm.core.rules.session.budget import follow_budget
from sm.core.rules.session.compaction import follow_compaction, held_in_vain
from sm.core.rules.session.context import follow_context, with_monitor
from sm.core.rules.session.conversation import follow_conversation
from sm.core.rules.session.status import follow_status
from sm.core.rules.session.usage_limits import continued_twice, follow_limit, resumed_by
from sm.core.values import replace


def advance(session: Session, event: ev.Event, traits: ClientTraits) -> Outcome:
    """Return the session after `event`, and what to do about it; `traits` are those of its client."""
    if not concerns(session, event):
        return session, ()
    if (blocked := continued_twice(session, event, traits)) is not None:
        return blocked
    effects: tuple[Effect, ...] = ()
    for part in PARTS:
        session, more = part(session, event, traits)
        effects += more
    session, effects = _told_again(session, event, effects)
    if isinstance(event, ev.TurnFailed) and event.refusal:
        session, more = advance(session, ev.ClientBlocked(at=event.at, reason=event.refusal), traits)
        effects += more
    return (changed(session, last_activity=event.at) if isinstance(event, HOOKED) else session), effects


def concerns(session: Session, event: ev.Event) -> bool:
    """False for what belongs to another conversation, to an older step, or to a client that has ended."""
    if session.ended and not isinstance(event, AFTER_END):
        return False
    if session.ended and isinstance(event, ev.SessionLaunched) and event.in_place:
        return False
    if isinstance(event, ev.StepResult):
        return event.step == session.step
    if isinstance(event, BOUND):
        return session.conversation is not None and event.conversation == session.conversation.id
    return True


AFTER_END = (
    ev.SessionLaunched
    | ev.LaunchFailed
    | ev.SessionKilled
    | ev.SessionRenamed
    | ev.DriverChanged
    | ev.PolicyChanged
    | ev.MessageQueued
    | ev.MessageCancelled
    | ev.MessagesSought
    | ev.ReplyLost
    | ev.HandoffCancelled
    | ev.HandoffWithdrawn
    | ev.DocumentKept
    | ev.AskWithdrawn
)
"""What can still happen to a session whose client has ended; a client that is started again says so first."""
BOUND = (
    ev.PromptSubmitted
    | ev.ToolAsked
    | ev.ToolUsed
    | ev.PermissionAsked
    | ev.TurnEnded
    | ev.TurnFailed
    | ev.CompactionStarted
    | ev.CompactionEnded
    | ev.ContextRead
    | ev.ContextReported
    | ev.WindowTold
    | ev.LimitTold
    | ev.TranscriptMoved
    | ev.AgentWarned
    | ev.CompactedTooLate
)
HOOKED = (
    ev.ConversationStarted
    | ev.PromptSubmitted
    | ev.ToolAsked
    | ev.ToolUsed
    | ev.PermissionAsked
    | ev.TurnEnded
    | ev.TurnFailed
    | ev.CompactionStarted
    | ev.CompactionEnded
    | ev.ContextReported
)


def situation(session: Session, traits: ClientTraits) -> Situation:
    current = session.conversation
    return Situation(
        idle=session.status is Status.IDLE and session.dialog is None and not session.left_alone,
        working=session.status in {Status.WORKING, Status.SILENT} and session.dialog is None,
        held=bool(session.left_alone) or (session.rotation is not None and session.rotation.holds_messages),
        ended=session.ended,
        typed_to=session.pane is not None,
        takes_prompts=session.takes_prompts,
        max_hold=session.policy.max_hold,
        fresh=session.fresh,
        turn_over=(session.at_prompt or session.status is Status.BLOCKED) and not session.left_alone,
        conversation=current.id if current else None,
        before=session.past[-1] if session.past else None,
        transcript=current.transcript if current else None,
        step=session.step + 1,
        background=session.background,
        scheduled=session.scheduled,
        can_be_told=session.can_be_told,
        wait_background=session.policy.wait_background,
        traits=traits,
        dialog_shows=0.0 if session.dialog is None else session.dialog + DIALOG_DELAY_S,
        progress=current.monitor.progress if current else 0,
        adopted=session.adopted,
        foreground=session.foreground,
        paused="" if session.rotation is None else loop_guard.paused(session, changed=session.rotation.progress),
        can_fork=session.can_fork,
        provider=session.provider,
    )


def next_alarm(session: Session) -> float | None:
    """When the next deadline of the session passes, UTC seconds; an ended one has none left."""
    if session.ended:
        return None
    deadlines = [session.outbox.deadline, session.outbox.look, *(message.expires for message in session.outbox.free)]
    if session.rotation is not None:
        deadlines.append(session.rotation.deadline)
    if session.status is Status.WORKING:
        deadlines.append(session.last_activity + SILENCE_TIMEOUT_S)
    return min((deadline for deadline in deadlines if deadline is not None), default=None)


# --- what the user decides about it -----------------------------------------------------------------------------------


def _administer(session: Session, event: ev.Event, _: ClientTraits) -> Outcome:
    match event:
        case ev.PolicyChanged(policy=policy):
            return replace(session, policy=policy), ()
        case ev.LimitsChanged(limits=limits):
            return replace(session, limits=limits), ()
        case ev.DriverChanged(driver=driver, reason=reason):
            return replace(session, driver=driver, driver_note=reason), ()
        case ev.SessionRenamed(name=name):
            return replace(session, name=name), ()
    return session, ()


def _report(session: Session, event: ev.Event, _: ClientTraits) -> Outcome:
    """What the agent says of itself; a task it has declared complete is over until it is given another."""
    match event:
        case ev.StatusReported(at=at, text=text):
            return replace(session, report=Report(one_line(text), at)), ()
        case ev.TaskCompleted(at=at, text=text):
            return replace(session, report=Report(one_line(text), at, done=True)), ()
        case ev.PromptSubmitted() if session.report is not None and session.report.done:
            return replace(session, report=None), ()
        case ev.ClearRequested():
            return replace(session, report=None), ()
    return session, ()


# --- rotation and delivery -------------------------------------------------------------------------------------------


def _rotate(session: Session, event: ev.Event, traits: ClientTraits) -> Outcome:
    match event:
        case ev.HandoffRequested() | ev.ClearRequested():
            return _request(session, event, traits)
        case ev.DocumentKept():
            return _keep(session, event, traits)
        case ev.ClientBlocked() if (made := held_in_vain(session)) is not None:
            return _request(session, ev.HandoffRequested(at=event.at, handoff=made), traits)
    old, session = session.rotation, _count_restarts(session, event)
    session, effects = (session, ()) if old is None else _advance_rotation(session, old, event, traits)
    match event:
        case ev.ClientExited() | ev.SessionKilled() | ev.LaunchFailed():
            session, effects = _give_back(session, old, effects, crashed=isinstance(event, ev.ClientExited))
        case ev.HandoffWithdrawn(handoff=withdrawn) if session.kept is not None and session.kept.id == withdrawn:
            session = replace(session, kept=None)
    return _ordered(*_inform(session, event, effects))


def _advance_rotation(session: Session, old: Rotation, event: ev.Event, traits: ClientTraits) -> Outcome:
    rules = rotation if session.foreground is None else foreground_rotation
    moved, effects = rules.advance(old, _as_lifted(session, old, event), situation(session, traits))
    if session.left_alone:
        moved, effects = _left_alone(session.left_alone, old, moved, event, effects)
    done = (moved.phase is Phase.DONE) - (old.phase is Phase.DONE)
    if done > 0:
        session = replace(session, kept=None, guard=loop_guard.rotated(session, moved))
    return changed(session, rotation=moved, rotations=session.rotations + done), effects


def _left_alone(
    reason: str, old: Rotation, moved: Rotation, event: ev.Event, effects: tuple[Effect, ...]
) -> rotation.Outcome:
    """Begin no rotation, and wake no agent in a cleared context, until the session is not left alone any more."""
    if _begins(old, moved, event):
        return replace(old, note=reason, deadline=None), ()
    moved = replace(moved, note=reason) if moved.note in HELD_REASONS else moved
    waits = [effect for effect in effects if isinstance(effect, AwaitComposer)]
    if moved.phase is not Phase.EMPTY or not waits:
        return moved, effects
    others = (LeavePane(effect.step) if isinstance(effect, AwaitComposer) else effect for effect in effects)
    return replace(moved, note=reason, deadline=None), tuple(others)


HELD_REASONS = frozenset({usage_limit.HELD_REASON, budget.HELD_REASON})


def _begins(old: Rotation, moved: Rotation, event: ev.Event) -> bool:
    """Whether something is to be typed or ended from now on; a new conversation has begun by itself."""
    waited = old.phase in {Phase.PENDING, Phase.FAILED} and moved.phase in UNDER_WAY
    return waited and not isinstance(event, ev.ConversationStarted)


def _as_lifted(session: Session, old: Rotation, event: ev.Event) -> ev.Event:
    """A rotation that waited for the end of a limit, or for the user, begins then, though no turn has ended since.

    A budget stops it and lets it continue as a usage limit does.
    """
    if isinstance(event, ev.BudgetRead) and session.budget.paused:
        return ev.LimitShared(at=event.at, limit=usage_limit.UsageLimit("budget"))
    free = not session.left_alone
    if free and old.note in HELD_REASONS and isinstance(event, ev.BudgetRead | ev.MessageQueued):
        event = ev.LimitEnded(at=event.at)
    waits = old.phase is Phase.PENDING and free and session.at_prompt
    limited = old.note in HELD_REASONS and isinstance(event, ev.LimitEnded)
    asked = old.paused and isinstance(event, ev.MessageQueued | ev.PolicyChanged)
    answered = asked and not loop_guard.paused(session, changed=old.progress)
    return ev.HandoffRetried(at=event.at) if waits and (limited or answered) else event


START_PROMPT_S = 10.0
"""Seconds in which a conversation's first prompt may be an argument of its client, and not the user's."""


def _count_restarts(session: Session, event: ev.Event) -> Session:
    """Count the contexts that `sm run` leaves; a prompt of the user, later than one of a start, resets the count."""
    foreground, current = session.foreground, session.conversation
    if foreground is None or current is None:
        return session
    match event:
        case ev.RestartTaken(at=at):
            return replace(session, foreground=counted(foreground, at, current.monitor.progress))
        case ev.ConversationEnded(at=at, conversation=current.id) if clears_in_place(session.rotation):
            return replace(session, foreground=counted(foreground, at, current.monitor.progress))
        case ev.PromptSubmitted(at=at) if at - current.started >= START_PROMPT_S and foreground.restarts:
            return replace(session, foreground=replace(foreground, restarts=()))
    return session


def _give_back(session: Session, old: Rotation | None, effects: tuple[Effect, ...], *, crashed: bool) -> Outcome:
    """At the client's end. What its own rotation is over for stays the session's newest document all the same."""
    left = handoff_offers.left_behind(old, session.rotation, session.kept)
    if left is not None:
        owed = session.rotation is not None and session.rotation.unfinished
        session, effects = changed(session, kept=None if owed else left), handoff_offers.given_back(left, effects)
    if crashed and session.status is Status.CRASHED and handoff_offers.tells_too_little(left):
        effects = (*effects, MakeDocument(rotate=False, kind=HandoffType.CRASH))
    return session, effects


def _inform(session: Session, event: ev.Event, effects: tuple[Effect, ...]) -> Outcome:
    """Let a context that begins know of what was handed off; a rotation that has given its document comes first."""
    if isinstance(event, ev.CompactionStarted):
        return changed(session, told="", untold=""), effects
    if isinstance(event, ev.ReplyLost) and event.document and event.document == session.told:
        return changed(session, told="", untold=event.document), effects
    if isinstance(event, ev.ConversationStarted) and not any(isinstance(effect, InjectHandoff) for effect in effects):
        own = handoff_offers.newest(session.rotation, session.kept)
        effects = (*effects, *handoff_offers.at_start(event, session.offer, own, session.told))
        session = changed(session, offer=None)
    given = [effect.handoff.id for effect in effects if isinstance(effect, InjectHandoff)]
    return (changed(session, told=given[-1]) if given else session), effects


def _told_again(session: Session, event: ev.Event, effects: tuple[Effect, ...]) -> Outcome:
    """Give a document whose hook did not wait for it with the next hook that has nothing else to say."""
    carries = isinstance(event, ev.ToolUsed) or (isinstance(event, ev.PromptSubmitted) and not event.replayed)
    own = handoff_offers.newest(session.rotation, session.kept)
    speaks = any(isinstance(effect, AddContext | InjectHandoff) for effect in effects)
    if own is None or own.id != session.untold or not carries or speaks:
        return session, effects
    return changed(session, told=own.id, untold=""), (*effects, InjectHandoff(own, None, until=event.at))


def _request(session: Session, event: ev.HandoffRequested | ev.ClearRequested, traits: ClientTraits) -> Outcome:
    old = session.rotation
    records: tuple[Effect, ...] = ()
    if old is not None and old.active and old.handoff is not None:
        records = (RecordHandoff(old.handoff, HandoffState.CLEARED, REPLACED),)
    handoff = event.handoff if isinstance(event, ev.HandoffRequested) else None
    progress = not isinstance(event, ev.HandoffRequested) or event.progress
    rules = rotation if session.foreground is None else foreground_rotation
    switch = _wanted_switch(session, event)
    held = session if switch is None else replace(session, limit=None)  # the other client has its own account
    seen = replace(situation(held, traits), paused=loop_guard.paused(session, changed=progress))
    started, effects = rules.start(handoff, event.at, seen)
    started = replace(started, progress=progress, switch=switch)
    started = replace(started, note=held.left_alone) if held.left_alone else started
    if handoff is not None:
        records += (RecordHandoff(handoff, HandoffState.PENDING),)
    return _ordered(replace(session, rotation=started, kept=None), (*records, *effects))


REPLACED = "replaced by a newer one"


def _wanted_switch(session: Session, event: ev.HandoffRequested | ev.ClearRequested) -> Switch | None:
    wanted = event.switch if isinstance(event, ev.HandoffRequested) else None
    return None if wanted is None or wanted.to == session.provider else wanted


def _keep(session: Session, event: ev.DocumentKept, traits: ClientTraits) -> Outcome:
    """A document made for the session. One of the agent's own that is still to be taken up says more."""
    if session.rotation is not None and session.rotation.unfinished:
        return session, (RecordHandoff(event.handoff, HandoffState.CLEARED, "the agent's own document waits"),)
    current = session.conversation
    refuses = session.status is Status.BLOCKED and session.was_held
    if (event.rotate or refuses) and current is not None and current.id == event.handoff.conversation:
        wanted = ev.HandoffRequested(at=event.at, handoff=event.handoff, progress=event.progress)
        return _request(session, wanted, traits)
    record = RecordHandoff(event.handoff, HandoffState.ACTIVE, held=not session.ended)
    return replace(session, kept=event.handoff), (record,)


def _deliver(session: Session, event: ev.Event, traits: ClientTraits) -> Outcome:
    ordered = session.rotation is not None and session.rotation.phase in UNDER_WAY
    if ordered and isinstance(event, ev.StepResult):
        return session, ()
    seen = situation(session, traits)
    queue, effects = typed_delivery.advance(session.outbox, event, seen)
    ours = isinstance(event, ev.PromptSubmitted) and typed_delivery.took(session.outbox, queue)
    queue, carried = hook_delivery.advance(queue, event, seen, ours=ours)
    resumed = session.resumed or resumed_by(session.outbox, queue, event)
    session, effects = _ordered(changed(session, outbox=queue, resumed=resumed), (*effects, *carried))
    if isinstance(event, ev.SessionKilled):
        return session, (*effects, EndClient())
    if isinstance(event, ev.TurnEnded) and any(isinstance(effect, AddContext) for effect in carried):
        session = changed(session, status=Status.WORKING, at_prompt=False)
    session = _queue_owed(session, event.at)
    if not session.outbox.queue:
        return session, effects
    queue, more = typed_delivery.begin(session.outbox, situation(session, traits))
    session, more = _ordered(changed(session, outbox=queue), more)
    return session, (*effects, *more)


def _queue_owed(session: Session, at: float) -> Session:
    """To an idle agent a warning is a queued message, ahead of the others; one that the user started is left idle."""
    current = session.conversation
    if current is None or not current.monitor.owed or session.outbox.step is not None or not _may_type(session):
        return session
    text = current.monitor.owed[-1]
    notice = replace(new_message(f"context-{current.id[:8]}-{at:.3f}", text), mode=Mode.IMPORTANT)
    session = with_monitor(session, current, replace(current.monitor, owed=()))
    return replace(session, outbox=placed(session.outbox, notice))


def _may_type(session: Session) -> bool:
    held = session.rotation is not None and session.rotation.holds_messages
    free = session.dialog is None and not session.left_alone and not held
    return session.status is Status.IDLE and session.takes_prompts and not session.adopted and free


def _ordered(session: Session, effects: tuple[Effect, ...]) -> Outcome:
    """Return the session with its step moved on if one of `effects` is a new command to the pane."""
    steps = [effect.step for effect in effects if isinstance(effect, PaneCommand)]
    return (changed(session, step=max(session.step, *steps)) if steps else session), effects


Part = Callable[[Session, ev.Event, ClientTraits], Outcome]
PARTS: tuple[Part, ...] = (
    _administer,
    _report,
    follow_conversation,
    follow_status,
    follow_asks,
    follow_limit,
    follow_budget,
    follow_context,
    follow_loop_guard,
    _rotate,
    follow_compaction,
    follow_attempt,
    _deliver,
)
