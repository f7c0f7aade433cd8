"""What is new in terminals, transcripts and documents, and how it comes into the index: a little at a time, with a
pause after each. It runs in the process of `filler.py`.

A terminal's log is rendered from a context's start on. The rendering is kept in memory while the context grows; after a
restart it is made again, and the lines that the index already has are skipped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from sm.archive.redaction.redact import IsOwnToken, redacted
from sm.archive.search.index import IndexedText, IndexProgress, Passage, SearchIndex, passages_of
from sm.archive.terminal.contexts import ContextStart, LogTimes, context_starts, contexts_of, log_ranges
from sm.archive.terminal.renderer import Renderer
from sm.archive.terminal.segments import LogSegment, read_bytes
from sm.core.model.history import Document, LogRange, SessionHistory
from sm.core.ports.provider import Utterance
from sm.files import open_regular, read_regular

UtteranceReader = Callable[[bytes], Utterance | None]
"""Reads a record of a transcript."""
Pause = Callable[[], bool]
"""Rests; False if the work is to stop."""
SLICE_BYTES = 1 << 12
"""Of a terminal's log, rendered between two pauses: about half a millisecond."""
BATCH_PASSAGES = 64
"""Passages after which what was read is written to the index."""
CHUNK_BYTES = 1 << 16
MAX_RECORD_BYTES = 4 << 20
"""A longer line of a transcript is an image or similar."""
MARK_BYTES = 64
"""Bytes before the position reached, by which a transcript is recognised."""


@dataclass(slots=True)
class TerminalStream:
    """A terminal's log whose rendering continues as it grows."""

    rendering: Renderer
    start: int
    position: int
    """How far it is rendered. What comes before `start` only paints the screen on which the context begins."""
    indexed_lines: int = 0
    """How many lines the index already has."""
    lines: int = 0
    """How many were rendered."""

    def feed(self, data: bytes) -> list[str]:
        """Render; return the lines that are new to the index."""
        lines = self.rendering.feed(data)
        self.position += len(data)
        if self.position < self.start:
            return []
        if self.position == self.start:
            self.rendering.start_context(wiped=False)
            return []
        return self.new_lines(lines)

    def new_lines(self, lines: list[str]) -> list[str]:
        known = max(0, min(len(lines), self.indexed_lines - self.lines))
        self.lines += len(lines)
        return lines[known:]


@dataclass(frozen=True, slots=True)
class IndexTask:
    """A source, its fingerprint now, and how to index what is new of it."""

    source: IndexedText
    fingerprint: object
    run: Callable[[], bool]
    """True if all of it is indexed."""


