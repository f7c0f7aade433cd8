"""The line between `sm run` and the server: orders come in, and what became of the client goes out.

It is a thread beside the wait for the client, and outlives servers: one that was away is told what happened meanwhile.
Nothing here ends a process: an order that the server lets us take is handed on.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sm.cli.connection import running
from sm.client import Client, UnavailableError, session_path
from sm.core.errors import SmError
from sm.paths import locate_home

WAIT = 25
"""Seconds one request waits for an order."""
AWAY = 0.3
"""Seconds between two looks for a server that is away."""
LAST_WORDS = 2.0
"""Seconds in which the server may still be told how the client ended."""

Launch = dict[str, Any]
"""How a client is started, in the server's words."""


@dataclass(frozen=True, slots=True)
class ClientProcess:
    """The client that runs now."""

    pid: int
    born: str
    launch: Launch


@dataclass
class Line:
    client: Client
    session: str
    env: dict[str, str]
    """Of the person: what the next client is started with is asked for in their name."""
    ring: Callable[[], None]
    """Called when there is an order to carry out."""
    child: ClientProcess | None = None
    granted: Launch | None = None
    """What to start once the client that runs now has been ended."""
    reports: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    closed: bool = False
    _carried_out: threading.Event = field(default_factory=threading.Event)

    def open(self) -> None:
        threading.Thread(target=self._run, daemon=True).start()

    def started(self, child: ClientProcess) -> None:
        launch = {name: child.launch[name] for name in TOLD}
        self.reports.append(("/client", {"launch": launch, "pid": child.pid, "born": child.born}))
        self.child, self.granted = child, None
        self._carried_out.set()

    def close(self, pid: int, code: int | None, number: int | None) -> None:
        """The client has ended for good: tell the server if it listens."""
        self.closed, self.child = True, None
        self._carried_out.set()
        self.reports.append(("/client/exit", {"pid": pid, "code": code, "signal": number}))
        deadline = time.monotonic() + LAST_WORDS
        while self.reports and time.monotonic() < deadline:
            try:
                self._report(LAST_WORDS)
            except SmError:
                time.sleep(AWAY)

    def _run(self) -> None:
        while not self.closed:
            try:
                if self.reports:
                    self._report(30.0)
                else:
                    self._ask()
            except UnavailableError:
                time.sleep(AWAY)
                self.client = running(locate_home(os.environ)) or self.client
            except SmError:  # refused, as an order that was taken back: the next one is asked for
                time.sleep(AWAY)

    def _report(self, seconds: float) -> None:
        """Tell the oldest of what is to be told: again if nobody answers, once if it is refused."""
        report = self.reports[0]
        suffix, body = report
        try:
            self.client.call("POST", session_path(self.session, suffix), body, timeout=seconds)
        except UnavailableError:
            raise
        except SmError:
            pass  # as of a session that was killed meanwhile
        if report in self.reports:
            self.reports.remove(report)

    def _ask(self) -> None:
        path = session_path(self.session, f"/order?seconds={WAIT}")
        order = self.client.call("GET", path, timeout=WAIT + 10.0)["order"]
        child = self.child
        if order is None or child is None:
            return
        self._carried_out.clear()
        # The process is our own child, whatever the order says: the server refuses what does not match.
        own = {"session": self.session, "step": order["step"], "pid": child.pid, "born": child.born}
        self.granted = self.client.call("POST", session_path(self.session, "/order"), {**own, "env": self.env})
        self.ring()
        self._carried_out.wait()


TOLD = ("argv", "conversation", "config", "asked", "farewell")
