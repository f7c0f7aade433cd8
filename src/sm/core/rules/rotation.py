"""Context rotation: clear an agent's context and start it again from its handoff.

Every rule about rotation lives here and in the table below. A phase moves on evidence from the client, never on a key
we sent; every phase that waits has a deadline.

Where more than the phase decides, a judge names its verdict on the event, the fields that change, and what is done
beside; the table alone says which phase follows. An event, or a verdict, without a row changes no phase.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from sm.core import events as ev
from sm.core.effects import (
    AwaitComposer,
    BlockPrompt,
    ClearContext,
    Effect,
    FindPrompt,
    InjectHandoff,
    LeavePane,
    RecordHandoff,
    RefreshDocument,
    SwitchClient,
    TakeSnapshot,
    TellParent,
    TellUser,
    TypeText,
)
from sm.core.model import budget, usage_limit
from sm.core.model.client_traits import ClientTraits
from sm.core.model.foreground import Foreground
from sm.core.model.handoff import Handoff, HandoffState, HandoffType, wake_prompt
from sm.core.model.message import digest
from sm.core.model.rotation import AFTER_CLEAR, BEFORE_CLEAR, CANCELLABLE, OVER, Phase, Rotation, Switch
from sm.core.model.situation import Situation
from sm.core.values import replace


class Verdict(StrEnum):
    """What an event means to a rotation where more than its phase decides."""

    EARLY = "before the deadline"
    BUSY = "the client is busy"
    BACKGROUND_RUNS = "background tasks run"
    USAGE_LIMITED = "at a usage limit"
    RATE_LIMITED = "at a rate limit"
    OURS = "ours"
    MIXED = "ours, mixed with other text"
    OTHER = "not ours"
    CONTINUED = "not an empty conversation"
    REPEATED = "announced already"
    WITHOUT_DOCUMENT = "without a document"
    LATE = "it may still arrive"
    GIVEN_UP = "tried too often"
    LOOKS = "looks in the transcript"
    WITHDRAWN = "the document is withdrawn"
    LOST = "the woken conversation is lost"
    UNANSWERED = "the agent has not answered"
    BY_USER = "the user's own"
    UNDRIVEN = "nothing gives the client prompts"
    HELD_BACK = "restarted too often"
    PAUSED = "no progress"
    SWITCHES = "another client continues"


TIMEOUTS: dict[Phase | Verdict, float | None] = {
    Phase.RESERVED: 120.0,  # a foreign Stop hook may run long; it ends in the next Stop or in an idle client
    Phase.SNAPSHOT: 15.0,
    Phase.CLEARING: 10.0,  # seen 0.1 to 0.4 s; a foreign SessionEnd hook adds 1.5 s at most
    Phase.EMPTY: 120.0,
    # Seen 0.03 to 0.1 s. MAX_RETRIES of them outlast the patience with a plugin that is silent: the keys take over.
    Phase.PROMPTING: 12.0,
    # The old client has 5 s to end; a new one that asks something first, as whether it may log in, is given up.
    Verdict.SWITCHES: 120.0,
}
MAX_RETRIES = 3
"""How often refused typing is tried again before the user is asked."""
MAX_LOOKS = 6
"""How often the transcript of a client that has just been started is searched for the prompt before it is typed again:
such a client holds a prompt back until it has loaded all. Typed again before that, it would be there twice."""
MAX_SAID = 5
MAX_SAID_CHARACTERS = 1_000
RESTART_DELAY_STEP_S = 5.0
"""Each restart without progress waits longer than the one before by it."""


Row = tuple[Phase, type[ev.Event]] | tuple[Phase, type[ev.Event], Verdict]

BEGINNINGS = (ev.TurnEnded, ev.TurnFailed, ev.ClientBlocked, ev.HandoffRetried, ev.AlarmRang, ev.DriverChanged)
"""Events at which a pending rotation begins."""
OWED = (Phase.PENDING, *BEFORE_CLEAR, *AFTER_CLEAR, Phase.FAILED, Phase.CANCELLED)
"""Phases in which the next context may still begin from the document."""

TRANSITIONS: dict[Row, Phase] = {
    (Phase.PENDING, ev.TurnEnded): Phase.RESERVED,
    (Phase.PENDING, ev.TurnFailed): Phase.RESERVED,
    (Phase.PENDING, ev.ClientBlocked): Phase.RESERVED,
    (Phase.PENDING, ev.HandoffRetried): Phase.RESERVED,
    (Phase.PENDING, ev.AlarmRang): Phase.RESERVED,
    # Rotations that lead nowhere: the user is asked.
    **{(Phase.PENDING, event, Verdict.PAUSED): Phase.PENDING for event in BEGINNINGS},
    (Phase.RESERVED, ev.ComposerReady): Phase.SNAPSHOT,
    (Phase.SNAPSHOT, ev.SnapshotTaken): Phase.CLEARING,
    # While the snapshot was taken the client may have begun something: then wait for it again.
    (Phase.SNAPSHOT, ev.SnapshotTaken, Verdict.BUSY): Phase.RESERVED,
    # Another client takes the place of this one; where it does not start, the one before comes back.
    (Phase.SNAPSHOT, ev.SnapshotTaken, Verdict.SWITCHES): Phase.CLEARING,
    (Phase.CLEARING, ev.SwitchFailed): Phase.RESERVED,
    **{(phase, ev.SwitchFailed, Verdict.SWITCHES): Phase.CLEARING for phase in (Phase.CLEARING, *AFTER_CLEAR)},
    (Phase.CLEARING, ev.AlarmRang, Verdict.SWITCHES): Phase.CLEARING,
    (Phase.CLEARING, ev.ServerStarted, Verdict.SWITCHES): Phase.CLEARING,
    # A new, empty conversation: by our clear command, by the user's, or by a client started again for the session.
    **{(phase, ev.ConversationStarted): Phase.EMPTY for phase in OWED},
    **{(phase, ev.ConversationStarted, Verdict.WITHOUT_DOCUMENT): Phase.DONE for phase in OWED},
    (Phase.EMPTY, ev.ComposerReady): Phase.PROMPTING,
    (Phase.PROMPTING, ev.PromptSubmitted, Verdict.OURS): Phase.DONE,
    # Typed, given up for lost, and only now taken by a slow client.
    (Phase.EMPTY, ev.PromptSubmitted, Verdict.OURS): Phase.DONE,
    # The text of `sm` and the user's became one prompt.
    (Phase.CLEARING, ev.PromptSubmitted, Verdict.MIXED): Phase.RESERVED,
    (Phase.PROMPTING, ev.PromptSubmitted, Verdict.MIXED): Phase.EMPTY,
    # The user or a task notification was faster: their turn first, the rotation at its end.
    **{(phase, ev.PromptSubmitted, Verdict.OTHER): Phase.PENDING for phase in BEFORE_CLEAR},
    **{(phase, ev.ToolUsed): Phase.PENDING for phase in BEFORE_CLEAR},
    (Phase.PROMPTING, ev.PromptSubmitted, Verdict.OTHER): Phase.EMPTY,
    # Typing was refused, or what was typed never arrived: tried again a few times, then the user is asked.
    (Phase.CLEARING, ev.TypingRefused): Phase.RESERVED,
    (Phase.CLEARING, ev.TypingRefused, Verdict.GIVEN_UP): Phase.PENDING,
    **{(Phase.PROMPTING, event): Phase.EMPTY for event in (ev.TypingRefused, ev.PromptMissing)},
    **{(Phase.PROMPTING, event, Verdict.GIVEN_UP): Phase.FAILED for event in (ev.TypingRefused, ev.PromptMissing)},
    # A dialog is about to open: look again from the last safe place.
    **{(phase, event): Phase.RESERVED for phase in (Phase.RESERVED, Phase.SNAPSHOT) for event in ev.ASKED},
    **{(Phase.EMPTY, event): Phase.EMPTY for event in ev.ASKED},
    # The last life of the server ended somewhere in here: look again, from what the client shows now.
    **{(phase, ev.ServerStarted): Phase.RESERVED for phase in BEFORE_CLEAR},
    (Phase.EMPTY, ev.ServerStarted): Phase.EMPTY,
    # Another session of the account has met a usage limit: nothing begins, and what is cleared is woken after it.
    **{(phase, ev.LimitShared): Phase.PENDING for phase in (Phase.RESERVED, Phase.SNAPSHOT)},
    (Phase.EMPTY, ev.LimitShared): Phase.EMPTY,
    (Phase.EMPTY, ev.LimitEnded): Phase.EMPTY,
    (Phase.PROMPTING, ev.ServerStarted, Verdict.LOOKS): Phase.PROMPTING,
    # Another driver begins from the last safe place; what the one before had given up it tries again.
    **{(phase, ev.DriverChanged): Phase.RESERVED for phase in (Phase.PENDING, *BEFORE_CLEAR)},
    (Phase.EMPTY, ev.DriverChanged): Phase.EMPTY,
    # The client is gone: before the clear nothing is lost, after it only the document is left.
    **{(phase, ev.ClientExited): Phase.PENDING for phase in BEFORE_CLEAR},
    **{(phase, ev.ClientExited): Phase.FAILED for phase in AFTER_CLEAR},
    **{(phase, ev.AlarmRang): Phase.PENDING for phase in BEFORE_CLEAR},
    **{(phase, ev.AlarmRang): Phase.FAILED for phase in AFTER_CLEAR},
    (Phase.PROMPTING, ev.AlarmRang, Verdict.LOOKS): Phase.PROMPTING,
    # The prompt was taken; until the agent has answered it, the end of its client would lose what woke it.
    (Phase.DONE, ev.ClientExited, Verdict.UNANSWERED): Phase.FAILED,
    (Phase.DONE, ev.SessionLaunched, Verdict.LOST): Phase.FAILED,
    **{(phase, ev.HandoffCancelled): Phase.CANCELLED for phase in CANCELLABLE},
    **{(phase, ev.HandoffWithdrawn, Verdict.WITHDRAWN): Phase.CANCELLED for phase in OWED},
    **{(phase, ev.SessionKilled): Phase.CANCELLED for phase in (Phase.PENDING, *BEFORE_CLEAR, *AFTER_CLEAR)},
    (Phase.FAILED, ev.HandoffRetried): Phase.EMPTY,
}


NOTES: dict[type[ev.Event], str] = {
    ev.ClientExited: "the client has ended",
    ev.HandoffCancelled: "cancelled",
    ev.SessionKilled: "the session was killed",
    ev.ToolUsed: "the turn continues; waits for its end",
    **dict.fromkeys(ev.ASKED, "a dialog is open"),
    ev.LimitShared: usage_limit.HELD_REASON,
}
"""Why an event moved the rotation, in words for the user, where its judge has no other."""
ANOTHER_PROMPT = "another prompt came first; waits for that turn's end"


NEW_CONTEXT = frozenset({ev.Origin.CLEAR, ev.Origin.CLIENT_STATE, ev.Origin.STARTUP})
"""Origins of a conversation that begins empty."""
RATE_LIMIT = "rate_limit"

Outcome = tuple[Rotation, tuple[Effect, ...]]


@dataclass(frozen=True, slots=True)
class Judgement:
    """What an event means to a rotation."""

    rotation: Rotation
    """In the same phase, with the fields that change."""
    verdict: Verdict | None = None
    effects: tuple[Effect, ...] = ()
    """What is done before what the next phase does when it is entered."""
    note: str | None = None
    """Why the phase changes, in words for the user; None for what `NOTES` says of the event."""


class Tables(NamedTuple):
    """What moves a rotation, and what moving does; an entry of a verdict comes before that of the phase it leads to."""

    transitions: Mapping[Row, Phase]
    timeouts: Mapping[Phase | Verdict, float | None]
    on_enter: Mapping[Phase | Verdict, Callable[[Rotation, Situation], tuple[Effect, ...]]]


def advance(rotation: Rotation, event: ev.Event, situation: Situation) -> Outcome:
    """Return the rotation after `event`, and what to do about it."""
    judge = _done_judged if rotation.phase is Phase.DONE else JUDGES.get(type(event))
    judged = Judgement(rotation) if judge is None else judge(rotation, event, situation)
    outcome = moved(judged, event, situation, TABLES)
    begins = rotation.phase is Phase.PENDING and outcome[0].phase is Phase.RESERVED
    return _paused(rotation, event, situation) if begins and situation.paused else outcome


def _paused(rotation: Rotation, event: ev.Event, situation: Situation) -> Outcome:
    judged = Judgement(rotation, Verdict.PAUSED, ask_user(situation.paused), note=situation.paused)
    waits, effects = moved(judged, event, situation, TABLES)
    return replace(waits, paused=True), effects


def ask_user(reason: str) -> tuple[Effect, ...]:
    return TellUser(f"sm: {reason}"), TellParent(f"[sm handoff] {reason}")


def moved(judged: Judgement, event: ev.Event, situation: Situation, tables: Tables) -> Outcome:
    """Return the rotation in the phase that the table has for what was judged."""
    rotation, verdict = judged.rotation, judged.verdict
    kind = type(event)
    phase = tables.transitions.get((rotation.phase, kind) if verdict is None else (rotation.phase, kind, verdict))
    if phase is None:
        return rotation, judged.effects
    note = NOTES.get(kind, "") if judged.note is None else judged.note
    key = verdict or phase
    timeout = tables.timeouts.get(key, tables.timeouts.get(phase))
    begin = tables.on_enter.get(key, tables.on_enter[phase])
    rotation = _entered(rotation, phase, event.at, note, timeout)
    return rotation, (*judged.effects, *begin(rotation, situation))


def entered(rotation: Rotation, phase: Phase, at: float, note: str = "") -> Rotation:
    """Return the rotation in `phase`, with the phase's deadline running from `at`."""
    return _entered(rotation, phase, at, note, TIMEOUTS.get(phase))


