"""Context rotation: clear an agent's context and start it again from its handoff.

Every rule about rotation lives here and in the table below. A phase moves on evidence from the client, never on a key
we sent; every phase that waits has a deadline. An event without a row changes no phase.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sm.core import events as ev
from sm.core.effects import (
    AwaitComposer,
    BlockPrompt,
    Effect,
    FindPrompt,
    InjectHandoff,
    LeavePane,
    RecordHandoff,
    RefreshDocument,
    TakeSnapshot,
    TypeCommand,
    TypeText,
)
from sm.core.model import usage_limit
from sm.core.model.foreground import not_before
from sm.core.model.handoff import Handoff, HandoffState, wake_prompt
from sm.core.model.message import as_typed, digest
from sm.core.model.rotation import AFTER_CLEAR, BEFORE_CLEAR, CANCELLABLE, OVER, UNDER_WAY, Phase, Rotation
from sm.core.model.situation import Scene

TIMEOUTS: dict[Phase, float] = {
    Phase.RESERVED: 120.0,  # a foreign Stop hook may run long; it ends in the next Stop or in an idle client
    Phase.SNAPSHOT: 15.0,
    Phase.CLEARING: 10.0,  # seen 0.1 to 0.4 s; a foreign SessionEnd hook adds 1.5 s at most
    Phase.EMPTY: 120.0,
    Phase.PROMPTING: 10.0,  # seen 0.03 to 0.1 s
}
ATTEMPTS = 3
"""How often refused typing is tried again before a person is asked."""


Row = tuple[Phase, type[ev.Event]]

TRANSITIONS: dict[Row, Phase] = {
    (Phase.PENDING, ev.TurnEnded): Phase.RESERVED,
    (Phase.PENDING, ev.TurnFailed): Phase.RESERVED,
    (Phase.PENDING, ev.ClientBlocked): Phase.RESERVED,
    (Phase.PENDING, ev.HandoffRetried): Phase.RESERVED,
    (Phase.RESERVED, ev.ComposerReady): Phase.SNAPSHOT,
    (Phase.SNAPSHOT, ev.SnapshotTaken): Phase.CLEARING,
    (Phase.CLEARING, ev.TypingRefused): Phase.RESERVED,
    (Phase.CLEARING, ev.ConversationStarted): Phase.EMPTY,
    (Phase.EMPTY, ev.ComposerReady): Phase.PROMPTING,
    (Phase.PROMPTING, ev.TypingRefused): Phase.EMPTY,
    (Phase.PROMPTING, ev.PromptMissing): Phase.EMPTY,
    # A person or a task notification was faster: their turn first, ours at its end.
    **{(phase, ev.PromptSubmitted): Phase.PENDING for phase in BEFORE_CLEAR},
    **{(phase, ev.ToolUsed): Phase.PENDING for phase in BEFORE_CLEAR},
    (Phase.PROMPTING, ev.PromptSubmitted): Phase.DONE,
    # The client is gone: before the clear nothing is lost, after it only the document is left.
    **{(phase, ev.ClientExited): Phase.PENDING for phase in BEFORE_CLEAR},
    **{(phase, ev.ClientExited): Phase.FAILED for phase in AFTER_CLEAR},
    **{(phase, ev.AlarmRang): Phase.PENDING for phase in BEFORE_CLEAR},
    **{(phase, ev.AlarmRang): Phase.FAILED for phase in AFTER_CLEAR},
    **{(phase, ev.HandoffCancelled): Phase.CANCELLED for phase in CANCELLABLE},
    **{(phase, ev.SessionKilled): Phase.CANCELLED for phase in (Phase.PENDING, *BEFORE_CLEAR, *AFTER_CLEAR)},
    (Phase.FAILED, ev.HandoffRetried): Phase.EMPTY,
}


def entered(rotation: Rotation, phase: Phase, at: float, note: str = "") -> Rotation:
    """Return the rotation in `phase`, with the phase's deadline running from `at`."""
    timeout = TIMEOUTS.get(phase)
    return replace(
        rotation,
        phase=phase,
        since=at,
        deadline=None if timeout is None else at + timeout,
        note=note,
        finished=at if phase in OVER else None,
        cleared=rotation.cleared or phase in AFTER_CLEAR,
        waiting_background=False,
    )


