"""Delivery without keys: messages ride on the replies to hooks, and the transcript shows whether they arrived.

Nothing leaves before it is out of the queue on disk, so no reply carries a message twice. The transcript's record of
it confirms it; where the client has moved on and shows none, the reply was lost and the message is queued again, at its
old place. What the client holds in its own queue is delivered, and never queued again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sm.core import events as ev
from sm.core.effects import AddContext, Effect, FetchMessages, FindMessages, KeepMessage, LeavePane, RecordMessage
from sm.core.model.message import TYPED_CHANNELS, Channel, Message, MessageState, Mode
from sm.core.model.message_queue import (
    InFlight,
    MessageQueue,
    Refill,
    dropped,
    in_doubt,
    placed,
    queued,
    refilled,
    refills,
    without,
)
from sm.core.model.situation import Situation
from sm.core.rules.typed_delivery import LOOK_DELAY_S, MAX_RETRIES

MAX_BATCH = 10
"""Messages one reply carries, one that is typed beside it included."""
BATCH_MARGIN = 1_000
"""Characters of the reply that they leave free: a warning may join them."""
SETTLE_TIMEOUT_S = 1.0
"""Seconds after which a client that has moved on has written what it read before."""
TYPED_SETTLE_TIMEOUT_S = 5.0
"""The same for what was typed: it is never typed again, so the verdict may wait for a slow client."""
LOOK_INTERVAL_S = 5.0

Outcome = tuple[MessageQueue, tuple[Effect, ...]]
AT_ONCE = frozenset({Mode.IMPORTANT, Mode.STEER})


def advance(queue: MessageQueue, event: ev.Event, situation: Situation, *, ours: bool) -> Outcome:
    """Return the queue after `event`, with what its hook's reply is to carry; `ours` is the prompt of a message."""
    queue, answered = _answered(queue, event)
    if isinstance(event, MOVED_ON) and queue.handed:
        queue = _marked(queue, event, situation, ours=ours)
    queue, expired = _without_expired(queue, event.at)
    handler = _beside if ours else HANDLERS.get(type(event))
    queue, effects = (queue, ()) if handler is None else handler(queue, event, situation)
    return queue, (*answered, *expired, *effects, *map(FetchMessages, _wanted(queue, event)))


# --- the queue -----------------------------------------------------------------------------------------------------


def _queued(queue: MessageQueue, event: ev.MessageQueued | ev.ClearRequested, _: Situation) -> Outcome:
    if event.message is None:
        return queue, ()
    kept = () if event.stored is None else (KeepMessage(event.stored),)
    return queued(queue, event.message), kept


def _cancelled(queue: MessageQueue, event: ev.MessageCancelled, situation: Situation) -> Outcome:
    """One that is being typed, or was handed over, is past the moment at which it could be kept back."""
    left = without(queue, event.id, event.mode, event.number)
    if left is None:
        return queue, ()
    stops = queue.step is not None and left.step is None
    leave: tuple[Effect, ...] = (LeavePane(situation.step),) if stops else ()
    return left, (*leave, RecordMessage(event.id, MessageState.FAILED, CANCELLED))


CANCELLED = "cancelled before it was delivered"


def _fetched(queue: MessageQueue, event: ev.MessagesFetched, _: Situation) -> Outcome:
    return refilled(queue, event.refill, event.messages, event.left), ()


def _wanted(queue: MessageQueue, event: ev.Event) -> tuple[Refill, ...]:
    return refills(queue) if queue.lanes and isinstance(event, REFILLING) else ()


def _without_expired(queue: MessageQueue, at: float) -> Outcome:
    """A message that is being typed is past the moment at which it could be kept back."""
    late = [message for message in (queue.free if queue.typed else queue.queue) if message.expired(at)]
    if not late:
        return queue, ()
    queue = dropped(queue, frozenset(message.id for message in late))
    return queue, tuple(RecordMessage(message.id, MessageState.EXPIRED, "expired before delivery") for message in late)


