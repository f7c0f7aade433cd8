"""Prints part of a terminal's log, rendered or raw, in a process of its own: `python -m sm.archive.terminal.printer`.

Rendering hundreds of megabytes takes a minute of one core, which the server cannot spare. The request comes on standard
input as JSON, the text goes to standard output as it is made, and memory stays bounded.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import msgspec

from sm.archive.redaction.redact import IsOwnToken
from sm.archive.terminal.contexts import WIPE, ContextStart
from sm.archive.terminal.renderer import rendered
from sm.archive.terminal.segments import read_bytes
from sm.core.ids import token_hash

FIRST_WINDOW_BYTES = 1 << 20
"""The log's end, in which its last lines are searched first."""
NICENESS = 10
MAX_PROCESSES = 2
"""Logs printed at the same time; others wait."""
CHUNK_BYTES = 1 << 16


class PrintRequest(msgspec.Struct, frozen=True):
    log: str
    start: int
    end: int
    paint: int = 0
    """The position from which the screen is to be painted: `start`, or before it."""
    starts: list[ContextStart] = []
    """Where contexts begin."""
    raw: bool = False
    lines: int | None = None
    """How many lines from the end; None for all."""
    token_hashes: list[str] = []
    """Of our own tokens."""


@dataclass(frozen=True, slots=True)
class LogPrinter:
    """Runs a process for each request, MAX_PROCESSES at a time."""

    slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_PROCESSES))

    async def output(self, request: PrintRequest) -> AsyncIterator[bytes]:
        async with self.slots:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-m", "sm.archive.terminal.printer"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                cwd="/",
            )
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(msgspec.json.encode(request))
            process.stdin.close()
            try:
                while chunk := await process.stdout.read(CHUNK_BYTES):
                    yield chunk
            except BaseException:
                process.kill()  # the caller has disconnected
                raise
            finally:
                await process.wait()


def output(request: PrintRequest) -> Iterator[bytes]:
    if request.raw:
        yield from read_bytes(Path(request.log), request.start, request.end)
        return
    hashes = frozenset(request.token_hashes)

    def is_own_token(text: str) -> bool:
        return token_hash(text) in hashes

    lines = (
        _all_lines(request, is_own_token)
        if request.lines is None
        else _last_lines(request, is_own_token, request.lines)
    )
    for line in lines:
        yield f"{line}\n".encode("utf-8", "replace")


def _all_lines(request: PrintRequest, is_own_token: IsOwnToken) -> Iterable[str]:
    chunks = read_bytes(Path(request.log), request.paint, request.end)
    return rendered(chunks, is_own_token, position=request.paint, starts=request.starts, start=request.start)


def _last_lines(request: PrintRequest, is_own_token: IsOwnToken, count: int) -> Iterable[str]:
    """Return the last lines, from as little of the log as gives that many."""
    window = FIRST_WINDOW_BYTES
    while True:
        position = request.end - window
        if position <= request.start:
            return deque(_all_lines(request, is_own_token), count)
        chunks, skipped = _from_a_line_start(read_bytes(Path(request.log), position, request.end))
        found = deque(rendered(chunks, is_own_token, position=position + skipped, starts=request.starts), count)
        if len(found) == count:
            return found
        window *= 8


def _from_a_line_start(chunks: Iterator[bytes]) -> tuple[Iterator[bytes], int]:
    """Skip what is before the first wipe or, without one, before the first line's end."""
    first = next(chunks, b"")
    wipe = WIPE.search(first)
    skipped = wipe.start() if wipe else first.find(b"\n") + 1
    return chain((first[skipped:],), chunks), skipped


def main() -> None:
    os.nice(NICENESS)
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=PrintRequest)
    try:
        for data in output(request):
            sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        os._exit(1)  # the reader has disconnected


if __name__ == "__main__":
    main()
