"""Keeps a session from rotating without end: a context has to grow first, and its rotations have to lead somewhere.

A context that began from a handoff may be handed off again once it has grown by so many tokens. After several rotations
in a row without progress the next one waits for the user. Progress is a commit or a changed file, as the transcript
shows it when the agent hands off, a message, or a word of the user. What the user asks for is never held.
"""

from __future__ import annotations

from sm.core import events as ev
from sm.core.effects import Outcome
from sm.core.errors import Refused
from sm.core.ids import as_argument
from sm.core.model.client_traits import ClientTraits
from sm.core.model.context import Monitor
from sm.core.model.loop_guard import LoopGuard
from sm.core.model.rotation import Rotation
from sm.core.model.session import Session
from sm.core.rules.rotation import is_prompt_of
from sm.core.values import replace

WINDOW_SHARE = 5
"""The growth that is asked for is never more than this part of the window."""
FIRST_READING_S = 60.0
"""Seconds within which the size of a context is known; where nothing tells it, its agent is not held after that."""
OWN_WORDS = ("[sm ", "[Input from: ")
"""How prompts begin that `sm` itself submits: notices, and messages, which count when they are queued."""
PAUSED = (
    "paused: {} handoffs in a row without a commit, a changed file, a message or a word of the user; a prompt or a "
    "message continues, as does sm handoff --retry; --cancel keeps this context"
)


def follow_loop_guard(session: Session, event: ev.Event, traits: ClientTraits) -> Outcome:
    guard = session.guard
    match event:
        case ev.PromptSubmitted(text=text) if not guard.user_spoke and _is_users(session, text, traits):
            session = replace(session, guard=replace(guard, user_spoke=True))
        case ev.HandoffRetried() if session.rotation is not None and session.rotation.paused:
            session = replace(session, guard=replace(guard, user_spoke=True))
        case ev.MessageQueued(stored=stored) if stored is not None and stored.frame and stored.sender != session.id:
            session = replace(session, guard=replace(guard, message_came=True))
    return _with_start(session), ()


def _is_users(session: Session, text: str, traits: ClientTraits) -> bool:
    woken = session.rotation is not None and is_prompt_of(session.rotation, text, traits)
    return not (woken or traits.made_by_client(text) or traits.as_typed(text).startswith(OWN_WORDS))


def _with_start(session: Session) -> Session:
    """Note what the context weighs with its first request; a compaction begins it again."""
    current = session.conversation
    tokens = current.monitor.reading.tokens if current is not None else None
    if current is None or tokens is None or (current.start is not None and current.start <= tokens):
        return session
    return replace(session, conversation=replace(current, start=tokens))


def rotated(session: Session, rotation: Rotation) -> LoopGuard:
    """Return the guard of the context that a rotation has begun."""
    current = session.conversation
    if rotation.handoff is None or current is None:
        return LoopGuard()
    return LoopGuard(current.id, _row(session, rotation))


def _row(session: Session, rotation: Rotation) -> int:
    return 0 if _has_progress(session, changed=rotation.progress) else session.guard.without_progress + 1


def _has_progress(session: Session, *, changed: bool) -> bool:
    return changed or session.guard.user_spoke or session.guard.message_came


def needed_tokens(session: Session, monitor: Monitor | None = None) -> int | None:
    """Return how large the context has to be before its agent may hand off; None if it may now."""
    current, growth = session.conversation, session.policy.min_growth
    if current is None or session.guard.context != current.id or session.guard.user_spoke:
        return None
    monitor = monitor or current.monitor
    size, window = monitor.projected, monitor.reading.window
    start = monitor.reading.tokens if current.start is None else current.start
    if start is None or size is None:
        return None
    needed = start + (growth if window is None else min(growth, window // WINDOW_SHARE))
    return needed if size < needed else None


def too_soon(session: Session, at: float) -> Refused | None:
    """Refuse an agent that would hand off a context which has just begun."""
    needed = needed_tokens(session)
    if needed is None and not _is_unread(session, at):
        return None
    name = as_argument(session.name, session.id)
    when = "later" if needed is None else f"from {needed:,} tokens on"
    message = f"This context began from a handoff and has hardly grown: it may be handed off {when}"
    hint = f"continue the work; the user can ask for it now: sm handoff FILE --session {name}"
    return Refused("too_soon", message, hint)


def _is_unread(session: Session, at: float) -> bool:
    """Whether the context has just begun from a handoff, so that its size is not known yet."""
    current, guard = session.conversation, session.guard
    if current is None or guard.context != current.id or guard.user_spoke or not session.policy.min_growth:
        return False
    return current.monitor.projected is None and at - current.started < FIRST_READING_S


def paused(session: Session, *, changed: bool) -> str:
    """Return why the session's next rotation waits for the user, in words for them; empty if it does not."""
    limit, row = session.policy.max_without_progress, session.guard.without_progress
    return "" if not limit or row < limit or _has_progress(session, changed=changed) else PAUSED.format(row)


def may_not_resume(session: Session) -> Refused | None:
    """Refuse an agent that would lift the pause itself."""
    waiting = session.rotation
    if waiting is None or not waiting.paused:
        return None
    return Refused("rotation_paused", f"Session {session.name} waits for its user: {waiting.note}", "end your turn")
