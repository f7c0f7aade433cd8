"""Writes the agent's files: the transcript, with the client's short delay, and its state file."""

from __future__ import annotations

import json
import os
import random
import time
import uuid
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from sm.testing.agent.loop import TerminalLoop

Json: TypeAlias = dict[str, Any]
VERSION = "2.1.328"
ASCII_SIZE = 128
MAX_NAME_CHARS = 200
HASH_MODULUS = 1 << 32
BASE36_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
WRITE_DELAY_S = (0.02, 0.06)
"""Seconds between an event and its record (seen: 26 to 92 ms)."""


def transcript_path(config: Path, directory: str, session: str) -> Path:
    return config / "projects" / project_name(directory) / f"{session}.jsonl"


def project_name(directory: str) -> str:
    """Return the client's name of a project (2.1.328): by UTF-16 units, a long one cut, with a hash of the whole."""
    units = [int.from_bytes(pair, "little") for pair in batched(directory.encode("utf-16-le", "surrogatepass"))]
    plain = "".join(chr(unit) if unit < ASCII_SIZE and chr(unit).isalnum() else "-" for unit in units)
    if len(plain) <= MAX_NAME_CHARS:
        return plain
    hashed = 0
    for unit in units:
        hashed = (hashed * 31 + unit) % HASH_MODULUS
    return f"{plain[:MAX_NAME_CHARS]}-{_base36(min(hashed, HASH_MODULUS - hashed))}"


def batched(encoded: bytes) -> list[bytes]:
    return [encoded[place : place + 2] for place in range(0, len(encoded), 2)]


def _base36(number: int) -> str:
    digits = ""
    while number or not digits:
        number, digit = divmod(number, 36)
        digits = f"{BASE36_DIGITS[digit]}{digits}"
    return digits


def now_text() -> str:
    seconds = time.time()  # noqa: TID251  # a stamp like those in the client's own files
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds % 1 * 1000):03d}Z"


@dataclass(slots=True)
class TranscriptWriter:
    path: Path
    session: str
    directory: str
    loop: TerminalLoop
    enabled: bool = True
    """False for a client that believes it is another's child: it writes nothing."""
    parent: str | None = None
    _waiting: deque[bytes] = field(default_factory=deque)

    def add(self, kind: str, members: Json) -> None:
        """Append a record soon, with the tree's links and the session's stamps."""
        name = str(uuid.uuid4())
        links = {"parentUuid": self.parent, "isSidechain": False, "type": kind}
        record: Json = {**links, **members, "uuid": name, **self._stamps()}
        self.parent = name
        line = json.dumps({**record, "sessionId": self.session}, ensure_ascii=False).encode("utf-8", "surrogatepass")
        self._waiting.append(line + b"\n")
        self.loop.later(random.uniform(*WRITE_DELAY_S), self._write_next)  # noqa: S311  # a delay, no secret

    def _stamps(self) -> Json:
        stamps = {"timestamp": now_text(), "userType": "external", "entrypoint": "cli", "cwd": self.directory}
        return {**stamps, "version": VERSION, "gitBranch": "HEAD"}

    def _write_next(self) -> None:
        if self._waiting:
            self._append(self._waiting.popleft())

    def flush(self) -> None:
        while self._waiting:
            self._write_next()

    def _append(self, data: bytes) -> None:
        if not self.enabled:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(descriptor, data)
        finally:
            os.close(descriptor)


@dataclass(slots=True)
class StateFile:
    folder: Path
    directory: str
    enabled: bool = True
    _members: Json = field(default_factory=dict)

    @property
    def path(self) -> Path:
        return self.folder / f"{os.getpid()}.json"

    def write(self, session: str, status: str, waiting_for: str | None = None) -> None:
        if not self.enabled:
            return
        stamp = int(time.time() * 1000)  # noqa: TID251  # a stamp like those in the client's own files
        members = self._members or self._constant(stamp)
        self._members = members
        changing = {"sessionId": session, "status": status, "updatedAt": stamp, "statusUpdatedAt": stamp}
        waiting = {"waitingFor": waiting_for} if waiting_for else {}
        self.folder.mkdir(parents=True, exist_ok=True)
        scratch = self.path.with_suffix(".tmp")
        scratch.write_text(json.dumps(members | changing | waiting))
        scratch.chmod(0o600)
        scratch.replace(self.path)

    def _constant(self, stamp: int) -> Json:
        members = {"pid": os.getpid(), "cwd": self.directory, "startedAt": stamp, "version": VERSION}
        return {**members, "kind": "interactive", "entrypoint": "cli", "name": Path(self.directory).name}

    def remove(self) -> None:
        with suppress(OSError):
            self.path.unlink()
