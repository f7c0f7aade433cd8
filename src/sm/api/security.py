"""Who may send a request at all, before any route sees it; who may call which route is in `authority.py`.

Loopback only, so these rules are about browsers and about sessions that reach beyond themselves: a bearer token on
every request, or the cookie of a device that was let in (`browsers.py`), a Host that is loopback or configured, no
foreign Origin, JSON bodies of bounded size. A session's token proves to be that session and nothing more: it acts for
itself and on its children.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from sm.api import browsers as web
from sm.api.browsers import Browsers
from sm.api.errors import CODES, REFUSED, error_response
from sm.api.transfer import Transfer
from sm.core.errors import Refused, SmError, error
from sm.core.ids import token_hash
from sm.core.model.device import Device
from sm.peers import UNIX, Peer

LOOPBACK = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?", re.IGNORECASE)
"""With any port: people forward ports."""
ORIGIN = re.compile(rf"https?://{LOOPBACK.pattern}", re.IGNORECASE)
"""Programs that show pages of their own, from elsewhere too, name themselves as in `capacitor://localhost`."""
CLIENT_PATHS = "/link/"
"""Where the plugin in a client that the user has started reports, without a token."""
HOOK_LIMIT = 16 * 1024 * 1024
BODY_LIMIT = 1024 * 1024
LOGIN_LIMIT = 4096
JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
MAX_DIGITS = 18
"""What SQLite can count to."""
TOKEN_HINT = "this session was restarted; its old token has expired"  # noqa: S105  # what it is for, not what it is


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: the user, also by a device of theirs, a session, or a client that the user has started themselves."""

    session: str | None = None
    client: int | None = None
    """The pid of a process of the user's that has shown no token: one path alone is open to it."""
    device: Device | None = None
    """A browser that acts as the user, on the routes that the table opens to it."""
    stranger: bool = False
    """It has shown nothing: the login and the page's own files are open to it."""

    @property
    def is_user(self) -> bool:
        return self.session is None and self.client is None and not self.stranger


