"""The terminal log of a session as files: the one that is written, and the older pieces that were turned over.

A position is a byte's number since the session's first start, whatever file holds it now. `S.log` is written;
`S.log.START` was turned over, and its writer may still hold it until the new `S.log` has its first byte;
`S.log.START-END.gz` is compressed. Pieces that were pruned leave a gap, and positions stay what they are.
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

CHUNK = 1 << 16
LEVEL = 6
"""Of gzip: 9 takes thrice as long for 2 % less of a terminal log."""
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
    """When its last byte came, UTC seconds."""
    inode: int
    packed: bool = False
    current: bool = False


def all_pieces(directory: Path) -> dict[str, list[LogSegment]]:
    """Every log's pieces by its file name, in the order of their positions; one look at the directory."""
    found: Found = {}
    current: dict[str, os.stat_result] = {}
    with suppress(FileNotFoundError), os.scandir(directory) as entries:
        # The logs first: where one has a byte by now, the pieces that are looked at later have all of theirs.
        for entry in sorted(entries, key=lambda entry: not entry.name.endswith(".log")):
            with suppress(FileNotFoundError):
                _sort_in(entry, entry.stat(follow_symlinks=False), found, current)
    return {name: _in_order(directory / name, found.get(name, {}), current.get(name)) for name in found | current}


def pieces_of(log: Path) -> list[LogSegment]:
    return all_pieces(log.parent).get(log.name, [])


Found = dict[str, dict[int, LogSegment]]
"""The pieces that were turned over, by log and start."""


def _sort_in(entry: os.DirEntry[str], status: os.stat_result, found: Found, current: dict[str, os.stat_result]) -> None:
    match = _NAME.fullmatch(entry.name)
    if match is None:
        if entry.name.endswith(".log"):
            current[entry.name] = status
        return
    start = int(match["start"])
    end = int(match["end"]) if match["end"] else start + status.st_size
    packed = bool(match["end"])
    piece = LogSegment(Path(entry.path), start, end, status.st_size, status.st_mtime, status.st_ino, packed)
    known = found.setdefault(match["log"], {})
    if start not in known or piece.packed:  # for a moment there are both
        known[start] = piece


def _in_order(log: Path, found: dict[int, LogSegment], current: os.stat_result | None) -> list[LogSegment]:
    pieces = [found[start] for start in sorted(found)]
    if current is None:
        return pieces
    if pieces and not pieces[-1].packed and _same_file(pieces[-1].path, current):
        pieces.pop()  # a turning that was interrupted
    start = pieces[-1].end if pieces else 0
    size = current.st_size
    return [*pieces, LogSegment(log, start, start + size, size, current.st_mtime, current.st_ino, current=True)]


def _same_file(path: Path, status: os.stat_result) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(path.stat(), status)
    return False


def end_of(log: Path) -> int:
    """The position after the log's last byte."""
    pieces = pieces_of(log)
    return pieces[-1].end if pieces else 0


def turn_over(log: Path) -> None:
    """Begin the log anew; what it holds becomes a piece. Its writer follows at its next opening of the file."""
    pieces = pieces_of(log)
    if not pieces or not pieces[-1].current or not pieces[-1].size:
        return
    piece = log.with_name(f"{log.name}.{pieces[-1].start:015}")
    with suppress(FileExistsError):  # left by a turning that was interrupted: the same file
        piece.hardlink_to(log)
    fresh = log.with_name(f".tmp-{log.name}")
    os.close(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, PRIVATE_FILE))
    fresh.replace(log)


def finished_pieces(pieces: list[LogSegment], *, writer_gone: bool) -> list[LogSegment]:
    """Those nobody writes to any more and that are still to be compressed."""
    followed = writer_gone or (bool(pieces) and pieces[-1].current and pieces[-1].size > 0)
    plain = [piece for piece in pieces if not (piece.packed or piece.current)]
    return plain if followed else plain[:-1]


def pack(piece: LogSegment) -> None:
    """Compress a piece that nobody writes to any more; whole or not at all."""
    log = piece.path.name.rpartition(".")[0]
    packed = piece.path.with_name(f"{log}.{piece.start:015}-{piece.end}.gz")
    temporary = piece.path.with_name(f".tmp-{packed.name}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, PRIVATE_FILE)
    try:
        with open(descriptor, "wb") as raw:  # noqa: PTH123  # a descriptor, no path
            with piece.path.open("rb") as source, gzip.GzipFile("", "wb", LEVEL, raw, mtime=0) as target:
                shutil.copyfileobj(source, target, CHUNK)
            raw.flush()
            os.fsync(raw.fileno())
        status = piece.path.stat()
        os.utime(temporary, (status.st_atime, status.st_mtime))
        temporary.replace(packed)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    piece.path.unlink(missing_ok=True)


def read_bytes(log: Path, start: int, end: int) -> Iterator[bytes]:
    """The log's bytes between two positions, piece by piece; what was pruned is left out."""
    before: LogSegment | None = None
    while start < end:
        piece = next((one for one in pieces_of(log) if one.end > start), None)
        if piece is None or piece.start >= end or piece == before:
            return
        before, start = piece, max(start, piece.start)
        with suppress(FileNotFoundError):  # turned over, compressed or pruned since: looked up again
            for chunk in _read_piece(piece, start, min(end, piece.end)):
                start += len(chunk)
                yield chunk


def _read_piece(piece: LogSegment, start: int, end: int) -> Iterator[bytes]:
    with gzip.open(piece.path, "rb") if piece.packed else piece.path.open("rb") as file:
        if os.fstat(file.fileno()).st_ino != piece.inode:
            raise FileNotFoundError(piece.path)
        file.seek(start - piece.start)
        while start < end and (chunk := file.read(min(CHUNK, end - start))):
            start += len(chunk)
            yield chunk
