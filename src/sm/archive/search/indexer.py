"""Fills the index behind everything else: a little at a time, with a pause after each, so that no hook waits for it.

What a terminal shows is rendered from a context's start on. The rendering is kept in memory while the context grows;
after a restart it is made anew, and the lines that the index already has are passed over.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from sm.archive.redaction.redact import Known, redacted
from sm.archive.search.index import IndexedText, IndexProgress, Passage, SearchIndex, passages_of
from sm.archive.terminal.contexts import Beginning, Times, beginnings, contexts_of, stretches
from sm.archive.terminal.renderer import Rendering
from sm.archive.terminal.segments import LogSegment, read_bytes
from sm.core.model.history import Document, Past, Stretch
from sm.core.ports.provider import Utterance
from sm.files import open_regular, read_regular

Words = Callable[[bytes], Utterance | None]
Pause = Callable[[], bool]
"""Rests; False if the work is to end."""
SLICE = 1 << 12
"""Bytes of a terminal that are rendered between two pauses: they take about half a millisecond."""
ENOUGH = 64
"""Passages after which what was read is written down."""
CHUNK = 1 << 16
LONGEST_RECORD = 4 << 20
"""A longer line of a transcript is an image or the like."""
MARKED = 64
"""Bytes before the place reached by which a transcript is recognised."""


@dataclass(slots=True)
class Stream:
    """A terminal whose rendering is under way."""

    rendering: Rendering
    start: int
    position: int
    """Before `start` the screen is painted on which the context begins."""
    skip: int = 0
    """Lines that the index already has."""
    lines: int = 0

    def feed(self, data: bytes) -> list[str]:
        """The lines that are new to the index."""
        lines = self.rendering.feed(data)
        self.position += len(data)
        if self.position < self.start:
            return []
        if self.position == self.start:
            self.rendering.turn(wiped=False)
            return []
        return self.news(lines)

    def news(self, lines: list[str]) -> list[str]:
        known = max(0, min(len(lines), self.skip - self.lines))
        self.lines += len(lines)
        return lines[known:]


@dataclass(frozen=True, slots=True)
class IndexTask:
    """A source, what it looks like now, and how to take in what is new of it."""

    source: IndexedText
    look: object
    run: Callable[[], bool]
    """True if all of it is taken in."""


@dataclass(slots=True)
class Indexer:
    index: SearchIndex
    words: Mapping[str, Words]
    """By provider: what the records of its transcripts say."""
    known: Known
    pause: Pause
    streams: dict[str, Stream] = field(default_factory=dict)
    done: dict[str, object] = field(default_factory=dict)
    """What each source looked like when all of it was taken in."""
    starts: dict[str, tuple[int, tuple[Beginning, ...]]] = field(default_factory=dict)
    """By session: how many contexts it had, and where they begin in its log."""
    life: int = 0
    """Of the index, as it was at the last look."""
    skipped: frozenset[str] = frozenset()
    """Keys of sources that are left out."""
    entered: Callable[[str], None] = lambda _: None
    """Gets the key of each source before it is taken in."""

    def renew(self) -> None:
        """Begin from nothing if the index does."""
        life = self.index.life()
        if life != self.life:
            self.life = life
            self.streams.clear()
            self.done.clear()

    def step(self, past: Past, log: Path, pieces: list[LogSegment], settled: int) -> set[str]:
        """Take in what is new of a session, of its terminal up to the position `settled`; the keys of its sources."""
        keys = set()
        for work in (*self._terminals(past, log, pieces, settled), *self._transcripts(past), *_documents(self, past)):
            keys.add(work.source.key)
            if work.source.key in self.skipped or self.done.get(work.source.key) == work.look:
                continue
            self.entered(work.source.key)
            if work.run():
                self.done[work.source.key] = work.look
        return keys

    def drop_others(self, keys: Iterable[str]) -> None:
        """Forget what the index has of sources that are none of these."""
        wanted = set(keys)
        for source in self.index.sources():
            if source.key not in wanted:
                self._forget(source)

    def _forget(self, source: IndexedText) -> None:
        self.index.forget(source)
        self.streams.pop(source.key, None)
        self.done.pop(source.key, None)

    # --- terminals --------------------------------------------------------------------------------------------------

    def _terminals(self, past: Past, log: Path, pieces: list[LogSegment], settled: int) -> Iterator[IndexTask]:
        if not pieces:
            return
        first = pieces[0].start
        for stretch in stretches(past, self._starts(past, log), settled):
            start = max(stretch.start, first)
            if start < stretch.end:
                source = IndexedText("terminal", past.session, stretch.context.number, str(log))
                final = stretch.closed or past.ended
                run = partial(self._terminal, source, stretch, start, pieces, final=final)
                yield IndexTask(source, (start, stretch.end, final), run)

    def _starts(self, past: Past, log: Path) -> tuple[Beginning, ...]:
        count = len(contexts_of(past))
        if self.starts.get(past.session, (0,))[0] != count:
            self.starts[past.session] = (count, beginnings(past, log))
        return self.starts[past.session][1]

    def _terminal(
        self, source: IndexedText, stretch: Stretch, start: int, pieces: list[LogSegment], *, final: bool
    ) -> bool:
        finished = f"{start}-{stretch.end}" if final else ""
        stream = self.streams.get(source.key)
        if stream is None or stream.start != start:
            if finished and self.index.place(source).mark == finished:
                return True
            stream = self._taken_up(source, start, min(start, max(stretch.paint, pieces[0].start)))
        times = Times(stretch, pieces)
        kept: list[Passage] = []
        for data in _stretch_bytes(source, stream, stretch):
            lines = stream.feed(data)
            kept += [Passage(times.at(stream.position), text) for text in passages_of(lines)]
            if len(kept) >= ENOUGH:
                self._note(source, stream, str(start), kept)
                kept = []
            if not self.pause():
                self._note(source, stream, str(start), kept)
                return False
        if final:
            lines = stream.news(stream.rendering.end())
            kept += [Passage(times.at(stretch.end), text) for text in passages_of(lines)]
        self._note(source, stream, finished or str(start), kept)
        if final:
            self.streams.pop(source.key, None)
        return True

    def _taken_up(self, source: IndexedText, start: int, paint: int) -> Stream:
        """A rendering from the start on. What was pruned since is forgotten: its lines cannot be counted any more."""
        place = self.index.place(source)
        if place.cursor and place.mark.partition("-")[0] != str(start):
            self._forget(source)
            place = IndexProgress()
        stream = Stream(Rendering(self.known), start, paint, place.cursor)
        self.streams[source.key] = stream
        return stream

    def _note(self, source: IndexedText, stream: Stream, mark: str, passages: list[Passage]) -> None:
        """Write down what was read; without passages only that a terminal is finished."""
        if passages or "-" in mark:
            self.index.add(source, passages, IndexProgress(max(stream.lines, stream.skip), mark))

    # --- transcripts ------------------------------------------------------------------------------------------------

    def _transcripts(self, past: Past) -> Iterator[IndexTask]:
        words = self.words.get(past.provider)
        taken: set[str] = set()
        for context in past.contexts:
            path = context.transcript
            if words is None or path is None or path in taken:
                continue
            taken.add(path)
            source = IndexedText("transcript", past.session, context.number, path)
            look = _look(Path(path))
            run = partial(self._transcript, source, words, context.started) if look else lambda: True
            yield IndexTask(source, look, run)

    def _transcript(self, source: IndexedText, words: Words, started: float) -> bool:
        path = Path(source.path)
        place = self.index.place(source)
        if place.cursor and place.mark != _mark(path, place.cursor):
            self._forget(source)
            place = IndexProgress()
        kept: list[Passage] = []
        at, cursor, complete = started, place.cursor, True
        for line, cursor in _records(path, place.cursor):
            said = words(line)
            if said is not None:
                at = said.at or at
                kept += [Passage(at, text) for text in passages_of(redacted(said.text, self.known).split("\n"))]
            complete = self.pause() if said is not None else True
            if len(kept) >= ENOUGH or not complete:
                self.index.add(source, kept, IndexProgress(cursor, _mark(path, cursor)))
                kept = []
            if not complete:
                return False
        if cursor != place.cursor:
            self.index.add(source, kept, IndexProgress(cursor, _mark(path, cursor)))
        return True

    # --- documents --------------------------------------------------------------------------------------------------

    def document(self, source: IndexedText, document: Document) -> bool:
        path = Path(document.path)
        mark = str(_look(path))
        if self.index.place(source).mark != mark:
            self._forget(source)
            try:
                content = read_regular(path, LONGEST_RECORD)[0]
            except OSError:
                return True  # until it looks different
            text = redacted(content.decode("utf-8", "replace"), self.known)
            kept = [Passage(document.created, one) for one in passages_of(text.split("\n"))]
            self.index.add(source, kept, IndexProgress(1, mark))
        return True


def _documents(indexer: Indexer, past: Past) -> Iterator[IndexTask]:
    for document in past.documents:
        look = _look(Path(document.path))
        if look is not None:
            number = past.context_of(document.conversation)
            source = IndexedText("handoff", past.session, number, document.path, document.id)
            yield IndexTask(source, look, partial(indexer.document, source, document))


def _stretch_bytes(source: IndexedText, stream: Stream, stretch: Stretch) -> Iterator[bytes]:
    """What is still to be rendered, in slices that do not go over the context's start."""
    path = Path(source.path)
    if stream.position < stream.start:
        yield from _sliced(read_bytes(path, stream.position, stream.start))
    yield from _sliced(read_bytes(path, stream.position, stretch.end))


def _sliced(chunks: Iterable[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        yield from (chunk[start : start + SLICE] for start in range(0, len(chunk), SLICE))


def _look(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_ino, found.st_size, found.st_mtime_ns)


def _mark(path: Path, cursor: int) -> str:
    """What stands before the place reached; of a file that was cut or replaced it is something else."""
    try:
        with open_regular(path) as file:
            file.seek(max(0, cursor - MARKED))
            return hashlib.sha256(file.read(min(MARKED, cursor))).hexdigest()
    except OSError:
        return ""


def _records(path: Path, cursor: int) -> Iterator[tuple[bytes, int]]:
    """Complete lines from a place on, and the place after each; one that is too long is empty."""
    held, skipped = b"", 0
    try:
        with open_regular(path) as file:
            file.seek(cursor)
            while chunk := file.read(CHUNK):
                *lines, held = (held + chunk).split(b"\n")
                for line in lines:
                    cursor += skipped + len(line) + 1
                    yield (b"" if skipped else line), cursor
                    skipped = 0
                if len(held) > LONGEST_RECORD:
                    held, skipped = b"", skipped + len(held)
    except OSError:
        return