@dataclass(slots=True)
class Guard:
    app: ASGIApp
    user_token: str
    session_of: Callable[[str], str | None]
    """Session id by token hash."""
    browsers: Browsers
    stop: Callable[[], None] = lambda: None
    ended: Callable[[str], bool] = lambda _: False
    """Whether a session's client has ended: what is left of it may only say so itself."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":  # none of the routes is one, and no caller is looked at here
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        if web.wants_page(scope, headers):
            scope["sm.page"] = self.browsers.page
        try:
            if len(headers) < len(scope["headers"]):
                check_repeated(scope["headers"])
            check_nul(scope)
            check_origin(headers, self.browsers, opens_login=web.opens_login(scope, headers))
            caller = await self._caller(scope, headers)
        except SmError as problem:
            await refusal(scope, problem.refused)(scope, receive, send)
            return
        scope.update({"sm.caller": caller, "sm.stop": self.stop, "sm.ends": []})
        refused = check_body(scope["path"], headers)
        body = Transfer(receive, send, limit_of(scope["path"]), refused is not None, self._ending(caller))
        try:
            if refused is None:
                await self.app(scope, body.take, body.give)
                await body.finish()
            else:
                await refusal(scope, refused)(scope, receive, body.give)
        finally:
            for end in scope["sm.ends"]:
                end()

    async def _caller(self, scope: Scope, headers: dict[str, str]) -> Caller:
        """Return who asks; SmError for whoever may not ask at all."""
        by_process = client_of(scope, headers)
        if by_process is not None:
            return by_process
        if "authorization" in headers:
            return self._by_token(scope["path"], headers)
        if web.is_open(scope["path"]):
            return Caller(stranger=True)
        known = web.known_device(self.browsers, headers.get("cookie", ""))
        if known is None:
            hint = web.LOG_IN if "sm.page" in scope else TOKEN_HINT
            raise error("unauthorized", "A valid bearer token is needed", hint)
        device, secret = known
        refused = web.check_forgery(scope["method"], headers, secret)
        if refused is not None:
            raise SmError(refused)
        await self.browsers.used(device)
        scope["sm.csrf"] = web.csrf_of(secret)
        return Caller(device=device)

    def _by_token(self, path: str, headers: dict[str, str]) -> Caller:
        if web.cookies_named(headers.get("cookie", ""), self.browsers.cookie):
            raise error("bad_request", "A bearer token and a device's cookie came together", "send one of them")
        if path == web.LOGIN:
            raise error("forbidden", "A device logs in without a token", "open the link in a browser")
        caller = self._token(headers["authorization"])
        if caller is None:
            raise error("unauthorized", "A valid bearer token is needed", TOKEN_HINT)
        if caller.session is not None and not path.startswith("/hooks/") and self.ended(caller.session):
            raise error("ended", f"Session {caller.session} has ended", "sm restore brings it back")
        return caller

    def _token(self, authorization: str) -> Caller | None:
        kind, _, token = authorization.partition(" ")
        if kind.lower() != "bearer" or not token:
            return None
        if secrets.compare_digest(token.encode(), self.user_token.encode()):
            return Caller()
        session = self.session_of(token_hash(token))
        return None if session is None else Caller(session)

    def _ending(self, caller: Caller) -> asyncio.Event | None:
        return None if caller.device is None else self.browsers.ending(caller.device)


def refusal(scope: Scope, refused: Refused, headers: Mapping[str, str] | None = None) -> Response:
    """Answer for the one who asks: the user of a browser, or a program."""
    page = scope.get("sm.page")
    if page is None:
        return error_response(refused, headers)
    shown: Response = page(refused, CODES.get(refused.code, (REFUSED, ""))[0])
    return shown


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
    return LOGIN_LIMIT if path == web.LOGIN else HOOK_LIMIT if path.startswith("/hooks/") else BODY_LIMIT


LOOKED_AT = frozenset({
    b"host", b"origin", b"sec-fetch-site", b"authorization", b"cookie", b"x-sm-csrf", b"content-type", b"content-length"
})  # fmt: skip


def check_repeated(headers: list[tuple[bytes, bytes]]) -> None:
    """Refuse one of the headers that are looked at here twice: two readers would each believe another."""
    names = [name for name, _ in headers if name in LOOKED_AT]
    if len(names) > len(set(names)):
        raise error("bad_request", "A security header occurs twice")


def check_nul(scope: Scope) -> None:
    """No file and no name has one; in a path it names nothing, which each route says by itself."""
    if b"%00" in scope["query_string"]:
        raise error("bad_request", "The query holds a NUL (%00)", "leave it out")


def check_origin(headers: dict[str, str], browsers: Browsers, *, opens_login: bool = False) -> None:
    host = headers.get("host", "")
    if LOOPBACK.fullmatch(host) is None and not browsers.admits(host):
        hint = "use 127.0.0.1, localhost or [::1], or list the host in server.hosts"
        raise error("foreign_host", "Host not allowed", hint)
    origin = headers.get("origin")
    if origin is not None and ORIGIN.fullmatch(origin) is None and not _is_of(origin, browsers):
        raise error("foreign_origin", "Requests of other origins are refused")
    if headers.get("sec-fetch-site", "none") not in {"none", "same-origin"} and not opens_login:
        raise error("foreign_origin", "Requests of other sites are refused")


def _is_of(origin: str, browsers: Browsers) -> bool:
    scheme, found, host = origin.partition("://")
    return found != "" and scheme.lower() in {"http", "https"} and browsers.admits(host)


def check_body(path: str, headers: dict[str, str]) -> Refused | None:
    length = headers.get("content-length", "0")
    if length == "0" and "transfer-encoding" not in headers:
        return None
    wanted = FORM if path == web.LOGIN else JSON
    if headers.get("content-type", "").partition(";")[0].strip().lower() != wanted:
        return Refused("bad_type", f"Only {wanted} is accepted")
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