NOTES: dict[type[ev.Event], str] = {
    ev.AlarmRang: "timed out",
    ev.SessionLaunched: "its conversation was lost; starts again from the document",
    ev.ClientExited: "the client has ended",
    ev.HandoffCancelled: "cancelled",
    ev.SessionKilled: "the session was killed",
    ev.PromptSubmitted: "another prompt came first; waits for that turn's end",
    ev.ToolUsed: "the turn continues; waits for its end",
}


def note_for(rotation: Rotation, event: ev.Event) -> str:
    """Why `event` moved the rotation, in words for a person."""
    if isinstance(event, ev.TypingRefused | ev.ComposerHeld):
        return event.reason
    if isinstance(event, ev.AlarmRang):
        return f"{rotation.note or 'no evidence from the client'} ({rotation.phase.value} timed out)"
    return NOTES.get(type(event), "")


CLEAR = "/clear"
NEW_CONTEXT = frozenset({ev.Origin.CLEAR, ev.Origin.WITNESS, ev.Origin.STARTUP})
"""Origins of a conversation that begins empty."""
RATE_LIMITED = "rate_limit"

Outcome = tuple[Rotation, tuple[Effect, ...]]


def advance(rotation: Rotation, event: ev.Event, scene: Scene) -> Outcome:
    """Return the rotation after `event`, and what to do about it."""
    if rotation.phase is Phase.DONE:
        return _after_done(rotation, event, scene)
    special = SPECIAL.get(type(event))
    if special is not None:
        outcome = special(rotation, event, scene)
        if outcome is not None:
            return outcome
    phase = TRANSITIONS.get((rotation.phase, type(event)))
    return (rotation, ()) if phase is None else enter(rotation, phase, event, scene)


def _after_done(rotation: Rotation, event: ev.Event, scene: Scene) -> Outcome:
    """The prompt was taken; until the agent has answered it, the end of its client would lose what woke it."""
    if isinstance(event, ev.SessionLaunched):
        # The client begins anew because that conversation cannot be gone on with: the document is all there is.
        lost = event.conversation != rotation.woken_in and scene.before == rotation.woken_in
        return enter(rotation, Phase.FAILED, event, scene) if lost else (rotation, ())
    if rotation.answered:
        return rotation, ()
    if isinstance(event, ev.ToolUsed | ev.TurnEnded):
        return replace(rotation, answered=True), ()
    return enter(rotation, Phase.FAILED, event, scene) if isinstance(event, ev.ClientExited) else (rotation, ())


def enter(rotation: Rotation, phase: Phase, event: ev.Event, scene: Scene) -> Outcome:
    note = "" if phase is Phase.DONE else note_for(rotation, event)
    moved = entered(rotation, phase, event.at, note)
    return moved, ON_ENTER[phase](moved, scene)


def start(handoff: Handoff | None, at: float, scene: Scene) -> Outcome:
    """A new rotation. Asked for by an agent whose turn is already over, it has no Stop to wait for."""
    rotation = Rotation(handoff, since=at, note="waits for the turn's end")
    if not (scene.idle or scene.turn_over):
        return rotation, ()
    return _reserve(replace(rotation, stopped=at), at, scene)


def taken_up(handoff: Handoff, at: float) -> Rotation:
    """The rotation of a session that begins from a document: all that is left is to wait for its client and wake it."""
    return entered(Rotation(handoff), Phase.EMPTY, at, "waits for the client to start")


