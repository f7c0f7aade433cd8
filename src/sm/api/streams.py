"""How many streams may be open at the same time: of one caller, and in all.

Each keeps a connection and a task of the server, for as long as somebody wants.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.requests import Request

from sm.api.connections import max_connections
from sm.api.security import Caller, caller_of
from sm.core.errors import error

MAX_OF_ONE = 24
"""Of a device, or of a session. The user's own commands have no limit but the one of all."""
MAX_STREAMS = 500


@dataclass(slots=True)
class Streams:
    open: Counter[str] = field(default_factory=Counter)

    def take(self, caller: Caller) -> Callable[[], None]:
        """Count one more; call what is returned at its end. SmError if there are too many."""
        key = f"device {caller.device.id}" if caller.device else f"session {caller.session}" if caller.session else ""
        if self.open.total() >= min(MAX_STREAMS, max_connections() // 2):
            raise error("too_many_streams", "Too many event streams are open", "close other pages and sm tail -f")
        if key and self.open[key] >= MAX_OF_ONE:
            hint = "close other tabs of the page" if caller.device else "end the other readers of GET /events"
            raise error("too_many_streams", f"{MAX_OF_ONE} event streams are open already", hint)
        self.open[key] += 1
        return lambda: self._give(key)

    def _give(self, key: str) -> None:
        self.open[key] -= 1
        if not self.open[key]:
            del self.open[key]


def open_stream(request: Request) -> None:
    """Count the answer to this request as a stream until the request is over. SmError if there are too many."""
    streams = request.app.state.streams
    assert isinstance(streams, Streams)
    request.scope["sm.ends"].append(streams.take(caller_of(request)))
