"""`sm handoff --auto`: the document made without a model, for this session or of any transcript.

It is made in this process and not in the server, which has to answer hooks.
"""

from __future__ import annotations

import os
from pathlib import Path

from sm.archive.handoffs.auto_handoff import auto_handoff
from sm.archive.handoffs.project_directory import write_in_project
from sm.cli.format import emit_json, say, show
from sm.cli.handoff import NOT_INSIDE, OWN, NextClient, order_handoff, write_document
from sm.cli.transcript_report import likely_provider
from sm.client import inside_session, session_client, session_path
from sm.core.errors import error
from sm.core.model.context_warnings import auto_file
from sm.core.model.handoff import document_limit
from sm.providers.claude.traits import CLAUDE
from sm.providers.claude.transcript_events import transcript_events as events_of_claude
from sm.providers.codex.transcript_events import transcript_events as events_of_codex
from sm.settings import ConfigError, load

EVENT_READERS = {"claude": events_of_claude, "codex": events_of_codex}


def hand_off(reason: str, following: NextClient = OWN, *, as_json: bool) -> None:
    """Make this session's document and schedule its rotation."""
    session = inside_session()
    if session is None:
        raise error("not_in_session", NOT_INSIDE, "with --transcript FILE it can be made of any transcript")
    view = session_client().call("GET", session_path(session))
    if not view.get("transcript"):
        raise error("no_conversation", f"Session {session} has no transcript yet", "wait until it has started")
    document = document_of(Path(view["transcript"]), view["dir"]).encode("utf-8", "replace")
    path = write_in_project(Path(view["dir"]), auto_file(session), document)
    order_handoff(session, str(path.absolute()), reason, "auto", following, as_json=as_json)


def write_only(transcript: Path, out: Path | None, *, as_json: bool) -> None:
    """Make the document of a transcript, without a rotation."""
    text = document_of(transcript, None)
    if out is not None:
        write_document(out, text.encode("utf-8", "replace"))
    if as_json:
        emit_json({"path": None if out is None else str(out.absolute()), "characters": len(text), "document": text})
    elif out is None:
        show(text.rstrip("\n"))


def document_of(transcript: Path, directory: str | None) -> str:
    token = os.environ.get("SM_SESSION_TOKEN")
    leaves_out = _leaves_out(Path(directory) if directory else Path.cwd())
    limit = document_limit(CLAUDE)  # also of other clients' transcripts: whose agent reads the document is not known
    happened = EVENT_READERS[likely_provider(transcript)](transcript)
    try:
        return auto_handoff(happened, directory, limit, lambda text: text == token, leaves_out)
    except (OSError, ValueError) as problem:  # ValueError: a path with NUL
        reason = getattr(problem, "strerror", None) or problem
        raise error("unreadable", f"{transcript}: {reason}", "give the path of a transcript") from problem


def _leaves_out(place: Path) -> tuple[str, ...]:
    """Return what is configured there. A handoff must not fail on an invalid file: it warns, and leaves nothing out."""
    try:
        return load(place, os.environ).continuation.leaves_out
    except ConfigError as problem:
        say(f"warning: {problem} ({problem.refused.hint}); nothing is left out")
        return ()
