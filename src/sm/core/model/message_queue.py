"""What waits for one agent and what is on its way to it: a window of the queue, whose rest is in the table.

The window holds the next WINDOW messages of each mode, so that the session's state stays small however much is queued.
A message is in exactly one place: in the window, in flight, or beyond the window in the table.
"""

from __future__ import annotations

from dataclasses import dataclass

from sm.core.model.client_traits import ClientTraits
from sm.core.model.message import TYPED_CHANNELS, Channel, Message, Mode
from sm.core.values import replace

WINDOW = 10
REFILL = WINDOW // 2
"""The window is filled up again once a mode has no more than this in it."""


@dataclass(frozen=True, slots=True)
class InFlight:
    """A message that has left for its agent and is not confirmed."""

    message: Message
    channel: Channel
    at: float
    transcript: str | None
    over: float | None = None
    """When the client was seen to have moved on; after that the message is in the transcript or lost."""
    taken: bool = False
    """The client has submitted it, by its own hook; the agent's next hook, or the transcript, confirms it."""
    fatal: bool = False
    """Its client ended while it was typed, perhaps because of it: `sm` never types it again."""
    position: int = 0
    """Bytes the transcript had by then: the same text before them is another message."""

    def mark(self, traits: ClientTraits) -> str | None:
        """Return what the transcript must hold; None for what the client has answered."""
        if self.channel is Channel.COMMAND:
            record = traits.command_record
            return None if record is None else record.format(self.message.pasted.split()[0])
        text = self.message.pasted if self.channel in {*TYPED_CHANNELS, Channel.PASTE} else self.message.text
        return self.message.id if self.message.id in text else text


@dataclass(frozen=True, slots=True)
class Lane:
    """How far the window has come in the queue of one mode."""

    mode: Mode
    taken: int = 0
    """The number of the newest message that came into the window."""
    known: int = 0
    """The number of the newest one there is."""
    beyond: int = 0
    """How many wait in the table."""


@dataclass(frozen=True, slots=True)
class Refill:
    """A read of the table for the window: queued messages of a mode, numbered above `after`, up to `known`."""

    mode: Mode
    after: int
    known: int
    count: int


@dataclass(frozen=True, slots=True)
class MessageQueue:
    """The messages of one session. Its member names are stored with the session."""

    queue: tuple[Message, ...] = ()
    """What waits for the agent, in order; the first is on its way while `step` is set."""
    handed: tuple[InFlight, ...] = ()
    lanes: tuple[Lane, ...] = ()
    look: float | None = None
    """When the transcript is next searched for what is in flight."""
    continued: int = 0
    """How many turns in a row were continued with messages."""
    step: int | None = None
    """The pane command in progress for the first message."""
    typed: bool = False
    """Text and Enter went out."""
    typed_in: str | None = None
    """The transcript of the conversation that they went to."""
    now: bool = False
    """It is typed while the agent works, to be sent at once."""
    since: float = 0.0
    """When the command to type them was given last, UTC seconds; 0 if it was not."""
    position: int = 0
    """Bytes the transcript had by then."""
    deadline: float | None = None
    attempts: int = 0
    taken_over: bool = False
    """A restarted server searches for what the last one may have typed: what is not there yet may still come."""
    note: str = ""

    @property
    def waiting(self) -> int:
        return len(self.queue) + sum(lane.beyond for lane in self.lanes)

    @property
    def first(self) -> Message:
        """The one whose turn it is; IndexError if none waits."""
        return self.queue[0]

    @property
    def free(self) -> tuple[Message, ...]:
        """Those of the queue that are not on their way already."""
        return self.queue[1:] if self.step is not None else self.queue


def in_doubt(queue: MessageQueue) -> frozenset[Mode]:
    """Return the modes of which a message may have to be delivered again: none of the same mode may overtake it."""
    return frozenset(
        flight.message.mode
        for flight in queue.handed
        if flight.over is not None or (flight.channel is Channel.PASTE and not flight.taken)
    )


