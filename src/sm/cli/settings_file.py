"""The settings file that `sm setup` changes: changed as a whole or not at all, and restored by `--remove`.

SM_HOME keeps the file's earlier content, byte for byte, and the fingerprint of what we wrote. If the file is unchanged
since, removing restores that content; if it was edited, only our entries are removed.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sm.core.errors import error
from sm.files import read_regular
from sm.paths import SmHome, atomic_write
from sm.providers.claude.user_settings import entries

BOM = b"\xef\xbb\xbf"
MAX_SETTINGS_BYTES = 16 << 20
NEW_FILE = b"{}\n"


@dataclass(frozen=True, slots=True)
class SettingsChange:
    """A planned change of a file; None is no file."""

    path: Path
    now: bytes | None
    then: bytes | None
    original: bytes | None
    """The content without our entries."""

    @property
    def needed(self) -> bool:
        return self.now != self.then


@dataclass(frozen=True, slots=True)
class SetupRecord:
    """The record of a set-up in SM_HOME."""

    before: bytes | None
    """The earlier content; None without a file."""
    left: str
    """The fingerprint of what we wrote."""


def installed_change(path: Path, home: SmHome, ours: entries.OwnEntries, *, status_line: bool) -> SettingsChange:
    """Return the change that adds our entries. The status line is added on request, and kept if it is ours already."""
    now = _read(path)
    original = _original(path, now, home)
    stays = entries.has_status_line(_settings_in(now or NEW_FILE) or {})
    wanted = ours if status_line or stays else dataclasses.replace(ours, status_line=None)
    then = _edited(path, original or NEW_FILE, lambda text: entries.with_ours(text, wanted))

    def current(text: str) -> str:
        return text if entries.complete(text, wanted) else then.removeprefix(BOM).decode()

    return SettingsChange(path, now, then if now is None else _edited(path, now, current), original)


def removed_change(path: Path, home: SmHome) -> SettingsChange:
    now = _read(path)
    original = _original(path, now, home)
    return SettingsChange(path, now, original, original)


def apply(change: SettingsChange, home: SmHome) -> None:
    """Apply a change, unless the file was changed in between; the record is written first, so that nothing is lost."""
    if _read(change.path) != change.now:
        raise error("settings_changed", f"{change.path} was changed while the command ran", "run the command again")
    record = home.setup_record(str(change.path))
    if change.then != change.original:
        _keep(record, change)
    if change.then is None:
        change.path.unlink(missing_ok=True)
    else:
        mode = stat.S_IMODE(change.path.stat().st_mode) if change.now is not None else 0o600
        atomic_write(change.path, change.then, mode)
    if change.then == change.original:
        record.unlink(missing_ok=True)


def _keep(record: Path, change: SettingsChange) -> None:
    assert change.then is not None
    before = None if change.original is None else base64.b64encode(change.original).decode()
    kept = {"settings": str(change.path), "before": before, "left": _fingerprint(change.then)}
    atomic_write(record, json.dumps(kept, indent=1).encode())


def _read(path: Path) -> bytes | None:
    try:
        content = read_regular(path, MAX_SETTINGS_BYTES)[0]
        writable = path.stat().st_mode & 0o222 and os.access(path, os.W_OK)
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise error("file_unusable", f"{path}: {problem.strerror}", "correct its permissions") from problem
    if not writable:
        raise error("file_unusable", f"{path} is read-only", "make it writable")
    return content


def _original(path: Path, now: bytes | None, home: SmHome) -> bytes | None:
    """Return the file's content without our entries."""
    record = _record(home.setup_record(str(path)))
    if record is not None and now is not None and record.left == _fingerprint(now):
        return record.before
    if now is None:
        return None
    before = _settings_in(record.before) if record and record.before else None

    def without_ours(text: str) -> str:
        theirs = record is None and not entries.installed(entries.loaded(text))
        return text if theirs else entries.without_ours(text, before)

    return _edited(path, now, without_ours)


def _record(path: Path) -> SetupRecord | None:
    try:
        found = json.loads(path.read_bytes())
        before = None if found["before"] is None else base64.b64decode(found["before"])
        return SetupRecord(before, found["left"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _settings_in(content: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(content.removeprefix(BOM))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _edited(path: Path, content: bytes, edit: Callable[[str], str]) -> bytes:
    """Return the content with its text edited; a byte order mark stays, an empty file counts as an empty object."""
    mark = BOM if content.startswith(BOM) else b""
    try:
        text = content.removeprefix(BOM).decode()
        text = text if text.strip() else NEW_FILE.decode()
        edited = edit(text)
        return content if edited == text else mark + edited.encode()
    except UnicodeDecodeError as problem:
        raise entries.refused(str(path), ValueError(f"it is not UTF-8 (byte {problem.start})")) from problem
    except (ValueError, RecursionError) as problem:
        raise entries.refused(str(path), problem) from problem


def _fingerprint(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
