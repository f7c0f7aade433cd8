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
from sm.core.rules.typed_delivery import LOOK_DELAY_S, MAX_ATTEMPTS

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


def advance(outbox: MessageQueue, event: ev.Event, situation: Situation, *, ours: bool) -> Outcome:
    """Return the queue after `event`, with what its hook's reply is to carry; `ours` is the prompt of a message."""
    outbox, answered = _answered(outbox, event)
    if isinstance(event, MOVED_ON) and outbox.handed:
        outbox = _marked(outbox, event, situation, ours=ours)
    outbox, expired = _without_expired(outbox, event.at)
    handler = _beside if ours else HANDLERS.get(type(event))
    outbox, effects = (outbox, ()) if handler is None else handler(outbox, event, situation)
    return outbox, (*answered, *expired, *effects, *map(FetchMessages, _wanted(outbox, event)))


# --- the queue -----------------------------------------------------------------------------------------------------


def _queued(outbox: MessageQueue, event: ev.MessageQueued | ev.ClearRequested, _: Situation) -> Outcome:
    if event.message is None:
        return outbox, ()
    kept = () if event.stored is None else (KeepMessage(event.stored),)
    return queued(outbox, event.message), kept


def _cancelled(outbox: MessageQueue, event: ev.MessageCancelled, situation: Situation) -> Outcome:
    """One that is being typed, or was handed over, is past the moment at which it could be kept back."""
    left = without(outbox, event.id, event.mode, event.number)
    if left is None:
        return outbox, ()
    stops = outbox.step is not None and left.step is None
    leave: tuple[Effect, ...] = (LeavePane(situation.step),) if stops else ()
    return left, (*leave, RecordMessage(event.id, MessageState.FAILED, CANCELLED))


CANCELLED = "cancelled before it was delivered"


def _fetched(outbox: MessageQueue, event: ev.MessagesFetched, _: Situation) -> Outcome:
    return refilled(outbox, event.refill, event.messages, event.left), ()


def _wanted(outbox: MessageQueue, event: ev.Event) -> tuple[Refill, ...]:
    return refills(outbox) if outbox.lanes and isinstance(event, REFILLING) else ()


def _without_expired(outbox: MessageQueue, at: float) -> Outcome:
    """A message that is being typed is past the moment at which it could be kept back."""
    late = [message for message in (outbox.free if outbox.typed else outbox.queue) if message.expired(at)]
    if not late:
        return outbox, ()
    outbox = dropped(outbox, frozenset(message.id for message in late))
    return outbox, tuple(RecordMessage(message.id, MessageState.EXPIRED, "expired before delivery") for message in late)


# --- replies that carry --------------------------------------------------------------------------------------------


def _tool_used(outbox: MessageQueue, event: ev.ToolUsed, situation: Situation) -> Outcome:
    return _hand(outbox, event, situation, Channel.TOOL, lambda message: message.mode in AT_ONCE)


def _turn_ended(outbox: MessageQueue, event: ev.TurnEnded, situation: Situation) -> Outcome:
    """Continue the turn with what waits, unless it was continued too often."""
    outbox = replace(outbox, continued=0) if not event.continued else outbox
    if event.replayed or outbox.step is not None or outbox.continued >= situation.traits.continued_turns:
        return outbox, ()
    outbox, effects = _hand(outbox, event, situation, Channel.STOP, lambda _: True)
    return (replace(outbox, continued=outbox.continued + 1) if effects else outbox), effects


def _beside(outbox: MessageQueue, event: ev.Event, situation: Situation) -> Outcome:
    """What goes along with a message that was typed and is being submitted."""
    assert isinstance(event, ev.PromptSubmitted)
    return _hand(outbox, event, situation, Channel.PROMPT, lambda _: True, most=MAX_BATCH - 1)


def _hand(
    outbox: MessageQueue,
    event: ev.ToolUsed | ev.TurnEnded | ev.PromptSubmitted,
    situation: Situation,
    channel: Channel,
    wanted: Callable[[Message], bool],
    most: int = MAX_BATCH,
) -> Outcome:
    chosen = () if situation.held else _batch(outbox, wanted, most, situation.traits.reply_characters - BATCH_MARGIN)
    if not chosen:
        return outbox, ()
    ids = tuple(message.id for message in chosen)
    handed = tuple(
        InFlight(message, channel, event.at, situation.transcript, position=event.position) for message in chosen
    )
    left = tuple(message for message in outbox.queue if message.id not in ids)
    outbox = replace(outbox, queue=left, handed=(*outbox.handed, *handed), look=event.at + LOOK_DELAY_S)
    records = (RecordMessage(message, MessageState.DELIVERED, channel=channel) for message in ids)
    return outbox, (AddContext("\n\n".join(message.text for message in chosen), messages=ids), *records)


def _batch(outbox: MessageQueue, wanted: Callable[[Message], bool], most: int, characters: int) -> tuple[Message, ...]:
    """Return the first ones, in order; nothing overtakes a command of its own mode, which goes alone."""
    chosen: list[Message] = []
    closed = set(in_doubt(outbox))
    size = 0
    for message in outbox.free:
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


