"""How a JSON-lines transcript is read while its client still writes it.

A record ends at LF and nowhere else. What has no LF yet is looked at, but read again next time. Memory is bounded
whatever the length of the file or of a line. A file that was cut, rewritten or replaced is noticed and read again.
"""

from __future__ import annotations

import json
import os
import stat
from collections import OrderedDict
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar

import msgspec

from sm.core.model.context import ContextReading
from sm.core.values import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

FIRST_LOOK = 32 * 1024
"""Bytes. Most last replies are within them from the end; a search that finds nothing doubles its window up to CHUNK."""
CHUNK = 256 * 1024
MAX_REPLY_BYTES = 2 * 1024 * 1024
"""128k output tokens are about 1 MiB, so a longer line is a tool result or a prompt."""
MAX_RECORD_BYTES = 16 * 1024 * 1024
"""More than this is never held; well above any reply, should limits grow."""
FINGERPRINT = 1024
"""Claude Code ends its lines with some 250 constant bytes (cwd, session, version), so the mark must be longer."""
SCAN_STEP = 8 * 1024 * 1024
MAX_REMEMBERED_REPLIES = 4096
MAX_COUNT = 2**53
"""JSON's largest exact integer; also keeps infinity out."""

Words = tuple[bytes, ...]
Record = TypeVar("Record")