def _reserve(rotation: Rotation, at: float, scene: Scene) -> Outcome:
    moved = entered(rotation, Phase.RESERVED, at)
    return moved, ON_ENTER[Phase.RESERVED](moved, scene)


# --- what each phase does when it is entered -------------------------------------------------------------------------


def _await_clear(rotation: Rotation, scene: Scene) -> tuple[Effect, ...]:
    after = scene.dialog_shows if scene.foreground is None else max(scene.dialog_shows, not_before(scene.foreground))
    return *_checked(rotation), AwaitComposer(scene.step, own=(CLEAR,), after=after)


def _await_prompt(rotation: Rotation, scene: Scene) -> tuple[Effect, ...]:
    wait = AwaitComposer(scene.step, own=(prompt_of(rotation), CLEAR), after=scene.dialog_shows)
    return *_checked(rotation), wait


def _checked(rotation: Rotation) -> tuple[Effect, ...]:
    """The prompt names the agent's own file, which others may have written meanwhile."""
    return () if rotation.handoff is None else (RefreshDocument(rotation.handoff),)


def _type_prompt(rotation: Rotation, scene: Scene) -> tuple[Effect, ...]:
    return (TypeText(scene.step, prompt_of(rotation)),)


def prompt_of(rotation: Rotation) -> str:
    """The wake prompt; nothing is typed into a context that begins without a document."""
    if rotation.handoff is None:
        return ""
    return wake_prompt(rotation.handoff, rotation.background, rotation.scheduled)


def _recorded(rotation: Rotation, state: HandoffState) -> tuple[Effect, ...]:
    return () if rotation.handoff is None else (RecordHandoff(rotation.handoff, state, rotation.note),)


ON_ENTER: dict[Phase, Callable[[Rotation, Scene], tuple[Effect, ...]]] = {
    Phase.PENDING: lambda _, scene: (LeavePane(scene.step),),
    Phase.RESERVED: _await_clear,
    Phase.SNAPSHOT: lambda _, scene: (TakeSnapshot(scene.step),),
    Phase.CLEARING: lambda _, scene: (TypeCommand(scene.step, CLEAR),),
    Phase.EMPTY: _await_prompt,
    Phase.PROMPTING: _type_prompt,
    Phase.DONE: lambda rotation, _: _recorded(rotation, HandoffState.CONSUMED),
    Phase.FAILED: lambda rotation, scene: (LeavePane(scene.step), *_recorded(rotation, HandoffState.FAILED)),
    Phase.CANCELLED: lambda rotation, scene: (LeavePane(scene.step), *_recorded(rotation, HandoffState.CLEARED)),
}


# --- events whose outcome hangs on more than the phase; None leaves the event to the table ------------------------


def _turn_ended(rotation: Rotation, event: ev.Event, scene: Scene) -> Outcome | None:
    if rotation.phase is not Phase.PENDING:
        return None
    rotation = replace(rotation, stopped=event.at)
    if not scene.background or scene.wait_background <= 0:
        return enter(rotation, Phase.RESERVED, event, scene)
    if rotation.waiting_background:
        return rotation, ()
    names = ", ".join(task.description or task.kind for task in scene.background)
    deadline = event.at + scene.wait_background
    note = f"waits for background tasks: {names}"
    return replace(rotation, waiting_background=True, deadline=deadline, note=note), ()


def _turn_failed(rotation: Rotation, event: ev.Event, scene: Scene) -> Outcome | None:
    assert isinstance(event, ev.TurnFailed)
    if rotation.phase is not Phase.PENDING:
        return None
    rotation = replace(rotation, stopped=event.at)
    if event.limit is not None:
        return replace(rotation, note=usage_limit.HELD), ()
    if event.error == RATE_LIMITED:
        return replace(rotation, note="the turn failed at a rate limit; waits for the next turn's end"), ()
    return enter(rotation, Phase.RESERVED, event, scene)