def _entered(rotation: Rotation, phase: Phase, at: float, note: str, timeout: float | None) -> Rotation:
    return replace(
        rotation,
        phase=phase,
        since=at,
        deadline=None if timeout is None else at + timeout,
        note=note,
        finished=at if phase in OVER else None,
        cleared=rotation.cleared or phase in AFTER_CLEAR,
        waiting_background=False,
        paused=False,
    )


def start(handoff: Handoff | None, at: float, situation: Situation) -> Outcome:
    """Return a new rotation. If the agent's turn is over already, there is no end of it to wait for."""
    rotation = Rotation(handoff, since=at, note="waits for the turn's end", in_place=situation.adopted)
    if not (situation.idle or situation.turn_over):
        return rotation, ()
    if situation.paused:
        return replace(rotation, note=situation.paused, paused=True), ask_user(situation.paused)
    reserved = entered(replace(rotation, stopped=at), Phase.RESERVED, at)
    return reserved, ON_ENTER[Phase.RESERVED](reserved, situation)


def taken_up(handoff: Handoff, at: float) -> Rotation:
    """Return the rotation of a session that begins from a document: its client is awaited and woken."""
    return entered(Rotation(handoff), Phase.EMPTY, at, "waits for the client to start")


# --- what each phase does when it is entered -------------------------------------------------------------------------


