"""Delivery by typing: one message at a time, in order.

A message leaves the queue when UserPromptSubmit shows exactly its text, or unconfirmed after MAX_RETRIES. It is then
delivered, and confirmed by the agent's next hook or by the transcript: a client that is killed in between has lost it.
A user who submits first has the turn; the message waits for the next idle prompt. Before a text is typed again the
transcript is searched once more: a slow client may have taken it since, and its hook may be lost. An urgent message is
typed into a client that works as well: that puts it into the client's own queue, and the transcript tells when it was
read.
"""

from __future__ import annotations

from collections.abc import Callable

from sm.core import events as ev
from sm.core.effects import AwaitBox, AwaitComposer, BlockPrompt, Effect, FindPrompt, LeavePane, RecordMessage, TypeText
from sm.core.model.message import Channel, MessageState, Mode
from sm.core.model.message import digest as digest_of
from sm.core.model.message_queue import InFlight, MessageQueue, at_rest, in_doubt, without_first
from sm.core.model.situation import Situation
from sm.core.values import replace

TYPED_TIMEOUT_S = 10.0
START_TIMEOUT_S = 60.0
"""A client takes a prompt while it still loads its plugins and runs the hooks of its start, and submits it after them:
10 s later where many start at once (seen)."""
MAX_RETRIES = 3

Outcome = tuple[MessageQueue, tuple[Effect, ...]]


def advance(queue: MessageQueue, event: ev.Event, situation: Situation) -> Outcome:
    handler = HANDLERS.get(type(event)) if queue.step is not None else None
    return (queue, ()) if handler is None else handler(queue, event, situation)


def begin(queue: MessageQueue, situation: Situation) -> Outcome:
    """Start the first message on its way if the agent takes one now; nothing else may be under way."""
    if queue.step is not None or not queue.queue or situation.held or not situation.takes_prompts:
        return queue, ()
    first = queue.first
    now = situation.working and situation.typed_to and first.mode is Mode.URGENT and not first.command
    if not (situation.idle or now) or first.mode in in_doubt(queue):
        return queue, ()
    begun = replace(queue, step=situation.step, typed=False, now=now)
    return begun, (_wait(begun, situation, own=(first.pasted,) if queue.attempts or first.tries else ()),)


def _wait(queue: MessageQueue, situation: Situation, own: tuple[str, ...]) -> Effect:
    if queue.now:
        return AwaitBox(situation.step, own=own)
    patience = 0.0 if queue.first.mode is Mode.URGENT else situation.max_hold
    return AwaitComposer(situation.step, own=own, after=situation.dialog_shows, patience=patience)


def _ready(queue: MessageQueue, event: ev.ComposerReady | ev.BoxFree, situation: Situation) -> Outcome:
    if queue.typed:
        return queue, ()
    if queue.attempts and queue.since and situation.transcript is not None and queue.typed_in == situation.transcript:
        searched = replace(queue, step=situation.step, deadline=event.at + TYPED_TIMEOUT_S)
        return searched, (_find(queue, situation, queue.position),)
    here = replace(queue, typed_in=situation.transcript, position=event.position)
    return _typing(here, event, situation)


def _typing(queue: MessageQueue, event: ev.Event, situation: Situation) -> Outcome:
    deadline = event.at + TYPED_TIMEOUT_S
    typing = replace(queue, step=situation.step, typed=True, since=event.at, deadline=deadline)
    return typing, (TypeText(situation.step, queue.first.pasted, now=queue.now),)


def _find(queue: MessageQueue, situation: Situation, position: int) -> Effect:
    conversation = situation.conversation or ""
    return FindPrompt(situation.step, conversation, situation.transcript, queue.first.digest, position)


def _held(queue: MessageQueue, event: ev.ComposerHeld, _: Situation) -> Outcome:
    return replace(queue, note=event.reason), ()


def _typed(queue: MessageQueue, event: ev.Event, _: Situation) -> Outcome:
    """The client submits most of its commands to no model: what they leave in the transcript is their only trace."""
    return _handed(queue, event, Channel.COMMAND) if queue.first.command else (queue, ())


