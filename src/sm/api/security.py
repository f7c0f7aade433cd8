"""Who may send a request at all, before any route sees it.

Loopback only, so these rules are about browsers and about sessions that reach beyond themselves: a bearer token on every
request, a Host that is loopback, no foreign Origin, JSON bodies of bounded size. A session's token proves to be that
session and nothing more.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sm.api.errors import error_response
from sm.core.errors import Refused, SmError, error
from sm.core.ids import token_hash

HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})
HOOK_LIMIT = 16 * 1024 * 1024
BODY_LIMIT = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: the user, or a session."""

    session: str | None = None

    @property
    def is_user(self) -> bool:
        return self.session is None


@dataclass(slots=True)
class Guard:
    app: ASGIApp
    user_token: str
    session_of: Callable[[str], str | None]
    """Session id by token hash."""
    stop: Callable[[], None] = lambda: None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        refused = check_origin(headers) or check_body(scope["method"], scope["path"], headers)
        caller = None if refused else self._caller(headers.get("authorization", ""))
        if caller is None:
            refused = refused or Refused("unauthorized", "A valid bearer token is needed", TOKEN_HINT)
            await error_response(refused)(scope, receive, send)
            return
        scope["sm.caller"] = caller
        scope["sm.stop"] = self.stop
        await self._bounded(scope, receive, send)

    def _caller(self, authorization: str) -> Caller | None:
        kind, _, token = authorization.partition(" ")
        if kind.lower() != "bearer" or not token:
            return None
        if secrets.compare_digest(token.encode(), self.user_token.encode()):
            return Caller()
        session = self.session_of(token_hash(token))
        return None if session is None else Caller(session)

    async def _bounded(self, scope: Scope, receive: Receive, send: Send) -> None:
        limit = HOOK_LIMIT if scope["path"].startswith("/hooks/") else BODY_LIMIT
        seen = 0

        async def bounded() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > limit:
                raise error("too_large", f"The body is larger than {limit:,} bytes")
            return message

        await self.app(scope, bounded, send)


TOKEN_HINT = "the user's token is in the file `token` in SM_HOME"  # noqa: S105  # where it is, not what it is


def check_origin(headers: dict[str, str]) -> Refused | None:
    host = headers.get("host", "")
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    if name not in HOSTS:
        return Refused("foreign_host", "This Host is not served", "use 127.0.0.1, localhost or [::1]")
    origin = headers.get("origin")
    if origin is not None and origin.partition("://")[2].rpartition(":")[0] not in HOSTS:
        return Refused("foreign_origin", "Requests of other origins are refused")
    if headers.get("sec-fetch-site", "none") not in {"none", "same-origin"}:
        return Refused("foreign_origin", "Requests of other sites are refused")
    return None


def check_body(method: str, path: str, headers: dict[str, str]) -> Refused | None:
    length = headers.get("content-length", "0")
    has_body = length != "0" or "transfer-encoding" in headers
    if method in {"GET", "HEAD"} or not has_body:
        return None
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        return Refused("bad_type", "Only application/json is accepted")
    limit = HOOK_LIMIT if path.startswith("/hooks/") else BODY_LIMIT
    if length.isdigit() and int(length) > limit:
        return Refused("too_large", f"The body is larger than {limit:,} bytes")
    return None


def caller_of(request: Request) -> Caller:
    caller = request.scope["sm.caller"]
    assert isinstance(caller, Caller)
    return caller


def only_user(request: Request) -> None:
    if not caller_of(request).is_user:
        raise error("forbidden", "A session may not do this", "ask the person who runs sm")


def only_self(request: Request, session: str) -> None:
    """The user may act on any session, a session on itself and its children's parent rights come with children."""
    caller = caller_of(request)
    if not caller.is_user and caller.session != session:
        raise error("not_self", "A session may do this for itself only")


__all__ = ["Caller", "Guard", "SmError", "caller_of", "check_body", "check_origin", "only_self", "only_user"]
