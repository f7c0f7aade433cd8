"""What the server answers in the place of the page where what the page needs is not installed."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from sm.api.authority import DEVICE_OR_USER, ApiRoute
from sm.core.errors import error
from sm.web.access import manage


async def home(_: Request) -> Response:
    """The page of the fleet: what asks, every session, the runs."""
    message = "The page is not installed: it needs Jinja2 and markdown-it-py"
    raise error("no_page", message, "pip install 'agent-sm[web]' into the environment of sm, then sm server restart")


SHOWN = [ApiRoute("GET", "/", home, DEVICE_OR_USER, from_browser=True)]
DEVICES = ApiRoute("GET", "/web/devices", manage.list_devices, DEVICE_OR_USER, from_browser=True)