def await_clear(rotation: Rotation, situation: Situation) -> tuple[Effect, ...]:
    after = (
        situation.dialog_shows
        if situation.foreground is None
        else max(situation.dialog_shows, not_before(situation.foreground))
    )
    await_box = AwaitComposer(situation.step, own=(situation.traits.clear_command,), after=after)
    return *_checked(rotation, fork=situation.can_fork), await_box


def not_before(foreground: Foreground) -> float:
    """When the next restart may come, UTC seconds."""
    row = foreground.restarts
    return row[-1] + RESTART_DELAY_STEP_S * (len(row) - 1) if row else 0.0


def _await_prompt(rotation: Rotation, situation: Situation) -> tuple[Effect, ...]:
    wait = AwaitComposer(
        situation.step, own=(prompt_of(rotation), situation.traits.clear_command), after=situation.dialog_shows
    )
    return *_checked(rotation), wait


def _checked(rotation: Rotation, *, fork: bool = False) -> tuple[Effect, ...]:
    """Check the agent's own file, which the prompt names: others may have written it since."""
    given = rotation.handoff
    if given is None:
        return ()
    return (RefreshDocument(given, fork=fork and given.type is HandoffType.COMPACTION),)


def _type_prompt(rotation: Rotation, situation: Situation) -> tuple[Effect, ...]:
    return (TypeText(situation.step, prompt_of(rotation)),)