def at_rest(queue: MessageQueue, /, **changes: object) -> MessageQueue:
    """Return the queue with nothing on its way to the pane; the first message keeps its place and its attempts."""
    return replace(queue, step=None, typed=False, now=False, deadline=None, taken_over=False, **changes)  # type: ignore[arg-type]  # the fields' own types


def without_first(queue: MessageQueue) -> MessageQueue:
    """Return the queue after its first message has come to an end."""
    return at_rest(queue, queue=queue.queue[1:], attempts=0, since=0.0, note="")


def dropped(queue: MessageQueue, ids: frozenset[str]) -> MessageQueue:
    """Return the queue without those messages of its queue."""
    if queue.first.id in ids and queue.step is not None:
        queue = at_rest(queue, attempts=0, since=0.0)
    return replace(queue, queue=tuple(message for message in queue.queue if message.id not in ids))


def without(queue: MessageQueue, message: str, mode: Mode, number: int) -> MessageQueue | None:
    """Return the queue without a message that waits, in the window or beyond it; None if it does not wait."""
    if any(message == waiting.id for waiting in (queue.free if queue.typed else queue.queue)):
        return dropped(queue, frozenset({message}))
    lane = lane_of(queue, mode)
    if holds(queue, message) or not lane.beyond or not lane.taken < number <= lane.known:
        return None
    return with_lane(queue, replace(lane, beyond=lane.beyond - 1))


def lane_of(queue: MessageQueue, mode: Mode) -> Lane:
    return next((lane for lane in queue.lanes if lane.mode is mode), Lane(mode))


def with_lane(queue: MessageQueue, lane: Lane) -> MessageQueue:
    others = tuple(other for other in queue.lanes if other.mode is not lane.mode)
    return replace(queue, lanes=(*others, lane))


def holds(queue: MessageQueue, message_id: str) -> bool:
    return any(message_id == message.id for message in queue.queue) or any(
        message_id == flight.message.id for flight in queue.handed
    )


def queued(queue: MessageQueue, message: Message) -> MessageQueue:
    """Return the queue with a new message, in the window or behind it."""
    lane = lane_of(queue, message.mode)
    if holds(queue, message.id) or 0 < message.number <= lane.known:
        return queue
    if message.number and (lane.beyond or _count(queue, message.mode) >= WINDOW):
        return with_lane(queue, replace(lane, known=message.number, beyond=lane.beyond + 1))
    if message.number:
        queue = with_lane(queue, replace(lane, taken=message.number, known=message.number))
    return placed(queue, message)


def placed(queue: MessageQueue, message: Message) -> MessageQueue:
    """Return the queue with a message where it belongs; one that outranks what waits for the pane takes its turn."""
    outranks = bool(queue.queue) and message.rank < queue.first.rank
    if outranks and queue.step is not None and not queue.typed and not queue.attempts:
        queue = at_rest(queue)
    first = queue.queue[: len(queue.queue) - len(queue.free)]
    rest = tuple(sorted((*queue.free, message), key=lambda waiting: waiting.rank))
    return replace(queue, queue=(*first, *rest))


def _count(queue: MessageQueue, mode: Mode) -> int:
    return sum(message.mode is mode for message in queue.queue)


def refills(queue: MessageQueue) -> tuple[Refill, ...]:
    """What the window has room for."""
    counts = [(lane, _count(queue, lane.mode)) for lane in queue.lanes if lane.beyond]
    return tuple(Refill(lane.mode, lane.taken, lane.known, WINDOW - count) for lane, count in counts if count <= REFILL)


def refilled(queue: MessageQueue, refill: Refill, messages: tuple[Message, ...], left: int) -> MessageQueue:
    """Return the queue with what the table gave; `left` of those asked about wait there still."""
    lane = lane_of(queue, refill.mode)
    if lane.taken != refill.after:
        return queue  # asked twice: this answer is the late one
    arrived = lane.known > refill.known
    taken = messages[-1].number if messages and left else refill.known
    beyond = left + (lane.beyond - len(messages) - left if arrived else 0)
    queue = with_lane(queue, replace(lane, taken=taken, beyond=max(beyond, int(lane.known > taken))))
    for message in messages:
        queue = queue if holds(queue, message.id) else placed(queue, message)
    return queue
