"""Delivery of queued text to an idle agent: one at a time, in order, confirmed by the client's own submission.

A message leaves the queue when UserPromptSubmit (or the transcript) shows exactly its text, or after ATTEMPTS as
unconfirmed. A person who submits first has the turn; the message waits for the next idle prompt.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sm.core import events as ev
from sm.core.effects import AwaitComposer, BlockPrompt, Effect, FindPrompt, LeavePane, RecordMessage, TypeText
from sm.core.mailbox import Message, MessageState, as_typed
from sm.core.mailbox import digest as digest_of
from sm.core.scene import Scene

TYPED_TIMEOUT = 10.0
ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Outbox:
    queue: tuple[Message, ...] = ()
    """What waits for the agent; the first is on its way while `step` is set."""
    step: int | None = None
    """The pane order under way for the first message."""
    typed: bool = False
    """Text and Enter went out."""
    since: float = 0.0
    """When they were ordered, UTC seconds."""
    deadline: float | None = None
    attempts: int = 0
    taken_over: bool = False
    """A server's new life looks for what the old one may have typed: what is not there yet may still come."""
    note: str = ""


Outcome = tuple[Outbox, tuple[Effect, ...]]
_AT_REST = {"step": None, "typed": False, "deadline": None}


def advance(outbox: Outbox, event: ev.Event, scene: Scene) -> Outcome:
    handler = HANDLERS.get(type(event))
    if handler is None or (outbox.step is None and type(event) is not ev.MessageQueued):
        return outbox, ()
    return handler(outbox, event, scene)


def begin(outbox: Outbox, scene: Scene) -> Outcome:
    """Start the first message on its way; the caller has seen that the agent is idle and nothing holds it."""
    if outbox.step is not None or not outbox.queue:
        return outbox, ()
    return replace(outbox, step=scene.step, typed=False, note=""), (AwaitComposer(scene.step),)


def interrupted(outbox: Outbox) -> Outbox:
    """Return the outbox with nothing on its way; the message keeps its place."""
    return Outbox(outbox.queue, attempts=outbox.attempts, note=outbox.note)


def _queued(outbox: Outbox, event: ev.Event, _: Scene) -> Outcome:
    assert isinstance(event, ev.MessageQueued)
    if any(message.id == event.message.id for message in outbox.queue):
        return outbox, ()
    return replace(outbox, queue=(*outbox.queue, event.message)), ()


def _ready(outbox: Outbox, event: ev.Event, scene: Scene) -> Outcome:
    if outbox.typed:
        return outbox, ()
    text = outbox.queue[0].text
    deadline = event.at + TYPED_TIMEOUT
    typing = replace(outbox, step=scene.step, typed=True, since=event.at, deadline=deadline)
    return typing, (TypeText(scene.step, text),)


def _held(outbox: Outbox, event: ev.Event, _: Scene) -> Outcome:
    assert isinstance(event, ev.ComposerHeld)
    return replace(outbox, note=event.reason), ()


def _submitted(outbox: Outbox, event: ev.Event, scene: Scene) -> Outcome:
    assert isinstance(event, ev.PromptSubmitted)
    message = outbox.queue[0]
    text = as_typed(event.text)
    if digest_of(text) == message.digest and outbox.typed:
        return Outbox(outbox.queue[1:]), (RecordMessage(message.id, MessageState.CONFIRMED),)
    if outbox.typed and message.text in text and not event.replayed:
        mended = replace(outbox, step=scene.step, typed=False, deadline=None, note="mixed with other text")
        block = BlockPrompt("sm: this was mixed with text that sm typed; it is put back for you")
        return mended, (block, AwaitComposer(scene.step, own=(message.text,)))
    return interrupted(outbox), (LeavePane(scene.step),)


def _missed(outbox: Outbox, event: ev.Event, scene: Scene) -> Outcome:
    """Refused, or typed and never taken: tried again from the composer, at last given up and shown."""
    assert isinstance(event, ev.TypingRefused | ev.PromptMissing)
    if outbox.taken_over and isinstance(event, ev.PromptMissing):
        return replace(outbox, taken_over=False), ()
    message = outbox.queue[0]
    reason = event.reason if isinstance(event, ev.TypingRefused) else "the client never submitted it"
    if outbox.attempts < ATTEMPTS:
        again = Outbox(outbox.queue, step=scene.step, attempts=outbox.attempts + 1, note=reason)
        return again, (AwaitComposer(scene.step, own=(message.text,)),)
    return Outbox(outbox.queue[1:]), (RecordMessage(message.id, MessageState.UNCONFIRMED, reason),)


def _asked(outbox: Outbox, _: ev.Event, scene: Scene) -> Outcome:
    """A dialog is about to stand: look again once it shows; what is being typed gives way before its Enter."""
    if outbox.typed:
        return outbox, (LeavePane(scene.step - 1),)
    own = (outbox.queue[0].text,) if outbox.attempts else ()
    return replace(outbox, step=scene.step), (AwaitComposer(scene.step, own=own, after=scene.dialog_shows),)


def _rang(outbox: Outbox, event: ev.Event, scene: Scene) -> Outcome:
    if outbox.deadline is None or event.at < outbox.deadline:
        return outbox, ()
    return _look(replace(outbox, taken_over=False), event, scene)


def _look(outbox: Outbox, event: ev.Event, scene: Scene) -> Outcome:
    """No hook came for what was typed: the transcript tells whether the client took it."""
    if not outbox.typed:
        return interrupted(outbox), (LeavePane(scene.step),)
    digest = outbox.queue[0].digest
    find = FindPrompt(scene.step, scene.conversation or "", scene.transcript, digest, outbox.since)
    return replace(outbox, step=scene.step, deadline=event.at + TYPED_TIMEOUT), (find,)


def _taken_over(outbox: Outbox, event: ev.Event, scene: Scene) -> Outcome:
    return _look(replace(outbox, taken_over=outbox.typed), event, scene)


def _gone(outbox: Outbox, _: ev.Event, scene: Scene) -> Outcome:
    return interrupted(outbox), (LeavePane(scene.step),)


Handler = Callable[[Outbox, ev.Event, Scene], Outcome]
HANDLERS: dict[type[ev.Event], Handler] = {
    ev.MessageQueued: _queued,
    ev.ComposerReady: _ready,
    ev.ComposerHeld: _held,
    ev.PromptSubmitted: _submitted,
    ev.TypingRefused: _missed,
    ev.PromptMissing: _missed,
    ev.PermissionAsked: _asked,
    ev.AlarmRang: _rang,
    ev.ServerStarted: _taken_over,
    ev.ConversationStarted: _gone,
    ev.ClientExited: _gone,
    ev.SessionKilled: _gone,
    ev.HandoffRequested: _gone,
}
