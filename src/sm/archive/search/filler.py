"""Fills the search index in a process of its own: `python -m sm.archive.search.filler`.

Text of any size and kind is cut, redacted and indexed there, so that it never delays the server. The server sends a
request at an interval and never waits for it. The process ends when its standard input does, as with a server that was
killed. If it dies or hangs it is started again; a source that has ended it MAX_FAILURES times is left out.
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

from sm.archive.search.index import SearchIndex
from sm.archive.search.indexer import Indexer, UtteranceReader
from sm.archive.terminal.segments import segments_of
from sm.archive.throttle import Throttle
from sm.core.ids import token_hash
from sm.core.model.history import SessionHistory

log = structlog.get_logger()
NICENESS = 10
MAX_MEMORY_BYTES = 2 << 30
"""Of address space. A source that needs more ends the process, and is left out after some times."""
REST_PER_WORK = 1.0
"""Seconds of rest for each second of work: the process gets half of a core."""
MAX_FAILURES = 3
"""Times a source may end the process."""
FIRST_PAUSE_S, MAX_PAUSE_S = 2.0, 600.0
"""Before a process that has ended without a source is started again: at first, and at most."""
SILENCE_TIMEOUT_S = 60.0
"""After that long without a line of output the process counts as hanging."""
HEARTBEAT_INTERVAL_S = 2.0
DONE, STARTED, HEARTBEAT = "done", "at ", "alive"


class SessionToIndex(msgspec.Struct, frozen=True):
    """A session, where its terminal's log is, and up to which position that may be indexed."""

    history: SessionHistory
    log: str
    settled: int


class FillRequest(msgspec.Struct, frozen=True):
    sessions: list[SessionToIndex]
    token_hashes: list[str] = []
    """Of our own tokens."""
    skipped: list[str] = []
    """Keys of sources that are left out."""
    damaged: bool = False
    """A search has found the index damaged."""


def fill(indexer: Indexer, sessions: Iterable[SessionToIndex], before: frozenset[str]) -> frozenset[str]:
    """Index what is new; drop sources that are gone. Returns the keys of all sources; `before` are the last ones."""
    keys: set[str] = set()
    indexer.reset_if_lost()
    for session in sessions:
        path = Path(session.log)
        keys |= indexer.index_session(session.history, path, segments_of(path), session.settled)
    if keys != before:
        indexer.drop_others(keys)
    return frozenset(keys)