@dataclass(slots=True)
class Indexer:
    index: SearchIndex
    utterance_readers: Mapping[str, UtteranceReader]
    """By provider."""
    is_own_token: IsOwnToken
    pause: Pause
    streams: dict[str, TerminalStream] = field(default_factory=dict)
    done: dict[str, object] = field(default_factory=dict)
    """The fingerprint of each source when all of it was indexed."""
    starts: dict[str, tuple[int, tuple[ContextStart, ...]]] = field(default_factory=dict)
    """By session: how many contexts it had, and where they begin in its log."""
    generation: int = 0
    """The index's generation at the last run."""
    skipped: frozenset[str] = frozenset()
    """Keys of sources that are left out."""
    on_start: Callable[[str], None] = lambda _: None
    """Called with the key of each source before it is indexed."""

    def reset_if_lost(self) -> None:
        """Start from nothing if the index was lost."""
        generation = self.index.generation()
        if generation != self.generation:
            self.generation = generation
            self.streams.clear()
            self.done.clear()

    def index_session(self, history: SessionHistory, log: Path, segments: list[LogSegment], settled: int) -> set[str]:
        """Index what is new of a session, of its log up to the position `settled`; return the keys of its sources."""
        keys = set()
        for task in (
            *self._terminal_tasks(history, log, segments, settled),
            *self._transcript_tasks(history),
            *_document_tasks(self, history),
        ):
            keys.add(task.source.key)
            if task.source.key in self.skipped or self.done.get(task.source.key) == task.fingerprint:
                continue
            self.on_start(task.source.key)
            if task.run():
                self.done[task.source.key] = task.fingerprint
        return keys

    def drop_others(self, keys: Iterable[str]) -> None:
        """Remove sources other than these from the index."""
        wanted = set(keys)
        for source in self.index.sources():
            if source.key not in wanted:
                self._forget(source)

    def _forget(self, source: IndexedText) -> None:
        self.index.forget(source)
        self.streams.pop(source.key, None)
        self.done.pop(source.key, None)

    # --- terminals --------------------------------------------------------------------------------------------------

    def _terminal_tasks(
        self, history: SessionHistory, log: Path, segments: list[LogSegment], settled: int
    ) -> Iterator[IndexTask]:
        if not segments:
            return
        first = segments[0].start
        for log_range in log_ranges(history, self._starts(history, log), settled):
            start = max(log_range.start, first)
            if start < log_range.end:
                source = IndexedText("terminal", history.session, log_range.context.number, str(log))
                final = log_range.closed or history.ended
                run = partial(self._index_terminal, source, log_range, start, segments, final=final)
                yield IndexTask(source, (start, log_range.end, final), run)

    def _starts(self, history: SessionHistory, log: Path) -> tuple[ContextStart, ...]:
        count = len(contexts_of(history))
        if self.starts.get(history.session, (0,))[0] != count:
            self.starts[history.session] = (count, context_starts(history, log))
        return self.starts[history.session][1]

    def _index_terminal(
        self, source: IndexedText, log_range: LogRange, start: int, segments: list[LogSegment], *, final: bool
    ) -> bool:
        finished = f"{start}-{log_range.end}" if final else ""
        stream = self.streams.get(source.key)
        if stream is None or stream.start != start:
            if finished and self.index.progress(source).mark == finished:
                return True
            stream = self._resumed_stream(source, start, min(start, max(log_range.paint, segments[0].start)))
        times = LogTimes(log_range, segments)
        kept: list[Passage] = []
        for data in _bytes_to_render(source, stream, log_range):
            lines = stream.feed(data)
            kept += [Passage(times.at(stream.position), text) for text in passages_of(lines)]
            if len(kept) >= BATCH_PASSAGES:
                self._save(source, stream, str(start), kept)
                kept = []
            if not self.pause():
                self._save(source, stream, str(start), kept)
                return False
        if final:
            lines = stream.new_lines(stream.rendering.end())
            kept += [Passage(times.at(log_range.end), text) for text in passages_of(lines)]
        self._save(source, stream, finished or str(start), kept)
        if final:
            self.streams.pop(source.key, None)
        return True

    def _resumed_stream(self, source: IndexedText, start: int, paint: int) -> TerminalStream:
        """Return a rendering from the start on; if another start was indexed before, it begins again."""
        progress = self.index.progress(source)
        if progress.cursor and progress.mark.partition("-")[0] != str(start):
            self._forget(source)
            progress = IndexProgress()
        stream = TerminalStream(Renderer(self.is_own_token), start, paint, progress.cursor)
        self.streams[source.key] = stream
        return stream

    def _save(self, source: IndexedText, stream: TerminalStream, mark: str, passages: list[Passage]) -> None:
        """Write passages to the index; without any, only that a terminal is finished."""
        if passages or "-" in mark:
            self.index.add(source, passages, IndexProgress(max(stream.lines, stream.indexed_lines), mark))

    # --- transcripts ------------------------------------------------------------------------------------------------

    def _transcript_tasks(self, history: SessionHistory) -> Iterator[IndexTask]:
        seen: set[str] = set()
        for context in history.contexts:
            path, read_utterance = context.transcript, self.utterance_readers.get(context.provider or history.provider)
            if read_utterance is None or path is None or path in seen:
                continue
            seen.add(path)
            source = IndexedText("transcript", history.session, context.number, path)
            fingerprint = _fingerprint(Path(path))
            run = (
                partial(self._index_transcript, source, read_utterance, context.started)
                if fingerprint
                else lambda: True
            )
            yield IndexTask(source, fingerprint, run)

    def _index_transcript(self, source: IndexedText, read_utterance: UtteranceReader, started: float) -> bool:
        path = Path(source.path)
        progress = self.index.progress(source)
        if progress.cursor and progress.mark != _mark(path, progress.cursor):
            self._forget(source)
            progress = IndexProgress()
        kept: list[Passage] = []
        at, cursor, complete = started, progress.cursor, True
        for line, cursor in _records(path, progress.cursor):
            utterance = read_utterance(line)
            if utterance is not None:
                at = utterance.at or at
                kept += [
                    Passage(at, text) for text in passages_of(redacted(utterance.text, self.is_own_token).split("\n"))
                ]
            complete = self.pause() if utterance is not None else True
            if len(kept) >= BATCH_PASSAGES or not complete:
                self.index.add(source, kept, IndexProgress(cursor, _mark(path, cursor)))
                kept = []
            if not complete:
                return False
        if cursor != progress.cursor:
            self.index.add(source, kept, IndexProgress(cursor, _mark(path, cursor)))
        return True

    # --- documents --------------------------------------------------------------------------------------------------

    def index_document(self, source: IndexedText, document: Document) -> bool:
        path = Path(document.path)
        mark = str(_fingerprint(path))
        if self.index.progress(source).mark != mark:
            self._forget(source)
            try:
                content = read_regular(path, MAX_RECORD_BYTES)[0]
            except OSError:
                return True  # until its fingerprint changes
            text = redacted(content.decode("utf-8", "replace"), self.is_own_token)
            kept = [Passage(document.created, passage) for passage in passages_of(text.split("\n"))]
            self.index.add(source, kept, IndexProgress(1, mark))
        return True


