"""Where the transcript of a conversation is now: the client moves it, as with its directory into a worktree."""

from __future__ import annotations

import os

from sm.core import events as ev
from sm.core.model.session import Session
from sm.core.ports.provider import TranscriptEvidence


def transcript_of(provider: TranscriptEvidence, session: Session) -> str | None:
    """The path that the client told, or where the conversation is found by its id if nothing is there any more."""
    current = session.conversation
    if current is None:
        return None
    if current.transcript is not None and _is_there(current.transcript):
        return current.transcript
    found = provider.found_transcript(session.config, current.id) if session.config else None
    return found or current.transcript


def transcript_moved(provider: TranscriptEvidence, session: Session, at: float) -> ev.TranscriptMoved | None:
    """Return what tells a session that its transcript is elsewhere by now; None if it is where the session has it."""
    current = session.conversation
    if session.ended or current is None or current.transcript is None:
        return None
    path = transcript_of(provider, session)
    if path is None or path == current.transcript:
        return None
    return ev.TranscriptMoved(at=at, conversation=current.id, transcript=path)


def _is_there(path: str) -> bool:
    """Whatever the client told: no file can have some names, and some places may not be looked into."""
    try:
        os.stat(path)  # noqa: PTH116  # a third of the time that a Path takes, for each session every few seconds
    except (OSError, ValueError):
        return False
    return True


def shows_progress(provider: TranscriptEvidence, session: Session) -> bool:
    """Return whether the session's conversation changed anything; True if nothing tells. Never on the loop."""
    transcript = transcript_of(provider, session)
    try:
        return transcript is None or provider.shows_progress(transcript)
    except OSError:
        return True
