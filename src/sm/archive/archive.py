"""The archive of all sessions: what there is, what is turned over, indexed and pruned, and what a search finds.

Everything here may take long and is called in threads; `tend` is the one that runs again and again.
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

from sm.archive.redaction.redact import Known
from sm.archive.search.filler import Filler, Look, Part, fill
from sm.archive.search.index import SearchIndex
from sm.archive.search.indexer import Indexer, Pause, Words
from sm.archive.search.query import best_line, terms_of
from sm.archive.terminal.contexts import beginnings, stretches
from sm.archive.terminal.segments import LogSegment, all_pieces, end_of, finished_pieces, pack, pieces_of, turn_over
from sm.core.errors import error
from sm.core.model.history import DAY, Artefact, Hit, Past, Retention, Stretch, expired, to_prune
from sm.paths import Home

log = structlog.get_logger()
SNAPSHOT = re.compile(r"(?P<session>.+)-(?P<stamp>\d{8}-\d{6})")


@dataclass(slots=True)
class Shelf:
    home: Home
    rules: Callable[[], Retention]
    """Asked again and again: the person's configuration may have changed."""
    words: Mapping[str, Words]
    known: Known
    pause: Pause
    filler: Filler | None = None
    """The process that fills the index; without one it is filled here."""
    hashes: Callable[[], list[str]] = list
    """Of our own tokens, for that process."""
    index: SearchIndex = field(init=False)
    indexer: Indexer = field(init=False)
    ends: dict[str, int] = field(default_factory=dict)
    """Where each log ended at the last look. What came since may belong to a context that is just being noted."""
    keys: frozenset[str] = frozenset()
    pruned: float = 0.0
    guard: threading.Lock = field(default_factory=threading.Lock)
    """Held while files are compressed or removed."""

    def __post_init__(self) -> None:
        self.index = SearchIndex(self.home.search)
        self.indexer = Indexer(self.index, self.words, self.known, self.pause)

    # --- again and again --------------------------------------------------------------------------------------------

    def tend(self, pasts: list[Past], now: float) -> None:
        """Turn over and compress what has grown, take in what is new, and prune once a day."""
        pieces = all_pieces(self.home.logs)
        self._turn_over(pasts, pieces)
        if now >= self.pruned + DAY:
            self.pruned = now
            self.prune(pasts, now)
        self._index(pasts, pieces, now)

    def _turn_over(self, pasts: list[Past], found: Mapping[str, list[LogSegment]]) -> None:
        max_log = self.rules().max_log
        for past in pasts:
            path = self.home.log(past.session)
            pieces = found.get(path.name, [])
            with self.guard, suppress(OSError):
                for piece in finished_pieces(pieces, writer_gone=past.ended):
                    pack(piece)
                if pieces and pieces[-1].current and pieces[-1].size >= max_log > 0 and not past.ended:
                    turn_over(path)

    def _index(self, pasts: list[Past], found: Mapping[str, list[LogSegment]], now: float) -> None:
        parts = []
        retention = self.rules()
        for past in sorted(pasts, key=lambda one: (one.ended, -one.last_activity)):
            if expired(past, retention, now):
                continue
            path = self.home.log(past.session)
            pieces = found.get(path.name, [])
            end = pieces[-1].end if pieces else 0
            settled = end if past.ended else min(end, self.ends.get(past.session, 0))
            self.ends[past.session] = end
            parts.append(Part(past, str(path), settled))
        if self.filler is None:
            self.keys = fill(self.indexer, parts, self.keys)
        elif self.filler.offer(Look(parts, self.hashes(), spoilt=self.index.spoilt)):
            self.index.spoilt = False

    # --- what there is ----------------------------------------------------------------------------------------------

    def artefacts(self, past: Past) -> list[Artefact]:
        """Every file of a session's contexts, ours and the client's, in the order of the contexts."""
        snapshots = [one for one in self._snapshots([past]) if one.session == past.session]
        found = [*self._logs(past), *snapshots, *_transcripts(past), *_documents(past)]
        return sorted(found, key=lambda one: (one.contexts[:1], KINDS.index(one.kind), one.at))

    def stretches(self, past: Past) -> list[Stretch]:
        """From where to where each context goes in the log of the session's terminal."""
        path = self.home.log(past.session)
        return stretches(past, beginnings(past, path), end_of(path))

    def _logs(self, past: Past) -> list[Artefact]:
        path = self.home.log(past.session)
        pieces = pieces_of(path)
        spans = stretches(past, beginnings(past, path), pieces[-1].end if pieces else 0)
        found = []
        for piece in pieces:
            numbers = tuple(one.context.number for one in spans if one.start < piece.end and piece.start < one.end)
            found.append(_log_piece(piece, past.session, numbers, newest=piece in pieces[-2:]))
        return found

    def _snapshots(self, pasts: Iterable[Past]) -> list[Artefact]:
        by_session = {past.session: past for past in pasts}
        found = []
        for folder in self.home.archive.glob("*-*"):
            match = SNAPSHOT.fullmatch(folder.name)
            if match is not None:
                past = by_session.get(match["session"])
                numbers = (past.context_at(_time_of(match["stamp"])),) if past is not None else ()
                found += _file("snapshot", match["session"], numbers, folder / "dump.txt")
        return found

    # --- what goes --------------------------------------------------------------------------------------------------

    def prune(self, pasts: list[Past], now: float, *, dry_run: bool = False) -> list[Artefact]:
        """Remove what is too old or too much, and tell what; the index forgets it at the next look."""
        logs = all_pieces(self.home.logs)
        found = [
            _log_piece(piece, name.removesuffix(".log"), (), newest=piece in pieces[-2:])
            for name, pieces in logs.items()
            for piece in pieces
        ]
        gone = to_prune([*found, *self._snapshots(pasts)], pasts, self.rules(), now)
        if dry_run:
            return gone
        with self.guard:
            for artefact in gone:
                _remove(Path(artefact.path))
        if gone:
            log.info("archive pruned", files=len(gone), bytes=sum(one.size for one in gone))
        return gone

    # --- what is found ----------------------------------------------------------------------------------------------

    def search(self, query: str, sessions: tuple[str, ...] | None, limit: int) -> list[Hit]:
        """The newest hits; `sessions` are those to look in, None for all. SmError if there is no word in the query."""
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


def _log_piece(piece: LogSegment, session: str, numbers: tuple[int, ...], *, newest: bool) -> Artefact:
    return Artefact("log", session, numbers, str(piece.path), piece.size, piece.written, newest)


def _file(kind: str, session: str, numbers: tuple[int, ...], path: Path) -> list[Artefact]:
    try:
        status = path.stat()
    except OSError:
        return []
    return [Artefact(kind, session, numbers, str(path), status.st_size, status.st_mtime)]


def _transcripts(past: Past) -> list[Artefact]:
    known = [one for one in past.contexts if one.transcript is not None]
    return [
        file for one in known for file in _file("transcript", past.session, (one.number,), Path(str(one.transcript)))
    ]


def _documents(past: Past) -> list[Artefact]:
    return [
        file
        for one in past.documents
        for file in _file("handoff", past.session, (past.context_of(one.conversation),), Path(one.path))
    ]


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink(missing_ok=True)
    with suppress(OSError):
        if path.name == "dump.txt":
            path.parent.rmdir()
