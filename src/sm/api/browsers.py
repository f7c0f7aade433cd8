"""A request of a browser: which device it comes from, and that our own page has made it.

A browser sends a cookie along with whatever asks it to, and to every port of a host. So each request that changes
something also carries a token that only our page can read, an Origin that is the very host it was sent to, and no sign
of another site. The cookie's secret and a bearer token never come together.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from asyncio import Event
from collections.abc import Mapping
from typing import Protocol

from starlette.responses import Response
from starlette.types import Scope

from sm.core.errors import Refused
from sm.core.model.device import Device

READING = frozenset({"GET", "HEAD"})
LOGIN = "/login"
STATIC = "/web/static/"
PAGES = ("/", LOGIN)
PAGES_BELOW = "/web/"
CSRF_HEADER = "x-sm-csrf"
MAX_COOKIES = 8
"""Cookies of our name in one request: what runs on another port of the host may set more of them."""
HTTP_ORIGIN = re.compile(r"https?://", re.IGNORECASE)
LOG_IN = "run sm web on the machine where sm runs, and open the link that it prints"


class Browsers(Protocol):
    """The devices that are let in, and the hosts that the page is reached by."""

    @property
    def cookie(self) -> str:
        """Its name: another server on the same host has another one."""

    def device(self, secret: str) -> Device | None:
        """Return the device that has this secret, if it may still come in."""

    async def used(self, device: Device) -> None: ...

    def ending(self, device: Device) -> Event:
        """Set once the device is revoked."""

    def admits(self, host: str) -> bool:
        """Whether this Host header, besides the loopback ones, names this server."""

    def page(self, refused: Refused, status: int) -> Response:
        """Return a refusal for people."""


def csrf_of(secret: str) -> str:
    """Return the token of the device with this secret: who knows it does not know the secret."""
    digest = hmac.digest(secret.encode(), b"sm csrf", hashlib.sha256)
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def cookies_named(header: str, name: str) -> list[str]:
    """Return the first values of the cookies of this name, in the order in which the browser sends them."""
    pairs = (part.partition("=") for part in header.split(";"))
    return [value.strip() for key, _, value in pairs if key.strip() == name][:MAX_COOKIES]


def is_open(path: str) -> bool:
    """Whether a page or file is for whoever has not logged in yet."""
    return path == LOGIN or path.startswith(STATIC)


def opens_login(scope: Scope, headers: Mapping[str, str]) -> bool:
    """Whether a link to the login was followed, from wherever it was sent to: the page does nothing by itself."""
    is_followed = (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) == ("navigate", "document")
    return is_followed and scope["path"] == LOGIN and scope["method"] == "GET" and "origin" not in headers


def wants_page(scope: Scope, headers: Mapping[str, str]) -> bool:
    """Whether the answer is shown to the user."""
    path = scope["path"]
    return (path in PAGES or path.startswith(PAGES_BELOW)) and "text/html" in headers.get("accept", "")


def known_device(browsers: Browsers, header: str) -> tuple[Device, str] | None:
    """Return the device with its secret."""
    for secret in cookies_named(header, browsers.cookie):
        device = browsers.device(secret)
        if device is not None:
            return device, secret
    return None


def check_forgery(method: str, headers: Mapping[str, str], secret: str) -> Refused | None:
    """Refuse what another page may have made the browser send."""
    if method in READING:
        return None
    given = headers.get(CSRF_HEADER, "")
    if not secrets.compare_digest(given.encode(), csrf_of(secret).encode()):
        return Refused("bad_csrf", "The request lacks the page's own token", "load the page again")
    return check_same_origin(headers)


def check_same_origin(headers: Mapping[str, str]) -> Refused | None:
    """Refuse what does not come from a page of the very host, and port, that it is sent to."""
    origin, site = headers.get("origin", ""), headers.get("sec-fetch-site", "none")
    if HTTP_ORIGIN.sub("", origin, count=1).lower() != headers.get("host", "").lower() or "://" not in origin:
        return Refused("foreign_origin", "The request comes from another page", "use sm's own page")
    if site not in {"none", "same-origin"}:
        return Refused("foreign_origin", "Requests of other sites are refused")
    return None


def came_by_https(headers: Mapping[str, str]) -> bool:
    """Whether the browser itself says so, in the Origin of its request: a proxy's own headers are not believed."""
    return headers.get("origin", "").lower().startswith("https://")
