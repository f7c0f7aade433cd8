"""`/web/push`: the device that asks is notified while no page is open, or no longer; and which addresses a browser may
name for that.

A browser names a URL to which this server posts from then on. It has to be one of a push service: https, a name of the
Internet, no port. What the name leads to is looked at each time it is used, in `notify/deliver_push.py`. A device has
one URL, which is kept once it has taken a test.
"""

from __future__ import annotations

import re
from urllib.parse import SplitResult, urlsplit

import structlog
from starlette.requests import Request
from starlette.responses import Response

from sm.api.bodies import PushBody
from sm.api.routes import answer, body
from sm.api.security import caller_of
from sm.core.errors import error
from sm.core.model.device import Device, PushSubscription
from sm.core.model.notification import TEST
from sm.core.ports.notifier import ChannelError
from sm.web.access.login import devices_of
from sm.web.access.manage import device_view
from sm.wire import PushView

log = structlog.get_logger()
ALLOWED = re.compile(r"[!-~]+")
"""Printable ASCII, which browsers make of any URL."""
LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
MAX_HOST_CHARS = 253
NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
"""The last part of a name that is read as an IPv4 address, in one of its forms."""
LOCAL_ENDINGS = ("localhost", "local", "internal", "home.arpa", "onion")


async def show(request: Request) -> Response:
    """Return this server's key for browsers, and whether the device that asks is notified."""
    device, devices = _own(request), devices_of(request)
    key = await devices.push.public_key()
    return answer(PushView(key, devices.subscription(device.id) is not None))


async def notify(request: Request) -> Response:
    """Notify the device that asks, by its browser's push service, once that has taken a test."""
    device, devices = _own(request), devices_of(request)
    wanted = await body(request, PushBody)
    fault = endpoint_fault(wanted.endpoint)
    if fault:
        hint = "update the browser, or notify another device"
        raise error("no_push", f"Not the address of a push service: {fault}", hint)
    await devices.push.public_key()
    subscription = PushSubscription(wanted.endpoint, wanted.keys.p256dh, wanted.keys.auth)
    if devices.trying.locked():
        raise error("no_push", "Another browser's push service is being tried", "try again in a moment")
    async with devices.trying:
        try:
            await devices.push.send(subscription, TEST)
        except ChannelError as problem:
            raise error("no_push", f"A test did not arrive: {problem}", "try again") from problem
    if devices.ending(device).is_set():
        raise error("unauthorized", "This device was logged out", "run sm web for a new link")
    notified = await devices.notify(device, subscription)
    log.info("device notified", device=device.id)
    return answer(device_view(notified, device))


async def end(request: Request) -> Response:
    """Notify the device that asks no longer."""
    device, devices = _own(request), devices_of(request)
    return answer(device_view(await devices.notify(device, None), device))


def _own(request: Request) -> Device:
    device = caller_of(request).device
    assert device is not None  # by the table of the routes
    return device


def endpoint_fault(endpoint: str) -> str:
    """Return why nothing is posted to that URL; empty if it may be one of a push service."""
    if ALLOWED.fullmatch(endpoint) is None:
        return "it holds a character that no URL has"
    try:
        url, port = urlsplit(endpoint), urlsplit(endpoint).port
    except ValueError:
        return "it is not a URL"
    if url.scheme != "https":
        return "it is not https"
    if "@" in url.netloc or port not in {None, 443} or "#" in endpoint or "\\" in endpoint:
        return "it names a user, a port or a part of a page"
    return _host_fault(url)


def _host_fault(url: SplitResult) -> str:
    host = url.hostname or ""
    labels = host.split(".")
    is_name = len(host) <= MAX_HOST_CHARS and len(labels) > 1 and all(LABEL.fullmatch(label) for label in labels)
    if not is_name or NUMBER.fullmatch(labels[-1]):
        return "its host has a form that names of the Internet do not have"
    if any(host == ending or host.endswith(f".{ending}") for ending in LOCAL_ENDINGS):
        return "its host is a name of this machine or its network"
    return ""
