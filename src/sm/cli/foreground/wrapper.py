"""`sm run` once its client runs: waits for it in the user's own terminal, and restarts it on the server's order.

The client is a direct child in our own process group, so that keys, signals and job control reach it as if it had been
started alone. It is ended only by an order that the server has granted, and started again only after an end that we
caused: never after one that the user caused, whatever the exit code.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from dataclasses import dataclass, field

from sm.cli.foreground.server_link import ClientProcess, Launch, ServerLink
from sm.cli.foreground.terminal import UserTerminal
from sm.core.errors import error
from sm.processes import descendants, signal_all, start_time

GRACE_S = 3.0
"""For a client to end after SIGTERM (seen: 0.4)."""
POLL_INTERVAL_S = 0.02
SIGNAL_EXIT_BASE = 128
TERMINATED_CODES = frozenset({SIGNAL_EXIT_BASE + signal.SIGTERM, -signal.SIGTERM})
"""Return codes of a client that we ended with SIGTERM."""
IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
FORWARDED_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


@dataclass
class ClientWrapper:
    link: ServerLink
    env: dict[str, str]
    terminal: UserTerminal
    pid: int = 0
    launch: Launch = field(default_factory=dict)
    running: bool = False
    restarting: bool = False
    ended_by: int | None = None
    """The signal that ends `sm run` as well as its client."""
    wakeup_pipe: tuple[int, int] = field(default_factory=os.pipe)

    def run(self, launch: Launch) -> int:
        """Run the client until its final end; return its exit code."""
        self._handle_signals()
        self._start(launch)
        self.link.open()
        while True:
            os.read(self.wakeup_pipe[0], 1 << 10)
            ended = self._collect()
            if ended is None and self.link.granted is not None:
                ended = self._restart(self.link.granted)
            if ended is not None:
                return self._finish(ended)

    def ring(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(self.wakeup_pipe[1], b"\0")

    def _handle_signals(self) -> None:
        for end in self.wakeup_pipe:
            os.set_blocking(end, end == self.wakeup_pipe[0])
        signal.set_wakeup_fd(self.wakeup_pipe[1], warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGINT, signal.SIGQUIT):  # the client gets and handles them itself
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._note_signal)
        for number in FORWARDED_SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._forward)

    def _note_signal(self, number: int, _: object) -> None:
        if self.restarting:  # a running client handles Ctrl-C; during a restart only we get it
            self.ended_by = number

    def _forward(self, number: int, _: object) -> None:
        self.ended_by = number
        if self.running:
            signal_all([self.pid], number)

    def _start(self, launch: Launch) -> None:
        argv = launch["argv"]
        path = shutil.which(argv[0], path=self.env.get("PATH"))
        try:
            if path is None:
                raise FileNotFoundError(2, "not found")
            self.pid = os.posix_spawn(path, argv, self.env, setsigdef=IGNORED_BY_PYTHON)
        except OSError as problem:
            raise error("launch_failed", f"The client could not be started: {argv[0]}: {problem.strerror}") from problem
        self.launch, self.running = launch, True
        self.link.started(ClientProcess(self.pid, start_time(self.pid), launch))

    def _collect(self) -> int | None:
        """Return the client's return code once it has ended. A stopped client stops us: to the shell we are one job."""
        found, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
        if found and os.WIFSTOPPED(status):
            os.kill(os.getpid(), signal.SIGSTOP)
            return self._collect()
        return self._collected(status) if found else None

    def _collected(self, status: int) -> int:
        self.running = False  # another process may get its pid now
        return os.waitstatus_to_exitcode(status)

    def _restart(self, launch: Launch) -> int | None:
        """End the client and start the next one; return a code if it ended by itself before."""
        self.restarting = True
        code, killed = self._end()
        if not killed and code not in TERMINATED_CODES:
            return code
        self.terminal.restore(killed=killed)
        if not killed:
            self.terminal.erase(self.launch["farewell"])
        if self.ended_by is not None:
            return -self.ended_by
        self._start(launch)
        self.restarting = False
        return None

    def _end(self) -> tuple[int, bool]:
        """End our child with SIGTERM; after GRACE_S kill it with all that it has started."""
        ended = self._collect()
        if ended is not None:
            return ended, False
        os.kill(self.pid, signal.SIGTERM)
        deadline = time.monotonic() + GRACE_S
        while time.monotonic() < deadline:
            ended = self._collect()
            if ended is not None:
                return ended, False
            time.sleep(POLL_INTERVAL_S)
        signal_all([self.pid, *descendants(self.pid)], signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        return self._collected(status), True

    def _finish(self, code: int) -> int:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C was for the client, and would now end us
        self.terminal.restore(killed=code < 0)
        self.link.close(self.pid, code if code >= 0 else None, -code if code < 0 else None)
        return code if code >= 0 else SIGNAL_EXIT_BASE - code
