"""Rotation of a client in a person's own terminal: nothing is typed there, the client is ended and started again.

The phases are those of every rotation. `sm run` takes the order (CLEARING), starts a new client with the wake prompt
as its argument (EMPTY), whose SessionStart carries the document (PROMPTING). Any prompt then finds it, so any evidence
that the agent works in the new context is the end. What is not said here is as in `core/rules/rotation.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sm.core import events as ev
from sm.core.effects import Effect, FindPrompt, LeavePane, RestartClient, TellPerson
from sm.core.model.foreground import held_back
from sm.core.model.handoff import Handoff
from sm.core.model.message import digest
from sm.core.model.rotation import AFTER_CLEAR, Phase, Rotation
from sm.core.model.situation import Scene
from sm.core.rules import rotation as rules
from sm.core.rules.rotation import ATTEMPTS, NEW_CONTEXT, TIMEOUTS, Outcome, enter, entered

STARTS = TIMEOUTS[Phase.EMPTY]
"""Seconds for a new client to take its prompt: the person's own hooks may hold it (seen without: 0.6 to 1.0)."""


def advance(rotation: Rotation, event: ev.Event, scene: Scene) -> Outcome:
    """Return the rotation after `event`, and what to do about it."""
    handler = None if rotation.phase is Phase.DONE else HANDLERS.get(type(event))
    outcome = handler(rotation, event, scene) if handler is not None else None
    moved = rules.advance(rotation, event, scene) if outcome is None else outcome
    return _unless_held_back(rotation, event, scene, moved)


def start(handoff: Handoff | None, at: float, scene: Scene) -> Outcome:
    """A new rotation; see `rotation.start`."""
    pending = Rotation(handoff, since=at)
    return _unless_held_back(pending, ev.AlarmRang(at=at), scene, rules.start(handoff, at, scene))


def _unless_held_back(before: Rotation, event: ev.Event, scene: Scene, outcome: Outcome) -> Outcome:
    """A client that needs its restart again at once stays as it is, and its person is told; they may still ask."""
    reserved = before.phase is Phase.PENDING and outcome[0].phase is Phase.RESERVED
    if not reserved or isinstance(event, ev.HandoffRetried) or scene.foreground is None:
        return outcome
    reason = held_back(scene.foreground, event.at, scene.tool_calls)
    if not reason:
        return outcome
    stays = entered(before, Phase.FAILED, event.at, reason)
    return stays, (TellPerson(f"sm: {reason}"), *rules.ON_ENTER[Phase.FAILED](stays, scene))


def _ready(rotation: Rotation, event: ev.Event, scene: Scene) -> Outcome | None:
    if rotation.phase is not Phase.RESERVED:
        return rotation, ()
    return replace(entered(rotation, Phase.CLEARING, event.at), next=""), (RestartClient(scene.step),)


def _taken(rotation: Rotation, event: ev.Event, _: Scene) -> Outcome | None:
    assert isinstance(event, ev.RestartTaken)
    if rotation.phase is not Phase.CLEARING or rotation.next:
        return rotation, ()
    return replace(entered(rotation, Phase.CLEARING, event.at), next=event.conversation), ()


def _refused(rotation: Rotation, event: ev.Event, scene: Scene) -> Outcome | None:
    """`sm run` would not do it: nothing is lost, the next turn's end tries again."""
    assert isinstance(event, ev.TypingRefused)
    if rotation.phase is not Phase.CLEARING:
        return rotation, ()
    return enter(rotation, Phase.PENDING, event, scene)


def _launched(rotation: Rotation, event: ev.Event, scene: Scene) -> Outcome | None:
    assert isinstance(event, ev.SessionLaunched)
    if not rotation.active or not rotation.next or event.conversation != rotation.next:
        return None
    if rotation.phase in AFTER_CLEAR:  # its first hook was faster than the word of its start
        return rotation, ()
    moved = _awaiting(rotation, Phase.EMPTY, event.at)
    return moved, _look(moved, scene)


def _awaiting(rotation: Rotation, phase: Phase, at: float) -> Rotation:
    return replace(entered(rotation, phase, at), deadline=at + STARTS)


def _look(rotation: Rotation, scene: Scene) -> tuple[Effect, ...]:
    """Its hooks may have found no server, and what they would have told is in the transcript, if that is there."""
    if scene.transcript is None:
        return ()
    wanted = digest(rules.prompt_of(rotation))
    return (FindPrompt(scene.step, scene.conversation or "", scene.transcript, wanted),)