def _blocked(rotation: Rotation, event: ev.Event, scene: Scene) -> Outcome | None:
    if rotation.phase is not Phase.PENDING:
        return rotation, ()
    return enter(replace(rotation, stopped=event.at), Phase.RESERVED, event, scene)


def _conversation_started(rotation: Rotation, event: ev.Event, scene: Scene) -> Outcome | None:
    """A new, empty conversation: by our `/clear`, by a person's, or by a client started again for the session."""
    assert isinstance(event, ev.ConversationStarted)
    if event.origin not in NEW_CONTEXT or (rotation.phase in OVER and not rotation.unfinished):
        return rotation, ()
    hooked = event.origin is not ev.Origin.WITNESS
    if rotation.announced and rotation.phase in AFTER_CLEAR and rotation.began == event.conversation:
        return rotation, ()  # a second hook for the same start: one injection, and the prompt may be on its way
    if rotation.handoff is None:
        return enter(replace(rotation, began=event.conversation, answered=True), Phase.DONE, event, scene)
    background = tuple(task.description or task.kind for task in scene.background)
    began = event.conversation
    rotation = replace(rotation, background=background, scheduled=scene.scheduled)
    rotation = replace(rotation, announced=hooked, began=began, attempts=0)
    moved = entered(rotation, Phase.EMPTY, event.at)
    reply = injected(moved) if hooked else ()
    return moved, (*reply, *ON_ENTER[Phase.EMPTY](moved, scene))


def injected(rotation: Rotation) -> tuple[Effect, ...]:
    return () if rotation.handoff is None else (InjectHandoff(rotation.handoff, rotation.snapshot),)


def _prompt_submitted(rotation: Rotation, event: ev.Event, scene: Scene) -> Outcome | None:
    assert isinstance(event, ev.PromptSubmitted)
    if rotation.phase is Phase.PENDING:
        return replace(rotation, waiting_background=False, deadline=None, note="waits for the turn's end"), ()
    if rotation.phase is Phase.EMPTY and is_prompt_of(rotation, event.text):
        return _wake_submitted(rotation, event, scene)  # typed, given up for lost, and only now taken by a slow client
    if rotation.phase is Phase.EMPTY:
        return entered(rotation, Phase.EMPTY, event.at, NOTES[ev.PromptSubmitted]), ()
    if rotation.phase is Phase.CLEARING and CLEAR in as_typed(event.text) and not event.replayed:
        return _mend(rotation, Phase.RESERVED, event, scene)
    if rotation.phase is not Phase.PROMPTING:
        return None
    return _wake_submitted(rotation, event, scene)


def is_prompt_of(rotation: Rotation, text: str) -> bool:
    """Whether a prompt that was submitted is exactly ours."""
    return digest(as_typed(text)) == digest(prompt_of(rotation))


def _wake_submitted(rotation: Rotation, event: ev.PromptSubmitted, scene: Scene) -> Outcome | None:
    wake = prompt_of(rotation)
    if is_prompt_of(rotation, event.text):
        moved, effects = enter(replace(rotation, woken_in=event.conversation), Phase.DONE, event, scene)
        # SessionStart reached nobody: the prompt's own reply is the last chance to hand the document over inline.
        late = () if rotation.announced or event.replayed else injected(rotation)
        return moved, (*late, *effects)
    if wake in as_typed(event.text) and not event.replayed:
        return _mend(rotation, Phase.EMPTY, event, scene)
    moved = entered(rotation, Phase.EMPTY, event.at, NOTES[ev.PromptSubmitted])
    return moved, ON_ENTER[Phase.EMPTY](moved, scene)


def _mend(rotation: Rotation, phase: Phase, event: ev.Event, scene: Scene) -> Outcome:
    """Our text and a person's became one prompt: keep it from the model and try again from the box."""
    moved = entered(replace(rotation, attempts=rotation.attempts + 1), phase, event.at, "mixed with other text")
    block = BlockPrompt("sm: this was mixed with text that sm typed; it is put back for you")
    return moved, (block, *ON_ENTER[phase](moved, scene))