def prompt_of(rotation: Rotation) -> str:
    """The wake prompt; nothing is typed into a context that begins without a document."""
    if rotation.handoff is None:
        return ""
    return wake_prompt(rotation.handoff, rotation.background, rotation.scheduled, is_loaded=rotation.in_place)


def find_prompt(rotation: Rotation, situation: Situation) -> tuple[Effect, ...]:
    """Look in the transcript: the client may have continued while its hook was lost."""
    wanted = digest(prompt_of(rotation))
    return (FindPrompt(situation.step, situation.conversation or "", situation.transcript, wanted),)


def _recorded(rotation: Rotation, state: HandoffState, note: str = "") -> tuple[Effect, ...]:
    return () if rotation.handoff is None else (RecordHandoff(rotation.handoff, state, note),)


def _failed(rotation: Rotation, situation: Situation) -> tuple[Effect, ...]:
    return LeavePane(situation.step), *_recorded(rotation, HandoffState.FAILED, rotation.note)


def _cancelled(rotation: Rotation, situation: Situation) -> tuple[Effect, ...]:
    return LeavePane(situation.step), *_recorded(rotation, HandoffState.CLEARED, rotation.note)


ON_ENTER: dict[Phase | Verdict, Callable[[Rotation, Situation], tuple[Effect, ...]]] = {
    Phase.PENDING: lambda _, situation: (LeavePane(situation.step),),
    Phase.RESERVED: await_clear,
    Phase.SNAPSHOT: lambda _, situation: (TakeSnapshot(situation.step),),
    Phase.CLEARING: lambda _, situation: (ClearContext(situation.step),),
    Phase.EMPTY: _await_prompt,
    Phase.PROMPTING: _type_prompt,
    Phase.DONE: lambda rotation, situation: (
        *_recorded(rotation, HandoffState.CONSUMED),
        *((LeavePane(situation.step),) if rotation.attempts else ()),  # the prompt may just be typed once more
    ),
    Phase.FAILED: _failed,
    Phase.CANCELLED: _cancelled,
    Verdict.LOOKS: find_prompt,
    Verdict.WITHDRAWN: lambda _, __: (),
    Verdict.SWITCHES: lambda _, __: (SwitchClient(),),
}
TABLES = Tables(TRANSITIONS, TIMEOUTS, ON_ENTER)