def _conversation_started(rotation: Rotation, event: ev.Event, scene: Scene) -> Outcome | None:
    assert isinstance(event, ev.ConversationStarted)
    if event.origin not in NEW_CONTEXT or not rotation.unfinished:
        return rotation, ()
    if rotation.announced and rotation.began == event.conversation:
        return rotation, ()  # a second hook for the same start
    hooked = event.origin is not ev.Origin.WITNESS
    ours = event.conversation == rotation.next
    began = replace(rotation, announced=hooked, began=event.conversation, background=(), scheduled=(), attempts=0)
    moved = _awaiting(began, Phase.PROMPTING if ours else Phase.EMPTY, event.at)
    if not ours:  # the person's own /clear, or their next start: the document waits for their next prompt
        moved = replace(moved, deadline=None, note="the document is loaded; waits for a prompt")
    leave = () if ours else (LeavePane(scene.step),)
    return moved, (*(rules.injected(moved) if hooked else ()), *leave)


def _prompt_submitted(rotation: Rotation, event: ev.Event, scene: Scene) -> Outcome | None:
    assert isinstance(event, ev.PromptSubmitted)
    if rotation.phase is Phase.CLEARING and rotation.next:
        return rotation, ()  # too late: that client is being ended
    if rotation.phase not in AFTER_CLEAR and not (rotation.phase is Phase.FAILED and rotation.cleared):
        return None
    late = () if rotation.announced or event.replayed else rules.injected(rotation)
    moved, effects = _woken(rotation, event, scene)
    exactly = rules.is_prompt_of(rotation, event.text)
    return replace(moved, note="" if exactly else "picked up with another prompt"), (*late, *effects)


def _works(rotation: Rotation, event: ev.Event, scene: Scene) -> Outcome | None:
    if rotation.phase is Phase.CLEARING and rotation.next:
        return rotation, ()
    return _woken(rotation, event, scene) if rotation.phase in AFTER_CLEAR else None


def _woken(rotation: Rotation, event: ev.Event, scene: Scene) -> Outcome:
    return enter(replace(rotation, woken_in=scene.conversation or ""), Phase.DONE, event, scene)


def _missing(rotation: Rotation, _: ev.Event, __: Scene) -> Outcome | None:
    return rotation, ()


def _rang(rotation: Rotation, event: ev.Event, scene: Scene) -> Outcome | None:
    due = rotation.deadline is not None and event.at >= rotation.deadline
    if not due or rotation.attempts >= ATTEMPTS:
        return None
    again = replace(rotation, attempts=rotation.attempts + 1)
    if rotation.phase is Phase.CLEARING:  # the answer to `sm run` was lost, as with a server that was killed
        return enter(again, Phase.RESERVED, event, scene)
    if rotation.phase not in AFTER_CLEAR or scene.transcript is None:
        return None
    again = _awaiting(again, rotation.phase, event.at)
    return again, _look(again, scene)


def _server_started(rotation: Rotation, event: ev.Event, scene: Scene) -> Outcome | None:
    """`sm run` has gone on without us: what it did it tells now."""
    if rotation.phase is Phase.CLEARING and rotation.next:
        return entered(rotation, Phase.CLEARING, event.at), ()
    return (rotation, _look(rotation, scene)) if rotation.phase in AFTER_CLEAR else None


def _retried(rotation: Rotation, event: ev.Event, scene: Scene) -> Outcome | None:
    if rotation.phase is not Phase.FAILED or rotation.cleared:
        return None
    phase = Phase.RESERVED if scene.idle else Phase.PENDING
    return enter(replace(rotation, attempts=0), phase, event, scene)


HANDLERS: dict[type[ev.Event], Callable[[Rotation, ev.Event, Scene], Outcome | None]] = {
    ev.ComposerReady: _ready,
    ev.RestartTaken: _taken,
    ev.TypingRefused: _refused,
    ev.SessionLaunched: _launched,
    ev.ConversationStarted: _conversation_started,
    ev.PromptSubmitted: _prompt_submitted,
    ev.ToolUsed: _works,
    ev.TurnEnded: _works,
    ev.TurnFailed: _works,
    ev.PermissionAsked: _works,
    ev.PromptMissing: _missing,
    ev.AlarmRang: _rang,
    ev.ServerStarted: _server_started,
    ev.HandoffRetried: _retried,
}