class TranscriptReader:
    """The context of one conversation, read incrementally from the client's file.

    `read` and `scan` may run in two threads, each in one at a time.
    """

    accumulator: ClassVar[type[ReadingAccumulator]]
    words: ClassVar[Words]
    """A line without any of these changes no reading."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problem: str | None = None
        """Why the last `read` could not look at the file, for people."""
        self._cursor: TranscriptCursor | None = None
        self._scan_cursor: TranscriptCursor | None = None
        self._scanned: TranscriptCursor | None = None
        """The cursor of a scan that has come to the end, until the next reading continues with it."""

    def read(self) -> ContextReading:
        try:
            with opened(self.path) as fd:
                reading = self._caught_up(fd).reading(fd)
        except (OSError, ValueError) as error:  # ValueError: a path with NUL
            self._cursor = None
            self.problem = f"transcript unreadable: {getattr(error, 'strerror', None) or error}"
            return ContextReading()
        self.problem = None
        return reading

    def read_whole(self) -> ContextReading:
        """Read with the counts, however long that takes."""
        self.read()  # forgets counts that belong to another file
        while not self.scan():
            pass
        if self._scanned is not None:
            self._cursor, self._scanned = self._scanned, None
        return self.read()

    def scan(self, budget: int = SCAN_STEP) -> bool:
        """Count the next `budget` bytes from the start on; True once there is nothing left to count.

        From then on `read` keeps the counts. They are None again if the file was replaced; then scan again.
        """
        if self._scanned or (self._cursor and self._cursor.counted):
            return True
        try:
            with opened(self.path) as fd:
                return self._counted(fd, budget)
        except (OSError, ValueError):
            self._scan_cursor = None
            return True

    def _caught_up(self, fd: int) -> TranscriptCursor:
        cursor = self._cursor
        if cursor is None or not cursor.mark.holds(fd):
            self._cursor = cursor = self._cold(fd)
        else:
            cursor.advance(fd)
        scanned, self._scanned = self._scanned, None
        if scanned is not None and scanned.mark.holds(fd):
            scanned.advance(fd)
            # A compaction from before the first look is nothing that has happened since.
            scanned.accumulator.boundary = cursor.accumulator.boundary
            self._cursor = cursor = scanned
        return cursor

    def _cold(self, fd: int) -> TranscriptCursor:
        stop = after_last_line(fd)
        accumulator = self.accumulator.from_newest(lambda words: lines_backward(words, fd, 0, stop))
        return TranscriptCursor(accumulator, self.words, Bookmark.at(fd, stop))

    def _counted(self, fd: int, budget: int) -> bool:
        cursor = self._scan_cursor
        if cursor is None or not cursor.mark.holds(fd):
            self._scan_cursor = cursor = TranscriptCursor(self.accumulator(), self.words, Bookmark.at(fd, 0))
        if not cursor.advance(fd, budget):
            return False
        cursor.counted = True
        self._scanned, self._scan_cursor = cursor, None
        return True


def with_window(reading: ContextReading, known: int | None, assumed: int | None) -> ContextReading:
    """Return the reading with the window that is known of its model, else with the assumed one.

    Without any where more was accepted than that: the window is some other (case A15).
    """
    window = known or assumed
    if window is not None and reading.tokens is not None and reading.tokens > window:
        return replace(reading, window=None)
    return replace(reading, window=window, assumed=known is None and window is not None)


class ReadingAccumulator(Protocol):
    """What a provider keeps of the records it has seen, to make a reading of them."""

    boundary: Any
    """The newest compaction, None before the first."""

    @classmethod
    def from_newest(cls, search: Callable[[Words], Iterator[bytes]]) -> Self:
        """Return one good for a reading, from as few lines as possible; `search` gives them newest first."""

    def add(self, line: bytes) -> bool:
        """Take in the next line; False if it is no JSON object."""

    def reading(self) -> ContextReading: ...


@dataclass(slots=True)
class TranscriptCursor:
    """An accumulator, and the place in the file up to which it has taken the lines."""

    accumulator: ReadingAccumulator
    words: Words
    mark: Bookmark
    counted: bool = False
    """True if it began at the start of the file, so that its counts are complete."""
    malformed: int = 0

    def advance(self, fd: int, budget: int | None = None) -> bool:
        """Take in complete lines until about `budget` bytes are done; True if none is left."""
        start = end = self.mark.offset
        for line, end in lines_forward(self.words, fd, start):
            if not self.accumulator.add(line):
                self.malformed += bool(line.strip())
            if budget is not None and end - start >= budget:
                break
        else:
            budget = None
        if end != start:
            self.mark = Bookmark.at(fd, end)
        return budget is None

    def reading(self, fd: int) -> ContextReading:
        reading = self._with_unfinished_line(fd).reading()
        if self.counted:
            return replace(reading, malformed=self.malformed)
        return replace(reading, compactions=None, messages=None, output_tokens=None, malformed=None)

    def _with_unfinished_line(self, fd: int) -> ReadingAccumulator:
        """Include a last line that lacks only its LF: no beginning of a JSON object is a JSON object itself."""
        rest = os.pread(fd, CHUNK, self.mark.offset)
        if len(rest) == CHUNK or b"\n" in rest or not rest.rstrip().endswith(b"}"):
            return self.accumulator
        trial = deepcopy(self.accumulator)
        return trial if trial.add(rest) else self.accumulator


@dataclass(frozen=True, slots=True)
class Bookmark:
    """A place in a file, and what tells that the file up to there is still the one that was read.

    Size and inode are not enough: the client may cut its file and continue, and a freed inode is given out again.
    """

    offset: int
    device: int
    inode: int
    head: bytes
    seam: bytes
    """The bytes right before `offset`."""

    @classmethod
    def at(cls, fd: int, offset: int) -> Bookmark:
        status = os.fstat(fd)
        return cls(offset, status.st_dev, status.st_ino, *_head_and_seam(fd, offset))

    def holds(self, fd: int) -> bool:
        status = os.fstat(fd)
        same = (status.st_dev, status.st_ino) == (self.device, self.inode) and status.st_size >= self.offset
        return same and _head_and_seam(fd, self.offset) == (self.head, self.seam)


def _head_and_seam(fd: int, offset: int) -> tuple[bytes, bytes]:
    length = min(offset, FINGERPRINT)
    return os.pread(fd, length, 0), os.pread(fd, length, offset - length)


@dataclass(slots=True)
class Replies:
    """Distinct replies and what they put out; of several copies of a reply the most complete one counts.

    Claude Code writes one line per content block with the reply's tool results between them at most, so copies are
    close together: only the newest ids are kept, lest memory grow with the file.
    """

    messages: int = 0
    output_tokens: int = 0
    recent: OrderedDict[str | int, int] = field(default_factory=OrderedDict)

    def note(self, key: object, output_tokens: int) -> None:
        """Count a reply; one without a usable key cannot be compared with others and counts as a new one."""
        earlier = None
        if isinstance(key, str | int):
            earlier = self.recent.pop(key, None)
            self.recent[key] = output_tokens = max(output_tokens, earlier or 0)
        self.messages += earlier is None
        self.output_tokens += output_tokens - (earlier or 0)
        if len(self.recent) > MAX_REMEMBERED_REPLIES:
            self.recent.popitem(last=False)


@contextmanager
def opened(path: Path) -> Iterator[int]:
    # Without O_NONBLOCK a FIFO would hold us until somebody writes to it.
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(0, "Not a regular file")
        yield fd
    finally:
        os.close(fd)


def newest_lines(
    path: Path, words: Words, *, start: int = 0, within: int | None = None, longest: int = MAX_RECORD_BYTES
) -> Iterator[bytes]:
    """Lines of a file as from `lines_backward`, of its last `within` bytes; none if it cannot be read."""
    with suppress(OSError, ValueError), opened(path) as fd:  # ValueError: a path with NUL
        stop = after_last_line(fd)
        begin = start if within is None else max(start, stop - within)
        yield from lines_backward(words, fd, begin, stop, longest=longest)


def lines_backward(words: Words, fd: int, start: int, stop: int, *, longest: int = MAX_RECORD_BYTES) -> Iterator[bytes]:
    """Lines that hold one of `words`, newest first; one longer than `longest` comes as b""."""
    while (hit := last_of(words, fd, start, stop)) >= 0:
        begin = max(start, last_of((b"\n",), fd, start, hit) + 1)
        length = _line_end(fd, hit, stop) - begin
        yield os.pread(fd, length, begin) if length <= longest else b""
        stop = begin


def lines_forward(words: Words, fd: int, start: int) -> Iterator[tuple[bytes, int]]:
    """Each complete line from `start` on, with the offset after it; a long one without `words` comes in outline."""
    while window := os.pread(fd, CHUNK, start):
        body, newline, _ = window.rpartition(b"\n")
        if newline:
            for line in body.split(b"\n"):
                start += len(line) + 1
                yield line, start
            if len(window) < CHUNK:
                return  # the end of the file
        elif (end := _line_end(fd, start)) >= 0:
            yield _long_line(words, fd, start, end), end + 1
            start = end + 1
        else:
            return


def after_last_line(fd: int) -> int:
    """Return the offset after the last complete line; only a line still being written may follow."""
    return last_of((b"\n",), fd, 0, os.fstat(fd).st_size) + 1


def last_of(words: Words, fd: int, start: int, stop: int) -> int:
    """Where the last of `words` between `start` and `stop` begins, or -1."""
    overlap = max(map(len, words)) - 1
    look = FIRST_LOOK
    while stop > start:
        begin = max(start, stop - look)
        window = os.pread(fd, stop - begin, begin)
        hit = max(map(window.rfind, words))
        if hit >= 0:
            return begin + hit
        if begin == start:
            break
        stop = begin + overlap
        look = min(2 * look, CHUNK)
    return -1


def _line_end(fd: int, start: int, missing: int = -1) -> int:
    look = FIRST_LOOK
    while window := os.pread(fd, look, start):
        hit = window.find(b"\n")
        if hit >= 0:
            return start + hit
        start += len(window)
        look = min(2 * look, CHUNK)
    return missing


def _long_line(words: Words, fd: int, start: int, end: int) -> bytes:
    """The line if it may matter, else its first and last byte: "{}" is what a whole object leaves."""
    if end - start <= MAX_RECORD_BYTES and last_of(words, fd, start, end) >= 0:
        return os.pread(fd, end - start, start)
    return os.pread(fd, 1, start) + os.pread(fd, 1, end - 1)


def decoded(decoder: msgspec.json.Decoder[Record], line: bytes, shape: Mapping[str, Any]) -> Record | None:
    """The record in `line`, None if that is no JSON object; `shape` names the members that must be objects.

    The typed decoder refuses half surrogate pairs, control characters, numbers out of range and odd members; what it
    refuses is read once more, leniently, so that one of these never hides a reading.
    """
    try:
        return decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        # Lenient decoding takes five times the line's size, which only a possible reply is worth.
        salvage = _salvaged(line if len(line) <= MAX_REPLY_BYTES else line[:1] + line[-1:])
    return None if salvage is None else msgspec.convert(_pruned(salvage, shape), decoder.type)


def _salvaged(line: bytes) -> dict[str, Any] | None:
    # A crash of the machine can leave a run of NULs in front of the next record.
    text = line.decode("utf-8", "replace").strip("\ufeff\0 \t\r")
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _pruned(value: dict[str, Any], shape: Mapping[str, Any]) -> dict[str, Any]:
    for name, inner in shape.items():
        if isinstance(value.get(name), dict):
            _pruned(value[name], inner)
        else:
            value.pop(name, None)
    return value


def count(value: object) -> int:
    """`value` as a number of tokens; whatever is no number counts as 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MAX_COUNT:
        return 0
    return int(value)


def well_formed(text: str) -> str:
    """`text` with U+FFFD for every half of a surrogate pair, so that it can be written as UTF-8."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
