"""Links and devices for the user: make a link, list devices, revoke one."""

from __future__ import annotations

import structlog
from starlette.requests import Request
from starlette.responses import Response

from sm.api.bodies import WebLinkBody
from sm.api.routes import answer, body
from sm.api.security import caller_of
from sm.core.errors import error
from sm.core.ids import is_prefix
from sm.core.model.device import Device
from sm.web.access.login import devices_of
from sm.wire import DeviceView, WebLink

log = structlog.get_logger()


async def make_link(request: Request) -> Response:
    """Make a link by which one browser can log in within five minutes; with `read_only` it changes nothing."""
    wanted = await body(request, WebLinkBody)
    if not wanted.name.isprintable() or wanted.name != wanted.name.strip():
        raise error("bad_request", "A device's name must be printable, without blanks at its ends", "choose another")
    devices = devices_of(request)
    code, link = devices.links.make(wanted.name, read_only=wanted.read_only)
    path = f"/login?code={code}"
    return answer(WebLink(path, devices.host, list(devices.configured_hosts()), link.expires, link.read_only), 201)


async def list_devices(request: Request) -> Response:
    """The browsers that are logged in, the newest first; a read-only one sees itself."""
    own = caller_of(request).device
    found = devices_of(request).listed()
    shown = [device for device in found if own is None or not own.read_only or device.id == own.id]
    return answer([device_view(device, own) for device in shown])


async def revoke_device(request: Request) -> Response:
    """Log a browser out at once, wherever it is."""
    devices, asked = devices_of(request), request.path_params["device"].lower()
    found = [
        device
        for device in devices.listed()
        if device.id == asked or (is_prefix(asked) and device.id.startswith(asked))
    ]
    if len(found) != 1:
        raise error("not_found", f"No such device: {asked}", "sm web devices lists them")
    gone = await devices.revoke(found[0])
    log.info("device revoked", device=gone.id)
    return answer(device_view(gone, caller_of(request).device))


def device_view(device: Device, own: Device | None) -> DeviceView:
    return DeviceView(
        id=device.id,
        name=device.name,
        created=device.created,
        seen=device.seen,
        read_only=device.read_only,
        revoked=device.revoked,
        this=own is not None and own.id == device.id,
        notified=device.push is not None,
    )
