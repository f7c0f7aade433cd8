"""The archive of all sessions: which files there are, when logs are rotated, indexed and pruned, what a search finds.

Each method may take long and is called in a thread; `tend` is called at an interval.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import structlog

from sm.archive.redaction.redact import IsOwnToken
from sm.archive.search.filler import Filler, FillRequest, SessionToIndex, fill
from sm.archive.search.index import SearchIndex
from sm.archive.search.indexer import Indexer, Pause, UtteranceReader
from sm.archive.search.query import best_line, terms_of
from sm.archive.terminal.contexts import context_starts, log_ranges
from sm.archive.terminal.segments import (
    LogSegment,
    all_segments,
    compress,
    end_of,
    finished_segments,
    rotate,
    segments_of,
)
from sm.core.errors import error
from sm.core.model.history import DAY_S, Artefact, Hit, LogRange, Retention, SessionHistory
from sm.core.rules.retention import expired, to_prune
from sm.paths import SmHome

log = structlog.get_logger()
SNAPSHOT_NAME = re.compile(r"(?P<session>.+)-(?P<stamp>\d{8}-\d{6})")


@dataclass(slots=True)
class FileArchive:
    home: SmHome
    rules: Callable[[], Retention]
    """Called each time: the user's configuration may have changed."""
    utterance_readers: Mapping[str, UtteranceReader]
    """By provider."""
    is_own_token: IsOwnToken
    pause: Pause
    filler: Filler | None = None
    """The process that fills the index; without one it is filled here."""
    token_hashes: Callable[[], list[str]] = list
    """Hashes of our own tokens, for that process."""
    index: SearchIndex = field(init=False)
    indexer: Indexer = field(init=False)
    ends: dict[str, int] = field(default_factory=dict)
    """Where each log ended at the last `tend`. What came since may belong to a context that is just being noted."""
    keys: frozenset[str] = frozenset()
    """Of the sources indexed at the last `tend`."""
    pruned: float = 0.0
    """When `tend` last pruned, UTC seconds."""
    guard: threading.Lock = field(default_factory=threading.Lock)
    """Held while files are compressed or removed."""

    def __post_init__(self) -> None:
        self.index = SearchIndex(self.home.search)
        self.indexer = Indexer(self.index, self.utterance_readers, self.is_own_token, self.pause)

    # --- maintenance ------------------------------------------------------------------------------------------------

    def tend(self, histories: list[SessionHistory], now: float) -> None:
        """Rotate and compress logs that have grown, index what is new, and prune once a day."""
        segments = all_segments(self.home.logs)
        self._rotate_logs(histories, segments)
        if now >= self.pruned + DAY_S:
            self.pruned = now
            self.prune(histories, now)
        self._index(histories, segments, now)

    def _rotate_logs(self, histories: list[SessionHistory], found: Mapping[str, list[LogSegment]]) -> None:
        max_log = self.rules().max_log
        for history in histories:
            path = self.home.log(history.session)
            segments = found.get(path.name, [])
            with self.guard, suppress(OSError):
                for segment in finished_segments(segments, writer_gone=history.ended):
                    compress(segment)
                if segments and segments[-1].current and segments[-1].size >= max_log > 0 and not history.ended:
                    rotate(path)

    def _index(self, histories: list[SessionHistory], found: Mapping[str, list[LogSegment]], now: float) -> None:
        sessions = []
        retention = self.rules()
        for history in sorted(histories, key=lambda history: (history.ended, -history.last_activity)):
            if expired(history, retention, now):
                continue
            path = self.home.log(history.session)
            segments = found.get(path.name, [])
            end = segments[-1].end if segments else 0
            settled = end if history.ended else min(end, self.ends.get(history.session, 0))
            self.ends[history.session] = end
            sessions.append(SessionToIndex(history, str(path), settled))
        if self.filler is None:
            self.keys = fill(self.indexer, sessions, self.keys)
        elif self.filler.offer(FillRequest(sessions, self.token_hashes(), damaged=self.index.damaged)):
            self.index.damaged = False

    # --- files ------------------------------------------------------------------------------------------------------

    def artefacts(self, history: SessionHistory) -> list[Artefact]:
        """Return every file of a session's contexts, ours and the client's, in the order of the contexts."""
        snapshots = [snapshot for snapshot in self._snapshots([history]) if snapshot.session == history.session]
        found = [*self._logs(history), *snapshots, *_transcript_artefacts(history), *_document_artefacts(history)]
        return sorted(found, key=lambda artefact: (artefact.contexts[:1], KINDS.index(artefact.kind), artefact.at))

    def log_ranges(self, history: SessionHistory) -> list[LogRange]:
        """Return which part of the log of the session's terminal each context has."""
        path = self.home.log(history.session)
        return log_ranges(history, context_starts(history, path), end_of(path))

    def _logs(self, history: SessionHistory) -> list[Artefact]:
        path = self.home.log(history.session)
        segments = segments_of(path)
        spans = log_ranges(history, context_starts(history, path), segments[-1].end if segments else 0)
        found = []
        for segment in segments:
            numbers = tuple(
                log_range.context.number
                for log_range in spans
                if log_range.start < segment.end and segment.start < log_range.end
            )
            found.append(_log_artefact(segment, history.session, numbers, newest=segment in segments[-2:]))
        return found

    def _snapshots(self, histories: Iterable[SessionHistory]) -> list[Artefact]:
        by_session = {history.session: history for history in histories}
        found = []
        for folder in self.home.archive.glob("*-*"):
            match = SNAPSHOT_NAME.fullmatch(folder.name)
            if match is not None:
                history = by_session.get(match["session"])
                numbers = (history.context_at(_time_of(match["stamp"])),) if history is not None else ()
                found += _file_artefact("snapshot", match["session"], numbers, folder / "dump.txt")
        return found

    # --- pruning ----------------------------------------------------------------------------------------------------

    def prune(self, histories: list[SessionHistory], now: float, *, dry_run: bool = False) -> list[Artefact]:
        """Remove what is too old or too large, and return it; the index drops it at the next `tend`."""
        logs = all_segments(self.home.logs)
        found = [
            _log_artefact(segment, name.removesuffix(".log"), (), newest=segment in segments[-2:])
            for name, segments in logs.items()
            for segment in segments
        ]
        gone = to_prune([*found, *self._snapshots(histories)], histories, self.rules(), now)
        if dry_run:
            return gone
        with self.guard:
            for artefact in gone:
                _remove(Path(artefact.path))
        if gone:
            log.info("archive pruned", files=len(gone), bytes=sum(artefact.size for artefact in gone))
        return gone

    # --- searching --------------------------------------------------------------------------------------------------

    def search(self, query: str, sessions: tuple[str, ...] | None, limit: int) -> list[Hit]:
        """Return the newest hits; `sessions` are those to look in, None for all. SmError if the query has no word."""
        terms = terms_of(query)
        if not terms:
            raise error("bad_request", "The search has no words", 'give words, "a phrase", or begin*')
        hits = []
        for found in self.index.search(terms, sessions, limit):
            shown = best_line(found.text, terms)
            hits.append(Hit(found.at, found.session, found.context, found.kind, found.path, shown.line, shown.marks))
        return hits


