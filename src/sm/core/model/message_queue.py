"""What waits for one agent and what is on its way to it: a window of the queue, whose rest is in the store.

The window holds the next WINDOW messages of each mode, so that the session's state stays small however much is queued.
A message is in exactly one place: in the window, among those handed over, or beyond the window in the table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sm.core.model.message import TYPED_CHANNELS, Channel, Message, Mode

WINDOW = 10
REFILL = WINDOW // 2
"""The window is filled up again once a mode has no more than this in it."""


@dataclass(frozen=True, slots=True)
class InFlight:
    """A message that left for its agent, until the transcript shows it."""

    message: Message
    channel: Channel
    at: float
    transcript: str | None
    over: float | None = None
    """Since when the client has surely gone on: from then on it is there or it was lost."""
    taken: bool = False
    """The client has submitted it, by its own hook; the agent's next hook, or the transcript, confirms it."""
    fatal: bool = False
    """Its client ended while it was typed, and may have ended by it: it is never typed again by itself."""
    position: int = 0
    """Bytes the transcript had by then: the same words before them are another message's."""

    @property
    def mark(self) -> str:
        """What the transcript must hold."""
        if self.channel is Channel.COMMAND:
            return f"<command-name>{self.message.pasted.split()[0]}</command-name>"
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
    """Which messages the window wants of the table: queued ones of a mode, numbered above `after`, up to `known`."""

    mode: Mode
    after: int
    known: int
    count: int


@dataclass(frozen=True, slots=True)
class MessageQueue:
    queue: tuple[Message, ...] = ()
    """What waits for the agent, in order; the first is on its way while `step` is set."""
    handed: tuple[InFlight, ...] = ()
    lanes: tuple[Lane, ...] = ()
    look: float | None = None
    """When the transcript is looked at for what was handed over."""
    continued: int = 0
    """How often in a row a turn was kept going with messages."""
    step: int | None = None
    """The pane order under way for the first message."""
    typed: bool = False
    """Text and Enter went out."""
    typed_in: str | None = None
    """The transcript of the conversation that they went to."""
    now: bool = False
    """It is typed while the agent works, to be sent at once."""
    since: float = 0.0
    """When they were ordered, UTC seconds."""
    position: int = 0
    """Bytes the transcript had by then."""
    deadline: float | None = None
    attempts: int = 0
    taken_over: bool = False
    """A server's new life looks for what the old one may have typed: what is not there yet may still come."""
    note: str = ""

    @property
    def waiting(self) -> int:
        return len(self.queue) + sum(lane.beyond for lane in self.lanes)

    @property
    def free(self) -> tuple[Message, ...]:
        """Those of the queue that are not on their way already."""
        return self.queue[1:] if self.step is not None else self.queue


def in_doubt(outbox: MessageQueue) -> frozenset[Mode]:
    """The modes of which a message may have to come again: none of the same mode may overtake it."""
    unsure = (one for one in outbox.handed if one.over is not None or (one.channel is Channel.PASTE and not one.taken))
    return frozenset(one.message.mode for one in unsure)


def at_rest(outbox: MessageQueue, **changes: object) -> MessageQueue:
    """The outbox with nothing on its way to the pane; the first message keeps its place and its attempts."""
    return replace(outbox, step=None, typed=False, now=False, deadline=None, taken_over=False, **changes)  # type: ignore[arg-type]  # the fields' own types


def without_first(outbox: MessageQueue) -> MessageQueue:
    """The outbox after its first message has come to an end."""
    return at_rest(outbox, queue=outbox.queue[1:], attempts=0, note="")


def dropped(outbox: MessageQueue, ids: frozenset[str]) -> MessageQueue:
    """The outbox without those messages of its queue."""
    if outbox.queue[0].id in ids and outbox.step is not None:
        outbox = at_rest(outbox, attempts=0)
    return replace(outbox, queue=tuple(one for one in outbox.queue if one.id not in ids))


def without(outbox: MessageQueue, message: str, mode: Mode, number: int) -> MessageQueue | None:
    """The outbox without a message that waits, in the window or beyond it; None for one that does not wait any more."""
    if any(message == one.id for one in (outbox.free if outbox.typed else outbox.queue)):
        return dropped(outbox, frozenset({message}))
    lane = lane_of(outbox, mode)
    if holds(outbox, message) or not lane.beyond or not lane.taken < number <= lane.known:
        return None
    return with_lane(outbox, replace(lane, beyond=lane.beyond - 1))


def lane_of(outbox: MessageQueue, mode: Mode) -> Lane:
    return next((lane for lane in outbox.lanes if lane.mode is mode), Lane(mode))


def with_lane(outbox: MessageQueue, lane: Lane) -> MessageQueue:
    others = tuple(one for one in outbox.lanes if one.mode is not lane.mode)
    return replace(outbox, lanes=(*others, lane))


def holds(outbox: MessageQueue, message_id: str) -> bool:
    return any(message_id == one.id for one in outbox.queue) or any(
        message_id == one.message.id for one in outbox.handed
    )


def queued(outbox: MessageQueue, message: Message) -> MessageQueue:
    """The outbox with a new message, in the window or behind it."""
    lane = lane_of(outbox, message.mode)
    if holds(outbox, message.id) or 0 < message.number <= lane.known:
        return outbox
    if message.number and (lane.beyond or _count(outbox, message.mode) >= WINDOW):
        return with_lane(outbox, replace(lane, known=message.number, beyond=lane.beyond + 1))
    if message.number:
        outbox = with_lane(outbox, replace(lane, taken=message.number, known=message.number))
    return placed(outbox, message)


def placed(outbox: MessageQueue, message: Message) -> MessageQueue:
    """The outbox with a message where it belongs; one that outranks what waits for the pane takes its turn."""
    outranks = bool(outbox.queue) and message.rank < outbox.queue[0].rank
    if outranks and outbox.step is not None and not outbox.typed and not outbox.attempts:
        outbox = at_rest(outbox)
    first = outbox.queue[: len(outbox.queue) - len(outbox.free)]
    rest = tuple(sorted((*outbox.free, message), key=lambda one: one.rank))
    return replace(outbox, queue=(*first, *rest))


def _count(outbox: MessageQueue, mode: Mode) -> int:
    return sum(one.mode is mode for one in outbox.queue)


def refills(outbox: MessageQueue) -> tuple[Refill, ...]:
    """What the window has room for."""
    counts = [(lane, _count(outbox, lane.mode)) for lane in outbox.lanes if lane.beyond]
    return tuple(Refill(one.mode, one.taken, one.known, WINDOW - count) for one, count in counts if count <= REFILL)


def refilled(outbox: MessageQueue, refill: Refill, messages: tuple[Message, ...], left: int) -> MessageQueue:
    """The outbox with what the table gave; `left` of those asked about wait there still."""
    lane = lane_of(outbox, refill.mode)
    if lane.taken != refill.after:
        return outbox  # asked twice: this answer is the late one
    arrived = lane.known > refill.known
    taken = messages[-1].number if messages and left else refill.known
    beyond = left + (lane.beyond - len(messages) - left if arrived else 0)
    outbox = with_lane(outbox, replace(lane, taken=taken, beyond=max(beyond, int(lane.known > taken))))
    for message in messages:
        outbox = outbox if holds(outbox, message.id) else placed(outbox, message)
    return outbox