def _answered(outbox: MessageQueue, event: ev.Event) -> Outcome:
    """A prompt that the client took is confirmed by what the agent does next: it is in the transcript before that."""
    answers = isinstance(event, ev.ToolUsed) or (isinstance(event, ev.TurnEnded) and not event.replayed)
    known = [flight for flight in outbox.handed if flight.taken and flight.at < event.at] if answers else []
    if not known:
        return outbox, ()
    left = replace(outbox, handed=tuple(flight for flight in outbox.handed if flight not in known))
    return left, tuple(RecordMessage(flight.message.id, MessageState.CONFIRMED) for flight in known)


def _marked(outbox: MessageQueue, event: ev.Event, situation: Situation, *, ours: bool) -> MessageQueue:
    """Note that the client has moved on; whatever it was given before is in its transcript by now, or soon."""
    rests = situation.ended or isinstance(event, AT_REST)
    if isinstance(event, ev.ActivityChanged) and event.activity is not ev.Activity.IDLE:
        return outbox

    def marked(flight: InFlight) -> InFlight:
        # `/clear` leaves its trace in the conversation that it begins, whatever was taken for its end before.
        if isinstance(event, ev.ConversationStarted) and flight.channel is Channel.COMMAND and flight.at < event.at:
            return replace(flight, over=event.at, transcript=situation.transcript, position=0)
        if flight.over is not None or flight.at >= event.at or (flight.channel in TYPED_CHANNELS and not rests):
            return flight
        if ours and flight is outbox.handed[-1]:  # this very event has shown that it was taken
            return flight
        return replace(flight, over=event.at)

    handed = tuple(map(marked, outbox.handed))
    if handed == outbox.handed:
        return outbox
    soon = event.at + LOOK_DELAY_S
    return replace(outbox, handed=handed, look=min(outbox.look or soon, soon))


def _rang(outbox: MessageQueue, event: ev.Event, _: Situation) -> Outcome:
    if outbox.look is None or event.at < outbox.look:
        return outbox, ()
    return replace(outbox, look=event.at + LOOK_INTERVAL_S), (FindMessages(outbox.handed),)


def _ended(outbox: MessageQueue, _: ev.Event, __: Situation) -> Outcome:
    """No alarm rings for a session without a client: what it has read is in its transcript now."""
    return outbox, (FindMessages(outbox.handed),) if outbox.handed else ()


def _sought(outbox: MessageQueue, event: ev.MessagesSought, situation: Situation) -> Outcome:
    effects: tuple[Effect, ...] = ()
    for flight in outbox.handed:
        if flight.message.id in event.found:
            outbox, record = _left(outbox, flight), RecordMessage(flight.message.id, MessageState.CONFIRMED)
            effects += (record,)
        elif flight.message.id in event.asked and _surely_gone(flight, event.at, situation):
            why = _why_lost(flight, situation, readable=flight.message.id not in event.unreadable)
            outbox, record = _lost(_left(outbox, flight), flight, why)
            effects += (record,)
    return replace(outbox, look=_next_look(outbox, event.at)), effects


def _next_look(outbox: MessageQueue, at: float) -> float | None:
    if not outbox.handed:
        return None
    settled = min(
        (_settled(flight) for flight in outbox.handed if flight.over is not None), default=at + LOOK_INTERVAL_S
    )
    return max(at + LOOK_DELAY_S, settled)


def _surely_gone(flight: InFlight, at: float, situation: Situation) -> bool:
    return situation.ended or (flight.over is not None and at >= _settled(flight))


def _settled(flight: InFlight) -> float:
    """Return when the transcript has the message, if the client read it before it moved on."""
    return (flight.over or 0.0) + (TYPED_SETTLE_TIMEOUT_S if flight.channel in TYPED_CHANNELS else SETTLE_TIMEOUT_S)


def _left(outbox: MessageQueue, flight: InFlight) -> MessageQueue:
    return replace(outbox, handed=tuple(other for other in outbox.handed if other is not flight))


def _why_lost(flight: InFlight, situation: Situation, *, readable: bool) -> str:
    """Why a message that cannot be found is not to be delivered again; empty if it is."""
    if not readable:
        return "the client's transcript cannot be read"
    if flight.fatal:
        return "the client ended while it was typed; send it again if it is still wanted"
    if flight.channel in TYPED_CHANNELS or flight.message.tries >= MAX_ATTEMPTS:
        return "the client never showed it"
    if flight.taken and not situation.ended:  # as a prompt that a hook of the user's own has kept from the model
        return "the client took it and does not show it"
    return ""


def _lost(outbox: MessageQueue, flight: InFlight, why: str) -> tuple[MessageQueue, RecordMessage]:
    message = replace(flight.message, tries=flight.message.tries + 1)
    if why:
        return outbox, RecordMessage(message.id, MessageState.UNCONFIRMED, why)
    return placed(outbox, message), RecordMessage(message.id, MessageState.QUEUED, "the client continued without it")


def _reply_lost(outbox: MessageQueue, event: ev.ReplyLost, _: Situation) -> Outcome:
    """The hook's answer never left: no transcript need be asked."""
    effects: tuple[Effect, ...] = ()
    for flight in outbox.handed:
        if flight.message.id in event.messages:
            outbox = placed(_left(outbox, flight), flight.message)
            effects += (RecordMessage(flight.message.id, MessageState.QUEUED, "the hook continued without it"),)
    return outbox, effects


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
