"""Whether a conversation changed anything: what a handoff document of its own is does not count."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath

from sm.digest import shell
from sm.digest import transcript_events as events
from sm.digest.own_text import is_our_command

DOCUMENT_DIRECTORY = ".sm"


def shows_progress(happened: Iterable[events.TranscriptEvent]) -> bool:
    """Return whether a file was changed or a commit made."""
    return any(_changes(event) for event in happened)


def _changes(event: events.TranscriptEvent) -> bool:
    match event:
        case events.FileChanged(path=path):
            return _is_work(path)
        case events.CommandRan(command=command, failed=False, output=output) if not is_our_command(command):
            changed = any(_is_work(change.path) for change in shell.file_changes(command))
            return changed or ("commit" in command and any(shell.commits(output)))
    return False


def _is_work(path: str) -> bool:
    return PurePath(path).parent.name != DOCUMENT_DIRECTORY
