"""Whether a message that left for its agent has arrived, and what is done about one that has not.

The transcript's record of it confirms it; where the client has moved on and shows none, the reply was lost and the
message is queued again, at its old place. What the client holds in its own queue is delivered, and never queued again.
"""

from __future__ import annotations

from sm.core import events as ev
from sm.core.effects import Effect, FindMessages, RecordMessage
from sm.core.model.message import TYPED_CHANNELS, Channel, MessageState, pointer
from sm.core.model.message_queue import InFlight, MessageQueue, placed
from sm.core.model.situation import Situation
from sm.core.rules.typed_delivery import LOOK_DELAY_S, MAX_RETRIES
from sm.core.values import replace

SETTLE_TIMEOUT_S = 1.0
"""Seconds after which a client that has moved on has written what it read before."""
TYPED_SETTLE_TIMEOUT_S = 5.0
"""The same for what was typed: it is never typed again, so the verdict may wait for a slow client."""
LOOK_INTERVAL_S = 5.0
READ_LATER = TYPED_CHANNELS | {Channel.PLUGIN}
"""What comes by them the client may read only with a later request: nothing but the end of its turn shows that."""
AT_REST = ev.ActivityChanged | ev.ConversationStarted | ev.ClientExited | ev.SessionKilled
"""The client's own queue is empty then."""
MOVED_ON = AT_REST | ev.ToolUsed | ev.TurnEnded | ev.TurnFailed | ev.PromptSubmitted | ev.ServerStarted

CLEARED = frozenset({ev.Origin.CLEAR, ev.Origin.CLIENT_STATE})

Outcome = tuple[MessageQueue, tuple[Effect, ...]]


def answered(queue: MessageQueue, event: ev.Event, situation: Situation) -> Outcome:
    """A prompt that the client took is confirmed by what the agent does next: it is in the transcript before that.

    A command of a client that keeps no record of them is confirmed by the conversation that begins after it.
    """
    answers = isinstance(event, ev.ToolUsed) or (isinstance(event, ev.TurnEnded) and not event.replayed)
    cleared = isinstance(event, ev.ConversationStarted) and event.origin in CLEARED
    shown = cleared and situation.traits.command_record == ""
    known = [
        flight
        for flight in queue.handed
        if flight.at < event.at and ((answers and flight.taken) or (shown and flight.channel is Channel.COMMAND))
    ]
    if not known:
        return queue, ()
    left = replace(queue, handed=tuple(flight for flight in queue.handed if flight not in known))
    return left, tuple(RecordMessage(flight.message.id, MessageState.CONFIRMED) for flight in known)


def marked(queue: MessageQueue, event: ev.Event, situation: Situation, *, ours: bool) -> MessageQueue:
    """Note that the client has moved on; whatever it was given before is in its transcript by now, or soon."""
    rests = situation.ended or isinstance(event, AT_REST)
    if isinstance(event, ev.ActivityChanged) and event.activity is not ev.Activity.IDLE:
        return queue

    def marked(flight: InFlight) -> InFlight:
        # `/clear` leaves its trace in the conversation that it begins, whatever was taken for its end before.
        if isinstance(event, ev.ConversationStarted) and flight.channel is Channel.COMMAND and flight.at < event.at:
            return replace(flight, over=event.at, transcript=situation.transcript, position=0)
        if flight.over is not None or flight.at >= event.at or (flight.channel in READ_LATER and not rests):
            return flight
        if ours and flight is queue.handed[-1]:  # this very event has shown that it was taken
            return flight
        return replace(flight, over=event.at)

    handed = tuple(map(marked, queue.handed))
    if handed == queue.handed:
        return queue
    soon = event.at + LOOK_DELAY_S
    return replace(queue, handed=handed, look=min(queue.look or soon, soon))


def rang(queue: MessageQueue, event: ev.Event, _: Situation) -> Outcome:
    if queue.look is None or event.at < queue.look:
        return queue, ()
    return replace(queue, look=event.at + LOOK_INTERVAL_S), (FindMessages(queue.handed),)


def ended(queue: MessageQueue, _: ev.Event, __: Situation) -> Outcome:
    """No alarm rings for a session without a client: what it has read is in its transcript now."""
    return queue, (FindMessages(queue.handed),) if queue.handed else ()


def sought(queue: MessageQueue, event: ev.MessagesSought, situation: Situation) -> Outcome:
    effects: tuple[Effect, ...] = ()
    for flight in queue.handed:
        if flight.message.id in event.found:
            queue, record = _left(queue, flight), RecordMessage(flight.message.id, MessageState.CONFIRMED)
            effects += (record,)
        elif flight.message.id in event.kept and flight.transcript == situation.transcript and not situation.ended:
            handed = tuple(replace(other, over=None) if other is flight else other for other in queue.handed)
            queue = replace(queue, handed=handed)
        elif flight.message.id in event.asked and _surely_gone(flight, event.at, situation):
            why = _why_lost(flight, situation, readable=flight.message.id not in event.unreadable)
            queue, record = _lost(_left(queue, flight), flight, why, situation)
            effects += (record,)
    return replace(queue, look=_next_look(queue, event.at)), effects


def _next_look(queue: MessageQueue, at: float) -> float | None:
    if not queue.handed:
        return None
    settled = min(
        (_settled(flight) for flight in queue.handed if flight.over is not None), default=at + LOOK_INTERVAL_S
    )
    return max(at + LOOK_DELAY_S, settled)


def _surely_gone(flight: InFlight, at: float, situation: Situation) -> bool:
    return situation.ended or (flight.over is not None and at >= _settled(flight))


def _settled(flight: InFlight) -> float:
    """Return when the transcript has the message, if the client read it before it moved on."""
    return (flight.over or 0.0) + (TYPED_SETTLE_TIMEOUT_S if flight.channel in TYPED_CHANNELS else SETTLE_TIMEOUT_S)


def _left(queue: MessageQueue, flight: InFlight) -> MessageQueue:
    return replace(queue, handed=tuple(other for other in queue.handed if other is not flight))


def _why_lost(flight: InFlight, situation: Situation, *, readable: bool) -> str:
    """Why a message that cannot be found is not to be delivered again; empty if it is."""
    if not readable:
        return "the client's transcript cannot be read"
    if flight.fatal:
        return "the client ended while it was typed; send it again if it is still wanted"
    if flight.channel in TYPED_CHANNELS or flight.message.tries >= MAX_RETRIES:
        return "the client never showed it"
    if flight.taken and not situation.ended:  # as a prompt that a hook of the user's own has kept from the model
        return "the client took it and does not show it"
    return ""


def _lost(queue: MessageQueue, flight: InFlight, why: str, situation: Situation) -> tuple[MessageQueue, RecordMessage]:
    message = replace(flight.message, tries=flight.message.tries + 1)
    if flight.channel is Channel.PLUGIN and flight.transcript == situation.transcript and not situation.ended:
        message = pointer(message)  # the client keeps it for the next prompt
    if why:
        return queue, RecordMessage(message.id, MessageState.UNCONFIRMED, why)
    return placed(queue, message), RecordMessage(message.id, MessageState.QUEUED, "the client continued without it")


def reply_lost(queue: MessageQueue, event: ev.ReplyLost, _: Situation) -> Outcome:
    """The hook's answer never left: no transcript need be asked."""
    effects: tuple[Effect, ...] = ()
    for flight in queue.handed:
        if flight.message.id in event.messages:
            queue = placed(_left(queue, flight), flight.message)
            effects += (RecordMessage(flight.message.id, MessageState.QUEUED, "the hook continued without it"),)
    return queue, effects
