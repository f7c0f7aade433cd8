"""The routes of browsers, with who may call each: the page, its files, the login, and the devices."""

from __future__ import annotations

from sm.api.app import ROUTES, application
from sm.api.authority import DEVICE_OR_USER, OPEN, USER, ApiRoute
from sm.api.routes import Backend
from sm.api.security import Guard
from sm.web.access import login, manage
from sm.web.access.devices import Devices
from sm.web.static_files import static_file

ACCESS = [
    ApiRoute("POST", "/web/links", manage.make_link, USER),
    ApiRoute("GET", "/web/devices", manage.list_devices, DEVICE_OR_USER, from_browser=True),
    ApiRoute("DELETE", "/web/devices/{device}", manage.revoke_device, DEVICE_OR_USER, from_browser=True),
]
PAGES = [
    ApiRoute("GET", "/login", login.show_login, OPEN),
    ApiRoute("POST", "/login", login.log_in, OPEN),
    ApiRoute("GET", "/web/static/{path:path}", static_file, OPEN),
]
"""Answer in HTML, or with a file."""
JSON_ROUTES = [*ROUTES, *ACCESS]
EVERY_ROUTE = [*JSON_ROUTES, *PAGES]


def web_application(found: Backend, user_token: str, devices: Devices) -> Guard:
    """Return the whole server's application, API and page."""
    return application(found, user_token, devices, EVERY_ROUTE)
