"""`sm run` once its client runs: waits for it on the person's own terminal, and starts it again when ordered to.

The client is a direct child in our own process group, so that keys, signals and job control reach it as if it had been
started alone. It is ended only by an order that the server let us take, and started again only after an end that we
caused: never after one of the person's, whatever the exit code.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from dataclasses import dataclass, field

from sm.cli.foreground.server_link import ClientProcess, Launch, Line
from sm.cli.foreground.terminal import Terminal
from sm.core.errors import error
from sm.processes import descendants, signal_all, start_time

GRACE = 3.0
"""Seconds a client has to end after SIGTERM (seen: 0.4)."""
POLL = 0.02
SIGNALLED = 128
TERMINATED = frozenset({SIGNALLED + signal.SIGTERM, -signal.SIGTERM})
"""How a client ends that we have asked to."""
IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
PASSED_ON = (signal.SIGTERM, signal.SIGHUP)


@dataclass
class Wrapper:
    line: Line
    env: dict[str, str]
    terminal: Terminal
    pid: int = 0
    launch: Launch = field(default_factory=dict)
    running: bool = False
    restarting: bool = False
    ended_by: int | None = None
    """A signal that ends `sm run` as well as its client."""
    woken: tuple[int, int] = field(default_factory=os.pipe)

    def run(self, launch: Launch) -> int:
        """Run the client until it ends for good; its exit code."""
        self._handle_signals()
        self._start(launch)
        self.line.open()
        while True:
            os.read(self.woken[0], 1 << 10)
            ended = self._collect()
            if ended is None and self.line.granted is not None:
                ended = self._restart(self.line.granted)
            if ended is not None:
                return self._finish(ended)

    def ring(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(self.woken[1], b"\0")

    def _handle_signals(self) -> None:
        for end in self.woken:
            os.set_blocking(end, end == self.woken[0])
        signal.set_wakeup_fd(self.woken[1], warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGINT, signal.SIGQUIT):  # the client has its own way with them, and got them too
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._note)
        for number in PASSED_ON:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._pass_on)

    def _note(self, number: int, _: object) -> None:
        if self.restarting:  # a client that works takes the keys itself: now nobody else hears a Ctrl-C
            self.ended_by = number

    def _pass_on(self, number: int, _: object) -> None:
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
        self.line.started(ClientProcess(self.pid, start_time(self.pid), launch))

    def _collect(self) -> int | None:
        """The client's return code once it has ended. One that was stopped stops us: to the shell we are one job."""
        found, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
        if found and os.WIFSTOPPED(status):
            os.kill(os.getpid(), signal.SIGSTOP)
            return self._collect()
        return self._collected(status) if found else None

    def _collected(self, status: int) -> int:
        self.running = False  # its number may be another's from now on
        return os.waitstatus_to_exitcode(status)

    def _restart(self, launch: Launch) -> int | None:
        """End the client and start the next one; a return code if it ended by itself before that."""
        self.restarting = True
        code, killed = self._end()
        if not killed and code not in TERMINATED:
            return code
        self.terminal.give_back(killed=killed)
        if not killed:
            self.terminal.take_back(self.launch["farewell"])
        if self.ended_by is not None:
            return -self.ended_by
        self._start(launch)
        self.restarting = False
        return None

    def _end(self) -> tuple[int, bool]:
        """End exactly our child: asked first, by force with all it has started after GRACE."""
        ended = self._collect()
        if ended is not None:
            return ended, False
        os.kill(self.pid, signal.SIGTERM)
        deadline = time.monotonic() + GRACE
        while time.monotonic() < deadline:
            ended = self._collect()
            if ended is not None:
                return ended, False
            time.sleep(POLL)
        signal_all([self.pid, *descendants(self.pid)], signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        return self._collected(status), True

    def _finish(self, code: int) -> int:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C was the client's, and would now end us
        self.terminal.give_back(killed=code < 0)
        self.line.close(self.pid, code if code >= 0 else None, -code if code < 0 else None)
        return code if code >= 0 else SIGNALLED - code