def _refused(rotation: Rotation, event: ev.Event, scene: Scene) -> Outcome | None:
    """Typing was refused, or what was typed never arrived. Tried again a few times, then a person is asked."""
    again = TRANSITIONS.get((rotation.phase, type(event)))
    if again is None:
        return rotation, ()
    if rotation.taken_over and isinstance(event, ev.PromptMissing):
        return replace(rotation, taken_over=False, note="waits for the client to take the prompt"), ()
    rotation = replace(rotation, attempts=rotation.attempts + 1)
    if rotation.attempts <= ATTEMPTS:
        return enter(rotation, again, event, scene)
    return enter(rotation, Phase.FAILED if rotation.cleared else Phase.PENDING, event, scene)


def _held(rotation: Rotation, event: ev.Event, _: Scene) -> Outcome | None:
    """Something a person can see holds us: the phase waits as long as that lasts."""
    assert isinstance(event, ev.ComposerHeld)
    timeout = TIMEOUTS.get(rotation.phase)
    if timeout is None or rotation.phase not in {Phase.RESERVED, Phase.EMPTY}:
        return rotation, ()
    deadline = rotation.deadline if event.reason == UNKNOWN_STATE else event.at + timeout
    return replace(rotation, note=event.reason, deadline=deadline), ()


UNKNOWN_STATE = "the client's state cannot be read"


def _rang(rotation: Rotation, event: ev.Event, scene: Scene) -> Outcome | None:
    if rotation.deadline is None or event.at < rotation.deadline:
        return rotation, ()
    if rotation.phase is Phase.PENDING:
        return enter(rotation, Phase.RESERVED, event, scene)
    if rotation.phase is Phase.PROMPTING and rotation.attempts < ATTEMPTS:
        again = replace(rotation, attempts=rotation.attempts + 1, taken_over=False)
        return _look_for_prompt(again, event.at, scene)
    return None


def _look_for_prompt(rotation: Rotation, at: float, scene: Scene) -> Outcome:
    """The hook may have been lost while the client went on: its transcript tells."""
    moved = entered(rotation, Phase.PROMPTING, at, "looks for the prompt in the transcript")
    wanted = digest(prompt_of(rotation))
    return moved, (FindPrompt(scene.step, scene.conversation or "", scene.transcript, wanted),)


def _seen(rotation: Rotation, event: ev.Event, scene: Scene) -> Outcome | None:
    """Escape and Ctrl-C end a turn without a hook: the client's state shows it. A prompt of the user comes first."""
    assert isinstance(event, ev.ActivityChanged)
    if rotation.phase is not Phase.PENDING or scene.turn_over or rotation.waiting_background:
        return rotation, ()
    interrupted = rotation.note == INTERRUPTED
    if scene.idle and not interrupted:
        return replace(rotation, note=INTERRUPTED, deadline=event.at + GRACE), ()
    if interrupted and not scene.idle:
        return replace(rotation, note="waits for the turn's end", deadline=None), ()
    return rotation, ()


GRACE = 60.0
"""Seconds after an interrupted turn in which a prompt of the user comes first."""
INTERRUPTED = (
    f"the turn was interrupted: rotates in {GRACE:.0f} s, or at the end of the next turn if a prompt comes before; "
    "sm handoff --retry rotates now, --cancel keeps this context"
)


def _permission_asked(rotation: Rotation, event: ev.Event, scene: Scene) -> Outcome | None:
    """A dialog is about to stand: leave the pane, look again from the last safe place."""
    if rotation.phase in {Phase.RESERVED, Phase.SNAPSHOT, Phase.EMPTY}:
        phase = Phase.EMPTY if rotation.cleared else Phase.RESERVED
        moved = entered(rotation, phase, event.at, "a dialog is open")
        return moved, ON_ENTER[phase](moved, scene)
    return (rotation, ()) if rotation.phase not in UNDER_WAY else (rotation, (LeavePane(scene.step - 1),))


