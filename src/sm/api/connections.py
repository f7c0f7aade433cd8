"""How long a connection is kept: long for whoever has shown a token, briefly for anybody else.

A client keeps its connection between hooks. Strangers on loopback could otherwise hold every descriptor we may have,
so they have little time and little to say, and neither when descriptors get scarce. What is no HTTP is answered as any
other error is, in JSON.
"""

from __future__ import annotations

import asyncio
import resource
import socket
from http import HTTPStatus

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from sm.api.errors import error_response
from sm.api.security import Caller
from sm.core.errors import Refused
from sm.peers import UNIX, pid_of

STRANGER_TIMEOUT_S = 10.0
"""Seconds a connection has to bring a request with a token that we know."""
MAX_STRANGER_BYTES = 1 << 20
"""What a connection may send before that: uvicorn keeps the head of a request, however long it is. What comes with the
head and behind it, before the guard is asked, is a few reads of 256 KiB."""
LINGER_TIMEOUT_S = 1.0
"""Seconds for which the rest of a refused request is thrown away: closed at once, the sender would see no answer."""
KEPT_FREE = 56
"""Descriptors for everything else: files, tmux, the connections of one turn of the loop."""
MIN_CONNECTIONS = 8
MAX_ACCEPTED = 8
"""Connections taken in one turn of the loop. asyncio takes as many as its backlog, and tries in vain, hundreds of
times a second and ever more often, once there are no descriptors left (Python 3.11)."""


def max_connections() -> int:
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(MIN_CONNECTIONS, limit - KEPT_FREE)


def _whole(refused: Refused) -> bytes:
    """The answer as it goes over the wire."""
    response = error_response(refused, {"connection": "close"})
    head = f"HTTP/1.1 {response.status_code} {HTTPStatus(response.status_code).phrase}\r\n".encode()
    return head + b"".join(b"%s: %s\r\n" % header for header in response.raw_headers) + b"\r\n" + bytes(response.body)


class Connection(HttpToolsProtocol):
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in the base class
        super().connection_made(transport)
        connection = transport.get_extra_info("socket")
        if connection is not None and connection.family == socket.AF_UNIX:
            pid = pid_of(connection)
            self.client = None if pid is None else (UNIX, pid)
        self.received = 0
        self.known = False
        """It has brought a request with a token, before the one that comes now."""
        self.leaving = False
        self.patience = self.loop.call_later(STRANGER_TIMEOUT_S, self._leave_if_strange)
        if len(self.connections) > max_connections():
            self._make_room()

    def data_received(self, data: bytes) -> None:
        if self.leaving:
            return
        self.received = self.received + len(data) if self.strange else 0
        if self.received > MAX_STRANGER_BYTES:
            self._leave(Refused("too_large", f"More than {MAX_STRANGER_BYTES:,} bytes came without a valid token"))
        else:
            super().data_received(data)

    def on_message_begin(self) -> None:
        self.known = self.known or not self.strange
        super().on_message_begin()

    def send_400_response(self, msg: str) -> None:
        self._leave(Refused("bad_request", msg, "send HTTP/1.1 as RFC 9112 has it"))

    def _leave(self, refused: Refused) -> None:
        """Answer what can't be a request, and close; no word if an answer has begun."""
        self.leaving = True
        cycle = self.cycle
        if cycle is None or cycle.response_complete or not cycle.response_started:
            self.transport.write(_whole(refused))
        if cycle is not None and not cycle.response_complete:  # as in the base class's connection_lost
            cycle.disconnected = True
            cycle.message_event.set()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.patience.cancel()
        self.patience = self.loop.call_later(LINGER_TIMEOUT_S, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self.patience.cancel()
        super().connection_lost(exc)

    @property
    def strange(self) -> bool:
        """True until the guard has put a caller that it knows into a request's scope."""
        caller = None if self.scope is None else self.scope.get("sm.caller")
        return not isinstance(caller, Caller) or caller.stranger

    def _leave_if_strange(self) -> None:
        if self.strange and not self.known:
            self.transport.close()

    def _make_room(self) -> None:
        """The stranger who has been here longest goes."""
        every = (connection for connection in self.connections if isinstance(connection, Connection))
        strangers = [connection for connection in every if connection.strange and not connection.known]
        oldest = min(strangers, key=lambda connection: connection.patience.when(), default=self)
        oldest.transport.abort()
        self.connections.discard(oldest)
