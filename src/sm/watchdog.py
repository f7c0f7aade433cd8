"""Keeps a stalled server from holding its agents up.

A hook that meets a hung server waits its whole second; one that meets a closed port goes on in 10 ms. So a small
process beside the server shares its listening sockets and hears its heartbeat: while that is missing nobody can
connect, and once it is back they can. A thread would not do: it stops together with the process (SIGSTOP).
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import itertools
import math
import os
import select
import signal
import socket
from dataclasses import dataclass
from pathlib import Path

STALL = 0.5
"""Seconds without a heartbeat after which the sockets are closed."""
BEAT = 0.1
BACKLOG = 512
EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
TELL_EVERY = 60.0
"""Seconds between two words about one that goes on."""
GROUP_SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
"""What a terminal, or who ends a whole process group, sends to both of us."""


@dataclass(frozen=True, slots=True)
class Doors:
    """Where hooks knock."""

    loopback: socket.socket
    private: Path
    """Of the unix socket."""

    def close(self) -> None:
        """Refuse without giving anything away: a shut down TCP listener keeps an explicitly bound port (Linux).

        Only a listener: any other socket keeps the mark of it, and so do all connections it accepts later (Linux).
        """
        with contextlib.suppress(OSError):
            if self.loopback.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                self.loopback.shutdown(socket.SHUT_RD)
        with contextlib.suppress(OSError):  # a shut down unix socket never listens again, so its name is taken away
            self.private.rename(self._aside)

    def open(self) -> None:
        with contextlib.suppress(OSError):
            self.loopback.listen(BACKLOG)
        with contextlib.suppress(OSError):
            self._aside.rename(self.private)

    @property
    def _aside(self) -> Path:
        return self.private.with_name(f"{self.private.name}.closed")


@dataclass(slots=True)
class Watchdog:
    pid: int
    pipe: int
    doors: Doors
    last: float = 0.0

    def beat(self, loop: asyncio.AbstractEventLoop) -> None:
        """Tell that the loop turns, and again every BEAT."""
        now = loop.time()
        if self.last and now - self.last > STALL:
            self.doors.open()
        self.last = now
        try:
            os.write(self.pipe, b".")
        except OSError:  # the watchdog was killed: the server goes on without
            return
        loop.call_later(BEAT, self.beat, loop)

    def end(self) -> None:
        os.close(self.pipe)
        os.waitpid(self.pid, 0)


def start(doors: Doors) -> Watchdog:
    """Fork the watchdog; before any thread or event loop exists, and with none of our other files kept open in it."""
    reading, writing = os.pipe()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, GROUP_SIGNALS)
    pid = os.fork()
    if pid == 0:
        try:
            for number in GROUP_SIGNALS:
                signal.signal(number, signal.SIG_IGN)  # the server's end is ours: the pipe closes
            _close_all_but({0, 1, 2, reading, doors.loopback.fileno()})
            watch(reading, doors)
        finally:
            os._exit(0)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    os.close(reading)
    os.set_blocking(writing, False)
    return Watchdog(pid, writing, doors)


def _close_all_but(keep: set[int]) -> None:
    """A kept lock or pipe would outlive the server with us."""
    for low, high in itertools.pairwise([-1, *sorted(keep), min(os.sysconf("SC_OPEN_MAX"), 65_536)]):
        if low + 1 < high:  # closerange(n, n) closes everything (CPython 3.11 passes on an end of -1)
            os.closerange(low + 1, high)


def watch(pipe: int, doors: Doors) -> None:
    """Open while the heartbeat comes, closed while it does not, until the server has ended.

    Before the first beat the server starts, however long that takes, and nobody can connect anyway.
    """
    beating = closed = False
    while True:
        ready, _, _ = select.select([pipe], [], [], STALL if beating and not closed else None)
        if not ready:
            doors.close()
            closed = True
            continue
        if not os.read(pipe, 4096):
            return
        if closed:
            doors.open()
        beating, closed = True, False


@dataclass(slots=True)
class ListenerTrouble:
    """A loop's exception handler that keeps quiet of a listener that is closed, or that has no descriptors left.

    Between a stall and its end the loop may try to accept on a socket that does not listen. With none left it tries
    hundreds of times a second.
    """

    told: float = -math.inf

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        problem = context.get("exception")
        number = problem.errno if isinstance(problem, OSError) else None
        if number == errno.EINVAL:
            return
        if number in EXHAUSTED:
            if loop.time() - self.told < TELL_EVERY:
                return
            self.told = loop.time()
        loop.default_exception_handler(context)
