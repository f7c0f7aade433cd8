"""Fills the search index in a process of its own: `python -m sm.archive.search.filler`.

Text of any size and kind is cut, redacted and indexed there, so that nothing of it holds up the server. The server
tells it at each look what there is, and never waits for it. It ends when its standard input does, as with a server
that was killed. If it dies or hangs it is started again; a source that has ended it some times is left out then.
"""

from __future__ import annotations

import importlib
import os
import queue
import resource
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import structlog

from sm.archive.pacing import Rests
from sm.archive.search.index import SearchIndex
from sm.archive.search.indexer import Indexer, Words
from sm.archive.terminal.segments import pieces_of
from sm.core.ids import token_hash
from sm.core.model.history import Past

log = structlog.get_logger()
NICE = 10
MOST_MEMORY = 2 << 30
"""Bytes of address space. What needs more ends the process, and is a source that is left out some time."""
SHARE = 1.0
"""Times as long as it has worked it rests: half of what one thread may have."""
TRIES = 3
"""Times a source may end the process."""
HANGS = 60.0
"""Seconds without a sign of life."""
SIGN = 2.0
DONE, AT, ALIVE = "done", "at ", "alive"


class Part(msgspec.Struct, frozen=True):
    """A session, where its terminal's log is, and up to where that may be taken in."""

    past: Past
    log: str
    settled: int


class Look(msgspec.Struct, frozen=True):
    parts: list[Part]
    known: list[str] = []
    """Hashes of our own tokens."""
    skipped: list[str] = []
    """Keys of sources that are left out."""
    spoilt: bool = False
    """Whether a search has met damage."""


def fill(indexer: Indexer, parts: Iterable[Part], before: frozenset[str]) -> frozenset[str]:
    """Take in what is new; the keys of all sources there are. What is no source any more is forgotten."""
    keys: set[str] = set()
    indexer.renew()
    for part in parts:
        path = Path(part.log)
        keys |= indexer.step(part.past, path, pieces_of(path), part.settled)
    if keys != before:
        indexer.drop_others(keys)
    return frozenset(keys)


@dataclass(slots=True)
class Filler:
    """The server's side: starts the process at the first look, and tells it of the next one once it is done."""

    index: str
    words: Mapping[str, str]
    """By provider: the function that says what its transcripts' records say, as `module:name`."""
    clock: Callable[[], float]
    begins: float = 0.0
    """Nothing is started before that time of the clock."""
    process: subprocess.Popen[bytes] | None = None
    held: bytes = b""
    busy: bool = False
    at: str = ""
    """The source that is being taken in."""
    heard: float = 0.0
    ended: Counter[str] = field(default_factory=Counter)
    """How often a source has ended it."""
    closed: bool = False

    def offer(self, look: Look) -> bool:
        """Whether it takes the look; it does not while it is at another one."""
        self._listen()
        if self.busy or self.closed or self.clock() < self.begins:
            return False
        skipped = [key for key, times in self.ended.items() if times >= TRIES]
        data = msgspec.json.encode(msgspec.structs.replace(look, skipped=skipped))
        try:
            process = self._started()
            assert process.stdin is not None
            process.stdin.write(data + b"\n")
            process.stdin.flush()
        except OSError as problem:
            self._lost(str(problem))
            return False
        self.busy, self.heard = True, self.clock()
        return True

    def close(self) -> None:
        self.closed = True
        self._end()

    def _end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self._forget()

    def _started(self) -> subprocess.Popen[bytes]:
        if self.process is None:
            words = [f"{provider}={where}" for provider, where in self.words.items()]
            command = (sys.executable, "-I", "-m", "sm.archive.search.filler", self.index, *words)
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd="/"
            )
            assert self.process.stdout is not None
            os.set_blocking(self.process.stdout.fileno(), False)
        return self.process

    def _listen(self) -> None:
        """Take in what it has said since."""
        if self.process is None or self.process.stdout is None:
            return
        while data := _read(self.process.stdout.fileno()):
            *lines, self.held = (self.held + data).split(b"\n")
            self.heard = self.clock()
            for line in lines:
                self._said(line.decode("utf-8", "replace"))
        if self.process.poll() is not None:
            self._lost(f"exit code {self.process.returncode}")
        elif self.busy and self.clock() - self.heard > HANGS:
            self._lost("no sign of life")

    def _said(self, line: str) -> None:
        if line == DONE:
            self.busy, self.at = False, ""
        elif line.startswith(AT):
            self.at = line.removeprefix(AT)

    def _lost(self, why: str) -> None:
        log.warning("indexing ended", problem=why, source=self.at, again="at the next look")
        if self.at:
            self.ended[self.at] += 1
            if self.ended[self.at] == TRIES:
                log.warning("source left out of the search index", source=self.at)
        self._end()

    def _forget(self) -> None:
        if self.process is not None:
            for pipe in (self.process.stdin, self.process.stdout):
                with suppress(OSError):
                    if pipe is not None:
                        pipe.close()
        self.process, self.busy, self.held, self.at = None, False, b"", ""


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except BlockingIOError:
        return b""


# --- the process itself ---------------------------------------------------------------------------------------------


def named(where: str) -> Words:
    module, _, name = where.partition(":")
    found: Words = getattr(importlib.import_module(module), name)
    return found


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


@dataclass(slots=True)
class Alive:
    """Rests, and gives a sign of life now and then."""

    rests: Rests
    last: float = 0.0

    def __call__(self) -> bool:
        now = time.monotonic()
        if now - self.last > SIGN:
            self.last = now
            say(ALIVE)
        return self.rests()


def looks() -> queue.SimpleQueue[Look]:
    """Those that come on standard input; when that ends, so does this process, whatever it is at."""
    found: queue.SimpleQueue[Look] = queue.SimpleQueue()

    def read() -> None:
        for line in sys.stdin.buffer:
            found.put(msgspec.json.decode(line, type=Look))
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    return found


def main() -> None:
    os.nice(NICE)
    os.umask(0o077)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    path, *words = sys.argv[1:]
    hashes: set[str] = set()
    index = SearchIndex(Path(path))
    indexer = Indexer(
        index,
        {provider: named(where) for provider, _, where in (one.partition("=") for one in words)},
        lambda text: token_hash(text) in hashes,
        Alive(Rests(time.monotonic, threading.Event(), SHARE)),
        entered=lambda key: say(f"{AT}{key}"),
    )
    keys: frozenset[str] = frozenset()
    coming = looks()
    while True:
        look = coming.get()
        hashes.clear()
        hashes.update(look.known)
        indexer.skipped = frozenset(look.skipped)
        index.spoilt = index.spoilt or look.spoilt
        keys = fill(indexer, look.parts, keys)
        say(DONE)


if __name__ == "__main__":
    main()
