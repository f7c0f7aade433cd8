"""A device: what it may do, row by row of the route table, how long, and how it is put out."""

import asyncio
import json
import time

import pytest

from sm.api.authority import OPEN
from sm.api.streams import MAX_OF_ONE
from sm.core.model.device import DAY_S, MAX_UNUSED_S
from sm.web.access.devices import MAX_DEVICES, Devices
from sm.web.routes import EVERY_ROUTE
from tests.api.test_feed import Reader
from tests.web.browser import Visitor, logged_in, login_path

FROM_BROWSER = {
    "GET /sessions",
    "GET /sessions/{session}",
    "PATCH /sessions/{session}",
    "DELETE /sessions/{session}",
    "POST /sessions/{session}/restore",
    "POST /sessions/{session}/remove",
    "GET /sessions/{session}/context",
    "GET /sessions/{session}/context/history",
    "POST /sessions/{session}/context/rearm",
    "POST /sessions/{session}/messages",
    "GET /sessions/{session}/messages",
    "GET /sessions/{session}/output",
    "GET /sessions/{session}/events",
    "POST /sessions/{session}/handoff",
    "GET /sessions/{session}/handoff",
    "DELETE /sessions/{session}/handoff",
    "POST /sessions/{session}/handoff/retry",
    "GET /limits",
    "POST /sessions/{session}/limit/resume",
    "GET /sessions/{session}/children",
    "POST /sessions/{session}/clear",
    "GET /sessions/{session}/reminders",
    "POST /sessions/{session}/reminders",
    "DELETE /sessions/{session}/reminders/{reminder}",
    "GET /sessions/{session}/log",
    "GET /sessions/{session}/archive",
    "GET /search",
    "POST /messages",
    "GET /messages/{message}",
    "DELETE /messages/{message}",
    "GET /asks",
    "GET /asks/{ask}",
    "POST /asks/{ask}",
    "GET /handoffs",
    "GET /handoffs/{handoff}",
    "DELETE /handoffs/{handoff}",
    "GET /cost",
    "GET /events",
    "GET /health",
    "GET /web/devices",
    "DELETE /web/devices/{device}",
    "POST /web/sessions/{session}/keys",
}
OWN = {"PUT /web/push", "DELETE /web/push"}
"""What a device may do for itself, a read-only one too."""
LOCAL = {
    "POST /hooks/{provider}",
    "POST /status/{provider}",
    "POST /sessions",
    "POST /sessions/{session}/link",
    "POST /link/{provider}",
    "GET /sessions/{session}/attach",
    "POST /sessions/{session}/children",
    "POST /sessions/{session}/report",
    "POST /sessions/{session}/waits",
    "POST /archive/prune",
    "POST /sessions/{session}/client",
    "POST /sessions/{session}/client/exit",
    "GET /sessions/{session}/order",
    "POST /sessions/{session}/order",
    "DELETE /handoffs",
    "POST /notifications/test",
    "POST /notifications/run-ended",
    "POST /stop",
    "POST /web/links",
}
"""What names a program or any file, is a program's own part, or decides who gets in."""
NAMED = dict.fromkeys(("message", "handoff", "reminder", "ask", "device"), "deadbeef") | {"provider": "claude"}


def named(route):
    [method] = route.methods - {"HEAD"}
    return f"{method} {route.path}"


async def asked(visitor, session, row):
    """Send what the page would; return the code of the refusal, if it is one."""
    method, path = row.split(" ")
    for name, value in {**NAMED, "session": session}.items():
        path = path.replace(f"{{{name}}}", value)
    if path == "/events":
        method = "HEAD"  # of an answer that does not end
    answer = await visitor.call(method, path, "{}" if method in {"POST", "PATCH", "PUT"} else None)
    assert answer.status_code < 500, answer.text
    return answer.json().get("code", "") if answer.status_code >= 400 and answer.content else ""


