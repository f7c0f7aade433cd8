"""Delivery by typing: one message at a time, in order.

A message leaves the queue when UserPromptSubmit shows exactly its text, or unconfirmed after MAX_ATTEMPTS. It is then
delivered, and confirmed by the agent's next hook or by the transcript: a client that is killed in between has lost it.
A user who submits first has the turn; the message waits for the next idle prompt. An urgent one is typed
into a client that works as well: that puts it into the client's own queue, and the transcript tells when it was read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sm.core import events as ev
from sm.core.effects import AwaitBox, AwaitComposer, BlockPrompt, Effect, FindPrompt, LeavePane, RecordMessage, TypeText
from sm.core.model.message import Channel, MessageState, Mode
from sm.core.model.message import digest as digest_of
from sm.core.model.message_queue import InFlight, MessageQueue, at_rest, in_doubt, without_first
from sm.core.model.situation import Situation

TYPED_TIMEOUT_S = 10.0
STARTS = frozenset({ev.Origin.STARTUP, ev.Origin.RESUME})
MAX_ATTEMPTS = 3

Outcome = tuple[MessageQueue, tuple[Effect, ...]]


def advance(outbox: MessageQueue, event: ev.Event, situation: Situation) -> Outcome:
    handler = HANDLERS.get(type(event)) if outbox.step is not None else None
    return (outbox, ()) if handler is None else handler(outbox, event, situation)


def begin(outbox: MessageQueue, situation: Situation) -> Outcome:
    """Start the first message on its way if the agent takes one now; nothing else may be under way."""
    if outbox.step is not None or not outbox.queue or situation.held or not situation.typed_to:
        return outbox, ()
    first = outbox.queue[0]
    now = situation.working and first.mode is Mode.URGENT and not first.command
    if not (situation.idle or now) or first.mode in in_doubt(outbox):
        return outbox, ()
    begun = replace(outbox, step=situation.step, typed=False, now=now)
    return begun, (_wait(begun, situation, own=(first.pasted,) if outbox.attempts or first.tries else ()),)


def _wait(outbox: MessageQueue, situation: Situation, own: tuple[str, ...]) -> Effect:
    if outbox.now:
        return AwaitBox(situation.step, own=own)
    patience = 0.0 if outbox.queue[0].mode is Mode.URGENT else situation.max_hold
    return AwaitComposer(situation.step, own=own, after=situation.dialog_shows, patience=patience)


def _ready(outbox: MessageQueue, event: ev.ComposerReady | ev.BoxFree, situation: Situation) -> Outcome:
    if outbox.typed:
        return outbox, ()
    typing = replace(
        outbox,
        step=situation.step,
        typed=True,
        typed_in=situation.transcript,
        since=event.at,
        position=event.position,
        deadline=event.at + TYPED_TIMEOUT_S,
    )
    return typing, (TypeText(situation.step, outbox.queue[0].pasted, now=outbox.now),)


def _held(outbox: MessageQueue, event: ev.ComposerHeld, _: Situation) -> Outcome:
    return replace(outbox, note=event.reason), ()


def _typed(outbox: MessageQueue, event: ev.Event, _: Situation) -> Outcome:
    """The client submits most of its commands to no model: what they leave in the transcript is their only trace."""
    return _handed(outbox, event, Channel.COMMAND) if outbox.queue[0].command else (outbox, ())


def _handed(
    outbox: MessageQueue, event: ev.Event, channel: Channel, over: float | None = None, **known: bool
) -> Outcome:
    """What was typed is out of our hands: the transcript shows whether it arrived."""
    first = outbox.queue[0]
    handed = InFlight(first, channel, outbox.since, outbox.typed_in, over, position=outbox.position, **known)
    left = replace(without_first(outbox), handed=(*outbox.handed, handed), look=event.at + LOOK_DELAY_S)
    return left, (RecordMessage(first.id, MessageState.DELIVERED, channel=channel),)


LOOK_DELAY_S = 0.3
"""Seconds from a hand-over until its record is on disk (seen: at most 0.2)."""


def _submitted(outbox: MessageQueue, event: ev.PromptSubmitted, situation: Situation) -> Outcome:
    message = outbox.queue[0]
    text = situation.traits.as_typed(event.text)
    if digest_of(text) == message.digest and (outbox.typed or outbox.attempts):  # or the client was slow to take it
        if event.replayed:  # found in the transcript
            return without_first(outbox), (RecordMessage(message.id, MessageState.CONFIRMED, channel=Channel.PASTE),)
        if outbox.now:  # fires as soon as the client has queued it
            return _handed(outbox, event, Channel.URGENT)
        position = outbox.position if outbox.typed_in == situation.transcript else 0
        here = replace(outbox, typed_in=situation.transcript, position=position)
        return _handed(here, event, Channel.PASTE, taken=True)
    if outbox.typed and message.pasted in text and not event.replayed:
        mended = replace(outbox, step=situation.step, typed=False, deadline=None, note="mixed with other text")
        block = BlockPrompt("sm: this was mixed with text that sm typed; it is put back for you")
        return mended, (block, _wait(mended, situation, own=(message.pasted,)))
    if outbox.now:
        return outbox, ()  # the user's words join the turn as well
    return _gone(outbox, event, situation)


def _missed(outbox: MessageQueue, event: ev.TypingRefused | ev.PromptMissing, situation: Situation) -> Outcome:
    """Refused, or typed and never taken: tried again from the composer, at last given up and shown."""
    if outbox.taken_over and isinstance(event, ev.PromptMissing):
        return replace(outbox, taken_over=False), ()
    reason = event.reason if isinstance(event, ev.TypingRefused) else "the client never submitted it"
    if outbox.attempts < MAX_ATTEMPTS:
        again = at_rest(outbox, attempts=outbox.attempts + 1, note=reason)
        again = replace(again, step=situation.step, now=outbox.now)
        return again, (_wait(again, situation, own=(again.queue[0].pasted,)),)
    unconfirmed = RecordMessage(outbox.queue[0].id, MessageState.UNCONFIRMED, reason)
    return without_first(outbox), (unconfirmed,)


def _asked(outbox: MessageQueue, _: ev.Event, situation: Situation) -> Outcome:
    """A dialog is about to open: look again once it shows; what is being typed gives way before its Enter."""
    if outbox.typed:
        return outbox, (LeavePane(situation.step - 1),)
    if outbox.now:  # it is tried again as soon as the dialog is answered
        return at_rest(outbox, attempts=max(1, outbox.attempts)), (LeavePane(situation.step),)
    own = (outbox.queue[0].pasted,) if outbox.attempts else ()
    return replace(outbox, step=situation.step), (_wait(outbox, situation, own),)


def _rang(outbox: MessageQueue, event: ev.Event, situation: Situation) -> Outcome:
    if outbox.deadline is None or event.at < outbox.deadline:
        return outbox, ()
    return _look(replace(outbox, taken_over=False), event, situation)


def _look(outbox: MessageQueue, event: ev.Event, situation: Situation) -> Outcome:
    """No hook came for what was typed: the transcript tells whether the client took it."""
    if not outbox.typed:
        return at_rest(outbox), (LeavePane(situation.step),)
    digest = outbox.queue[0].digest
    position = outbox.position if outbox.typed_in == situation.transcript else 0
    find = FindPrompt(situation.step, situation.conversation or "", situation.transcript, digest, position)
    return replace(outbox, step=situation.step, deadline=event.at + TYPED_TIMEOUT_S), (find,)


def _taken_over(outbox: MessageQueue, event: ev.Event, situation: Situation) -> Outcome:
    return _look(replace(outbox, taken_over=outbox.typed), event, situation)


def _began(outbox: MessageQueue, event: ev.ConversationStarted, situation: Situation) -> Outcome:
    """A client's state tells that it is ready before its hook tells that it has started: what was typed in between is
    in this conversation.
    """
    if event.origin in STARTS and (not outbox.typed or outbox.typed_in in {None, situation.transcript}):
        return replace(outbox, typed_in=situation.transcript), ()
    return _gone(outbox, event, situation)


def _gone(outbox: MessageQueue, event: ev.Event, situation: Situation) -> Outcome:
    """Something else has begun. Had the client taken what was typed before, only its hook was lost."""
    if not outbox.typed:
        return at_rest(outbox), (LeavePane(situation.step),)
    channel, over = (Channel.COMMAND, None) if outbox.queue[0].command else (Channel.PASTE, event.at)
    outbox, effects = _handed(outbox, event, channel, over, fatal=isinstance(event, ev.ClientExited))
    return outbox, (LeavePane(situation.step), *effects)


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
        ev.on(ev.AlarmRang, _rang),
        ev.on(ev.ServerStarted, _taken_over),
        ev.on(ev.ConversationStarted, _began),
        ev.on(ev.ClientExited, _gone),
        ev.on(ev.SessionKilled, _gone),
        ev.on(ev.HandoffRequested, _gone),
    )
)