def _handed(
    queue: MessageQueue, event: ev.Event, channel: Channel, over: float | None = None, **known: bool
) -> Outcome:
    """What was typed is out of our hands: the transcript shows whether it arrived."""
    first = queue.first
    handed = InFlight(first, channel, queue.since, queue.typed_in, over, position=queue.position, **known)
    left = replace(without_first(queue), handed=(*queue.handed, handed), look=event.at + LOOK_DELAY_S)
    return left, (RecordMessage(first.id, MessageState.DELIVERED, channel=channel),)


LOOK_DELAY_S = 0.3
"""Seconds from a hand-over until its record is on disk (seen: at most 0.2)."""


def _submitted(queue: MessageQueue, event: ev.PromptSubmitted, situation: Situation) -> Outcome:
    message = queue.first
    text = situation.traits.as_typed(event.text)
    if digest_of(text) == message.digest and (queue.typed or queue.attempts):  # or the client was slow to take it
        if event.replayed:  # found in the transcript
            return without_first(queue), (RecordMessage(message.id, MessageState.CONFIRMED, channel=Channel.PASTE),)
        if queue.now:  # fires as soon as the client has queued it
            return _handed(queue, event, Channel.URGENT)
        position = queue.position if queue.typed_in == situation.transcript else 0
        here = replace(queue, typed_in=situation.transcript, position=position)
        left, effects = _handed(here, event, Channel.PASTE, taken=True)
        again = (LeavePane(situation.step),) if queue.attempts else ()  # it may just be typed once more
        return left, (*effects, *again)
    if queue.typed and message.pasted in text and not event.replayed:
        mended = replace(queue, step=situation.step, typed=False, deadline=None, note="mixed with other text")
        block = BlockPrompt("sm: this was mixed with text that sm typed; it is put back for you")
        return mended, (block, _wait(mended, situation, own=(message.pasted,)))
    if queue.now:
        return queue, ()  # the user's words join the turn as well
    return _gone(queue, event, situation)


def _missed(queue: MessageQueue, event: ev.TypingRefused | ev.PromptMissing, situation: Situation) -> Outcome:
    """Refused, or typed and never taken: tried again from the composer, at last given up and shown."""
    if isinstance(event, ev.PromptMissing) and not queue.typed:
        return _not_there(queue, event, situation)
    if isinstance(event, ev.PromptMissing) and (queue.taken_over or _is_held_back(queue, event, situation)):
        return replace(queue, taken_over=False), ()
    reason = event.reason if isinstance(event, ev.TypingRefused) else "the client never submitted it"
    if not situation.takes_prompts:
        return at_rest(queue, note=reason), (LeavePane(situation.step),)
    if queue.attempts < MAX_RETRIES:
        again = at_rest(queue, attempts=queue.attempts + 1, note=reason)
        again = replace(again, step=situation.step, now=queue.now)
        return again, (_wait(again, situation, own=(again.first.pasted,)),)
    unconfirmed = RecordMessage(queue.first.id, MessageState.UNCONFIRMED, reason)
    return without_first(queue), (unconfirmed,)


def _not_there(queue: MessageQueue, event: ev.PromptMissing, situation: Situation) -> Outcome:
    """What was typed before is not in the transcript still: type it again, unless a dialog is open by now."""
    if queue.deadline is None:  # nothing is searched for
        return queue, ()
    if situation.idle or (queue.now and situation.working):
        return _typing(queue, event, situation)
    return _await_again(queue, situation, own=(queue.first.pasted,))


def _await_again(queue: MessageQueue, situation: Situation, own: tuple[str, ...]) -> Outcome:
    return replace(queue, step=situation.step, deadline=None), (_wait(queue, situation, own),)


def _is_held_back(queue: MessageQueue, event: ev.Event, situation: Situation) -> bool:
    """Whether a client that has just begun may yet submit what it was given: typed again, it would be there twice."""
    return situation.fresh and event.at - queue.since < START_TIMEOUT_S


def _asked(queue: MessageQueue, _: ev.Event, situation: Situation) -> Outcome:
    """A dialog is about to open: look again once it shows; what is being typed gives way before its Enter."""
    if queue.typed:
        return queue, (LeavePane(situation.step - 1),)
    if queue.now:  # it is tried again as soon as the dialog is answered
        return at_rest(queue, attempts=max(1, queue.attempts)), (LeavePane(situation.step),)
    own = (queue.first.pasted,) if queue.attempts else ()
    return _await_again(queue, situation, own)


