"""Rotation of a client in the user's own terminal: nothing is typed there.

The plugin in the client clears it in place, by the table of `core/rules/rotation.py`. Where there is none, the client
is ended and started again, by the table here; a restart that has begun ends by it, though the new client's plugin
answers.

The phases are those of every rotation. `sm run` takes the order (CLEARING), starts a new client with the wake prompt
as its argument (EMPTY), whose SessionStart carries the document (PROMPTING). Any prompt then finds it, so any evidence
that the agent works in the new context is the end. What is not said here is as in `core/rules/rotation.py`: a judge
that returns None leaves the event to the table there.

A rotation without progress is one that the client needs again at once: counted in a row, they end in a client that
stays as it is. Progress is work in the context that was left, or a prompt of the user's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sm.core import events as ev
from sm.core.effects import Effect, LeavePane, RestartClient, TellUser
from sm.core.model.foreground import Foreground
from sm.core.model.handoff import Handoff
from sm.core.model.rotation import AFTER_CLEAR, Phase, Rotation
from sm.core.model.session import Session
from sm.core.model.situation import Situation
from sm.core.rules import rotation as rules
from sm.core.rules.rotation import MAX_RETRIES, Judgement, Outcome, Row, Tables, Verdict, entered
from sm.core.values import replace

AT_WORK = (ev.PromptSubmitted, ev.ToolUsed, ev.TurnEnded, ev.TurnFailed, ev.PermissionAsked)
"""What shows that the agent works in the new context."""
OWED = tuple(phase for phase in rules.OWED if phase is not Phase.SNAPSHOT)
"""Phases in which the next context may still begin from the document; the terminal is the user's, and not saved."""
START_EVENTS = (ev.TurnEnded, ev.TurnFailed, ev.ClientBlocked, ev.AlarmRang, ev.DriverChanged)
"""Events at which a pending rotation begins by itself."""

BEFORE_RESTART = (Phase.PENDING, Phase.RESERVED, Phase.CLEARING)

TRANSITIONS: dict[Row, Phase] = {
    (Phase.RESERVED, ev.ComposerReady): Phase.CLEARING,
    # `sm run` would not do it: nothing is lost, the next turn's end tries again.
    (Phase.CLEARING, ev.TypingRefused): Phase.PENDING,
    # The answer to `sm run` was lost, as with a server that was killed.
    (Phase.CLEARING, ev.AlarmRang): Phase.RESERVED,
    (Phase.PENDING, ev.SessionLaunched, Verdict.OURS): Phase.EMPTY,
    (Phase.RESERVED, ev.SessionLaunched, Verdict.OURS): Phase.EMPTY,
    (Phase.CLEARING, ev.SessionLaunched, Verdict.OURS): Phase.EMPTY,
    **{(phase, ev.ConversationStarted, Verdict.OURS): Phase.PROMPTING for phase in OWED},
    # The user's own /clear, or their next start: the document waits for their next prompt.
    **{(phase, ev.ConversationStarted, Verdict.BY_USER): Phase.EMPTY for phase in OWED},
    **{(phase, event): Phase.DONE for phase in AFTER_CLEAR for event in AT_WORK},
    (Phase.FAILED, ev.PromptSubmitted): Phase.DONE,
    # The plugin has cleared the context and is gone: the client is started again from the same document, unless its
    # user is faster.
    **{(phase, ev.DriverChanged, Verdict.UNDRIVEN): Phase.EMPTY for phase in AFTER_CLEAR},
    (Phase.EMPTY, ev.ComposerReady): Phase.CLEARING,
    **{(phase, ev.PromptSubmitted, Verdict.OTHER): Phase.DONE for phase in BEFORE_RESTART},
    **{(phase, ev.AlarmRang, Verdict.LOOKS): phase for phase in AFTER_CLEAR},
    (Phase.FAILED, ev.HandoffRetried): Phase.RESERVED,
    (Phase.FAILED, ev.HandoffRetried, Verdict.UNDRIVEN): Phase.EMPTY,
    (Phase.FAILED, ev.HandoffRetried, Verdict.BUSY): Phase.PENDING,
    # A client that needs its restart again at once stays as it is.
    **{(Phase.PENDING, event, Verdict.HELD_BACK): Phase.FAILED for event in START_EVENTS},
}


START_TIMEOUT_S = 120.0
"""Seconds for a new client to take its prompt: the user's own hooks may hold it (seen without: 0.6 to 1.0)."""

TIMEOUTS = {**rules.TIMEOUTS, Phase.EMPTY: START_TIMEOUT_S, Phase.PROMPTING: START_TIMEOUT_S, Verdict.BY_USER: None}

MIN_PROGRESS_CALLS = 10
"""So many tool calls, or replies, in one context are progress: writing a document and handing it off takes a few."""
MAX_RAPID_RESTARTS = 3
"""Within RAPID_WINDOW_S."""
RAPID_WINDOW_S = 120.0
INHERITED_S = 60.0
"""Seconds within which a new `sm run` in the same directory continues the count of the last one."""