def test_each_route_is_for_browsers_or_for_the_machine_alone():
    rows = {named(route): route.from_browser for route in EVERY_ROUTE if route.may is not OPEN}
    assert {row for row, from_browser in rows.items() if not from_browser} == LOCAL
    pages = {row for row in rows if row == "GET /" or row.startswith("GET /web/")}
    assert {row for row, from_browser in rows.items() if from_browser} - pages == FROM_BROWSER - pages | OWN


@pytest.mark.parametrize("row", sorted(LOCAL))
async def test_what_is_for_the_machine_alone_is_refused_to_a_device(api, row):
    session = await api.new("s1")
    assert await asked(await logged_in(api), session, row) == "not_from_browser"
    assert api.stopped == []


@pytest.mark.parametrize("row", sorted(FROM_BROWSER))
async def test_a_device_acts_as_the_user_and_a_read_only_one_only_looks(api, row):
    session = await api.new("s1")
    refused = await asked(await logged_in(api, read_only=True), session, row)
    assert (refused == "read_only") is not row.startswith("GET")
    assert await asked(await logged_in(api), session, row) not in {"not_from_browser", "read_only", "forbidden"}


@pytest.mark.parametrize("row", sorted(OWN))
async def test_what_concerns_a_device_alone_is_for_a_read_only_one_too(api, row):
    session = await api.new("s1")
    assert await asked(await logged_in(api, read_only=True), session, row) in {"", "bad_request"}


async def test_a_message_of_a_device_is_the_users(api):
    session = await api.new("s1")
    visitor = await logged_in(api)
    sent = await visitor.call("POST", f"/sessions/{session}/messages", json.dumps({"text": "hello"}))
    assert sent.status_code == 201
    shown = (await api.call("GET", f"/messages/{sent.json()['id']}"))[1]
    assert (shown["sender"], shown["target"]) == ("user", session) or shown["sender"] in {None, ""}, shown


PROGRAMS = [
    ("/sessions/{}/messages", {"text": "!touch x", "command": True}),
    ("/messages", {"to": "s1", "text": "/exit", "command": True}),
    ("/sessions/{}/handoff", {"requester_session_id": "{}", "file_path": "/etc/passwd"}),
    ("/sessions/{}/handoff", {"requester_session_id": "{}", "document": "x", "to": "codex", "arguments": ["-c"]}),
    ("/sessions/{}/restore", {"env": {"PATH": "/tmp/evil"}}),
]


@pytest.mark.parametrize(("path", "body"), PROGRAMS)
async def test_a_device_names_no_program_and_no_file(api, path, body):
    session = await api.new("s1")
    visitor = await logged_in(api)
    text = json.dumps(body).replace("{}", session, 1) if "requester_session_id" in body else json.dumps(body)
    answer = await visitor.call("POST", path.replace("{}", session), text)
    assert (answer.status_code, answer.json()["code"]) == (403, "not_from_browser")
    assert (await api.call("GET", f"/sessions/{session}"))[1]["queued"] == 0


async def test_a_device_reads_no_log_with_its_secrets(api):
    session = await api.new("s1")
    visitor = await logged_in(api)
    answer = await visitor.call("GET", f"/sessions/{session}/log?raw=1")
    assert (answer.status_code, answer.json()["code"]) == (403, "not_from_browser")


async def test_a_session_that_a_device_restores_gets_the_servers_environment(api):
    session = await api.new("s1")
    await api.call("DELETE", f"/sessions/{session}")
    api.app.app.state.backend.environment["MARK"] = "of the server"
    visitor = await logged_in(api)
    answer = await visitor.call("POST", f"/sessions/{session}/restore", "{}")
    assert answer.status_code == 200, answer.text
    assert api.engine.ports.panes.environments[session]["MARK"] == "of the server"


async def test_what_a_browser_gets_is_neither_kept_nor_taken_for_something_else(api):
    visitor = await logged_in(api)
    for path in ("/sessions", "/nowhere", "/web/devices"):
        answer = await visitor.call("GET", path)
        assert answer.headers["x-content-type-options"] == "nosniff", path
        assert answer.headers["cache-control"] == "no-store", path
    page = await visitor.get("/web/nowhere")
    assert page.headers.get_list("cache-control") == ["no-store"]


