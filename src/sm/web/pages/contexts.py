"""Which contexts of a session can be read, and where the transcript of each is."""

from __future__ import annotations

from pathlib import Path

from sm.core.errors import error
from sm.core.model.history import Context
from sm.core.model.session import Session
from sm.core.ports.provider import TranscriptEvidence
from sm.engine.transcripts import transcript_of


def known_contexts(recorded: tuple[Context, ...], session: Session) -> tuple[Context, ...]:
    """Return them in order; where the session's own conversation is not recorded yet it is the newest."""
    current = session.conversation
    if current is None or (recorded and recorded[-1].conversation == current.id):
        return recorded
    number = recorded[-1].number + 1 if recorded else 1
    return *recorded, Context(number, current.id, current.transcript, current.started, 0)


def chosen(contexts: tuple[Context, ...], number: int | None) -> Context | None:
    """Return the context of that number, the newest for None; None where there is none yet."""
    if number is None:
        return contexts[-1] if contexts else None
    found = next((context for context in contexts if context.number == number), None)
    if found is None:
        there = f"its contexts are {contexts[0].number} to {contexts[-1].number}" if contexts else "it has none yet"
        raise error("no_context", f"The session has no context {number}", there)
    return found


def located(provider: TranscriptEvidence, session: Session, context: Context) -> str:
    """Return the path of its transcript, searched for where the client has moved it; empty where none is known.

    A client makes the file of a conversation with its first prompt.
    """
    current = session.conversation
    if current is not None and current.id == context.conversation:
        path = transcript_of(provider, session)
        return "" if path is None or _is_gone(path) else path
    if context.transcript and not _is_gone(context.transcript):
        return context.transcript
    own = session.config and (context.provider or session.provider) == session.provider
    found = provider.found_transcript(session.config, context.conversation) if own else None
    return found or context.transcript or ""


def _is_gone(path: str) -> bool:
    try:
        return not Path(path).is_file()
    except (OSError, ValueError):
        return True
