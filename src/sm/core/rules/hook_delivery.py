"""Delivery without keys: messages ride on the replies to hooks, or the plugin in the client tells them.

Nothing leaves before it is out of the queue on disk, so no reply carries a message twice. Whether it arrived:
`core/rules/message_receipts.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from sm.core import events as ev
from sm.core.effects import AddContext, Effect, FetchMessages, KeepMessage, LeavePane, RecordMessage
from sm.core.model.message import Channel, Message, MessageState, Mode
from sm.core.model.message_queue import (
    InFlight,
    MessageQueue,
    Refill,
    dropped,
    in_doubt,
    queued,
    refilled,
    refills,
    without,
)
from sm.core.model.situation import Situation
from sm.core.rules.message_receipts import MOVED_ON, answered, ended, marked, rang, reply_lost, sought
from sm.core.rules.typed_delivery import LOOK_DELAY_S
from sm.core.values import replace

MAX_BATCH = 10
"""Messages one reply carries, one that is typed beside it included."""
BATCH_MARGIN = 1_000
"""Characters of the reply that they leave free: a warning may join them."""

Outcome = tuple[MessageQueue, tuple[Effect, ...]]
AT_ONCE = frozenset({Mode.IMPORTANT, Mode.STEER})
Telling = ev.MessageQueued | ev.ContextRead
"""Events after which the plugin in a client may tell its agent what waits."""


def advance(queue: MessageQueue, event: ev.Event, situation: Situation, *, ours: bool) -> Outcome:
    """Return the queue after `event`, with what its hook's reply is to carry; `ours` is the prompt of a message."""
    queue, confirmed = answered(queue, event, situation)
    if isinstance(event, MOVED_ON) and queue.handed:
        queue = marked(queue, event, situation, ours=ours)
    queue, expired = _without_expired(queue, event.at)
    handler = _beside if ours else HANDLERS.get(type(event))
    queue, effects = (queue, ()) if handler is None else handler(queue, event, situation)
    return queue, (*confirmed, *expired, *effects, *map(FetchMessages, _wanted(queue, event)))


# --- the queue -----------------------------------------------------------------------------------------------------


def _queued(queue: MessageQueue, event: ev.MessageQueued | ev.ClearRequested, situation: Situation) -> Outcome:
    if event.message is None:
        return queue, ()
    kept = () if event.stored is None else (KeepMessage(event.stored),)
    queue = queued(queue, event.message)
    queue, told = _told_inside(queue, event, situation) if isinstance(event, ev.MessageQueued) else (queue, ())
    return queue, (*kept, *told)


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
    return _hand(queue, event, situation, Channel.TOOL, lambda message: _at_once(message, situation))


def _told_inside(
    queue: MessageQueue,
    event: Telling,
    situation: Situation,
) -> Outcome:
    """The plugin in a client needs no hook to wait for."""
    if not situation.can_be_told:
        return queue, ()
    return _hand(queue, event, situation, Channel.PLUGIN, lambda message: _at_once(message, situation))


def _at_once(message: Message, situation: Situation) -> bool:
    """An urgent one interrupts the turn where it can be typed."""
    return message.mode in AT_ONCE or (message.mode is Mode.URGENT and not situation.typed_to)


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
    event: ev.ToolUsed | ev.TurnEnded | ev.PromptSubmitted | Telling,
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


Handler = Callable[[MessageQueue, ev.Event, Situation], Outcome]
HANDLERS: dict[type[ev.Event], Handler] = dict(
    (
        ev.on(ev.MessageQueued, _queued),
        ev.on(ev.ClearRequested, _queued),
        ev.on(ev.MessageCancelled, _cancelled),
        ev.on(ev.MessagesFetched, _fetched),
        ev.on(ev.ToolUsed, _tool_used),
        ev.on(ev.ContextRead, _told_inside),
        ev.on(ev.TurnEnded, _turn_ended),
        ev.on(ev.AlarmRang, rang),
        ev.on(ev.ClientExited, ended),
        ev.on(ev.SessionKilled, ended),
        ev.on(ev.MessagesSought, sought),
        ev.on(ev.ReplyLost, reply_lost),
    )
)
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