async def test_devices_are_listed_the_newest_first_and_one_knows_itself(api):
    first = await logged_in(api, name="laptop")
    api.clock.advance(10)
    await logged_in(api, name="phone", read_only=True)
    listed = (await first.call("GET", "/web/devices")).json()
    assert [(device["name"], device["read_only"], device["this"]) for device in listed] == [
        ("phone", True, False),
        ("laptop", False, True),
    ]


async def test_a_read_only_device_sees_itself_alone(api):
    await logged_in(api, name="laptop")
    phone = await logged_in(api, name="phone", read_only=True)
    assert [device["name"] for device in (await phone.call("GET", "/web/devices")).json()] == ["phone"]


async def test_a_cookie_is_worth_nothing_once_its_device_is_revoked(api):
    laptop, phone = await logged_in(api, name="laptop"), await logged_in(api, name="phone")
    [_, stolen] = [device for device in api.devices.listed() if device.name == "phone"] * 2
    answer = await laptop.call("DELETE", f"/web/devices/{stolen.id}")
    assert (answer.status_code, answer.json()["revoked"]) == (200, api.clock.now())
    refused = await phone.get("/sessions")
    assert (refused.status_code, refused.json()["code"]) == (401, "unauthorized")
    assert (await phone.call("GET", "/web/devices")).status_code == 401
    assert (await laptop.get("/sessions")).status_code == 200
    assert [device.name for device in api.devices.listed()] == ["laptop"]


@pytest.mark.parametrize("device", ["x", "dead", "deadbeef", "%00", "..", "x" * 300, ""])
async def test_a_device_that_is_not_there_is_not_found(api, device):
    await logged_in(api)
    status, answer = await api.call("DELETE", f"/web/devices/{device}")
    assert (status, answer["code"]) in {(404, "not_found"), (404, "no_route"), (405, "bad_method")}
    assert len(api.devices.listed()) == 1


async def test_a_device_is_revoked_by_the_beginning_of_its_id(api):
    await logged_in(api)
    [device] = api.devices.listed()
    assert (await api.call("DELETE", f"/web/devices/{device.id[:4].upper()}"))[0] == 200


async def test_a_device_ends_after_thirty_days_without_use(api):
    visitor = await logged_in(api)
    for _ in range(3):
        api.clock.advance(MAX_UNUSED_S - DAY_S)
        assert (await visitor.get("/sessions")).status_code == 200
    api.clock.advance(MAX_UNUSED_S)
    assert (await visitor.get("/sessions")).status_code == 401
    assert api.devices.listed() == []


async def opened_again(api):
    return await Devices.open(api.devices.database, api.clock, str(api.home.root), tuple)


async def test_a_server_that_starts_again_knows_its_devices_and_whom_it_put_out(api):
    laptop, phone = await logged_in(api, name="laptop"), await logged_in(api, name="phone")
    api.clock.advance(61)
    await laptop.get("/sessions")
    [gone] = [device for device in api.devices.listed() if device.name == "phone"]
    await api.devices.revoke(gone)
    again = await opened_again(api)
    assert again.device(laptop.secret).seen == api.clock.now()
    assert again.device(phone.secret) is None
    api.clock.advance(MAX_UNUSED_S + 1)
    assert (await opened_again(api)).by_secret == {}


async def test_a_database_that_cannot_be_written_locks_no_device_out_and_keeps_none_in(api):
    visitor = await logged_in(api)
    api.clock.advance(61)
    await api.devices.database.run(lambda connection: connection.execute("PRAGMA query_only = 1"))
    assert (await visitor.get("/sessions")).status_code == 200
    [device] = api.devices.listed()
    assert (await api.call("DELETE", f"/web/devices/{device.id}"))[0] == 503
    assert (await visitor.get("/sessions")).status_code == 401  # until the server starts again


