"""Handoff documents, snapshots and terminal logs as files of SM_HOME, and which files an agent may hand off.

The copy taken at scheduling is what makes a handoff safe: from then on the agent's own file may change or go.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import structlog

from sm.archive.project import keep_out_of_git
from sm.clock import stamp
from sm.core.channel import channel_directory, channel_of
from sm.core.errors import SmError, error
from sm.core.handoff import MAX_BYTES, Handoff, handoff_id, head_lines
from sm.core.session import Session
from sm.paths import Home, atomic_write

log = structlog.get_logger()
SLACK = 2.0
"""Seconds by which a file's time may lie before its conversation's start: file systems round."""


def read_document(path: Path) -> bytes:
    """Return the content of a file an agent wants to hand off; SmError with the reason if it is not fit for that."""
    try:
        # Without O_NONBLOCK a FIFO would hold us until somebody writes to it.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise error("file_not_found", f"File not found: {path}", "write the handoff document first") from None
    except OSError as problem:
        raise _unfit(path, (problem.strerror or "cannot be opened").lower()) from problem
    try:
        found = os.fstat(descriptor)
        reason = _why_unfit(found)
        if reason is not None:
            raise _unfit(path, reason)
        content = _read_all(descriptor)
    finally:
        os.close(descriptor)
    if not content.strip():
        raise _unfit(path, "is empty")
    if len(content) > MAX_BYTES:
        raise _unfit(path, f"is larger than {MAX_BYTES:,} bytes")
    return content


def _read_all(descriptor: int) -> bytes:
    content = b""
    while len(content) <= MAX_BYTES and (piece := os.read(descriptor, 1 << 16)):
        content += piece
    return content


def _why_unfit(found: os.stat_result) -> str | None:
    if stat.S_ISDIR(found.st_mode):
        return "is a directory"
    if not stat.S_ISREG(found.st_mode):
        return "is no regular file"
    if found.st_uid != os.getuid():
        return "belongs to another user"
    return f"is larger than {MAX_BYTES:,} bytes" if found.st_size > MAX_BYTES else None


def _unfit(path: Path, reason: str) -> SmError:
    return error("file_unfit", f"Cannot hand off {path}: it {reason}", "write the document to a plain file of yours")


def check_age(path: Path, started: float) -> None:
    """Refuse a file from before the conversation: it cannot say what happened in it."""
    written = path.stat().st_mtime
    if written + SLACK < started:
        age = f"{started - written:,.0f} s before this conversation began"
        raise error("file_old", f"Cannot hand off {path}: it was last written {age}", "write the document anew")


@dataclass(frozen=True, slots=True)
class FileDocuments:
    home: Home
    channels: Mapping[str, str]

    def schedule(self, session: Session, path: Path, at: float, reason: str) -> Handoff:
        """Check the agent's file, keep a copy, and return the handoff it makes."""
        content = read_document(path)
        conversation = session.conversation
        if conversation is None:
            raise error("no_conversation", f"Session {session.id} has no conversation yet", "wait until it has started")
        check_age(path, conversation.started)
        channel = channel_of(session.directory, self.channels, repository_root(Path(session.directory)))
        folder = self.home.handoffs / channel_directory(channel)
        identity, copy = self._free_id(folder, at, conversation.id)
        handoff = Handoff(
            id=identity,
            path=str(path),
            copy=str(copy),
            conversation=conversation.id,
            channel=channel,
            directory=session.directory,
            created=at,
            reason=reason,
        )
        self._keep(handoff, content)
        return handoff

    def _free_id(self, folder: Path, at: float, conversation: str) -> tuple[str, Path]:
        while True:
            identity = handoff_id(at, conversation)
            copy = folder / f"{identity}.md"
            if not copy.exists():
                return identity, copy
            at += 1.0

    def _keep(self, handoff: Handoff, content: bytes) -> None:
        text = content.decode("utf-8", "replace")
        atomic_write(Path(handoff.copy), (head_lines(handoff) + "\n" + text).encode("utf-8", "replace"))

    def text(self, handoff: Handoff) -> str:
        """The document without the head lines that `sm` put above it."""
        kept = Path(handoff.copy).read_bytes().decode("utf-8", "replace")
        return kept.removeprefix(head_lines(handoff)).removeprefix("\n")

    def refresh(self, handoff: Handoff) -> bool:
        try:
            content = read_document(Path(handoff.path))
        except (SmError, OSError):
            return False
        try:
            self._keep(handoff, content)
        except SmError as problem:  # the copy is as it was at scheduling; the agent's own file is still told
            log.warning("copy of the handoff not refreshed", handoff=handoff.id, code=problem.refused.code)
        return True

    def snapshot(self, session: str, at: float, text: str) -> str:
        path = self.home.dump(session, stamp(at))
        atomic_write(path, text.encode("utf-8", "replace"))
        return str(path)

    def prepare(self, directory: str) -> None:
        try:
            keep_out_of_git(Path(directory))
        except OSError as problem:
            log.warning("exclude file not written", directory=directory, problem=problem.strerror)

    def message_file(self, message: str, body: str) -> str:
        path = self.home.messages / f"{message}.md"
        atomic_write(path, body.encode("utf-8", "replace"))
        return str(path)

    def log(self, session: str) -> Path:
        return self.home.log(session)


def repository_root(directory: Path) -> str | None:
    """The root of the git work tree that holds the directory; `.git` is a file in a worktree."""
    try:
        place = directory.resolve()
    except OSError:
        return None
    return next((str(one) for one in (place, *place.parents) if (one / ".git").exists()), None)
