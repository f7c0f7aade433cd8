"""Keeps a stalled server from delaying its agents.

A hook to a hung server waits its whole second; one to a closed port ends in 10 ms. So a small second process shares the
server's listening sockets and gets its heartbeat: while that is missing connections are refused, and once it is back
they are accepted. A thread would not do: it stops together with the process (SIGSTOP).
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

STALL_TIMEOUT_S = 0.5
"""After that long without a heartbeat the sockets are closed."""
HEARTBEAT_INTERVAL_S = 0.1
BACKLOG = 512
EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
LOG_INTERVAL_S = 60.0
"""Between two log entries about a lasting lack of descriptors."""
GROUP_SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
"""Signals that a terminal sends to the whole process group, and so to both processes."""


@dataclass(frozen=True, slots=True)
class Listeners:
    """The sockets that hooks connect to."""

    loopback: socket.socket
    private: Path
    """The path of the unix socket."""

    def close(self) -> None:
        """Refuse connections but keep the port: a shut down TCP listener keeps an explicitly bound one (Linux).

        Only a listener: any other socket stays shut down, and so do all connections it accepts later (Linux).
        """
        with contextlib.suppress(OSError):
            if self.loopback.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                self.loopback.shutdown(socket.SHUT_RD)
        with contextlib.suppress(OSError):  # a shut down unix socket never listens again, so its file is renamed
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
    listeners: Listeners
    last: float = 0.0

    def send_heartbeat(self, loop: asyncio.AbstractEventLoop) -> None:
        """Send a heartbeat from the loop, and again every HEARTBEAT_INTERVAL_S."""
        now = loop.time()
        if self.last and now - self.last > STALL_TIMEOUT_S:
            self.listeners.open()
        self.last = now
        try:
            os.write(self.pipe, b".")
        except OSError:  # the watchdog was killed: the server continues without
            return
        loop.call_later(HEARTBEAT_INTERVAL_S, self.send_heartbeat, loop)

    def end(self) -> None:
        os.close(self.pipe)
        os.waitpid(self.pid, 0)


def start(listeners: Listeners) -> Watchdog:
    """Fork the watchdog, before any thread or event loop exists; it keeps none of our other files open."""
    reading, writing = os.pipe()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, GROUP_SIGNALS)
    pid = os.fork()
    if pid == 0:
        try:
            for number in GROUP_SIGNALS:
                signal.signal(number, signal.SIG_IGN)  # the watchdog ends with the server: the pipe closes
            _close_all_but({0, 1, 2, reading, listeners.loopback.fileno()})
            watch(reading, listeners)
        finally:
            os._exit(0)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    os.close(reading)
    os.set_blocking(writing, False)
    return Watchdog(pid, writing, listeners)


def _close_all_but(keep: set[int]) -> None:
    """Close all files but these: an open lock or pipe would outlive the server in the watchdog."""
    for low, high in itertools.pairwise([-1, *sorted(keep), min(os.sysconf("SC_OPEN_MAX"), 65_536)]):
        if low + 1 < high:  # closerange(n, n) closes everything (CPython 3.11 passes on an end of -1)
            os.closerange(low + 1, high)


def watch(pipe: int, listeners: Listeners) -> None:
    """Open the listeners while heartbeats come, close them while they do not, until the server has ended.

    Before the first heartbeat the server starts, however long that takes, and does not listen.
    """
    beating = closed = False
    while True:
        ready, _, _ = select.select([pipe], [], [], STALL_TIMEOUT_S if beating and not closed else None)
        if not ready:
            listeners.close()
            closed = True
            continue
        if not os.read(pipe, 4096):
            return
        if closed:
            listeners.open()
        beating, closed = True, False


@dataclass(slots=True)
class ListenerErrorHandler:
    """A loop's exception handler that ignores a closed listener, and logs a lack of descriptors at an interval.

    Between a stall and its end the loop may try to accept on a socket that does not listen. Without descriptors it
    tries hundreds of times a second.
    """

    last_logged: float = -math.inf

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        problem = context.get("exception")
        number = problem.errno if isinstance(problem, OSError) else None
        if number == errno.EINVAL:
            return
        if number in EXHAUSTED:
            if loop.time() - self.last_logged < LOG_INTERVAL_S:
                return
            self.last_logged = loop.time()
        loop.default_exception_handler(context)
