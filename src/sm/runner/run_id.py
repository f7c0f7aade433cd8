"""The id of a run: it holds when the run was begun, which is kept nowhere else."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from sm.clock import stamp

FORMAT = re.compile(r"R-(\d{8}-\d{6})-[0-9a-f]+")


def new_run_id(at: float, random: str) -> str:
    """Return the id of a run that begins then, UTC seconds; `random` are hexadecimal digits."""
    return f"R-{stamp(at)}-{random}"


def begun_at(run: str) -> float | None:
    """Return when a run was begun, UTC seconds; None for an id of another form."""
    found = FORMAT.fullmatch(run)
    if found is None:
        return None
    try:
        return datetime.strptime(found[1], "%Y%m%d-%H%M%S").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None