# --- judges: what an event means where more than the phase decides ----------------------------------------------------


def _done_judged(rotation: Rotation, event: ev.Event, situation: Situation) -> Judgement:
    match event:
        case ev.SessionLaunched(conversation=conversation):
            # The client starts again without that conversation, which cannot be continued: only the document is left.
            lost = conversation != rotation.woken_in and situation.before == rotation.woken_in
            note = "its conversation was lost; starts again from the document"
            return Judgement(rotation, Verdict.LOST if lost else None, note=note)
        case ev.ToolUsed() | ev.TurnEnded():
            return Judgement(replace(rotation, answered=True))
        case ev.ClientExited() if not rotation.answered:
            return Judgement(rotation, Verdict.UNANSWERED)
    return Judgement(rotation)


def _turn_ended(rotation: Rotation, event: ev.Event, situation: Situation) -> Judgement:
    if rotation.phase is not Phase.PENDING:
        return Judgement(rotation)
    rotation = replace(rotation, stopped=event.at)
    if not situation.background or situation.wait_background <= 0:
        return Judgement(rotation)
    if rotation.waiting_background:
        return Judgement(rotation, Verdict.BACKGROUND_RUNS)
    names = ", ".join(task.description or task.kind for task in situation.background)
    deadline = event.at + situation.wait_background
    note = f"waits for background tasks: {names}"
    waits = replace(rotation, waiting_background=True, deadline=deadline, note=note)
    return Judgement(waits, Verdict.BACKGROUND_RUNS)


def _turn_failed(rotation: Rotation, event: ev.TurnFailed, _: Situation) -> Judgement:
    if rotation.phase is not Phase.PENDING:
        return Judgement(rotation)
    rotation = replace(rotation, stopped=event.at)
    switches = rotation.switch is not None  # to a client of another account
    if event.limit is not None and not switches:
        return Judgement(replace(rotation, note=usage_limit.HELD_REASON), Verdict.USAGE_LIMITED)
    if event.error == RATE_LIMIT and not switches:
        note = "the turn failed at a rate limit; waits for the next turn's end"
        return Judgement(replace(rotation, note=note), Verdict.RATE_LIMITED)
    return Judgement(rotation)


def _blocked(rotation: Rotation, event: ev.Event, _: Situation) -> Judgement:
    return Judgement(replace(rotation, stopped=event.at) if rotation.phase is Phase.PENDING else rotation)


def begins_no_context(rotation: Rotation, event: ev.ConversationStarted) -> Verdict | None:
    """Return why a conversation that starts is no new context for the document, or None if it is one."""
    if event.origin not in NEW_CONTEXT or not rotation.unfinished:
        return Verdict.CONTINUED
    # A second hook for the same start: one injection, and the prompt may be on its way.
    return Verdict.REPEATED if rotation.announced and rotation.began == event.conversation else None


def _conversation_started(rotation: Rotation, event: ev.ConversationStarted, situation: Situation) -> Judgement:
    verdict = begins_no_context(rotation, event)
    if verdict is Verdict.CONTINUED or (verdict is Verdict.REPEATED and rotation.phase in AFTER_CLEAR):
        return Judgement(rotation, verdict)
    hooked = event.origin is not ev.Origin.CLIENT_STATE
    if hooked and rotation.phase is Phase.PROMPTING and rotation.began == event.conversation:
        # A client tells of a start only with its first prompt, which is ours and on its way.
        told = replace(rotation, announced=True)
        return Judgement(told, Verdict.REPEATED, injected(told))
    began = replace(rotation, began=event.conversation)
    if rotation.handoff is None:
        return Judgement(replace(began, answered=True), Verdict.WITHOUT_DOCUMENT)
    background = tuple(task.description or task.kind for task in situation.background)
    began = replace(began, background=background, scheduled=situation.scheduled, announced=hooked, attempts=0)
    return Judgement(began, effects=injected(began) if hooked else ())


