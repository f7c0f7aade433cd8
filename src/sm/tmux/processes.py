"""Which processes a pane's process has started and not collected."""

from __future__ import annotations

import os
from pathlib import Path

PROC = Path("/proc")


def descendants(pid: int) -> list[int]:
    """Children, their children and so on, parents first; empty where there is no /proc (there tmux hangs them up)."""
    children: dict[int, list[int]] = {}
    try:
        numbers = [int(name) for name in os.listdir(PROC) if name.isdigit()]
    except OSError:
        return []
    for number in numbers:
        children.setdefault(_parent(number), []).append(number)
    found: list[int] = []
    waiting = [pid]
    while waiting:
        fresh = children.get(waiting.pop(0), [])
        found.extend(fresh)
        waiting.extend(fresh)
    return found


def _parent(pid: int) -> int:
    try:
        return int((PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return 0