def _time_of(stamp: str) -> float:
    return datetime.strptime(stamp, "%Y%m%d-%H%M%S").replace(tzinfo=UTC).timestamp()


KINDS = ("log", "snapshot", "transcript", "handoff")


def _log_artefact(segment: LogSegment, session: str, numbers: tuple[int, ...], *, newest: bool) -> Artefact:
    return Artefact("log", session, numbers, str(segment.path), segment.size, segment.written, newest)


def _file_artefact(kind: str, session: str, numbers: tuple[int, ...], path: Path) -> list[Artefact]:
    try:
        status = path.stat()
    except OSError:
        return []
    return [Artefact(kind, session, numbers, str(path), status.st_size, status.st_mtime)]


def _transcript_artefacts(history: SessionHistory) -> list[Artefact]:
    known = [context for context in history.contexts if context.transcript is not None]
    return [
        file
        for context in known
        for file in _file_artefact("transcript", history.session, (context.number,), Path(str(context.transcript)))
    ]


def _document_artefacts(history: SessionHistory) -> list[Artefact]:
    return [
        file
        for document in history.documents
        for file in _file_artefact(
            "handoff", history.session, (history.context_of(document.conversation),), Path(document.path)
        )
    ]


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink(missing_ok=True)
    with suppress(OSError):
        if path.name == "dump.txt":
            path.parent.rmdir()
