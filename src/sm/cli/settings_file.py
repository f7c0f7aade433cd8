"""The settings file that `sm setup` changes: read, changed as a whole or not at all, and given back as it was.

SM_HOME keeps what the file was before, byte for byte, and the fingerprint of what we left. Where the file is still
that, taking out means putting back; where it was edited since, our entries alone come out.
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
MOST_SETTINGS = 16 << 20
NEW_FILE = b"{}\n"


@dataclass(frozen=True, slots=True)
class SettingsChange:
    """What is to become of a file; None stands for no file."""

    path: Path
    now: bytes | None
    then: bytes | None
    original: bytes | None
    """What it is without us."""

    @property
    def needed(self) -> bool:
        return self.now != self.then


@dataclass(frozen=True, slots=True)
class Record:
    """What SM_HOME keeps of a set-up."""

    before: bytes | None
    """The file as it was; None where there was none."""
    left: str
    """The fingerprint of what we left."""


def installing(path: Path, home: SmHome, ours: entries.OwnEntries, *, status_line: bool) -> SettingsChange:
    """The status line comes only where it is asked for, and stays where it is ours already."""
    now = _read(path)
    original = _original(path, now, home)
    stays = entries.has_status_line(_settings_in(now or NEW_FILE) or {})
    wanted = ours if status_line or stays else dataclasses.replace(ours, status_line=None)
    then = _edited(path, original or NEW_FILE, lambda text: entries.with_ours(text, wanted))

    def current(text: str) -> str:
        return text if entries.complete(text, wanted) else then.removeprefix(BOM).decode()

    return SettingsChange(path, now, then if now is None else _edited(path, now, current), original)


def removing(path: Path, home: SmHome) -> SettingsChange:
    now = _read(path)
    original = _original(path, now, home)
    return SettingsChange(path, now, original, original)


def apply(change: SettingsChange, home: SmHome) -> None:
    """Carry it out, unless the file has become another meanwhile; the record goes first, so that nothing is lost."""
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
        content = read_regular(path, MOST_SETTINGS)[0]
        writable = path.stat().st_mode & 0o222 and os.access(path, os.W_OK)
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise error("file_unusable", f"{path}: {problem.strerror}", "correct its permissions") from problem
    if not writable:
        raise error("file_unusable", f"{path} is read-only", "make it writable")
    return content


def _original(path: Path, now: bytes | None, home: SmHome) -> bytes | None:
    """What the file is without us."""
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


def _record(path: Path) -> Record | None:
    try:
        found = json.loads(path.read_bytes())
        before = None if found["before"] is None else base64.b64decode(found["before"])
        return Record(before, found["left"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _settings_in(content: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(content.removeprefix(BOM))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _edited(path: Path, content: bytes, edit: Callable[[str], str]) -> bytes:
    """The content with its text edited; a byte order mark stays, an empty file counts as an empty object."""
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
