"""Prints part of a terminal's log, rendered or raw, in a process of its own: `python -m sm.archive.terminal.printer`.

Rendering hundreds of megabytes takes a minute of one core, which the server has for nobody. The order comes on standard
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

from sm.archive.redaction.redact import Known
from sm.archive.terminal.contexts import WIPE
from sm.archive.terminal.renderer import ContextStart, rendered
from sm.archive.terminal.segments import read_bytes
from sm.core.ids import token_hash

FIRST_WINDOW = 1 << 20
"""Bytes of the log's end in which its last lines are looked for first."""
NICE = 10
AT_ONCE = 2
"""Logs that are printed at the same time; others wait."""
CHUNK = 1 << 16


class PrintRequest(msgspec.Struct, frozen=True):
    log: str
    start: int
    end: int
    paint: int = 0
    """From where on the screen is to be painted: `start`, or before it."""
    turns: list[ContextStart] = []
    """Where contexts begin."""
    raw: bool = False
    lines: int | None = None
    """How many from the end; None for all."""
    known: list[str] = []
    """Hashes of our own tokens."""


@dataclass(frozen=True, slots=True)
class Printing:
    """Runs the orders."""

    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    async def printed(self, order: PrintRequest) -> AsyncIterator[bytes]:
        async with self.turns:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-m", "sm.archive.terminal.printer"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                cwd="/",
            )
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(msgspec.json.encode(order))
            process.stdin.close()
            try:
                while chunk := await process.stdout.read(CHUNK):
                    yield chunk
            except BaseException:
                process.kill()  # whoever asked has left
                raise
            finally:
                await process.wait()


def output(order: PrintRequest) -> Iterator[bytes]:
    if order.raw:
        yield from read_bytes(Path(order.log), order.start, order.end)
        return
    hashes = frozenset(order.known)

    def known(text: str) -> bool:
        return token_hash(text) in hashes

    lines = _all_lines(order, known) if order.lines is None else _last_lines(order, known, order.lines)
    for line in lines:
        yield f"{line}\n".encode("utf-8", "replace")


def _all_lines(order: PrintRequest, known: Known) -> Iterable[str]:
    chunks = read_bytes(Path(order.log), order.paint, order.end)
    return rendered(chunks, known, position=order.paint, turns=order.turns, start=order.start)


def _last_lines(order: PrintRequest, known: Known, count: int) -> Iterable[str]:
    """The last lines, from as little of the log as shows so many."""
    window = FIRST_WINDOW
    while True:
        position = order.end - window
        if position <= order.start:
            return deque(_all_lines(order, known), count)
        chunks, skipped = _from_a_beginning(read_bytes(Path(order.log), position, order.end))
        found = deque(rendered(chunks, known, position=position + skipped, turns=order.turns), count)
        if len(found) == count:
            return found
        window *= 8


def _from_a_beginning(chunks: Iterator[bytes]) -> tuple[Iterator[bytes], int]:
    """Leave out what stands before the first wipe or, in a stretch without one, the first line's end."""
    first = next(chunks, b"")
    wipe = WIPE.search(first)
    skipped = wipe.start() if wipe else first.find(b"\n") + 1
    return chain((first[skipped:],), chunks), skipped


def main() -> None:
    os.nice(NICE)
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=PrintRequest)
    try:
        for data in output(order):
            sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        os._exit(1)  # whoever read it has left


if __name__ == "__main__":
    main()
