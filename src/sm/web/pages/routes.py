"""The routes of the page."""

from __future__ import annotations

from sm.api.authority import DEVICE_OR_USER, ApiRoute
from sm.web.pages import fleet_page, other_pages, run_page, session_page

SESSION = "/web/sessions/{session}"
RUN = "/web/runs/{run}"
SHOWN = [
    ApiRoute("GET", "/", fleet_page.home, DEVICE_OR_USER, from_browser=True),
    ApiRoute("GET", "/web/live", fleet_page.stream, DEVICE_OR_USER, from_browser=True),
    ApiRoute("GET", "/web/search", other_pages.search, DEVICE_OR_USER, from_browser=True),
    ApiRoute("GET", RUN, run_page.show, DEVICE_OR_USER, from_browser=True),
    ApiRoute("GET", f"{RUN}/parts", run_page.parts, DEVICE_OR_USER, from_browser=True),
    ApiRoute("GET", SESSION, session_page.show, DEVICE_OR_USER, from_browser=True),
    ApiRoute("GET", f"{SESSION}/head", session_page.head, DEVICE_OR_USER, from_browser=True),
    ApiRoute("GET", f"{SESSION}/messages", session_page.message_list, DEVICE_OR_USER, from_browser=True),
    ApiRoute("GET", f"{SESSION}/history", session_page.history, DEVICE_OR_USER, from_browser=True),
    ApiRoute("GET", f"{SESSION}/transcript", session_page.transcript, DEVICE_OR_USER, from_browser=True),
    ApiRoute("GET", f"{SESSION}/documents/{{handoff}}", session_page.document, DEVICE_OR_USER, from_browser=True),
    ApiRoute("GET", f"{SESSION}/screen", session_page.screen, DEVICE_OR_USER, from_browser=True),
    ApiRoute("POST", f"{SESSION}/keys", session_page.keys, DEVICE_OR_USER, from_browser=True),
]
DEVICES = ApiRoute("GET", "/web/devices", other_pages.devices, DEVICE_OR_USER, from_browser=True)
