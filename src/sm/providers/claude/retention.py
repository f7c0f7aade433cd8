"""How long the client keeps transcripts that are not written any more: later starts of any client delete them."""

from __future__ import annotations

from pathlib import Path

from sm.providers.claude.limits import read_settings, settings_files

PERIOD = "cleanupPeriodDays"
DEFAULT_DAYS = 30
"""Of the client, where no settings file says otherwise (2.1.328)."""


def transcript_days(config: Path, directory: Path) -> int:
    """Return the days after which the client deletes a transcript, as its settings say at that directory."""
    for path in settings_files(config, directory):
        days = read_settings(path).get(PERIOD)
        if isinstance(days, int) and not isinstance(days, bool) and days > 0:
            return days
    return DEFAULT_DAYS