def injected(rotation: Rotation) -> tuple[Effect, ...]:
    given = rotation.handoff
    return () if given is None else (InjectHandoff(given, rotation.snapshot, said=rotation.said),)


def _prompt_submitted(rotation: Rotation, event: ev.PromptSubmitted, situation: Situation) -> Judgement:
    phase = rotation.phase
    if phase is Phase.PENDING:
        waits = replace(
            rotation, waiting_background=False, paused=False, deadline=None, note="waits for the turn's end"
        )
        return Judgement(_with_said(waits, event, situation), Verdict.OTHER)
    if phase in AFTER_CLEAR and is_prompt_of(rotation, event.text, situation.traits):
        # The hook of the start was lost: the reply to the prompt is the last chance to give the document inline.
        late = () if rotation.announced or event.replayed else injected(rotation)
        return Judgement(replace(rotation, woken_in=event.conversation), Verdict.OURS, late, note="")
    typed = {Phase.CLEARING: situation.traits.clear_command, Phase.PROMPTING: prompt_of(rotation)}.get(phase)
    if typed is not None and typed in situation.traits.as_typed(event.text) and not event.replayed:
        # Keep it from the model and try again from the box.
        block = BlockPrompt("sm: this was mixed with text that sm typed; it is put back for you")
        again = replace(rotation, attempts=rotation.attempts + 1)
        return Judgement(again, Verdict.MIXED, (block,), note="mixed with other text")
    if phase is Phase.EMPTY:
        rotation = entered(rotation, phase, event.at, ANOTHER_PROMPT)
    elif phase in BEFORE_CLEAR:
        rotation = _with_said(rotation, event, situation)
    return Judgement(rotation, Verdict.OTHER, note=ANOTHER_PROMPT)


def _with_said(rotation: Rotation, event: ev.PromptSubmitted, situation: Situation) -> Rotation:
    """Keep what is said to the old context after the document: the new one would never know."""
    made_again = rotation.handoff is None or rotation.handoff.type is HandoffType.COMPACTION
    if made_again or situation.traits.made_by_client(event.text):
        return rotation
    said = situation.traits.as_typed(event.text)[:MAX_SAID_CHARACTERS]
    return replace(rotation, said=(*rotation.said, said)[-MAX_SAID:])


def is_prompt_of(rotation: Rotation, text: str, traits: ClientTraits) -> bool:
    """Return whether a prompt that was submitted is exactly the wake prompt."""
    return digest(traits.as_typed(text)) == digest(prompt_of(rotation))


def _refused(rotation: Rotation, event: ev.Event, situation: Situation) -> Judgement:
    if (rotation.phase, type(event)) not in TRANSITIONS:
        return Judgement(rotation)
    missing = isinstance(event, ev.PromptMissing)
    if missing and (rotation.taken_over or (situation.fresh and rotation.attempts < MAX_LOOKS)):
        waits = replace(rotation, taken_over=False, note="waits for the client to take the prompt")
        return Judgement(waits, Verdict.LATE)
    again = replace(rotation, attempts=rotation.attempts + 1)
    looked_in_vain = missing and rotation.attempts == MAX_LOOKS  # it is typed once more
    verdict = None if again.attempts <= MAX_RETRIES or looked_in_vain else Verdict.GIVEN_UP
    return Judgement(again, verdict, note=event.reason if isinstance(event, ev.TypingRefused) else None)


def _held(rotation: Rotation, event: ev.ComposerHeld, _: Situation) -> Judgement:
    """Wait as long as something lasts that the user can see."""
    timeout = TIMEOUTS.get(rotation.phase)
    if timeout is None or rotation.phase not in {Phase.RESERVED, Phase.EMPTY}:
        return Judgement(rotation)
    deadline = rotation.deadline if event.reason == UNKNOWN_STATE else event.at + timeout
    return Judgement(replace(rotation, note=event.reason, deadline=deadline))


UNKNOWN_STATE = "the client's state cannot be read"
NO_STEP = frozenset({ev.Activity.WAITING, ev.Activity.STOPPED})
"""While a client is like this, whatever it was ordered waits in it."""


