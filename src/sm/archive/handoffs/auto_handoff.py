"""The document made without a model, with the repository's state in it and no secret."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial

from sm.archive.handoffs.git_state import repository
from sm.archive.redaction.redact import IsOwnToken, no_own_tokens, redacted
from sm.digest.collector import collected
from sm.digest.document import Repository, document
from sm.digest.transcript_events import TranscriptEvent


def auto_handoff(
    events: Iterable[TranscriptEvent],
    directory: str | None,
    limit: int,
    is_own_token: IsOwnToken = no_own_tokens,
    leaves_out: Collection[str] = (),
) -> str:
    """Return the document of a conversation in `directory`, or where it was last, in `limit` characters.

    Blocks: never on the loop.

    `leaves_out` names what the user does not want in it: `todos`, `git_status`, `recent_files`.
    """
    kept = collected(events, partial(redacted, is_own_token=is_own_token))
    place = directory or (kept.workplace.directory if kept.workplace else None)
    if "todos" in leaves_out:
        kept.todos = ()
    if "recent_files" in leaves_out:
        kept.files.clear()
    if "git_status" in leaves_out:
        kept.commits.clear()
        kept.workplace = place = None
    return document(kept, repository(place) if place else Repository(), limit, leaves_out=leaves_out)
