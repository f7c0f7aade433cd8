"""Keeps a stalled server from holding its agents up.

A hook that meets a hung server waits its whole second; one that meets a closed port goes on in 10 ms. So a small
process beside the server shares its listening sockets and hears its heartbeat: while that is missing nobody can
connect, and once it is back they can. A thread would not do: it stops together with the process (SIGSTOP).
"""

from __future__ import annotations

import asyncio
import errno
import os
import select
import signal
import socket
from collections.abc import Sequence
from dataclasses import dataclass

STALL = 0.5
"""Seconds without a heartbeat after which the sockets are closed."""
BEAT = 0.1
BACKLOG = 512


@dataclass(slots=True)
class Watchdog:
    pid: int
    pipe: int
    listeners: Sequence[socket.socket]
    last: float = 0.0

    def beat(self, loop: asyncio.AbstractEventLoop) -> None:
        """Tell that the loop turns, and again every BEAT."""
        now = loop.time()
        if self.last and now - self.last > STALL:
            listen_again(self.listeners)
        self.last = now
        try:
            os.write(self.pipe, b".")
        except OSError:  # the watchdog was killed: the server goes on without
            return
        loop.call_later(BEAT, self.beat, loop)

    def end(self) -> None:
        os.close(self.pipe)
        os.waitpid(self.pid, 0)


def start(listeners: Sequence[socket.socket]) -> Watchdog:
    """Fork the watchdog; before any thread or event loop exists, and with none of our other files kept open in it."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            keep = {reading, *(listener.fileno() for listener in listeners)}
            _close_all_but(keep)
            watch(reading, listeners)
        finally:
            os._exit(0)
    os.close(reading)
    os.set_blocking(writing, False)
    return Watchdog(pid, writing, listeners)


def _close_all_but(keep: set[int]) -> None:
    """A kept lock or pipe would outlive the server with us."""
    limit = os.sysconf("SC_OPEN_MAX")
    start_at = 0
    for descriptor in sorted(keep):
        os.closerange(start_at, descriptor)
        start_at = descriptor + 1
    os.closerange(start_at, min(limit, 65_536))


def watch(pipe: int, listeners: Sequence[socket.socket]) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the server's end is ours: the pipe closes
    closed = False
    while True:
        ready, _, _ = select.select([pipe], [], [], STALL if not closed else None)
        if not ready:
            refuse(listeners)
            closed = True
        elif not os.read(pipe, 4096):
            return
        elif closed:
            listen_again(listeners)
            closed = False


def refuse(listeners: Sequence[socket.socket]) -> None:
    """Stop listening without giving the port away: a shut down listener refuses, and can listen again (Linux)."""
    for listener in listeners:
        try:
            listener.shutdown(socket.SHUT_RD)
        except OSError:
            continue


def listen_again(listeners: Sequence[socket.socket]) -> None:
    for listener in listeners:
        try:
            listener.listen(BACKLOG)
        except OSError:
            continue


def ignore_closed_listener(loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
    """Between a stall and its end the loop may try to accept on a socket that does not listen."""
    problem = context.get("exception")
    if isinstance(problem, OSError) and problem.errno == errno.EINVAL:
        return
    loop.default_exception_handler(context)