async def test_so_many_devices_and_no_more(api):
    for _ in range(MAX_DEVICES):
        await api.devices.add("x", read_only=True)
    answer = await Visitor(api).press(await login_path(api))
    assert (answer.status_code, answer.json()["code"]) == (409, "too_many_devices")


@pytest.mark.parametrize("name", ["a\nb", " a", "\x1b[31m", "x" * 41])
async def test_a_name_that_a_terminal_could_misread_is_refused(api, name):
    assert (await api.call("POST", "/web/links", body={"name": name}))[0] == 400


async def test_an_agent_makes_no_link_sees_no_device_and_puts_none_out(api):
    token = api.tokens[await api.new("s1")]
    await logged_in(api)
    [device] = api.devices.listed()
    rows = [("POST", "/web/links"), ("GET", "/web/devices"), ("DELETE", f"/web/devices/{device.id}")]
    for method, path in rows:
        status, answer = await api.call(method, path, token, body={} if method == "POST" else None)
        assert (status, answer["code"]) == (403, "forbidden"), path
    assert api.devices.listed() == [device]
    assert api.devices.links.known == {}


async def test_what_an_agents_client_has_started_changes_nothing_with_a_devices_cookie(api):
    import os

    session = await api.new("s1")
    async with api.listening() as port:
        visitor = await logged_in(api, f"http://127.0.0.1:{port}")
        rename = json.dumps({"name": "x"})
        await api.alter(session, pid=os.getpid())
        assert await status_over_a_connection(port, visitor, "PATCH", f"/sessions/{session}", rename) == 403
        await api.alter(session, pid=None)
        assert await status_over_a_connection(port, visitor, "PATCH", f"/sessions/{session}", rename) == 200


async def status_over_a_connection(port, visitor, method, path, body=""):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head(visitor, method, path, body) + body.encode())
    line = await asyncio.wait_for(reader.readline(), 5)
    writer.close()
    return int(line.split()[1])


def head(visitor, method, path, body=""):
    headers = {**visitor.own_headers, "Cookie": f"{visitor.api.devices.cookie}={visitor.secret}", "Host": visitor.host}
    if body:
        headers |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode()


async def stream_of(port, visitor):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head(visitor, "GET", "/events"))
    stream = Reader(reader)
    await stream.subscribed()
    return stream, writer


async def test_a_devices_streams_end_within_a_second_of_its_end_and_no_others(api):
    async with api.listening() as port:
        laptop = await logged_in(api, f"http://127.0.0.1:{port}", name="laptop")
        phone = await logged_in(api, f"http://127.0.0.1:{port}", name="phone")
        kept, kept_writer = await stream_of(port, laptop)
        ended = [await stream_of(port, phone) for _ in range(3)]
        [device] = [device for device in api.devices.listed() if device.name == "phone"]
        began = time.monotonic()
        await laptop.call("DELETE", f"/web/devices/{device.id}")
        for stream, writer in ended:
            await asyncio.wait_for(stream.end(), 1)
            writer.close()
        assert time.monotonic() - began < 1
        session = await api.new("s1")
        assert (await kept.event())["data"]["session"] == session
        kept_writer.close()
        assert api.app.app.state.streams.open[f"device {device.id}"] == 0


async def test_a_device_has_so_many_streams_at_once_and_a_closed_one_counts_no_longer(api):
    async with api.listening() as port:
        visitor = await logged_in(api, f"http://127.0.0.1:{port}")
        streams = [await stream_of(port, visitor) for _ in range(MAX_OF_ONE)]
        assert await status_over_a_connection(port, visitor, "GET", "/events") == 429
        streams.pop()[1].close()
        for _ in range(100):
            if api.app.app.state.streams.open.total() < MAX_OF_ONE:
                break
            await asyncio.sleep(0.02)
        streams.append(await stream_of(port, visitor))
        for _, writer in streams:
            writer.close()
