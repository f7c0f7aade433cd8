"""`/login`: a link's code becomes a device's cookie, at the press of a button in the browser itself."""

from __future__ import annotations

import asyncio
import os
import re
from urllib.parse import parse_qs

import structlog
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sm.api.browsers import came_by_https, check_same_origin
from sm.api.inside import check_outside
from sm.api.security import peer_of
from sm.core.errors import SmError, error
from sm.peers import user_of
from sm.web.access.devices import Devices
from sm.web.access.links import CODE, LoginLink
from sm.web.access.screens import login_page, page
from sm.web.answers import HEADERS

log = structlog.get_logger()
MAX_COOKIE_AGE_S = 400 * 86_400
"""What browsers allow at most. The server ends a device that is not used much earlier."""
ROOT = 0
BROWSERS = (("Edg", "Edge"), ("OPR", "Opera"), ("Firefox", "Firefox"), ("Chrome", "Chrome"), ("Safari", "Safari"))
SYSTEMS = (
    ("Android", "Android"), ("iPhone", "iPhone"), ("iPad", "iPad"), ("Windows", "Windows"), ("Mac OS", "Mac"),
    ("CrOS", "ChromeOS"), ("Linux", "Linux"),
)  # fmt: skip
"""The first that a browser names itself by: most name those behind it as well."""


def devices_of(request: Request) -> Devices:
    found = request.app.state.devices
    assert isinstance(found, Devices)
    return found


async def show_login(request: Request) -> Response:
    """The page with the button that logs this browser in; it uses the link's code not up."""
    code = request.query_params.get("code", "")
    if CODE.fullmatch(code) is None:
        return page("Not a whole link", "<p>Copy all of the link that <kbd>sm web</kbd> prints.</p>", 400)
    return login_page(code)


async def log_in(request: Request) -> Response:
    """Use the code of a link up, set the device's cookie, and go to the page."""
    headers = dict(request.headers.items())
    refused = check_same_origin(headers)
    if refused is not None:
        raise SmError(refused)
    await check_outside(request)
    await _check_user(request, headers.get("host", ""))
    devices, link = devices_of(request), _link(request, await request.body())
    secret, device = await devices.add(
        link.name or browser_name(headers.get("user-agent", "")), read_only=link.read_only
    )
    log.info("device let in", device=device.id, read_only=device.read_only)
    answer = RedirectResponse("/", 303, HEADERS)
    answer.set_cookie(
        devices.cookie,
        secret,
        max_age=MAX_COOKIE_AGE_S,
        path="/",
        secure=came_by_https(headers),
        httponly=True,
        samesite="strict",
    )
    return answer


async def _check_user(request: Request, host: str) -> None:
    """Refuse another user of this machine, who may have seen the link in the list of processes.

    Behind a proxy, which may run as anybody, the system does not show who it is.
    """
    peer = peer_of(request)
    if peer is None or host.lower() in devices_of(request).configured_hosts():
        return
    user = await asyncio.to_thread(user_of, peer)
    if user not in {None, ROOT, os.getuid()}:
        log.warning("login refused: another user of this machine")
        raise error("forbidden", "The link is for the user who runs sm", "log in as that user")


def _link(request: Request, body: bytes) -> LoginLink:
    codes = parse_qs(body.decode("ascii", "replace"), max_num_fields=4).get("code", [""])
    link = devices_of(request).links.take(codes[0])
    if link is None:
        log.warning("login refused: the link is not valid")
        message = "This link was used already, is older than five minutes, or was never made"
        raise error("bad_link", message, "run sm web for a new one")
    return link


def browser_name(agent: str) -> str:
    """Return a name for the device, made of known words alone."""
    system = next((name for word, name in SYSTEMS if word in agent), "")
    named = re.split(r"\W+", agent)
    browser = next((name for word, name in BROWSERS if any(part.startswith(word) for part in named)), "browser")
    return f"{browser} on {system}" if system else browser