# --- replies that carry --------------------------------------------------------------------------------------------


def _tool_used(queue: MessageQueue, event: ev.ToolUsed, situation: Situation) -> Outcome:
    return _hand(queue, event, situation, Channel.TOOL, lambda message: message.mode in AT_ONCE)


def _turn_ended(queue: MessageQueue, event: ev.TurnEnded, situation: Situation) -> Outcome:
    """Continue the turn with what waits, unless it was continued too often."""
    queue = replace(queue, continued=0) if not event.continued else queue
    if event.replayed or queue.step is not None or queue.continued >= situation.traits.continued_turns:
        return queue, ()
    queue, effects = _hand(queue, event, situation, Channel.STOP, lambda _: True)
    return (replace(queue, continued=queue.continued + 1) if effects else queue), effects


def _beside(queue: MessageQueue, event: ev.Event, situation: Situation) -> Outcome:
    """What goes along with a message that was typed and is being submitted."""
    assert isinstance(event, ev.PromptSubmitted)
    return _hand(queue, event, situation, Channel.PROMPT, lambda _: True, most=MAX_BATCH - 1)


def _hand(
    queue: MessageQueue,
    event: ev.ToolUsed | ev.TurnEnded | ev.PromptSubmitted,
    situation: Situation,
    channel: Channel,
    wanted: Callable[[Message], bool],
    most: int = MAX_BATCH,
) -> Outcome:
    chosen = () if situation.held else _batch(queue, wanted, most, situation.traits.reply_characters - BATCH_MARGIN)
    if not chosen:
        return queue, ()
    ids = tuple(message.id for message in chosen)
    handed = tuple(
        InFlight(message, channel, event.at, situation.transcript, position=event.position) for message in chosen
    )
    left = tuple(message for message in queue.queue if message.id not in ids)
    queue = replace(queue, queue=left, handed=(*queue.handed, *handed), look=event.at + LOOK_DELAY_S)
    records = (RecordMessage(message, MessageState.DELIVERED, channel=channel) for message in ids)
    return queue, (AddContext("\n\n".join(message.text for message in chosen), messages=ids), *records)


def _batch(queue: MessageQueue, wanted: Callable[[Message], bool], most: int, characters: int) -> tuple[Message, ...]:
    """Return the first ones, in order; nothing overtakes a command of its own mode, which goes alone."""
    chosen: list[Message] = []
    closed = set(in_doubt(queue))
    size = 0
    for message in queue.free:
        if message.command:
            closed.add(message.mode)
        if message.mode in closed or not wanted(message):
            continue
        size += len(message.text) + 2
        if len(chosen) == most or size > characters:
            break
        chosen.append(message)
    return tuple(chosen)


# --- whether it arrived --------------------------------------------------------------------------------------------


def _answered(queue: MessageQueue, event: ev.Event) -> Outcome:
    """A prompt that the client took is confirmed by what the agent does next: it is in the transcript before that."""
    answers = isinstance(event, ev.ToolUsed) or (isinstance(event, ev.TurnEnded) and not event.replayed)
    known = [flight for flight in queue.handed if flight.taken and flight.at < event.at] if answers else []
    if not known:
        return queue, ()
    left = replace(queue, handed=tuple(flight for flight in queue.handed if flight not in known))
    return left, tuple(RecordMessage(flight.message.id, MessageState.CONFIRMED) for flight in known)


def _marked(queue: MessageQueue, event: ev.Event, situation: Situation, *, ours: bool) -> MessageQueue:
    """Note that the client has moved on; whatever it was given before is in its transcript by now, or soon."""
    rests = situation.ended or isinstance(event, AT_REST)
    if isinstance(event, ev.ActivityChanged) and event.activity is not ev.Activity.IDLE:
        return queue

    def marked(flight: InFlight) -> InFlight:
        # `/clear` leaves its trace in the conversation that it begins, whatever was taken for its end before.
        if isinstance(event, ev.ConversationStarted) and flight.channel is Channel.COMMAND and flight.at < event.at:
            return replace(flight, over=event.at, transcript=situation.transcript, position=0)
        if flight.over is not None or flight.at >= event.at or (flight.channel in TYPED_CHANNELS and not rests):
            return flight
        if ours and flight is queue.handed[-1]:  # this very event has shown that it was taken
            return flight
        return replace(flight, over=event.at)

    handed = tuple(map(marked, queue.handed))
    if handed == queue.handed:
        return queue
    soon = event.at + LOOK_DELAY_S
    return replace(queue, handed=handed, look=min(queue.look or soon, soon))