def reason_to_wait(activity: ev.Activity, detail: str) -> str | None:
    """Return why a client that says so of itself takes no prompt, in words for the user."""
    match activity:
        case ev.Activity.WAITING:
            return f"a dialog is open: {detail}" if detail else "a dialog is open"
        case ev.Activity.STOPPED:
            return detail
        case ev.Activity.BUSY:
            return "the client is busy"
        case ev.Activity.UNKNOWN:
            return UNKNOWN_STATE
    return None


def _rang(rotation: Rotation, event: ev.Event, situation: Situation) -> Judgement:
    if rotation.deadline is None or event.at < rotation.deadline:
        return Judgement(rotation, Verdict.EARLY)
    if rotation.may_turn_back:
        return _turned_back(rotation, f"no conversation began within {TIMEOUTS[Verdict.SWITCHES]:.0f} s")
    if rotation.phase is Phase.PROMPTING and rotation.attempts < (MAX_LOOKS if situation.fresh else MAX_RETRIES):
        again = replace(rotation, attempts=rotation.attempts + 1, taken_over=False)
        return Judgement(again, Verdict.LOOKS, note=LOOKS)
    return Judgement(rotation, note=timed_out(rotation))


def _switch_failed(rotation: Rotation, event: ev.SwitchFailed, _: Situation) -> Judgement:
    if rotation.switch is None or rotation.handoff is None or rotation.handoff.id != event.handoff:
        return Judgement(rotation, Verdict.OTHER)
    if event.ended:
        return _turned_back(rotation, event.reason)
    reason = f"{rotation.switch.to} was not started: {event.reason}; the handoff continues with the client as it is"
    return Judgement(replace(rotation, switch=None), None, ask_user(reason), note=reason)


def _turned_back(rotation: Rotation, why: str) -> Judgement:
    """The client before takes the document up, once; what then happens to it is as with any client."""
    switch = rotation.switch
    if switch is None or not rotation.may_turn_back:
        return Judgement(rotation, Verdict.GIVEN_UP)
    reason = f"{switch.to} did not start: {why}; {switch.left} continues from the document"
    back = Switch(switch.left, left=switch.to, back=True)
    return Judgement(replace(rotation, switch=back, attempts=0), Verdict.SWITCHES, ask_user(reason), note=reason)


LOOKS = "looks for the prompt in the transcript"


def timed_out(rotation: Rotation) -> str:
    return f"{rotation.note or 'no evidence from the client'} ({rotation.phase.value} timed out)"


def _seen(rotation: Rotation, event: ev.ActivityChanged, situation: Situation) -> Judgement:
    """Escape and Ctrl-C end a turn without a hook: the client's state shows it. A prompt of the user comes first."""
    if rotation.changes_client:
        return Judgement(rotation)  # what it asks at its start counts against its deadline
    if rotation.phase in {Phase.CLEARING, Phase.PROMPTING} and situation.takes_prompts and not rotation.next:
        return Judgement(_delayed(rotation, event))
    if rotation.phase is not Phase.PENDING or situation.turn_over or rotation.waiting_background:
        return Judgement(rotation)
    interrupted = rotation.note == INTERRUPTED
    if situation.idle and not interrupted:
        return Judgement(replace(rotation, note=INTERRUPTED, deadline=event.at + INTERRUPT_GRACE_S))
    if interrupted and not situation.idle:
        return Judgement(replace(rotation, note="waits for the turn's end", deadline=None))
    return Judgement(rotation)


def _delayed(rotation: Rotation, event: ev.ActivityChanged) -> Rotation:
    """A dialog that opened between our look and our order delays it, for as long as it is open."""
    if event.activity in NO_STEP:
        return replace(rotation, note=reason_to_wait(event.activity, event.detail) or "", deadline=None)
    return entered(rotation, rotation.phase, event.at) if rotation.deadline is None else rotation


INTERRUPT_GRACE_S = 60.0
"""Seconds after an interrupted turn in which a prompt of the user comes first."""
INTERRUPTED = (
    f"the turn was interrupted: rotates in {INTERRUPT_GRACE_S:.0f} s, or at the end of the next turn if a prompt comes "
    "before; sm handoff --retry rotates now, --cancel keeps this context"
)


def _asked(rotation: Rotation, _: ev.Event, situation: Situation) -> Judgement:
    """A dialog is about to open: what is typed right now gives way to it."""
    typing = rotation.phase in {Phase.CLEARING, Phase.PROMPTING}
    return Judgement(rotation, effects=(LeavePane(situation.step - 1),) if typing else ())


