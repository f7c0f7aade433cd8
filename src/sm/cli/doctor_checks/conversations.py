"""Checks whether the client is about to delete transcripts that a session would continue."""

from __future__ import annotations

import time
from pathlib import Path

from sm.cli.doctor_checks.driver import sessions_of
from sm.cli.doctor_checks.finding import OK, WARN, Finding, Surroundings, short_list
from sm.plain_text import plain
from sm.providers.claude.launch import config_directory
from sm.providers.claude.retention import PERIOD, transcript_days

DAY_S = 86_400.0
WARNED_DAYS = 7
"""Before a transcript is deleted."""


def transcripts(where: Surroundings) -> Finding:
    days = transcript_days(config_directory(where.environ), where.directory)
    kept = f"the client deletes a transcript that was not written for {days} days ({PERIOD})"
    ending = [
        f"{plain(session['name'])} in {max(0, left)} days"
        for session in sessions_of(where)
        if (left := _days_left(session["transcript"], days)) is not None and left < min(WARNED_DAYS, days)
    ]
    if not ending:
        return Finding(OK, kept)
    hint = (
        f'set "{PERIOD}" in the client\'s settings.json; sm restore of such a session begins without its conversation'
    )
    return Finding(WARN, f"{kept}: {short_list(ending)}", hint)


def _days_left(transcript: str | None, days: int) -> int | None:
    try:
        written = Path(transcript or "").stat().st_mtime if transcript else None
    except OSError:
        return None
    return None if written is None else int((written + days * DAY_S - time.time()) // DAY_S)  # noqa: TID251  # the user's clock
