"""Handoff documents, snapshots and terminal logs as files of SM_HOME, and which files an agent may hand off.

The copy taken at scheduling is what makes a handoff safe: from then on the agent's own file may change or go.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import structlog

from sm.archive.manifest import write as write_manifest
from sm.archive.pieces import end_of
from sm.archive.places import channel_at
from sm.archive.project import CONTINUATION_PROMPTS, FOUND_IN_PROJECT, is_tracked, keep_out_of_git
from sm.archive.redaction import Known, nothing_known, without_secrets
from sm.clock import stamp
from sm.core.channel import channel_directory
from sm.core.errors import SmError, error
from sm.core.handoff import (
    MAX_BYTES,
    Entry,
    Handoff,
    HandoffState,
    HandoffType,
    handoff_id,
    head_lines,
    split_head,
)
from sm.core.keeping import Foreign, Prompt
from sm.core.session import Session
from sm.files import read_regular
from sm.paths import PRIVATE_FILE, Home, atomic_write, make_private, write_failed

log = structlog.get_logger()
MOST_KEPT = 2 * MAX_BYTES
"""Of a document with the head lines above it."""
SLACK = 2.0
"""Seconds by which a file's time may lie before its conversation's start: file systems round."""


def read_document(path: Path) -> bytes:
    """Return the content of a file an agent wants to hand off; SmError with the reason if it is not fit for that."""
    try:
        content, found = read_regular(path, MAX_BYTES)
    except FileNotFoundError:
        raise error("file_not_found", f"File not found: {path}", "write the handoff document first") from None
    except OSError as problem:
        words = (problem.strerror or "").lower()
        raise _unfit(path, words if words.startswith("is ") else f"cannot be read ({words})") from problem
    if found.st_uid != os.getuid():
        raise _unfit(path, "belongs to another user")
    if not content.strip():
        raise _unfit(path, "is empty")
    return content


def _unfit(path: Path, reason: str) -> SmError:
    return error("file_unfit", f"Cannot hand off {path}: it {reason}", "write the document to a plain file of yours")


@dataclass(frozen=True, slots=True)
class Source:
    """A file that is to be handed off."""

    path: Path
    text: str
    written: float


def read_source(path: Path) -> Source:
    """The file without head lines of ours, as of a copy that is handed off once more."""
    text = read_document(path).decode("utf-8", "replace")
    return Source(path, split_head(text)[1], path.stat().st_mtime)


def check_age(path: Path, written: float, started: float) -> None:
    """Refuse a file from before the conversation: it cannot say what happened in it."""
    if written + SLACK < started:
        age = f"{started - written:,.0f} s before this conversation began"
        raise error("file_old", f"Cannot hand off {path}: it was last written {age}", "write the document anew")


@dataclass(frozen=True, slots=True)
class FileDocuments:
    home: Home
    channels: Callable[[], Mapping[str, str]]
    """Path = name, as the person configures it now."""
    known: Known = nothing_known
    """Whether a text is one of our own tokens."""

    def channel(self, directory: str) -> str:
        return channel_at(directory, self.channels())

    def folder(self, directory: str) -> Path:
        return self.home.handoffs / channel_directory(self.channel(directory))

    def schedule(
        self, session: Session, path: Path, at: float, reason: str, kind: HandoffType = HandoffType.AGENT
    ) -> Handoff:
        """Check the agent's file, keep a copy, and return the handoff it makes."""
        source = read_source(path)
        conversation = session.conversation
        if conversation is None:
            raise error("no_conversation", f"Session {session.id} has no conversation yet", "wait until it has started")
        check_age(path, source.written, conversation.started)
        return self._copied(source, session, conversation.id, kind, at, reason)

    def adopt(self, session: Session, path: Path, conversation: str, at: float) -> Handoff:
        return self._copied(read_source(path), session, conversation, HandoffType.MANUAL, at, "")

    def _copied(
        self, source: Source, session: Session, conversation: str, kind: HandoffType, at: float, reason: str
    ) -> Handoff:
        handoff = self._new(session, conversation, at, kind, str(source.path))
        handoff = replace(handoff, reason=reason)
        self._keep(handoff, source.text, source.written)
        return handoff

    def keep(self, session: Session, text: str, kind: HandoffType, at: float) -> Handoff:
        """Keep a document that was made for the session; there is no other file of it."""
        conversation = session.conversation.id if session.conversation else session.id
        handoff = self._new(session, conversation, at, kind, "")
        self._keep(handoff, text, at)
        return handoff

    def rewrite(self, handoff: Handoff, text: str, at: float) -> None:
        self._keep(handoff, text, at)

    def _new(self, session: Session, conversation: str, at: float, kind: HandoffType, path: str) -> Handoff:
        channel = self.channel(session.directory)
        identity, copy = self._free_id(channel_directory(channel), at, conversation)
        return Handoff(
            id=identity,
            path=path or str(copy),
            copy=str(copy),
            conversation=conversation,
            channel=channel,
            directory=session.directory,
            created=at,
            type=kind,
            session=session.id,
        )

    def _free_id(self, folder: str, at: float, conversation: str) -> tuple[str, Path]:
        """The first id from `at` on of which no document exists; one is claimed by its file, which is made here."""
        while True:
            identity = handoff_id(at, conversation)
            copy = self.home.handoff(folder, identity)
            if self._claimed(copy):
                return identity, copy
            at += 1.0

    def _claimed(self, copy: Path) -> bool:
        """Whether the name was free, and is now taken by an empty file."""
        try:
            make_private(copy.parent)
            os.close(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE))
        except OSError as problem:
            if isinstance(problem, FileExistsError) and copy.is_file():
                return False
            raise write_failed(copy, problem) from problem
        return True

    def _keep(self, handoff: Handoff, text: str, written: float) -> None:
        """Write the copy, dated as the file it is of: whoever reads it is told what came after."""
        copy = Path(handoff.copy)
        atomic_write(copy, (head_lines(handoff) + "\n" + text).encode("utf-8", "replace"))
        os.utime(copy, (written, written))

    def text(self, handoff: Handoff) -> str:
        """The document without the head lines that `sm` put above it; SmError if it is another's."""
        kept = read_regular(Path(handoff.copy), MOST_KEPT)[0].decode("utf-8", "replace")
        identity, text = split_head(kept)
        if identity != handoff.id:
            raise error(
                "handoff_mismatch",
                f"The document of handoff {handoff.id} says that it is {identity or 'none'}: {handoff.copy}",
                "`sm resume PATH` starts from a file whatever it is",
            )
        return text

    def written(self, handoff: Handoff) -> float:
        return Path(handoff.copy).stat().st_mtime

    def checked(self, handoff: Handoff) -> Handoff:
        """The handoff for another session than its own: its copy is there and its own, and says what is to be read."""
        try:
            text = self.text(handoff)
        except OSError as problem:
            message = f"The document of handoff {handoff.id} cannot be read: {problem.strerror}"
            raise error("handoff_gone", message, f"it was at {handoff.copy}") from problem
        return replace(handoff, readable=_holds(Path(handoff.path), text))

    def refresh(self, handoff: Handoff) -> bool:
        try:
            source = read_source(Path(handoff.path))
        except (SmError, OSError):
            return False
        try:
            self._keep(handoff, source.text, source.written)
        except (SmError, OSError) as problem:  # the copy is as it was at scheduling; the agent's own file is still told
            log.warning("copy of the handoff not refreshed", handoff=handoff.id, problem=type(problem).__name__)
        return True

    def project(self, channel: str, entries: Sequence[Entry]) -> None:
        write_manifest(self.home.manifest(channel_directory(channel)), channel, entries)

    def set_aside(self, known: Collection[str]) -> None:
        """Move documents that no row knows out of the way: their handoff was never acknowledged."""
        for path in sorted(self.home.handoffs.glob("*/*.md")):
            if path.stem not in known:
                aside = path.parent / "unknown" / path.name
                make_private(aside.parent)
                path.replace(aside)
                log.warning("document that no handoff is known of; set aside", path=str(path), aside=str(aside))
        for path in self.home.handoffs.glob("*/.tmp-*"):
            path.unlink()

    def foreign(self, directory: str, entries: Sequence[Entry]) -> tuple[Foreign, ...]:
        """Documents in the project that no handoff of these is a copy of, or that git tracks."""
        places = [Path(directory) / name for name in FOUND_IN_PROJECT]
        return tuple(found for place in places if (found := self._foreign(place, entries)) is not None)

    def prompt(self, directory: str, entries: Sequence[Entry], since: float) -> Prompt | None:
        places = [Path(directory) / name for name in CONTINUATION_PROMPTS]
        return next((found for place in places if (found := self._prompt(place, entries, since)) is not None), None)

    def _prompt(self, place: Path, entries: Sequence[Entry], since: float) -> Prompt | None:
        """The newest handoff that was made of it decides: one that was taken up or cleared is nothing to go on with."""
        try:
            source = read_source(place)
        except (OSError, SmError):
            return None
        copies = (one for one in entries if one.handoff.path == str(place) and self._is_copy(one.handoff, source.text))
        newest = next(copies, None)
        expired = newest is not None and newest.state is HandoffState.EXPIRED
        return Prompt(str(place), source.written) if expired and source.written >= since else None

    def _foreign(self, place: Path, entries: Sequence[Entry]) -> Foreign | None:
        try:
            source = read_source(place)
        except (OSError, SmError):
            return None
        tracked = is_tracked(place)
        known = any(entry.handoff.path == str(place) and self._is_copy(entry.handoff, source.text) for entry in entries)
        return None if known and not tracked else Foreign(str(place), source.written, tracked)

    def _is_copy(self, handoff: Handoff, text: str) -> bool:
        try:
            return self.text(handoff) == text
        except (OSError, SmError):
            return False

    def snapshot(self, session: str, at: float, text: str) -> str:
        while (path := self.home.dump(session, stamp(at))).exists():
            at += 1.0  # of an earlier context of this second
        atomic_write(path, without_secrets(text, self.known).encode("utf-8", "replace"))
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

    def log_end(self, session: str) -> int:
        return end_of(self.home.log(session))


def _holds(path: Path, text: str) -> bool:
    """Whether a file still says what was handed off from it: another session may have written over it."""
    try:
        return read_source(path).text == text
    except (OSError, SmError):
        return False