def _document_tasks(indexer: Indexer, history: SessionHistory) -> Iterator[IndexTask]:
    for document in history.documents:
        fingerprint = _fingerprint(Path(document.path))
        if fingerprint is not None:
            number = history.context_of(document.conversation)
            source = IndexedText("handoff", history.session, number, document.path, document.id)
            yield IndexTask(source, fingerprint, partial(indexer.index_document, source, document))


def _bytes_to_render(source: IndexedText, stream: TerminalStream, log_range: LogRange) -> Iterator[bytes]:
    """Return what is still to be rendered, in slices that end at the context's start."""
    path = Path(source.path)
    if stream.position < stream.start:
        yield from _sliced(read_bytes(path, stream.position, stream.start))
    yield from _sliced(read_bytes(path, stream.position, log_range.end))


def _sliced(chunks: Iterable[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        yield from (chunk[start : start + SLICE_BYTES] for start in range(0, len(chunk), SLICE_BYTES))


def _fingerprint(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_ino, found.st_size, found.st_mtime_ns)


def _mark(path: Path, cursor: int) -> str:
    """Return a hash of what is before the position reached: a file that was cut or replaced has another."""
    try:
        with open_regular(path) as file:
            file.seek(max(0, cursor - MARK_BYTES))
            return hashlib.sha256(file.read(min(MARK_BYTES, cursor))).hexdigest()
    except OSError:
        return ""


def _records(path: Path, cursor: int) -> Iterator[tuple[bytes, int]]:
    """Return complete lines from a position on, and the position after each; one that is too long is empty."""
    held, skipped = b"", 0
    try:
        with open_regular(path) as file:
            file.seek(cursor)
            while chunk := file.read(CHUNK_BYTES):
                *lines, held = (held + chunk).split(b"\n")
                for line in lines:
                    cursor += skipped + len(line) + 1
                    yield (b"" if skipped else line), cursor
                    skipped = 0
                if len(held) > MAX_RECORD_BYTES:
                    held, skipped = b"", skipped + len(held)
    except OSError:
        return
