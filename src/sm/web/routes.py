"""The routes of browsers, with who may call each: the page, its files, the login, and the devices."""

from __future__ import annotations

from importlib.util import find_spec

from sm.api.app import ROUTES, application
from sm.api.authority import DEVICE_OR_USER, OPEN, OWN_DEVICE, USER, ApiRoute
from sm.api.routes import Backend
from sm.api.security import Guard
from sm.web.access import login, manage, push
from sm.web.access.devices import Devices
from sm.web.static_files import static_file

if find_spec("jinja2") and find_spec("markdown_it"):
    from sm.web.pages.routes import DEVICES, SHOWN
else:
    from sm.web.not_installed import DEVICES, SHOWN

ACCESS = [
    ApiRoute("POST", "/web/links", manage.make_link, USER),
    DEVICES,
    ApiRoute("DELETE", "/web/devices/{device}", manage.revoke_device, DEVICE_OR_USER, from_browser=True),
    ApiRoute("GET", "/web/push", push.show, OWN_DEVICE, from_browser=True),
    ApiRoute("PUT", "/web/push", push.notify, OWN_DEVICE, from_browser=True),
    ApiRoute("DELETE", "/web/push", push.end, OWN_DEVICE, from_browser=True),
]
PAGES = [
    *SHOWN,
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
