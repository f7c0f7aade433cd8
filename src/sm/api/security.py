"""Who may send a request at all, before any route sees it; who may call which route is in `authority.py`.

Loopback only, so these rules are about browsers and about sessions that reach beyond themselves: a bearer token on
every request, a Host that is loopback, no foreign Origin, JSON bodies of bounded size. A session's token proves to be
that session and nothing more: it acts for itself and on its children.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sm.api.errors import error_response
from sm.core.errors import Refused, error
from sm.core.ids import token_hash
from sm.peers import UNIX, Peer

LOOPBACK = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?", re.IGNORECASE)
"""With any port: people forward ports."""
ORIGIN = re.compile(rf"https?://{LOOPBACK.pattern}", re.IGNORECASE)
"""Programs that show pages of their own, from elsewhere too, name themselves as in `capacitor://localhost`."""
CLIENT_PATHS = "/link/"
"""Where the plugin in a client that the user has started reports, without a token."""
HOOK_LIMIT = 16 * 1024 * 1024
BODY_LIMIT = 1024 * 1024
MAX_DRAINED = 256 * 1024 * 1024
"""Bytes of a body that is refused which are read and thrown away, so that the sender sees why."""
MAX_DIGITS = 18
"""What SQLite can count to."""
TOKEN_HINT = "this session was restarted; its old token has expired"  # noqa: S105  # what it is for, not what it is


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: the user, a session, or a client of the user's that no session has started."""

    session: str | None = None
    client: int | None = None
    """The pid of a process of the user's that has shown no token: one path alone is open to it."""

    @property
    def is_user(self) -> bool:
        return self.session is None and self.client is None


@dataclass(slots=True)
class Guard:
    app: ASGIApp
    user_token: str
    session_of: Callable[[str], str | None]
    """Session id by token hash."""
    stop: Callable[[], None] = lambda: None
    ended: Callable[[str], bool] = lambda _: False
    """Whether a session's client has ended: what is left of it may only say so itself."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        repeated = len(headers) < len(scope["headers"]) and repeats(scope["headers"])
        refused = REPEATED if repeated else check_nul(scope) or check_origin(headers)
        caller = None if refused else client_of(scope, headers) or self._caller(headers.get("authorization", ""))
        if caller is None:
            refused = refused or Refused("unauthorized", "A valid bearer token is needed", TOKEN_HINT)
            await error_response(refused)(scope, receive, send)
            return
        if caller.session is not None and not scope["path"].startswith("/hooks/") and self.ended(caller.session):
            gone = Refused("ended", f"Session {caller.session} has ended", "sm restore brings it back")
            await error_response(gone)(scope, receive, send)
            return
        scope["sm.caller"] = caller
        scope["sm.stop"] = self.stop
        refused = check_body(scope["path"], headers)
        body = _Body(receive, send, limit_of(scope["path"]), refused=refused is not None)
        if refused is not None:
            await error_response(refused)(scope, receive, body.give)
            return
        await self.app(scope, body.take, body.give)

    def _caller(self, authorization: str) -> Caller | None:
        kind, _, token = authorization.partition(" ")
        if kind.lower() != "bearer" or not token:
            return None
        if secrets.compare_digest(token.encode(), self.user_token.encode()):
            return Caller()
        session = self.session_of(token_hash(token))
        return None if session is None else Caller(session)


@dataclass(slots=True)
class _Body:
    """The body of one request: counted while it comes, since a chunked one announces no length."""

    receive: Receive
    send: Send
    limit: int
    refused: bool
    seen: int = 0

    async def take(self) -> Message:
        message = await self.receive()
        self.seen += len(message.get("body", b""))
        if self.seen > self.limit:
            self.refused = True
            raise error("too_large", f"The body is larger than {self.limit:,} bytes")
        return message

    async def give(self, message: Message) -> None:
        """Send the answer, then throw away the rest of a refused body: a sender that is cut off sees no answer."""
        if self.refused and message["type"] == "http.response.body":
            await self.send({**message, "more_body": True})
            await self._drain()
            message = {"type": "http.response.body"}
        await self.send(message)

    async def _drain(self) -> None:
        rest, more = MAX_DRAINED, True
        while more and rest > 0:
            message = await self.receive()
            rest -= len(message.get("body", b""))
            more = message.get("more_body", False)


def peer_of(request: Request) -> Peer | None:
    """Return who is at the other end of the connection; None where nothing tells it."""
    client, server = request.scope.get("client"), request.scope.get("server")
    own_port = (server[1] if server else None) or 0  # none on a unix socket
    return None if client is None else Peer(client[0], client[1], own_port)


def client_of(scope: Scope, headers: Mapping[str, str]) -> Caller | None:
    """A process of the user's on the private socket, by what the system says of it, on the paths for that."""
    peer = scope.get("client")
    if not scope["path"].startswith(CLIENT_PATHS) or "authorization" in headers or peer is None or peer[0] != UNIX:
        return None
    return Caller(client=peer[1])


def limit_of(path: str) -> int:
    return HOOK_LIMIT if path.startswith("/hooks/") else BODY_LIMIT


LOOKED_AT = frozenset({b"host", b"origin", b"sec-fetch-site", b"authorization", b"content-type", b"content-length"})
REPEATED = Refused("bad_request", "A security header occurs twice")


def repeats(headers: list[tuple[bytes, bytes]]) -> bool:
    """Whether one of the headers that are looked at here comes twice: two readers would each believe another."""
    names = [name for name, _ in headers if name in LOOKED_AT]
    return len(names) > len(set(names))


def check_nul(scope: Scope) -> Refused | None:
    """No file and no name has one; in a path it names nothing, which each route says by itself."""
    if b"%00" in scope["query_string"]:
        return Refused("bad_request", "The query holds a NUL (%00)", "leave it out")
    return None


def check_origin(headers: dict[str, str]) -> Refused | None:
    if LOOPBACK.fullmatch(headers.get("host", "")) is None:
        return Refused("foreign_host", "Host not allowed", "use 127.0.0.1, localhost or [::1]")
    origin = headers.get("origin")
    if origin is not None and ORIGIN.fullmatch(origin) is None:
        return Refused("foreign_origin", "Requests of other origins are refused")
    if headers.get("sec-fetch-site", "none") not in {"none", "same-origin"}:
        return Refused("foreign_origin", "Requests of other sites are refused")
    return None


def check_body(path: str, headers: dict[str, str]) -> Refused | None:
    length = headers.get("content-length", "0")
    if length == "0" and "transfer-encoding" not in headers:
        return None
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        return Refused("bad_type", "Only application/json is accepted")
    if is_number(length) and int(length) > limit_of(path):
        return Refused("too_large", f"The body is larger than {limit_of(path):,} bytes")
    return None


def is_number(text: str) -> bool:
    """Whether it is a number we take from outside: `isdigit` alone also holds for ² and other scripts' digits."""
    return text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS


def caller_of(request: Request) -> Caller:
    caller = request.scope["sm.caller"]
    assert isinstance(caller, Caller)
    return caller
