"""Who may call which route: the table of the routes, and each of its checks on the route itself."""

import pytest

from sm.web.routes import EVERY_ROUTE as ROUTES

SELF = "the user, the session itself"
OWNER = "the user, the session itself, its parent"
ABOVE = "the user, the session's parent"
CHECKED = {
    "the user": {
        "POST /sessions",
        "GET /limits",
        "POST /sessions/{session}/limit/resume",
        "GET /sessions/{session}/attach",
        "POST /sessions/{session}/remove",
        "POST /sessions/{session}/client",
        "POST /sessions/{session}/client/exit",
        "GET /sessions/{session}/order",
        "POST /sessions/{session}/order",
        "DELETE /handoffs",
        "DELETE /handoffs/{handoff}",
        "POST /archive/prune",
        "POST /notifications/test",
        "POST /notifications/run-ended",
        "POST /stop",
        "POST /web/links",
    },
    "the user, a device of theirs": {
        "GET /web/devices",
        "DELETE /web/devices/{device}",
        "GET /",
        "GET /web/live",
        "GET /web/search",
        "GET /web/runs/{run}",
        "GET /web/runs/{run}/parts",
        "GET /web/sessions/{session}",
        "GET /web/sessions/{session}/head",
        "GET /web/sessions/{session}/messages",
        "GET /web/sessions/{session}/history",
        "GET /web/sessions/{session}/transcript",
        "GET /web/sessions/{session}/documents/{handoff}",
        "GET /web/sessions/{session}/screen",
        "POST /web/sessions/{session}/keys",
    },
    "a device, for itself alone, a read-only one too": {"GET /web/push", "PUT /web/push", "DELETE /web/push"},
    SELF: {
        "PATCH /sessions/{session}",
        "POST /sessions/{session}/context/rearm",
        "GET /sessions/{session}/messages",
        "GET /sessions/{session}/handoff",
        "DELETE /sessions/{session}/handoff",
        "POST /sessions/{session}/handoff/retry",
        "POST /sessions/{session}/children",
        "POST /sessions/{session}/report",
        "POST /sessions/{session}/waits",
        "GET /sessions/{session}/reminders",
        "POST /sessions/{session}/reminders",
        "DELETE /sessions/{session}/reminders/{reminder}",
    },
    OWNER: {
        "GET /sessions/{session}/context",
        "GET /sessions/{session}/context/history",
        "GET /sessions/{session}/output",
        "GET /sessions/{session}/events",
        "GET /sessions/{session}/children",
        "GET /sessions/{session}/log",
        "GET /sessions/{session}/archive",
    },
    ABOVE: {
        "DELETE /sessions/{session}",
        "POST /sessions/{session}/restore",
        "POST /sessions/{session}/clear",
    },
}
"""Refused by the table before the route's own code runs."""
DECIDED = {
    "everybody, without a token": {"GET /login", "POST /login", "GET /web/static/{path:path}"},
    "the user, any session": {
        "POST /hooks/{provider}",
        "POST /status/{provider}",
        "GET /sessions",
        "GET /sessions/{session}",
        "POST /sessions/{session}/messages",
        "POST /messages",
        "GET /health",
    },
    "the user, the session itself, which the body names too": {"POST /sessions/{session}/handoff"},
    "the user; a session in its own project": {"GET /handoffs", "GET /handoffs/{handoff}", "GET /search"},
    "the user, the message's sender and target": {"GET /messages/{message}"},
    "the user, the message's sender": {"DELETE /messages/{message}"},
    "the user; a session its own": {"GET /events"},
    "the user; with `asks.parents` the parent of the session that asks": {
        "GET /asks",
        "GET /asks/{ask}",
        "POST /asks/{ask}",
    },
    "the user; a session itself and its children": {"GET /cost"},
    "the session's own client": {"POST /sessions/{session}/link"},
    "a client that the user has started, for itself": {"POST /link/{provider}"},
}
FROM_ANYWHERE = {
    "POST /hooks/{provider}",
    "POST /status/{provider}",
    "POST /sessions/{session}/messages",
    "POST /messages",
}
CALLERS = dict.fromkeys(CHECKED, ()) | {SELF: ("me",), OWNER: ("me", "boss"), ABOVE: ("boss",)}
"""The sessions of those below that may."""
TABLE = [(words, route) for words, routes in CHECKED.items() for route in sorted(routes)]


def named(route):
    [method] = route.methods - {"HEAD"}
    return f"{method} {route.path}"


def test_each_route_has_the_authority_of_the_contract():
    found = {}
    for route in ROUTES:
        found.setdefault(route.may.words, set()).add(named(route))
    assert found == CHECKED | DECIDED


def test_what_changes_something_comes_from_below_the_client_but_for_reports_and_messages():
    assert {named(route) for route in ROUTES if route.from_anywhere} == FROM_ANYWHERE


@pytest.fixture
async def family(api):
    """Four sessions by their names; `me` is the one that is asked about."""
    ids = {"other": await api.new("other"), "boss": await api.new("boss")}
    ids["me"] = await api.new("me", parent=ids["boss"])
    ids["child"] = await api.new("child", parent=ids["me"])
    return ids


@pytest.mark.parametrize(("words", "route"), TABLE)
async def test_the_authority_of_a_route_holds(api, family, words, route):
    method, path = route.split(" ")
    path = path.replace("{session}", family["me"])
    for name in ("reminder", "handoff", "device"):
        path = path.replace(f"{{{name}}}", "x")
    refused = set()
    for name in ("other", "child", "me", "boss"):
        headers = {"Authorization": f"Bearer {api.tokens[family[name]]}", "Content-Type": "application/json"}
        async with api.client(**headers) as client:
            answer = await client.request(method, path, content=b"{}" if method in {"POST", "PATCH"} else b"")
        if answer.status_code == 403:
            refused.add(name)
    assert refused == set(family) - set(CALLERS[words])
    assert api.stopped == []