@dataclass(slots=True)
class Filler:
    """The server's side: starts the process at the first request, and sends the next one once it is done."""

    index: str
    utterance_readers: Mapping[str, str]
    """By provider: the function that reads an utterance from a record of its transcripts, as `module:name`."""
    clock: Callable[[], float]
    starts_at: float = 0.0
    """The process is not started before that time of the clock."""
    process: subprocess.Popen[bytes] | None = None
    held: bytes = b""
    busy: bool = False
    source: str = ""
    """The source that is being indexed."""
    last_heard: float = 0.0
    failures: Counter[str] = field(default_factory=Counter)
    """How often each source has ended the process."""
    pause: float = FIRST_PAUSE_S
    closed: bool = False

    def offer(self, request: FillRequest) -> bool:
        """Send the request; False while the last one is not done."""
        self._read_output()
        if self.busy or self.closed or self.clock() < self.starts_at:
            return False
        skipped = [key for key, times in self.failures.items() if times >= MAX_FAILURES]
        data = msgspec.json.encode(msgspec.structs.replace(request, skipped=skipped))
        try:
            process = self._running()
            assert process.stdin is not None
            process.stdin.write(data + b"\n")
            process.stdin.flush()
        except OSError as problem:
            self._give_up(str(problem))
            return False
        self.busy, self.last_heard = True, self.clock()
        return True

    def close(self) -> None:
        self.closed = True
        self._end()

    def _end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self._forget()

    def _running(self) -> subprocess.Popen[bytes]:
        if self.process is None:
            readers = [f"{provider}={where}" for provider, where in self.utterance_readers.items()]
            command = (sys.executable, "-I", "-m", "sm.archive.search.filler", self.index, *readers)
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd="/"
            )
            assert self.process.stdout is not None
            os.set_blocking(self.process.stdout.fileno(), False)
        return self.process

    def _read_output(self) -> None:
        """Read what it has written since."""
        if self.process is None or self.process.stdout is None:
            return
        while data := _read(self.process.stdout.fileno()):
            *lines, self.held = (self.held + data).split(b"\n")
            self.last_heard = self.clock()
            for line in lines:
                self._handle_line(line.decode("utf-8", "replace"))
        if self.process.poll() is not None:
            self._give_up(f"exit code {self.process.returncode}")
        elif self.busy and self.clock() - self.last_heard > SILENCE_TIMEOUT_S:
            self._give_up("no sign of life")

    def _handle_line(self, line: str) -> None:
        if line == DONE:
            self.busy, self.source, self.pause = False, "", FIRST_PAUSE_S
        elif line.startswith(STARTED):
            self.source = line.removeprefix(STARTED)

    def _give_up(self, why: str) -> None:
        log.warning("indexing ended", problem=why, source=self.source, again="at the next request")
        if not self.source:  # it will not be better at once, as where the disk is full or the directory gone
            self.starts_at = self.clock() + self.pause
            self.pause = min(MAX_PAUSE_S, 2 * self.pause)
        else:
            self.failures[self.source] += 1
            if self.failures[self.source] == MAX_FAILURES:
                log.warning("source left out of the search index", source=self.source)
        self._end()

    def _forget(self) -> None:
        if self.process is not None:
            for pipe in (self.process.stdin, self.process.stdout):
                with suppress(OSError):
                    if pipe is not None:
                        pipe.close()
        self.process, self.busy, self.held, self.source = None, False, b"", ""


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except BlockingIOError:
        return b""


# --- the process itself ---------------------------------------------------------------------------------------------


def imported(where: str) -> UtteranceReader:
    module, _, name = where.partition(":")
    found: UtteranceReader = getattr(importlib.import_module(module), name)
    return found


def write_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


@dataclass(slots=True)
class HeartbeatThrottle:
    """Rests as Throttle does, and writes a heartbeat at an interval."""

    throttle: Throttle
    last: float = 0.0

    def __call__(self) -> bool:
        now = time.monotonic()
        if now - self.last > HEARTBEAT_INTERVAL_S:
            self.last = now
            write_line(HEARTBEAT)
        return self.throttle()


def requests() -> queue.SimpleQueue[FillRequest]:
    """Return the queue of requests from standard input; when that ends, so does this process, whatever it does."""
    found: queue.SimpleQueue[FillRequest] = queue.SimpleQueue()

    def read() -> None:
        for line in sys.stdin.buffer:
            found.put(msgspec.json.decode(line, type=FillRequest))
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    return found


def main() -> None:
    os.nice(NICENESS)
    os.umask(0o077)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    path, *readers = sys.argv[1:]
    hashes: set[str] = set()
    index = SearchIndex(Path(path))
    indexer = Indexer(
        index,
        {provider: imported(where) for provider, _, where in (reader.partition("=") for reader in readers)},
        lambda text: token_hash(text) in hashes,
        HeartbeatThrottle(Throttle(time.monotonic, threading.Event(), REST_PER_WORK)),
        on_start=lambda key: write_line(f"{STARTED}{key}"),
    )
    keys: frozenset[str] = frozenset()
    incoming = requests()
    while True:
        request = incoming.get()
        hashes.clear()
        hashes.update(request.token_hashes)
        indexer.skipped = frozenset(request.skipped)
        index.damaged = index.damaged or request.damaged
        keys = fill(indexer, request.sessions, keys)
        write_line(DONE)


if __name__ == "__main__":
    main()
