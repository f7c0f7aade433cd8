"""The connection between `sm run` and the server: receives orders, reports the client's starts and its end.

It is a thread next to the wait for the client, and outlives servers: reports wait until a server answers. Nothing here
ends a process: an order that the server grants is handed to the wrapper.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sm.cli.connection import running_client
from sm.client import Client, UnavailableError, session_path
from sm.core.errors import SmError
from sm.paths import locate_home

ORDER_WAIT_S = 25
"""One request waits that long for an order."""
RETRY_INTERVAL_S = 0.3
"""Between two attempts to reach a server."""
CLOSE_TIMEOUT_S = 2.0
"""For the report of the client's end."""

Launch = dict[str, Any]
"""How a client is started, as the server sends it."""


@dataclass(frozen=True, slots=True)
class ClientProcess:
    """The client that runs now."""

    pid: int
    born: str
    launch: Launch


@dataclass
class ServerLink:
    client: Client
    session: str
    env: dict[str, str]
    """The user's environment, for the start of the next client."""
    on_order: Callable[[], None]
    """Called when an order was granted."""
    child: ClientProcess | None = None
    granted: Launch | None = None
    """How to start the next client once the current one has been ended."""
    reports: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    closed: bool = False
    _carried_out: threading.Event = field(default_factory=threading.Event)

    def open(self) -> None:
        threading.Thread(target=self._run, daemon=True).start()

    def started(self, child: ClientProcess) -> None:
        launch = {name: child.launch[name] for name in REPORTED_LAUNCH if name in child.launch}
        self.reports.append(("/client", {"launch": launch, "pid": child.pid, "born": child.born}))
        self.child, self.granted = child, None
        self._carried_out.set()

    def close(self, pid: int, code: int | None, number: int | None) -> None:
        """Report the final end of the client, if the server answers in time."""
        self.closed, self.child = True, None
        self._carried_out.set()
        self.reports.append(("/client/exit", {"pid": pid, "code": code, "signal": number}))
        deadline = time.monotonic() + CLOSE_TIMEOUT_S
        while self.reports and time.monotonic() < deadline:
            try:
                self._report(CLOSE_TIMEOUT_S)
            except SmError:
                time.sleep(RETRY_INTERVAL_S)

    def _run(self) -> None:
        while not self.closed:
            try:
                if self.reports:
                    self._report(30.0)
                else:
                    self._ask()
            except UnavailableError:
                time.sleep(RETRY_INTERVAL_S)
                self.client = running_client(locate_home(os.environ)) or self.client
            except SmError:  # refused, as for a withdrawn order: ask for the next one
                time.sleep(RETRY_INTERVAL_S)

    def _report(self, seconds: float) -> None:
        """Send the oldest report; it stays if no server answers, and is dropped if refused."""
        report = self.reports[0]
        suffix, body = report
        try:
            self.client.call("POST", session_path(self.session, suffix), body, timeout=seconds)
        except UnavailableError:
            raise
        except SmError:
            pass  # as for a session that was killed
        if report in self.reports:
            self.reports.remove(report)

    def _ask(self) -> None:
        path = session_path(self.session, f"/order?seconds={ORDER_WAIT_S}")
        order = self.client.call("GET", path, timeout=ORDER_WAIT_S + 10.0)["order"]
        child = self.child
        if order is None or child is None:
            return
        self._carried_out.clear()
        # The process is our own child: the server refuses an order for another one.
        own = {"session": self.session, "step": order["step"], "pid": child.pid, "born": child.born}
        self.granted = self.client.call("POST", session_path(self.session, "/order"), {**own, "env": self.env})
        self.on_order()
        self._carried_out.wait()


REPORTED_LAUNCH = ("argv", "conversation", "config", "asked", "farewell", "plugin", "no_plugin")
"""As far as the server sends it: one that is older than `sm run` knows less, and refuses more."""
