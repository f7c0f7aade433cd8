"""The terminal log of a session as files: the current segment, and older ones that were rotated.

A position is a byte's number since the session's first start, whatever file holds it now. `S.log` is written;
`S.log.START` was rotated, and its writer may still hold it until the new `S.log` has its first byte;
`S.log.START-END.gz` is compressed. Segments that were pruned leave a gap, and positions stay what they are.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sm.paths import PRIVATE_FILE

CHUNK_BYTES = 1 << 16
GZIP_LEVEL = 6
"""9 takes three times as long for 2 % less of a terminal log."""
_NAME = re.compile(r"(?P<log>.+\.log)\.(?P<start>\d+)(?:-(?P<end>\d+)\.gz)?")


@dataclass(frozen=True, slots=True)
class LogSegment:
    path: Path
    start: int
    end: int
    """Position after its last byte."""
    size: int
    """Bytes on disk."""
    written: float
    """When its last byte was written, UTC seconds."""
    inode: int
    compressed: bool = False
    current: bool = False
    """It is `S.log`, which is written to."""


def all_segments(directory: Path) -> dict[str, list[LogSegment]]:
    """Return the segments of every log by its file name, in the order of their positions; lists the directory once."""
    found: SegmentsByStart = {}
    current: dict[str, os.stat_result] = {}
    with suppress(FileNotFoundError), os.scandir(directory) as entries:
        # The logs first: where one has a byte by now, the segments that are listed later have all of theirs.
        for entry in sorted(entries, key=lambda entry: not entry.name.endswith(".log")):
            with suppress(FileNotFoundError):
                _sort_in(entry, entry.stat(follow_symlinks=False), found, current)
    return {name: _in_order(directory / name, found.get(name, {}), current.get(name)) for name in found | current}


def segments_of(log: Path) -> list[LogSegment]:
    return all_segments(log.parent).get(log.name, [])


SegmentsByStart = dict[str, dict[int, LogSegment]]
"""The segments that were rotated, by log and start."""


def _sort_in(
    entry: os.DirEntry[str], status: os.stat_result, found: SegmentsByStart, current: dict[str, os.stat_result]
) -> None:
    match = _NAME.fullmatch(entry.name)
    if match is None:
        if entry.name.endswith(".log"):
            current[entry.name] = status
        return
    start = int(match["start"])
    end = int(match["end"]) if match["end"] else start + status.st_size
    compressed = bool(match["end"])
    segment = LogSegment(Path(entry.path), start, end, status.st_size, status.st_mtime, status.st_ino, compressed)
    known = found.setdefault(match["log"], {})
    if start not in known or segment.compressed:  # for a moment there are both
        known[start] = segment


def _in_order(log: Path, found: dict[int, LogSegment], current: os.stat_result | None) -> list[LogSegment]:
    segments = [found[start] for start in sorted(found)]
    if current is None:
        return segments
    if segments and not segments[-1].compressed and _same_file(segments[-1].path, current):
        segments.pop()  # a rotation that was interrupted
    start = segments[-1].end if segments else 0
    size = current.st_size
    return [*segments, LogSegment(log, start, start + size, size, current.st_mtime, current.st_ino, current=True)]


def _same_file(path: Path, status: os.stat_result) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(path.stat(), status)
    return False


def end_of(log: Path) -> int:
    """Return the position after the log's last byte."""
    segments = segments_of(log)
    return segments[-1].end if segments else 0


def rotate(log: Path) -> None:
    """Start the log again; what it holds becomes a segment. Its writer follows when it next opens the file."""
    segments = segments_of(log)
    if not segments or not segments[-1].current or not segments[-1].size:
        return
    segment = log.with_name(f"{log.name}.{segments[-1].start:015}")
    with suppress(FileExistsError):  # left by a rotation that was interrupted: the same file
        segment.hardlink_to(log)
    fresh = log.with_name(f".tmp-{log.name}")
    os.close(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, PRIVATE_FILE))
    fresh.replace(log)


def finished_segments(segments: list[LogSegment], *, writer_gone: bool) -> list[LogSegment]:
    """Return the segments that are not written to any more and still to be compressed."""
    followed = writer_gone or (bool(segments) and segments[-1].current and segments[-1].size > 0)
    plain = [segment for segment in segments if not (segment.compressed or segment.current)]
    return plain if followed else plain[:-1]


def compress(segment: LogSegment) -> None:
    """Compress a segment that is not written to any more; whole or not at all."""
    log = segment.path.name.rpartition(".")[0]
    compressed = segment.path.with_name(f"{log}.{segment.start:015}-{segment.end}.gz")
    temporary = segment.path.with_name(f".tmp-{compressed.name}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, PRIVATE_FILE)
    try:
        with open(descriptor, "wb") as raw:  # noqa: PTH123  # a descriptor, no path
            with segment.path.open("rb") as source, gzip.GzipFile("", "wb", GZIP_LEVEL, raw, mtime=0) as target:
                shutil.copyfileobj(source, target, CHUNK_BYTES)
            raw.flush()
            os.fsync(raw.fileno())
        status = segment.path.stat()
        os.utime(temporary, (status.st_atime, status.st_mtime))
        temporary.replace(compressed)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    segment.path.unlink(missing_ok=True)


def read_bytes(log: Path, start: int, end: int) -> Iterator[bytes]:
    """Return the log's bytes between two positions, in chunks; what was pruned is left out."""
    before: LogSegment | None = None
    while start < end:
        segment = next((segment for segment in segments_of(log) if segment.end > start), None)
        if segment is None or segment.start >= end or segment == before:
            return
        before, start = segment, max(start, segment.start)
        with suppress(FileNotFoundError):  # rotated, compressed or pruned since: looked up again
            for chunk in _read_segment(segment, start, min(end, segment.end)):
                start += len(chunk)
                yield chunk


def _read_segment(segment: LogSegment, start: int, end: int) -> Iterator[bytes]:
    with gzip.open(segment.path, "rb") if segment.compressed else segment.path.open("rb") as file:
        if os.fstat(file.fileno()).st_ino != segment.inode:
            raise FileNotFoundError(segment.path)
        file.seek(start - segment.start)
        while start < end and (chunk := file.read(min(CHUNK_BYTES, end - start))):
            start += len(chunk)
            yield chunk
