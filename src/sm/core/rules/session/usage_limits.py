"""What a usage limit of its account means to a session: it is left alone, and its work continues once.

The client may continue by itself, which the session's next prompt shows. Otherwise `engine/usage_limits.py` says when
the limit is over, one session after the other, and the session wakes its agent with its task.
"""

from __future__ import annotations

from sm.core import events as ev
from sm.core.effects import BlockPrompt, LeavePane, Outcome
from sm.core.model.client_traits import ClientTraits
from sm.core.model.message import Message, Mode, digest
from sm.core.model.message import message as new_message
from sm.core.model.message_queue import MessageQueue, at_rest, placed
from sm.core.model.session import Session, changed
from sm.core.model.usage_limit import UsageLimit, believed_reset, resume_prompt
from sm.core.values import replace

RESUME_MESSAGE = "limit-"
"""How the ids of messages begin that continue the work."""
CONTINUED = "sm: this work was continued already; nothing is sent a second time"
"""What the user reads beside the client's own prompt."""


def continued_twice(session: Session, event: ev.Event, traits: ClientTraits) -> Outcome | None:
    """Block the prompt with which the client continues work that `sm` has continued; None for every other event.

    Nothing of it reaches the agent, so for the session it has not happened.
    """
    if not session.resumed or not isinstance(event, ev.PromptSubmitted) or event.replayed:
        return None
    if not event.text.startswith(traits.continuations):
        return None
    return replace(session, resumed=False), (BlockPrompt(CONTINUED),)


def resumed_by(before: MessageQueue, after: MessageQueue, event: ev.Event) -> bool:
    """Whether the prompt that continues the work has just left for the agent."""
    if not any(_continues(message) for message in before.queue) or any(_continues(message) for message in after.queue):
        return False
    return isinstance(event, ev.PromptSubmitted) or any(_continues(flight.message) for flight in after.handed)


def _continues(message: Message) -> bool:
    return message.id.startswith(RESUME_MESSAGE)


def follow_limit(session: Session, event: ev.Event, traits: ClientTraits) -> Outcome:
    match event:
        case ev.TurnFailed(at=at, limit=limit):
            return _failed(changed(session, resumed=False), limit, at), ()
        case ev.PromptSubmitted(text=text):
            return _prompted(session, traits.as_typed(text))
        case ev.LimitEnded():
            return _ended(session, event), ()
        case ev.SessionLaunched() if session.limit is not None:
            return replace(session, limit=replace(session.limit, left=True)), ()
    return (session if session.limit is None and not isinstance(event, ev.LimitShared) else _met(session, event)), ()


def _failed(session: Session, limit: UsageLimit | None, at: float) -> Session:
    """Keep what another session of the account has met where this turn failed for another reason."""
    met, current = session.limit, session.conversation
    if limit is None:
        return changed(session, limit=None if met is None or met.tried or met.interrupted else met)
    transcript = current.transcript if current is not None else None
    resets_at = believed_reset(limit.kind, limit.resets_at, at)
    return replace(session, limit=replace(limit, resets_at=resets_at, transcript=transcript or ""))


def _met(session: Session, event: ev.Event) -> Session:
    met = session.limit
    match event:
        case ev.LimitShared(limit=limit) if met is None:
            return replace(session, limit=replace(limit, interrupted=False, tried=False, asks=False, transcript=""))
        case ev.LimitTold(at=at, kind=kind, resets_at=told) if met is not None and met.kind in {kind, "usage"}:
            return replace(session, limit=replace(met, kind=kind, resets_at=believed_reset(kind, told, at)))
        case ev.ResumeAsked() if met is not None:
            return replace(session, limit=replace(met, asks=True))
        case ev.ToolUsed() | ev.TurnEnded() if met is not None and (met.tried or met.interrupted):
            return replace(session, limit=None)  # the account is answered again
        case ev.ConversationStarted(origin=ev.Origin.CLEAR) if met is not None:
            return replace(session, limit=replace(met, interrupted=False, asks=False))  # the task is gone
    return session


def _prompted(session: Session, text: str) -> Outcome:
    """The client, its user or a message continues: the agent has another prompt by now."""
    met = session.limit
    if met is not None:
        session = replace(session, limit=replace(met, interrupted=False, tried=True, asks=False))
    queue = session.outbox
    ours = queue.step is not None and digest(text) == queue.first.digest
    left = queue if ours else _without_resume(queue)
    if left is queue:
        return session, ()
    stops = queue.step is not None and left.step is None
    session = replace(session, outbox=left, step=session.step + stops)
    return session, (LeavePane(session.step),) if stops else ()


def _without_resume(queue: MessageQueue) -> MessageQueue:
    waiting = tuple(message for message in queue.queue if not _continues(message))
    handed = tuple(flight for flight in queue.handed if not _continues(flight.message))
    if len(waiting) + len(handed) == len(queue.queue) + len(queue.handed):
        return queue
    rests = queue.step is not None and queue.first not in waiting
    return replace(at_rest(queue, attempts=0) if rests else queue, queue=waiting, handed=handed)


def _ended(session: Session, event: ev.LimitEnded) -> Session:
    met, current = session.limit, session.conversation
    if met is None:
        return session
    session = replace(session, limit=None, detail="")
    waits = session.rotation is not None and session.rotation.unfinished  # its own prompt continues the work
    if not (event.resumes and met.interrupted) or current is None or waits:
        return session
    wake = new_message(f"{RESUME_MESSAGE}{current.id[:8]}-{event.at:.3f}", resume_prompt(event.text))
    return replace(session, outbox=placed(session.outbox, replace(wake, mode=Mode.IMPORTANT)))
