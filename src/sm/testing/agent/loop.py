"""The loop of the thread that owns the terminal: it waits for keys and timers, and runs what other threads post."""

from __future__ import annotations

import heapq
import itertools
import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

Action: TypeAlias = Callable[[], object]


class TerminalLoop:
    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        self._posted: deque[Action] = deque()
        self._timers: list[tuple[float, int, Action]] = []
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    def post(self, action: Action) -> None:
        """Run the action in the loop's thread, soon. Safe in any thread and in signal handlers."""
        self._posted.append(action)
        with suppress(BlockingIOError):
            os.write(self._writer, b"!")

    def later(self, seconds: float, action: Action) -> None:
        with self._lock:
            heapq.heappush(self._timers, (time.monotonic() + seconds, next(self._numbers), action))
        self.post(lambda: None)

    def step(self, terminal: int) -> bytes | None:
        """Wait for input, a timer or a post, and run what is due; return the input, None for none, b"" at the end."""
        readable, _, _ = select.select([terminal, self._reader], [], [], self._timeout())
        if self._reader in readable:
            os.read(self._reader, 4096)
        while self._posted:
            self._posted.popleft()()
        for action in self._due():
            action()
        if terminal not in readable:
            return None
        try:
            return os.read(terminal, 1 << 16)
        except OSError:  # the terminal is gone
            return b""

    def _timeout(self) -> float | None:
        with self._lock:
            return max(0.0, self._timers[0][0] - time.monotonic()) if self._timers else None

    def _due(self) -> list[Action]:
        found = []
        with self._lock:
            while self._timers and self._timers[0][0] <= time.monotonic():
                found.append(heapq.heappop(self._timers)[2])
        return found


class InterruptedTurn(Exception):  # noqa: N818  # no error: the user pressed Escape
    pass


class Cancellation:
    """Cancels a turn from the terminal's thread, whatever the turn is waiting for."""

    def __init__(self) -> None:
        self._called = threading.Event()
        self._undo: list[Action] = []

    def call(self) -> None:
        self._called.set()
        for undo in tuple(self._undo):
            undo()

    def check(self) -> None:
        if self._called.is_set():
            raise InterruptedTurn

    def sleep(self, seconds: float) -> None:
        if self._called.wait(seconds):
            raise InterruptedTurn

    @contextmanager
    def on_cancel(self, undo: Action) -> Iterator[None]:
        """Call `undo` if the turn is cancelled in this block, which then raises InterruptedTurn."""
        self.check()
        self._undo.append(undo)
        try:
            yield
        finally:
            self._undo.remove(undo)
        self.check()