def _limited(queue: MessageQueue, event: ev.LimitShared | ev.TurnFailed, situation: Situation) -> Outcome:
    """The account has met a usage limit: whatever is not typed yet waits for its end."""
    if queue.typed or event.limit is None:
        return queue, ()
    return at_rest(queue), (LeavePane(situation.step),)


def _budget_read(queue: MessageQueue, _: ev.Event, situation: Situation) -> Outcome:
    """A budget is used: whatever is not typed yet waits for the user."""
    return (queue, ()) if queue.typed or not situation.held else (at_rest(queue), (LeavePane(situation.step),))


def _rang(queue: MessageQueue, event: ev.Event, situation: Situation) -> Outcome:
    if queue.deadline is None or event.at < queue.deadline:
        return queue, ()
    return _look(replace(queue, taken_over=False), event, situation)


def _look(queue: MessageQueue, event: ev.Event, situation: Situation) -> Outcome:
    """No hook came for what was typed: the transcript tells whether the client took it."""
    if not queue.typed:
        return at_rest(queue), (LeavePane(situation.step),)
    if situation.transcript is None and event.at - queue.since < START_TIMEOUT_S:
        return replace(queue, deadline=event.at + TYPED_TIMEOUT_S), ()  # typed again, it would be there twice
    find = _find(queue, situation, queue.position if queue.typed_in == situation.transcript else 0)
    return replace(queue, step=situation.step, deadline=event.at + TYPED_TIMEOUT_S), (find,)


def _taken_over(queue: MessageQueue, event: ev.Event, situation: Situation) -> Outcome:
    return _look(replace(queue, taken_over=queue.typed), event, situation)


def _driver_changed(queue: MessageQueue, event: ev.Event, situation: Situation) -> Outcome:
    """Where nothing is left that gives it prompts, what the plugin has not submitted waits for a hook."""
    return (queue, ()) if situation.takes_prompts else _look(queue, event, situation)


def _began(queue: MessageQueue, event: ev.ConversationStarted, situation: Situation) -> Outcome:
    """A client's state tells that it is ready before its hook tells that it has started: what was typed in between is
    in this conversation.
    """
    if event.origin in ev.STARTS and (not queue.typed or queue.typed_in in {None, situation.transcript}):
        return replace(queue, typed_in=situation.transcript), ()
    return _gone(queue, event, situation)


def _gone(queue: MessageQueue, event: ev.Event, situation: Situation) -> Outcome:
    """Something else has begun. Had the client taken what was typed before, only its hook was lost."""
    if not queue.typed:
        return at_rest(queue), (LeavePane(situation.step),)
    channel, over = (Channel.COMMAND, None) if queue.first.command else (Channel.PASTE, event.at)
    queue, effects = _handed(queue, event, channel, over, fatal=isinstance(event, ev.ClientExited))
    return queue, (LeavePane(situation.step), *effects)


def took(before: MessageQueue, after: MessageQueue) -> bool:
    """Whether the client has just submitted a message that was typed."""
    return after.handed != before.handed and after.handed[-1:] != () and after.handed[-1].taken


Handler = Callable[[MessageQueue, ev.Event, Situation], Outcome]
HANDLERS: dict[type[ev.Event], Handler] = dict(
    (
        ev.on(ev.ComposerReady, _ready),
        ev.on(ev.BoxFree, _ready),
        ev.on(ev.ComposerHeld, _held),
        ev.on(ev.Typed, _typed),
        ev.on(ev.PromptSubmitted, _submitted),
        ev.on(ev.TypingRefused, _missed),
        ev.on(ev.PromptMissing, _missed),
        ev.on(ev.PermissionAsked, _asked),
        ev.on(ev.AskOpened, _asked),
        ev.on(ev.LimitShared, _limited),
        ev.on(ev.TurnFailed, _limited),
        ev.on(ev.BudgetRead, _budget_read),
        ev.on(ev.AlarmRang, _rang),
        ev.on(ev.ServerStarted, _taken_over),
        ev.on(ev.DriverChanged, _driver_changed),
        ev.on(ev.ConversationStarted, _began),
        ev.on(ev.ClientExited, _gone),
        ev.on(ev.SessionKilled, _gone),
        ev.on(ev.HandoffRequested, _gone),
    )
)