def advance(rotation: Rotation, event: ev.Event, situation: Situation) -> Outcome:
    """Return the rotation after `event`, and what to do about it."""
    begun = bool(rotation.next) and rotation.phase not in {Phase.PENDING, Phase.RESERVED}
    restarts = begun or not situation.takes_prompts
    judge = JUDGES.get(type(event)) if restarts and rotation.phase is not Phase.DONE else None
    judged = None if judge is None else judge(rotation, event, situation)
    known = (
        rules.advance(rotation, event, situation) if judged is None else rules.moved(judged, event, situation, TABLES)
    )
    return known if isinstance(event, ev.HandoffRetried) else _unless_held_back(rotation, event, situation, known)


def start(handoff: Handoff | None, at: float, situation: Situation) -> Outcome:
    """A new rotation; see `rotation.start`."""
    pending = Rotation(handoff, since=at)
    return _unless_held_back(pending, ev.AlarmRang(at=at), situation, rules.start(handoff, at, situation))


def _unless_held_back(before: Rotation, event: ev.Event, situation: Situation, outcome: Outcome) -> Outcome:
    """Leave a client that needs its rotation again at once as it is, and tell its user, who may still ask for it."""
    reserved = before.phase is Phase.PENDING and outcome[0].phase is Phase.RESERVED
    reason = held_back(situation.foreground, event.at, situation.progress) if reserved and situation.foreground else ""
    if not reason:
        return outcome
    judged = Judgement(before, Verdict.HELD_BACK, (TellUser(f"sm: {reason}"),), note=reason)
    return rules.moved(judged, event, situation, TABLES)


def clears_in_place(rotation: Rotation | None) -> bool:
    """Whether a conversation that ends now is cleared for its handoff, by the plugin in the client."""
    return rotation is not None and rotation.phase is Phase.CLEARING and not rotation.next


def counted(foreground: Foreground, at: float, progress: int) -> Foreground:
    """Return it after a rotation that leaves a context with so much progress."""
    before = () if progress >= MIN_PROGRESS_CALLS else foreground.restarts
    return replace(foreground, restarts=(*before, at)[-max(MAX_RAPID_RESTARTS, foreground.limit) :])


def inherited_restarts(sessions: Iterable[Session], directory: str, at: float) -> tuple[float, ...]:
    """Return the restarts of the last `sm run` there: what starts it again and again must not reset the count."""
    ended = (session for session in sessions if session.directory == directory and session.ended)
    last = max((session for session in ended if session.foreground), key=_last_activity, default=None)
    if last is None or last.foreground is None or at - last.last_activity > INHERITED_S:
        return ()
    return last.foreground.restarts


def _last_activity(session: Session) -> float:
    return session.last_activity


def held_back(foreground: Foreground, at: float, progress: int) -> str:
    """Return why the context is not left any more, in words for the user; empty if it may be."""
    row = () if progress >= MIN_PROGRESS_CALLS else foreground.restarts
    if len(row) >= foreground.limit:
        return f"rotated {len(row)} times without progress; this context stays; continue with sm handoff --retry"
    if len(row) >= MAX_RAPID_RESTARTS and at - row[-MAX_RAPID_RESTARTS] <= RAPID_WINDOW_S:
        often = f"rotated {MAX_RAPID_RESTARTS} times within two minutes"
        return f"{often}; this context stays; continue with sm handoff --retry"
    return ""


# --- what each phase does when it is entered -------------------------------------------------------------------------


def _look(rotation: Rotation, situation: Situation) -> tuple[Effect, ...]:
    """Its hooks may have found no server, and what they would have told is in the transcript, if that is there."""
    return () if situation.transcript is None else rules.find_prompt(rotation, situation)


TABLES = Tables(
    TRANSITIONS,
    TIMEOUTS,
    {
        **rules.ON_ENTER,
        Phase.CLEARING: lambda _, situation: (RestartClient(situation.step),),
        Phase.EMPTY: _look,
        Phase.PROMPTING: lambda _, __: (),
        Verdict.BY_USER: lambda _, situation: (LeavePane(situation.step),),
        Verdict.UNDRIVEN: rules.await_clear,
        Verdict.LOOKS: _look,
    },
)


# --- judges ----------------------------------------------------------------------------------------------------------


def _ready(rotation: Rotation, _: ev.Event, __: Situation) -> Judgement | None:
    if rotation.phase is Phase.EMPTY and rotation.next:
        return Judgement(rotation, Verdict.OURS)  # the new client has its prompt
    return Judgement(replace(rotation, next="") if rotation.phase is Phase.RESERVED else rotation)


def _driver_changed(rotation: Rotation, event: ev.DriverChanged, _: Situation) -> Judgement | None:
    if rotation.next:
        return Judgement(rotation)  # the client that is being started again has a plugin, or none
    if rotation.phase not in AFTER_CLEAR:
        return None
    return Judgement(replace(rotation, attempts=0), Verdict.UNDRIVEN, note=event.reason)


