"""Writes a channel's `manifest.json`: its rows for people and scripts. The database decides, the file follows it.

Replaced as a whole, and only where it differs. One that cannot be read was written by another program: it is kept
aside.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import structlog

from sm.clock import iso
from sm.core.model.handoff import OPEN, StoredHandoff
from sm.paths import atomic_write

log = structlog.get_logger()
MAX_HISTORY = 100
"""Ended handoffs that are listed: older ones are in the database alone."""


def manifest(channel: str, entries: Sequence[StoredHandoff]) -> dict[str, object]:
    """`entries` are the channel's, the newest first; `current` is the newest active one, or else the last."""
    active = [_item(entry) for entry in entries if entry.state in OPEN]
    history = [_item(entry) for entry in entries if entry.state not in OPEN]
    current = next(iter((*active, *history)), None)
    return {"channel": channel, "current": current, "active": active, "history": history[:MAX_HISTORY]}


def _item(entry: StoredHandoff) -> dict[str, object]:
    handoff = entry.handoff
    return {
        "id": handoff.id,
        "session_id": handoff.conversation,
        "created_at": iso(handoff.created),
        "created_by_pid": entry.created_pid,
        "working_dir": handoff.directory,
        "type": handoff.type.value,
        "status": entry.state.value,
        "consumed_by_pid": entry.consumed_pid,
        "consumed_at": None if entry.consumed is None else iso(entry.consumed),
        "session": handoff.session,
        "held_by": entry.holder or None,
        "document": handoff.copy,
        "reason": entry.reason,
    }


def write(path: Path, channel: str, entries: Sequence[StoredHandoff]) -> bool:
    """Bring the file in step with the rows; False if it was. SmError if it cannot be written."""
    text = json.dumps(manifest(channel, entries), indent=1, ensure_ascii=False) + "\n"
    wanted = text.encode("utf-8", "replace")
    try:
        found = path.read_bytes()
    except FileNotFoundError:
        found = None
    if found == wanted:
        return False
    if found is not None and not _readable(found):
        aside = path.with_name(f"{path.name}.damaged")
        path.replace(aside)
        log.warning("manifest was damaged; kept aside and written again", path=str(path), aside=str(aside))
    atomic_write(path, wanted)
    return True


def _readable(content: bytes) -> bool:
    try:
        return isinstance(json.loads(content), dict)
    except (ValueError, RecursionError):
        return False
