"""Where the rollouts of a thread are (Codex 0.171.0).

A thread begins in `CODEX_HOME/sessions/YYYY/MM/DD/rollout-<local time>-<thread>.jsonl`, which `codex archive` moves to
`CODEX_HOME/archived_sessions`. Where the user goes back to before an earlier prompt, the thread continues in a file
`rollout-<local time>-<thread>_<segment>.jsonl`, and the hooks then name that one. Its `history_base` names the file it
continues, by the last id in that file's name, and how many bytes of it still count. A fork has the same, of another
thread, and copies nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sm.providers import jsonl
from sm.providers.codex.records import Json, member, rollout_record

SESSIONS = "sessions"
ARCHIVED = "archived_sessions"
NAME = re.compile(r"rollout-[\dT-]{19}-([0-9a-f-]{36})(?:_([0-9a-f-]{36}))?\.jsonl")
ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
HEAD_BYTES = 1024
"""Of a file, within which its first record says whose it is."""
OWNER = re.compile(rb'"session_id"\s*:\s*"([0-9a-f-]{36})"')
MAX_BASES = 100
"""Files that one continues, in a row."""
MAX_HEAD_BYTES = 1 << 20
"""Of the first record, which holds the client's instructions to the model: some 20 KB."""


@dataclass(frozen=True, slots=True)
class HistoryPart:
    """A file of a thread's history, up to an offset; None for all of it."""

    path: Path
    thread: str
    end: int | None = None


def thread_of(path: Path) -> str:
    """Return whose thread a file is by its name; empty where the name does not say."""
    found = NAME.fullmatch(path.name)
    return found[1] if found else ""


def newest_file(home: Path, thread: str) -> Path | None:
    """Return the file in which a thread continues; one that was archived if there is no other."""
    if not ID.fullmatch(thread):
        return None
    for folder in (f"{SESSIONS}/*/*/*", ARCHIVED):
        found = [*home.glob(f"{folder}/rollout-*-{thread}.jsonl"), *home.glob(f"{folder}/rollout-*-{thread}_*.jsonl")]
        if found:
            return max(found, key=_segment)
    return None


def history(path: Path) -> list[HistoryPart]:
    """Return the parts of a thread's history, oldest first: those that it continues, and the file itself."""
    parts = [HistoryPart(path, thread_of(path))]
    while len(parts) < MAX_BASES:
        base = member(first_record(parts[0].path), "history_base")
        found = _file_with(parts[0].path, base.get("thread_id"))
        if found is None or found in {part.path for part in parts}:
            break
        parts.insert(0, HistoryPart(found, thread_of(found), jsonl.count(base.get("end_byte_offset"))))
    return parts


def family(path: Path) -> list[Path]:
    """Return the files of a thread and of its subagents, the one given among them.

    The first record of each names as its session the thread that the user began. A thread has no file from before its
    own beginning, which its id tells, and none that is newer by a day than the newest one that is known.
    """
    thread = thread_of(path)
    if not thread:
        return [path]
    near = [other for folder in _folders(path, thread) for other in sorted(folder.glob("rollout-*.jsonl"))]
    return [path, *(other for other in near if other != path and (thread_of(other) == thread or _is_of(other, thread)))]


def first_record(path: Path) -> Json:
    """Return what a rollout begins with; empty for a file that is none."""
    try:
        with jsonl.opened(path) as fd:
            line = next((line for line, _ in jsonl.lines_forward((b'"session_meta"',), fd, 0)), b"")
    except (OSError, ValueError):
        return {}
    record = rollout_record(line) if len(line) <= MAX_HEAD_BYTES else None
    return record.payload if record is not None and record.type == "session_meta" else {}


def archived(path: Path) -> bool:
    """The client refuses to resume a thread that was archived (0.171.0)."""
    return path.parent.name == ARCHIVED


def _segment(path: Path) -> str:
    """The last id in a file's name; ids begin with the time they were made at."""
    return path.stem[-36:]


def _home(path: Path) -> Path | None:
    return next((place.parent for place in path.parents if place.name in {SESSIONS, ARCHIVED}), None)


def _file_with(path: Path, identity: object) -> Path | None:
    home = _home(path)
    if home is None or not isinstance(identity, str) or not ID.fullmatch(identity):
        return None
    places = (path.parent.glob(f"rollout-*{identity}.jsonl"), home.glob(f"{SESSIONS}/*/*/*/rollout-*{identity}.jsonl"))
    archive = home.glob(f"{ARCHIVED}/rollout-*{identity}.jsonl")
    return next((found for place in (*places, archive) for found in place), None)


def _folders(path: Path, thread: str) -> Iterator[Path]:
    """The folders of the days from a thread's beginning to a day after the file was last written, and its own."""
    home = _home(path)
    try:
        begun = datetime.fromtimestamp(int(thread.replace("-", "")[:12], 16) / 1000, UTC)
        written = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except (OSError, ValueError, OverflowError):
        home = None
    yield path.parent
    if home is None:
        return
    day, last = begun - timedelta(days=1), written + timedelta(days=1)
    while day <= last:
        folder = home / SESSIONS / f"{day:%Y/%m/%d}"
        if folder != path.parent and folder.is_dir():
            yield folder
        day += timedelta(days=1)


def _is_of(path: Path, thread: str) -> bool:
    try:
        with jsonl.opened(path) as fd:
            found = OWNER.search(os.pread(fd, HEAD_BYTES, 0))
    except (OSError, ValueError):
        return False
    return found is not None and found[1].decode() == thread