def _server_started(rotation: Rotation, event: ev.Event, scene: Scene) -> Outcome | None:
    """The last life of the server ended somewhere in here: look again, from what the client shows now."""
    if rotation.phase is Phase.PROMPTING:
        return _look_for_prompt(replace(rotation, taken_over=True), event.at, scene)
    if rotation.phase in BEFORE_CLEAR:
        return _reserve(rotation, event.at, scene)
    if rotation.phase is Phase.EMPTY:
        moved = entered(rotation, Phase.EMPTY, event.at)
        return moved, ON_ENTER[Phase.EMPTY](moved, scene)
    return rotation, ()


def _document_gone(rotation: Rotation, event: ev.Event, _: Scene) -> Outcome | None:
    assert isinstance(event, ev.DocumentGone)
    if rotation.handoff is None or event.handoff != rotation.handoff.id:
        return rotation, ()
    return replace(rotation, handoff=replace(rotation.handoff, readable=False)), ()


def _tool_used(rotation: Rotation, event: ev.Event, scene: Scene) -> Outcome | None:
    """What the agent itself adds to its document after `sm handoff` counts; what else writes there does not."""
    assert isinstance(event, ev.ToolUsed)
    if rotation.handoff is None or rotation.cleared or not rotation.active or event.failed or not event.written:
        return None
    phase = TRANSITIONS.get((rotation.phase, type(event)))
    moved, effects = (rotation, ()) if phase is None else enter(rotation, phase, event, scene)
    return moved, (RefreshDocument(rotation.handoff, event.written), *effects)


def _withdrawn(rotation: Rotation, event: ev.Event, _: Scene) -> Outcome | None:
    assert isinstance(event, ev.HandoffWithdrawn)
    if rotation.handoff is None or event.handoff != rotation.handoff.id:
        return rotation, ()
    return replace(entered(rotation, Phase.CANCELLED, event.at, event.reason), cleared=False), ()


def _snapshot_taken(rotation: Rotation, event: ev.Event, scene: Scene) -> Outcome | None:
    assert isinstance(event, ev.SnapshotTaken)
    if rotation.phase is not Phase.SNAPSHOT:
        return rotation, ()
    # While the snapshot was taken the client may have begun something: then wait for it again.
    phase = Phase.CLEARING if scene.idle else Phase.RESERVED
    return enter(replace(rotation, snapshot=event.path), phase, event, scene)


def _retried(rotation: Rotation, event: ev.Event, scene: Scene) -> Outcome | None:
    phase = TRANSITIONS.get((rotation.phase, type(event)))
    if phase is None or (rotation.phase is Phase.PENDING and not scene.idle):
        return rotation, ()
    return enter(replace(rotation, attempts=0), phase, event, scene)


Special = Callable[[Rotation, ev.Event, Scene], Outcome | None]
SPECIAL: dict[type[ev.Event], Special] = {
    ev.TurnEnded: _turn_ended,
    ev.TurnFailed: _turn_failed,
    ev.ClientBlocked: _blocked,
    ev.ConversationStarted: _conversation_started,
    ev.PromptSubmitted: _prompt_submitted,
    ev.TypingRefused: _refused,
    ev.PromptMissing: _refused,
    ev.ComposerHeld: _held,
    ev.AlarmRang: _rang,
    ev.ActivityChanged: _seen,
    ev.PermissionAsked: _permission_asked,
    ev.ServerStarted: _server_started,
    ev.DocumentGone: _document_gone,
    ev.ToolUsed: _tool_used,
    ev.HandoffWithdrawn: _withdrawn,
    ev.SnapshotTaken: _snapshot_taken,
    ev.HandoffRetried: _retried,
}
