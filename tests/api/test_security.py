"""Who may send a request at all (cases A73–A75), and how much."""

import asyncio
import re

import pytest

from sm.api.authority import OPEN
from sm.api.security import Caller
from sm.web.routes import EVERY_ROUTE as ROUTES
from tests.api.rig import JSON, USER


def paths(routes):
    named = {"provider": "claude", "path": "access.css"}
    names = ("session", "message", "handoff", "reminder", "ask", "device", "run")
    values = {**dict.fromkeys(names, "x"), **named}
    return sorted(
        (method, re.sub(r"\{(\w+)(:path)?\}", lambda found: values[found[1]], route.path))
        for route in routes
        for method in route.methods
    )


EVERY_ROUTE = paths(route for route in ROUTES if route.may is not OPEN)
OPEN_ROUTES = paths(route for route in ROUTES if route.may is OPEN)
ELSEWHERE = [("GET", "/"), ("GET", "/nowhere"), ("POST", "/static/x"), ("OPTIONS", "/sessions"), ("HEAD", "/health")]


@pytest.mark.parametrize(("method", "path"), [*EVERY_ROUTE, *ELSEWHERE])
@pytest.mark.parametrize("token", [None, "wrong", "ü"])
async def test_every_route_wants_a_token(api, method, path, token):
    status, body = await api.call(
        method, path, None, **({"Authorization": f"Bearer {token}".encode()} if token else {})
    )
    assert status == 401
    assert body is None or body["code"] == "unauthorized"


@pytest.mark.parametrize("scheme", ["Basic {}", "{}", "Bearer", "Bearer ", "Bearer {}x"])
async def test_only_a_bearer_token_counts(api, scheme):
    assert (await api.call("GET", "/health", None, Authorization=scheme.format(USER)))[0] == 401


@pytest.mark.parametrize(("method", "path"), [*EVERY_ROUTE, *OPEN_ROUTES, *ELSEWHERE])
async def test_no_route_serves_a_foreign_host(api, method, path):
    status, body = await api.call(method, path, Host="evil.example")
    assert status == 403
    assert body is None or set(body) == {"error", "code", "hint"}


@pytest.mark.parametrize(
    "host", ["evil.example:80", "127.0.0.1.evil.example", "127.0.0.1:x", "[::1", "", "localhost:1:1", "10.0.0.1"]
)
async def test_a_host_that_only_looks_like_loopback_is_refused(api, host):
    assert (await api.call("GET", "/health", Host=host))[1]["code"] == "foreign_host"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "LOCALHOST:8080", "[::1]:1", "127.0.0.1:65535"])
async def test_loopback_is_served_on_any_port(api, host):
    assert (await api.call("GET", "/health", Host=host))[0] == 200


@pytest.mark.parametrize(
    "origin", ["null", "https://evil.example", "http://127.0.0.1.evil.example", "file://", "", "x", "app://localhost"]
)
async def test_a_foreign_or_null_origin_is_refused(api, origin):
    assert (await api.call("GET", "/sessions", Origin=origin))[1]["code"] == "foreign_origin"


@pytest.mark.parametrize("origin", ["http://127.0.0.1:8000", "http://localhost", "https://[::1]:3"])
async def test_an_origin_on_loopback_passes(api, origin):
    assert (await api.call("GET", "/sessions", Origin=origin))[0] == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site", "x"])
async def test_a_request_of_another_site_is_refused(api, site):
    assert (await api.call("GET", "/sessions", **{"Sec-Fetch-Site": site}))[1]["code"] == "foreign_origin"


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "", "multipart/form-data"])
async def test_a_body_that_is_not_json_is_refused_and_nothing_is_queued(api, kind):
    session = await api.new("s1")
    status, body = await api.call(
        "POST", f"/sessions/{session}/messages", body=b'{"text": "x"}', **{"Content-Type": kind}
    )
    assert (status, body["code"]) == (415, "bad_type")
    assert (await api.call("GET", f"/sessions/{session}"))[1]["queued"] == 0


async def test_json_with_a_charset_is_json(api):
    session = await api.new("s1")
    kind = {"Content-Type": "application/json; charset=utf-8"}
    assert (await api.call("POST", f"/sessions/{session}/messages", body=b'{"text": "x"}', **kind))[0] == 201


@pytest.mark.parametrize(("path", "limit"), [("/sessions", 1 << 20), ("/hooks/claude", 16 << 20)])
async def test_a_body_over_its_limit_is_refused_by_its_length(api, path, limit):
    assert (await api.call("POST", path, body=b"x" * (limit + 1)))[0] == 413
    assert (await api.call("POST", path, body=b"x" * limit))[0] in {400, 403}


@pytest.mark.parametrize(("path", "limit"), [("/sessions", 1 << 20), ("/hooks/claude", 16 << 20)])
async def test_a_chunked_body_is_counted_while_it_comes(api, path, limit):
    token = api.tokens[await api.new("s1")] if path.startswith("/hooks") else USER

    async def body():
        for _ in range(limit // 65536 + 1):
            yield b" " * 65536

    async with api.client(Authorization=f"Bearer {token}") as client:
        answer = await client.post(path, content=body(), headers=JSON)
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


async def test_a_chunked_body_over_a_real_connection_is_counted_too(api):
    async with api.listening() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"POST /sessions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {USER}\r\n"
        writer.write(f"{head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
        writer.write(chunk * 17)
        assert b" 413 " in await reader.readline()
        writer.close()


async def test_head_and_unknown_methods_answer_without_a_body_or_as_json(api):
    assert await api.call("HEAD", "/sessions") == (200, None)
    status, body = await api.call("OPTIONS", "/sessions")
    assert (status, body["code"]) == (405, "bad_method")
    status, body = await api.call("GET", "/nowhere")
    assert (status, body["code"]) == (404, "no_route")
    assert (await api.call("GET", "/sessions/"))[1]["code"] == "no_route"


async def test_head_of_the_feed_ends(api):
    async with api.listening() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"HEAD /events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {USER}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode())
        answer = await asyncio.wait_for(reader.read(), 3)
        writer.close()
    assert answer.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("name", ["Host", "Origin", "Authorization", "Sec-Fetch-Site"])
async def test_a_header_that_decides_who_may_ask_and_comes_twice_is_refused(api, name):
    good = {"Host": "127.0.0.1", "Origin": "http://127.0.0.1", "Authorization": f"Bearer {USER}"}
    headers = [*good.items(), (name, good.get(name, "none")), (name, good.get(name, "none"))]
    async with api.client() as client:
        answer = await client.request("GET", "/sessions", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")


async def test_a_refused_token_points_nobody_to_the_users(api):
    assert "SM_HOME" not in (await api.call("GET", "/sessions", "wrong"))[1]["hint"]


def test_a_process_without_a_token_is_not_the_user():
    assert (Caller().is_user, Caller("me").is_user, Caller(client=7).is_user) == (True, False, False)