def _taken(rotation: Rotation, event: ev.RestartTaken, _: Situation) -> Judgement | None:
    if rotation.phase is not Phase.CLEARING or rotation.next:
        return Judgement(rotation)
    return Judgement(replace(entered(rotation, rotation.phase, event.at), next=event.conversation))


def _refused(rotation: Rotation, event: ev.TypingRefused, _: Situation) -> Judgement | None:
    return Judgement(rotation, note=event.reason)


def _launched(rotation: Rotation, event: ev.SessionLaunched, _: Situation) -> Judgement | None:
    """Once its first hook was faster than the word of its start, the phase has no row for it."""
    ours = rotation.next and event.conversation == rotation.next
    return Judgement(rotation, Verdict.OURS) if ours else None


def _conversation_started(rotation: Rotation, event: ev.ConversationStarted, _: Situation) -> Judgement | None:
    verdict = rules.begins_no_context(rotation, event)
    if verdict is not None:
        return Judgement(rotation, verdict)
    hooked = event.origin is not ev.Origin.CLIENT_STATE
    ours = event.conversation == rotation.next
    began = replace(rotation, announced=hooked, began=event.conversation, background=(), scheduled=(), attempts=0)
    note = "" if ours else "the document is loaded; waits for a prompt"
    verdict = Verdict.OURS if ours else Verdict.BY_USER
    return Judgement(began, verdict, rules.injected(began) if hooked else (), note=note)


def _prompt_submitted(rotation: Rotation, event: ev.PromptSubmitted, situation: Situation) -> Judgement | None:
    if rotation.phase is Phase.CLEARING and rotation.next:
        return Judgement(rotation)  # too late: that client is being ended
    if rotation.phase in BEFORE_RESTART and rotation.cleared and rotation.began == situation.conversation:
        woken = replace(rotation, woken_in=rotation.began)
        return Judgement(woken, Verdict.OTHER, (LeavePane(situation.step),), note=PICKED_UP)
    if rotation.phase not in AFTER_CLEAR and not (rotation.phase is Phase.FAILED and rotation.cleared):
        return None
    late = () if rotation.announced or event.replayed else rules.injected(rotation)
    exactly = rules.is_prompt_of(rotation, event.text, situation.traits)
    woken = replace(rotation, woken_in=situation.conversation or "")
    return Judgement(woken, effects=late, note="" if exactly else PICKED_UP)


PICKED_UP = "picked up with another prompt"


def _works(rotation: Rotation, _: ev.Event, situation: Situation) -> Judgement | None:
    if rotation.phase is Phase.CLEARING and rotation.next:
        return Judgement(rotation)
    if rotation.phase not in AFTER_CLEAR:
        return None
    return Judgement(replace(rotation, woken_in=situation.conversation or ""), note="")


def _missing(rotation: Rotation, _: ev.Event, __: Situation) -> Judgement | None:
    return Judgement(rotation)


def _rang(rotation: Rotation, event: ev.Event, situation: Situation) -> Judgement | None:
    due = rotation.deadline is not None and event.at >= rotation.deadline
    if not due or rotation.attempts >= MAX_RETRIES:
        return None
    again = replace(rotation, attempts=rotation.attempts + 1)
    if rotation.phase is Phase.CLEARING:
        return Judgement(again, note=rules.timed_out(rotation))
    looks = rotation.phase in AFTER_CLEAR and situation.transcript is not None
    return Judgement(again, Verdict.LOOKS, note="") if looks else None


def _server_started(rotation: Rotation, event: ev.Event, situation: Situation) -> Judgement | None:
    """`sm run` has continued without a server, and reports now what it did."""
    if rotation.phase is Phase.CLEARING and rotation.next:
        return Judgement(entered(rotation, rotation.phase, event.at))
    return Judgement(rotation, effects=_look(rotation, situation)) if rotation.phase in AFTER_CLEAR else None


def _retried(rotation: Rotation, _: ev.Event, situation: Situation) -> Judgement | None:
    if rotation.phase is not Phase.FAILED:
        return None
    if rotation.cleared:
        return Judgement(replace(rotation, attempts=0, next=""), Verdict.UNDRIVEN)
    return Judgement(replace(rotation, attempts=0), None if situation.idle else Verdict.BUSY)


JUDGES: dict[type[ev.Event], Callable[[Rotation, ev.Event, Situation], Judgement | None]] = dict(
    (
        ev.on(ev.ComposerReady, _ready),
        ev.on(ev.RestartTaken, _taken),
        ev.on(ev.TypingRefused, _refused),
        ev.on(ev.SessionLaunched, _launched),
        ev.on(ev.ConversationStarted, _conversation_started),
        ev.on(ev.PromptSubmitted, _prompt_submitted),
        ev.on(ev.ToolUsed, _works),
        ev.on(ev.TurnEnded, _works),
        ev.on(ev.TurnFailed, _works),
        ev.on(ev.PermissionAsked, _works),
        ev.on(ev.PromptMissing, _missing),
        ev.on(ev.AlarmRang, _rang),
        ev.on(ev.ServerStarted, _server_started),
        ev.on(ev.DriverChanged, _driver_changed),
        ev.on(ev.HandoffRetried, _retried),
    )
)
