"""Handoff documents, snapshots and terminal logs as files of SM_HOME.

The copy taken at scheduling makes a handoff safe: from then on the agent's own file may change or go, and what others
write there does not reach the next context.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import structlog

from sm.archive.handoffs.channels import belongs_to, branch_at, channel_at, work_tree
from sm.archive.handoffs.manifest import write as write_manifest
from sm.archive.handoffs.project_directory import (
    CONTINUATION_PROMPTS,
    FOUND_IN_PROJECT,
    is_tracked,
    keep_out_of_git,
    tracked_documents,
)
from sm.archive.handoffs.sources import SourceFile, check_age, is_at_hand, outside, read_source, resolved
from sm.archive.redaction.redact import IsOwnToken, no_own_tokens, redacted, redacted_json, without_secrets
from sm.archive.terminal.segments import end_of, segments_of
from sm.clock import stamp
from sm.core.errors import SmError, error
from sm.core.model.channel import Location, channel_directory
from sm.core.model.context_warnings import handoff_file
from sm.core.model.handoff import (
    MAX_BYTES,
    Handoff,
    HandoffState,
    HandoffType,
    StoredHandoff,
    handoff_id,
    head_lines,
    split_head,
)
from sm.core.model.handoff_offer import ContinuationPrompt, ProjectDocument
from sm.core.model.session import Session
from sm.files import read_regular
from sm.paths import PRIVATE_FILE, SmHome, atomic_write, make_private, write_failed

log = structlog.get_logger()
MAX_COPY_BYTES = 2 * MAX_BYTES
"""Bytes of a document with the head lines above it."""


@dataclass(frozen=True, slots=True)
class FileDocuments:
    home: SmHome
    channels: Callable[[], Mapping[str, str]]
    """Path = name, as configured now."""
    is_own_token: IsOwnToken = no_own_tokens

    def channel(self, directory: str) -> str:
        return channel_at(directory, self.channels())

    def location(self, directory: str) -> Location:
        return Location(directory, branch_at(directory))

    def is_same_place(self, one: str, other: str) -> bool:
        return work_tree(one) == work_tree(other)

    def folder(self, directory: str) -> Path:
        return self.home.handoffs / channel_directory(self.channel(directory))

    def schedule(
        self,
        session: Session,
        path: Path,
        at: float,
        reason: str,
        kind: HandoffType = HandoffType.AGENT,
        *,
        confined: bool = False,
    ) -> Handoff:
        """Check the agent's file, keep a copy, and return the handoff it makes."""
        source = self._source(path)
        if confined and not self._is_at_hand(path, session.directory):
            raise outside(path, session.directory, handoff_file(session.id))
        conversation = session.conversation
        if conversation is None:
            raise error("no_conversation", f"Session {session.id} has no conversation yet", "wait until it has started")
        check_age(path, source.written(at), conversation.started)
        handoff = replace(self._new(session, conversation.id, at, kind, str(path)), reason=reason)
        self._keep_first(handoff, source.text, source.written(at))
        return handoff

    def import_file(self, session: Session, path: Path, conversation: str, at: float) -> Handoff:
        """Only a document that sm wrote names its conversation; the session that begins from it did not write it."""
        source = self._source(path)
        new = self._new(session, conversation, at, HandoffType.MANUAL, str(path))
        handoff = replace(new, conversation=source.conversation, session="")
        self._keep_first(handoff, source.text, source.written(at))
        return handoff

    def _source(self, path: Path) -> SourceFile:
        return read_source(path, (self.home.token, self.home.database), self.is_own_token)

    def _is_at_hand(self, path: Path, directory: str) -> bool:
        place = resolved(path)
        if place.is_relative_to(resolved(self.home.root)):
            return place.is_relative_to(resolved(self.folder(directory)))
        return is_at_hand(place, directory)

    def keep(self, session: Session, text: str, kind: HandoffType, at: float) -> Handoff:
        """Keep a document that was made for the session; no other file holds it."""
        conversation = session.conversation.id if session.conversation else session.id
        handoff = self._new(session, conversation, at, kind, "")
        self._keep_first(handoff, text, at)
        return handoff

    def without_secrets(self, text: str) -> str:
        return redacted(text, self.is_own_token)

    def json_without_secrets(self, text: str) -> str:
        return redacted_json(text, self.is_own_token)

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
            branch=branch_at(session.directory),
        )

    def _free_id(self, folder: str, at: float, conversation: str) -> tuple[str, Path]:
        """Return the first free id from `at` on, and its file, which is created here and so claims it."""
        while True:
            identity = handoff_id(at, conversation)
            copy = self.home.handoff(folder, identity)
            if self._claimed(copy):
                return identity, copy
            at += 1.0

    def _claimed(self, copy: Path) -> bool:
        """Create the file, empty; False if it exists."""
        try:
            make_private(copy.parent)
            os.close(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE))
        except OSError as problem:
            if isinstance(problem, FileExistsError) and copy.is_file():
                return False
            raise write_failed(copy, problem) from problem
        return True

    def _keep_first(self, handoff: Handoff, text: str, written: float) -> None:
        """Fill the file that claimed the name; where that fails, as on a full disk, remove it."""
        try:
            self._keep(handoff, text, written)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(handoff.copy).unlink()
            raise

    def _keep(self, handoff: Handoff, text: str, written: float) -> None:
        """Write the copy with the date of the file it was made of, by which a reader sees what came after."""
        copy = Path(handoff.copy)
        atomic_write(copy, (head_lines(handoff) + "\n" + text).encode("utf-8", "replace"))
        os.utime(copy, (written, written))

    def text(self, handoff: Handoff) -> str:
        """Return the document without the head lines that `sm` put above it; SmError if it is another's."""
        kept = read_regular(Path(handoff.copy), MAX_COPY_BYTES)[0].decode("utf-8", "replace")
        identity, text = split_head(kept)
        if identity != handoff.id:
            raise error(
                "handoff_mismatch",
                f"The document of handoff {handoff.id} says that it is {identity or 'none'}: {handoff.copy}",
                "sm resume PATH starts from any file",
            )
        return text

    def written(self, handoff: Handoff) -> float:
        return Path(handoff.copy).stat().st_mtime

    def checked(self, handoff: Handoff) -> Handoff:
        """Return the handoff for another session, with which file to read; SmError if its copy is gone or another's."""
        try:
            text = self.text(handoff)
        except OSError as problem:
            message = f"The document of handoff {handoff.id} cannot be read: {problem.strerror}"
            raise error("handoff_gone", message, f"it was at {handoff.copy}") from problem
        return replace(handoff, readable=self._holds(handoff, text))

    def holds(self, handoff: Handoff) -> bool:
        try:
            return self._holds(handoff, self.text(handoff))
        except (SmError, OSError):
            return True  # the copy is unfit: what the agent wrote is all there is

    def _holds(self, handoff: Handoff, text: str) -> bool:
        try:
            return self._source(Path(handoff.path)).text == text
        except (SmError, OSError):
            return False

    def refresh(self, handoff: Handoff, written: str, at: float) -> None:
        own = Path(handoff.path)
        if resolved(Path(handoff.directory) / written) != resolved(own) or not self._is_at_hand(own, handoff.directory):
            return
        try:
            source = self._source(own)
            self._keep(handoff, source.text, source.written(at))
        except (SmError, OSError) as problem:  # the copy is as it was at scheduling
            log.warning("copy of the handoff not refreshed", handoff=handoff.id, problem=type(problem).__name__)

    def write_manifest(self, channel: str, entries: Sequence[StoredHandoff]) -> None:
        write_manifest(self.home.manifest(channel_directory(channel)), channel, entries)

    def set_aside(self, known: Collection[str]) -> None:
        """Move documents without a row in the database out of the way: their handoff was never acknowledged."""
        for path in sorted(self.home.handoffs.glob("*/*.md")):
            if path.stem not in known:
                aside = path.parent / "unknown" / path.name
                make_private(aside.parent)
                path.replace(aside)
                log.warning("document that no handoff is known of; set aside", path=str(path), aside=str(aside))
        for path in self.home.handoffs.glob("*/.tmp-*"):
            path.unlink()

    def foreign(self, directory: str, entries: Sequence[StoredHandoff]) -> tuple[ProjectDocument, ...]:
        """Return documents in the project that no handoff of these is a copy of, or that git tracks."""
        places = [Path(directory) / name for name in FOUND_IN_PROJECT]
        places += tracked_documents(Path(directory))
        return tuple(found for place in places if (found := self._foreign(place, entries)) is not None)

    def prompt(self, directory: str, entries: Sequence[StoredHandoff], since: float) -> ContinuationPrompt | None:
        places = [Path(directory) / name for name in CONTINUATION_PROMPTS]
        return next((found for place in places if (found := self._prompt(place, entries, since)) is not None), None)

    def _prompt(self, place: Path, entries: Sequence[StoredHandoff], since: float) -> ContinuationPrompt | None:
        """Decided by the newest handoff made of it: one that was consumed or cleared is not continued from."""
        try:
            source = self._source(place)
        except (OSError, SmError):
            return None
        copies = (
            entry for entry in entries if entry.handoff.path == str(place) and self._is_copy(entry.handoff, source.text)
        )
        newest = next(copies, None)
        expired = newest is not None and newest.state is HandoffState.EXPIRED
        return ContinuationPrompt(str(place), source.mtime) if expired and source.mtime >= since else None

    def _foreign(self, place: Path, entries: Sequence[StoredHandoff]) -> ProjectDocument | None:
        try:
            source = self._source(place)
        except (OSError, SmError):
            return None
        tracked = is_tracked(place)
        known = any(entry.handoff.path == str(place) and self._is_copy(entry.handoff, source.text) for entry in entries)
        return None if known and not tracked else ProjectDocument(str(place), source.mtime, tracked)

    def _is_copy(self, handoff: Handoff, text: str) -> bool:
        try:
            return self.text(handoff) == text
        except (OSError, SmError):
            return False

    def place_snapshot(self, session: str, at: float) -> str:
        while True:
            path = self.home.snapshot(session, stamp(at))
            make_private(path.parent.parent)
            try:
                path.parent.mkdir(mode=0o700)
            except FileExistsError:
                at += 1.0  # of an earlier context of this second
            else:
                return str(path)

    def keep_snapshot(self, path: str, text: str) -> None:
        atomic_write(Path(path), without_secrets(text, self.is_own_token).encode("utf-8", "replace"))

    def prepare(self, directory: str) -> None:
        try:
            keep_out_of_git(Path(directory))
        except OSError as problem:
            log.warning("exclude file not written", directory=directory, problem=problem.strerror)

    def message_folder(self, session: str) -> Path:
        return self.home.messages / session

    def may_work_in(self, own: str, other: str) -> bool:
        return belongs_to(Path(own), Path(other))

    def message_file(self, session: str, message: str, body: str) -> str:
        path = self.message_folder(session) / f"{message}.md"
        atomic_write(path, body.encode("utf-8", "replace"))
        return str(path)

    def log(self, session: str) -> Path:
        return self.home.log(session)

    def log_kept(self, session: str) -> tuple[Path | None, bool]:
        log = self.home.log(session)
        segments = segments_of(log)
        current = next((segment for segment in segments if segment.current), None)
        return (log if log.exists() else None), current is None or current.start == 0

    def log_end(self, session: str) -> int:
        return end_of(self.home.log(session))