def _rang(queue: MessageQueue, event: ev.Event, _: Situation) -> Outcome:
    if queue.look is None or event.at < queue.look:
        return queue, ()
    return replace(queue, look=event.at + LOOK_INTERVAL_S), (FindMessages(queue.handed),)


def _ended(queue: MessageQueue, _: ev.Event, __: Situation) -> Outcome:
    """No alarm rings for a session without a client: what it has read is in its transcript now."""
    return queue, (FindMessages(queue.handed),) if queue.handed else ()


def _sought(queue: MessageQueue, event: ev.MessagesSought, situation: Situation) -> Outcome:
    effects: tuple[Effect, ...] = ()
    for flight in queue.handed:
        if flight.message.id in event.found:
            queue, record = _left(queue, flight), RecordMessage(flight.message.id, MessageState.CONFIRMED)
            effects += (record,)
        elif flight.message.id in event.asked and _surely_gone(flight, event.at, situation):
            why = _why_lost(flight, situation, readable=flight.message.id not in event.unreadable)
            queue, record = _lost(_left(queue, flight), flight, why)
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


def _lost(queue: MessageQueue, flight: InFlight, why: str) -> tuple[MessageQueue, RecordMessage]:
    message = replace(flight.message, tries=flight.message.tries + 1)
    if why:
        return queue, RecordMessage(message.id, MessageState.UNCONFIRMED, why)
    return placed(queue, message), RecordMessage(message.id, MessageState.QUEUED, "the client continued without it")


def _reply_lost(queue: MessageQueue, event: ev.ReplyLost, _: Situation) -> Outcome:
    """The hook's answer never left: no transcript need be asked."""
    effects: tuple[Effect, ...] = ()
    for flight in queue.handed:
        if flight.message.id in event.messages:
            queue = placed(_left(queue, flight), flight.message)
            effects += (RecordMessage(flight.message.id, MessageState.QUEUED, "the hook continued without it"),)
    return queue, effects


Handler = Callable[[MessageQueue, ev.Event, Situation], Outcome]
HANDLERS: dict[type[ev.Event], Handler] = dict(
    (
        ev.on(ev.MessageQueued, _queued),
        ev.on(ev.ClearRequested, _queued),
        ev.on(ev.MessageCancelled, _cancelled),
        ev.on(ev.MessagesFetched, _fetched),
        ev.on(ev.ToolUsed, _tool_used),
        ev.on(ev.TurnEnded, _turn_ended),
        ev.on(ev.AlarmRang, _rang),
        ev.on(ev.ClientExited, _ended),
        ev.on(ev.SessionKilled, _ended),
        ev.on(ev.MessagesSought, _sought),
        ev.on(ev.ReplyLost, _reply_lost),
    )
)
AT_REST = ev.ActivityChanged | ev.ConversationStarted | ev.ClientExited | ev.SessionKilled
"""The client's own queue is empty then."""
MOVED_ON = AT_REST | ev.ToolUsed | ev.TurnEnded | ev.TurnFailed | ev.PromptSubmitted | ev.ServerStarted
REFILLING = (
    ev.MessageQueued
    | ev.MessagesFetched
    | ev.ToolUsed
    | ev.TurnEnded
    | ev.PromptSubmitted
    | ev.ServerStarted
    | ev.SessionLaunched
    | ev.AlarmRang
)
"""After these the window may have room; a request that was lost with a server is made again."""