def _server_started(rotation: Rotation, _: ev.Event, __: Situation) -> Judgement:
    if rotation.phase is Phase.PROMPTING:
        return Judgement(replace(rotation, taken_over=True), Verdict.LOOKS, note=LOOKS)
    if rotation.changes_client and rotation.switch is not None and rotation.switch.back:
        return Judgement(rotation, Verdict.SWITCHES)
    return Judgement(rotation)


def _driver_changed(rotation: Rotation, _: ev.Event, situation: Situation) -> Judgement:
    waits = rotation.waiting_background or rotation.paused or not situation.turn_over
    held = (rotation.phase is Phase.PENDING and waits) or rotation.changes_client
    return Judgement(rotation, Verdict.BUSY) if held else Judgement(replace(rotation, attempts=0))


def _document_gone(rotation: Rotation, event: ev.DocumentGone, _: Situation) -> Judgement:
    if rotation.handoff is None or event.handoff != rotation.handoff.id:
        return Judgement(rotation)
    return Judgement(replace(rotation, handoff=replace(rotation.handoff, readable=False)))


def _tool_used(rotation: Rotation, event: ev.ToolUsed, _: Situation) -> Judgement:
    """What the agent itself adds to its document after `sm handoff` counts; what else writes there does not."""
    if rotation.handoff is None or rotation.cleared or not rotation.active or event.failed or not event.written:
        return Judgement(rotation)
    return Judgement(rotation, effects=(RefreshDocument(rotation.handoff, event.written),))


def _withdrawn(rotation: Rotation, event: ev.HandoffWithdrawn, _: Situation) -> Judgement:
    if rotation.handoff is None or event.handoff != rotation.handoff.id:
        return Judgement(rotation, Verdict.OTHER)
    return Judgement(replace(rotation, cleared=False), Verdict.WITHDRAWN, note=event.reason)


def _limit_ended(rotation: Rotation, _: ev.Event, __: Situation) -> Judgement:
    held = rotation.note in {usage_limit.HELD_REASON, budget.HELD_REASON}
    return Judgement(rotation, None if held else Verdict.OTHER)


def _snapshot_taken(rotation: Rotation, event: ev.SnapshotTaken, situation: Situation) -> Judgement:
    if rotation.phase is not Phase.SNAPSHOT:
        return Judgement(rotation)
    kept, switch = replace(rotation, snapshot=event.path), rotation.switch
    if not situation.idle:
        return Judgement(kept, Verdict.BUSY)
    if switch is None or switch.to == situation.provider:  # that client is there by now, and takes prompts
        return Judgement(replace(kept, switch=None))
    return Judgement(replace(kept, switch=replace(switch, left=situation.provider)), Verdict.SWITCHES)


def _retried(rotation: Rotation, event: ev.Event, situation: Situation) -> Judgement:
    if rotation.phase is Phase.PENDING and not situation.idle:
        return Judgement(replace(rotation, paused=False) if rotation.paused else rotation, Verdict.BUSY)
    return Judgement(replace(rotation, attempts=0) if (rotation.phase, type(event)) in TRANSITIONS else rotation)


Judge = Callable[[Rotation, ev.Event, Situation], Judgement]
JUDGES: dict[type[ev.Event], Judge] = dict(
    (
        ev.on(ev.TurnEnded, _turn_ended),
        ev.on(ev.TurnFailed, _turn_failed),
        ev.on(ev.ClientBlocked, _blocked),
        ev.on(ev.ConversationStarted, _conversation_started),
        ev.on(ev.PromptSubmitted, _prompt_submitted),
        ev.on(ev.TypingRefused, _refused),
        ev.on(ev.PromptMissing, _refused),
        ev.on(ev.ComposerHeld, _held),
        ev.on(ev.AlarmRang, _rang),
        ev.on(ev.ActivityChanged, _seen),
        ev.on(ev.PermissionAsked, _asked),
        ev.on(ev.AskOpened, _asked),
        ev.on(ev.ServerStarted, _server_started),
        ev.on(ev.DriverChanged, _driver_changed),
        ev.on(ev.DocumentGone, _document_gone),
        ev.on(ev.ToolUsed, _tool_used),
        ev.on(ev.HandoffWithdrawn, _withdrawn),
        ev.on(ev.LimitEnded, _limit_ended),
        ev.on(ev.SnapshotTaken, _snapshot_taken),
        ev.on(ev.SwitchFailed, _switch_failed),
        ev.on(ev.HandoffRetried, _retried),
    )
)
