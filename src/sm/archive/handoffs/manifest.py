"""A channel's `manifest.json`: its rows as people and scripts read them. The rows are the truth, this follows them.

Replaced as a whole, and only where it differs. One that cannot be read was written by somebody else: it is kept aside.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import structlog

from sm.clock import iso
from sm.core.model.handoff import OPEN, Entry
from sm.paths import atomic_write

log = structlog.get_logger()
HISTORY = 100
"""Ended handoffs that are listed: those before are in the database alone."""


def manifest(channel: str, entries: Sequence[Entry]) -> dict[str, object]:
    """`entries` are the channel's, the newest first; `current` is the newest active one, or else the last."""
    active = [_item(one) for one in entries if one.state in OPEN]
    history = [_item(one) for one in entries if one.state not in OPEN]
    current = next(iter((*active, *history)), None)
    return {"channel": channel, "current": current, "active": active, "history": history[:HISTORY]}


def _item(entry: Entry) -> dict[str, object]:
    kept = entry.handoff
    return {
        "id": kept.id,
        "session_id": kept.conversation,
        "created_at": iso(kept.created),
        "created_by_pid": entry.created_pid,
        "working_dir": kept.directory,
        "type": kept.type.value,
        "status": entry.state.value,
        "consumed_by_pid": entry.consumed_pid,
        "consumed_at": None if entry.consumed is None else iso(entry.consumed),
        "session": kept.session,
        "held_by": entry.holder or None,
        "document": kept.copy,
        "reason": entry.reason,
    }


def write(path: Path, channel: str, entries: Sequence[Entry]) -> bool:
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
