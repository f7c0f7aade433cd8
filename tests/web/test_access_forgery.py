"""Requests that another page, another name of the machine or another program has made the browser send."""

import asyncio
import json
from dataclasses import replace

import pytest

from sm.api.browsers import cookies_named, csrf_of
from sm.core.errors import SmError
from sm.settings import load
from tests.api.rig import USER, house
from tests.web.browser import Visitor, logged_in, login_path

NAMED = "laptop.example.net"
WITH_PORT = "box.example.net:8443"


@pytest.fixture
async def known(tmp_path):
    """A server whose user has configured two hosts."""
    async with house(tmp_path, hosts=(NAMED, WITH_PORT)) as found:
        yield found


async def renamed(api, visitor, **headers):
    """Try to change something; return status and code. `None` leaves a header out."""
    [session] = api.engine.sessions.actors or [await api.new("before")]
    sent = {**visitor.own_headers, "Content-Type": "application/json", **headers}
    sent = {name: value for name, value in sent.items() if value is not None}
    answer = await visitor.send("PATCH", f"/sessions/{session}", json.dumps({"name": "after"}), **sent)
    name = api.engine.sessions.actors[session].session.name
    assert (name == "after") is (answer.status_code == 200)
    return answer.status_code, answer.json().get("code", "")


async def test_our_own_page_may_change_something(api):
    assert await renamed(api, await logged_in(api)) == (200, "")


@pytest.mark.parametrize("token", [None, "", "x", "é", "A" * 43, "x" * 9000])
async def test_without_the_pages_token_nothing_is_changed(api, token):
    visitor = await logged_in(api)
    token = token if token is None else token.encode()
    assert await renamed(api, visitor, **{"X-SM-CSRF": token}) == (403, "bad_csrf")


async def test_the_token_of_another_device_is_none(api):
    other = await logged_in(api, name="other")
    token = csrf_of(other.secret)
    assert await renamed(api, await logged_in(api), **{"X-SM-CSRF": token}) == (403, "bad_csrf")


async def test_the_cookies_secret_is_no_token_and_does_not_follow_from_one(api):
    visitor = await logged_in(api)
    assert await renamed(api, visitor, **{"X-SM-CSRF": visitor.secret}) == (403, "bad_csrf")
    assert visitor.secret not in csrf_of(visitor.secret)


@pytest.mark.parametrize(
    "origin",
    [
        None,
        "",
        "null",
        "https://evil.example",
        "http://127.0.0.1.evil.example",
        "http://127.0.0.1:8000",  # another port: another origin, and the same site
        "http://localhost:9",
        "http://127.0.0.1",
        "http://127.0.0.1:9/",
        "http://127.0.0.1:9@evil.example",
        "http://evil.example@127.0.0.1:9",
        "//127.0.0.1:9",
        "127.0.0.1:9",
        "ws://127.0.0.1:9",
        "http://http://127.0.0.1:9",
        "http://127.0.0.1:9 http://evil.example",
    ],
)
async def test_a_page_of_another_origin_changes_nothing_though_it_knows_the_token(api, origin):
    assert await renamed(api, await logged_in(api), Origin=origin) == (403, "foreign_origin")


@pytest.mark.parametrize("site", ["same-site", "cross-site", "x", ""])
async def test_a_request_that_another_site_has_begun_changes_and_reads_nothing(api, site):
    visitor = await logged_in(api)
    assert await renamed(api, visitor, **{"Sec-Fetch-Site": site}) == (403, "foreign_origin")
    answer = await visitor.get("/sessions", **{"Sec-Fetch-Site": site})
    assert (answer.status_code, answer.json()["code"]) == (403, "foreign_origin")


async def test_a_browser_that_names_no_site_is_known_by_its_origin(api):
    """Browsers send Sec-Fetch-Site over https and on loopback alone."""
    assert await renamed(api, await logged_in(api), **{"Sec-Fetch-Site": None}) == (200, "")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
async def test_whatever_is_no_reading_needs_the_token(api, method):
    visitor = await logged_in(api)
    answer = await visitor.send(method, "/sessions", Origin=visitor.base)
    assert (answer.status_code, answer.json()["code"]) == (403, "bad_csrf")


@pytest.mark.parametrize("token", [USER, "wrong"])
async def test_a_token_and_a_cookie_together_are_refused(api, token):
    visitor = await logged_in(api)
    agent = api.tokens[await api.new("s1")]
    for bearer in (token, agent):
        answer = await visitor.get("/sessions", Authorization=f"Bearer {bearer}")
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")
    stale = Visitor(api, cookies={api.devices.cookie: "of a device that is gone"})
    assert (await stale.get("/sessions", Authorization=f"Bearer {USER}")).status_code == 400


@pytest.mark.parametrize("scheme", ["", "Basic dTpw", "Bearer", "Bearer "])
async def test_an_authorization_of_any_kind_takes_the_cookie_from_a_request(api, scheme):
    assert (await (await logged_in(api)).get("/sessions", Authorization=scheme)).status_code == 400


@pytest.mark.parametrize("name", ["Cookie", "X-SM-CSRF", "Origin", "Sec-Fetch-Site", "Host"])
async def test_a_header_that_decides_and_comes_twice_is_refused(api, name):
    visitor = await logged_in(api)
    cookie = f"{api.devices.cookie}={visitor.secret}"
    headers = {"Host": visitor.host, "Cookie": cookie, **visitor.own_headers}
    async with api.client() as client:
        answer = await client.request("DELETE", "/web/devices/x", headers=[*headers.items(), (name, headers[name])])
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")


async def test_a_cookie_of_another_server_on_this_host_is_none(api, tmp_path):
    visitor = await logged_in(api)
    (tmp_path / "other").mkdir()
    async with house(tmp_path / "other") as other:
        assert other.devices.cookie != api.devices.cookie
        there = Visitor(other, cookies=visitor.cookies)
        assert (await there.get("/sessions")).status_code == 401
        forged = Visitor(other, cookies={other.devices.cookie: visitor.secret})
        assert (await forged.get("/sessions")).status_code == 401


async def test_a_jar_full_of_other_cookies_changes_nothing(api):
    visitor = await logged_in(api)
    secret, cookie = visitor.secret, api.devices.cookie
    others = [f"junk{number}={'x' * 60}" for number in range(180)]
    for cookies in (
        [*others, f"{cookie}={secret}"],
        [f"{cookie}={secret}", *others],
        [f"{cookie}=of another port", f"{cookie}={secret}"],  # set by a server on another port for a longer path
        [f" {cookie} = {secret} ", "", "=", ";;", "a"],
    ):
        answer = await visitor.send("GET", "/sessions", Cookie="; ".join(cookies))
        assert answer.status_code == 200, cookies[-1]
    too_many = [*(f"{cookie}={number}" for number in range(8)), f"{cookie}={secret}"]
    assert (await visitor.send("GET", "/sessions", Cookie="; ".join(too_many))).status_code == 401


async def test_a_jar_that_has_lost_the_cookie_is_a_browser_that_is_not_logged_in(api):
    others = "; ".join(f"junk{number}=x" for number in range(180))
    answer = await Visitor(api).send("GET", "/", Accept="text/html", Cookie=others)
    assert answer.status_code == 401
    assert "sm web" in answer.text


def test_a_cookies_name_is_compared_whole():
    assert cookies_named("xsm_a=1; sm_a_b=2; sm_A=3; sm_a=4", "sm_a") == ["4"]
    assert cookies_named('sm_a="5"', "sm_a") == ['"5"']


FOREIGN = [
    "evil.example",
    "127.0.0.1.evil.example",
    "user@127.0.0.1",
    "127.0.0.1@evil.example",
    "127.0.0.1:9@evil.example",
    "user:127.0.0.1@evil.example",
    "127.0.0.1#evil.example",
    "127.0.0.1/evil.example",
    "127.0.0.1\\evil.example",
    "127.0.0.1?x",
    "127.0.0.1.",
    "localhost.",
    "localhost.localdomain",
    "sm.localhost",
    "sm-00000000.localhost",
    "127.1",
    "2130706433",
    "0x7f.1",
    "0.0.0.0",  # noqa: S104  # a name that some systems take for loopback
    "[::]",
    "[::ffff:127.0.0.1]",
    "127.0.0.1:",
    "127.0.0.1:999999",
    "127.0.0.1,evil.example",
    "127.0.0.1 evil.example",
    "*",
    "",
]


@pytest.mark.parametrize("host", FOREIGN)
async def test_a_name_that_an_attacker_can_point_at_us_is_refused_with_a_cookie_too(known, host):
    visitor = await logged_in(known)
    answer = await visitor.get("/sessions", Host=host, Accept="*/*")
    assert (answer.status_code, answer.json()["code"]) == (403, "foreign_host")


@pytest.mark.parametrize(
    "host",
    [
        f"x.{NAMED}",
        f"{NAMED}.",
        f"{NAMED}:443",
        f"{NAMED}.evil.example",
        f"user@{NAMED}",
        f"evil-{NAMED}",
        "box.example.net",
        "box.example.net:443",
        f"{WITH_PORT}0",
        "example.net",
    ],
)
async def test_a_host_is_one_that_is_configured_exactly(known, host):
    answer = await (await logged_in(known)).get("/sessions", Host=host, Accept="*/*")
    assert (answer.status_code, answer.json()["code"]) == (403, "foreign_host")
    assert (await known.call("GET", "/health", Host=host))[1]["code"] == "foreign_host"
    assert (await known.call("GET", "/health", Origin=f"https://{host}"))[1]["code"] == "foreign_origin"


@pytest.mark.parametrize(
    "base", [f"https://{NAMED}", f"http://{NAMED}", f"https://{WITH_PORT}", f"https://{NAMED.upper()}"]
)
async def test_a_configured_host_is_served_behind_a_proxy(known, base):
    visitor = await logged_in(known, base)
    assert await renamed(known, visitor) == (200, "")


async def test_a_page_of_one_host_changes_nothing_by_another(known):
    visitor = await logged_in(known, f"https://{NAMED}")
    for origin in (f"https://{WITH_PORT}", "http://127.0.0.1:9", f"http://{known.devices.host}"):
        assert await renamed(known, visitor, Origin=origin) == (403, "foreign_origin")


async def test_the_servers_own_name_below_localhost_is_served_on_any_port(api):
    for port in ("", ":1", ":65535"):
        assert await renamed(api, await logged_in(api, f"http://{api.devices.host}{port}")) == (200, "")


async def test_a_host_that_is_no_longer_configured_is_refused_at_once(tmp_path):
    hosts = [NAMED]
    async with house(tmp_path, hosts=hosts) as api:
        visitor = await logged_in(api, f"https://{NAMED}")
        hosts.clear()
        assert (await visitor.get("/sessions")).status_code == 403


@pytest.mark.parametrize(
    "host",
    ["*", "*.example.net", "a b", "https://a.example", "a.example/", "u@a.example", "a..example", "-a", "a:", "a:1:2",
     "é.example", "", "[::1]", "a_b", "x" * 64, ".a", "a."],
)  # fmt: skip
def test_the_setting_takes_exact_names_alone(tmp_path, host):
    (tmp_path / "config.toml").write_text(f"[server]\nhosts = [{json.dumps(host)}]\n")
    with pytest.raises(SmError) as refused:
        load(None, {"HOME": str(tmp_path), "SM_CONFIG": str(tmp_path / "config.toml")})
    assert "server.hosts" in refused.value.refused.message
    assert "HOST:PORT" in refused.value.refused.hint


def test_names_are_compared_in_lower_case(tmp_path):
    (tmp_path / "config.toml").write_text('[server]\nhosts = ["Laptop.Example.net", "box:8443"]\n')
    environ = {"HOME": str(tmp_path), "SM_CONFIG": str(tmp_path / "config.toml")}
    assert load(None, environ).server.hosts == ("laptop.example.net", "box:8443")
    assert load(None, {**environ, "SM_SERVER_HOSTS": "a.example b.example"}).server.hosts == ("a.example", "b.example")


def test_a_projects_file_names_no_host(tmp_path):
    (tmp_path / ".sm").mkdir()
    (tmp_path / ".sm/config.toml").write_text('[server]\nhosts = ["evil.example"]\n')
    (tmp_path / "config.toml").touch()
    environ = {"HOME": str(tmp_path), "SM_CONFIG": str(tmp_path / "config.toml"), "SM_HOME": str(tmp_path / "state")}
    with pytest.raises(SmError) as refused:
        load(tmp_path, environ)
    assert refused.value.refused.code == "config_untrusted"


async def test_pages_and_their_files_have_no_way_out_of_their_table(api):
    for path in (
        "../answers.py",
        "..%2f..%2fanswers.py",
        "%2e%2e/answers.py",
        "/etc/passwd",
        "x",
        "",
        ".",
        "access.css/",
    ):
        answer = await Visitor(api).get(f"/web/static/{path}")
        assert answer.status_code in {403, 404, 401}, path
    found = await Visitor(api).get("/web/static/access.css")
    assert (found.status_code, found.headers["content-type"]) == (200, "text/css; charset=utf-8")
    assert found.headers["x-content-type-options"] == "nosniff"


async def test_a_page_says_how_to_log_in_and_a_program_gets_json(api):
    page = await Visitor(api).get("/web/x")
    assert (page.status_code, page.headers["content-type"]) == (401, "text/html; charset=utf-8")
    assert "Content-Security-Policy" in page.headers
    assert "sm web" in page.text
    answer = await Visitor(api).send("GET", "/web/x", Accept="*/*")
    assert answer.json()["code"] == "unauthorized"


async def test_a_refusal_shows_nothing_that_the_request_has_brought_as_markup(api):
    visitor = await logged_in(api)
    answer = await visitor.get("/web/devices/<script>alert(1)<%2Fscript>")
    assert "<script" not in answer.text


FOLLOWED = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


async def test_a_link_that_was_sent_by_mail_shows_the_login_and_nothing_else(api):
    path = await login_path(api)
    assert (await Visitor(api).get(path, **FOLLOWED)).status_code == 200
    visitor = await logged_in(api)
    for other in ("/", "/sessions", "/web/devices", "/web/static/access.css"):
        assert (await visitor.get(other, **FOLLOWED)).status_code == 403, other
    form = {"Content-Type": "application/x-www-form-urlencoded", "Origin": visitor.base, **FOLLOWED}
    answer = await Visitor(api).send("POST", "/login", path.partition("?")[2], **form)
    assert answer.status_code == 403


@pytest.mark.parametrize(
    "changed", [{"Sec-Fetch-Dest": "iframe"}, {"Sec-Fetch-Mode": "no-cors"}, {"Origin": "https://evil.example"}]
)
async def test_another_page_does_not_load_the_login(api, changed):
    answer = await Visitor(api).get(await login_path(api), **{**FOLLOWED, **changed})
    assert answer.status_code == 403


async def test_no_websocket_reaches_a_route(api):
    sent = []

    async def send(message):
        sent.append(message)

    await replace(api.app, app=None)({"type": "websocket", "headers": []}, None, send)
    assert sent == [{"type": "websocket.close", "code": 1008}]


async def test_no_websocket_is_opened(api):
    visitor = await logged_in(api)
    async with api.listening() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        lines = f"Cookie: {api.devices.cookie}={visitor.secret}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        key = "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        writer.write(f"GET /events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{lines}{key}\r\n".encode())
        line = await asyncio.wait_for(reader.readline(), 3)
        writer.close()
    assert b" 403 " in line


async def test_who_has_shown_nothing_is_kept_briefly(api):
    """A page's file is for everybody, a connection for as long as one wants is not."""
    from sm.api import connections

    async with api.listening() as port:
        before, connections.STRANGER_TIMEOUT_S = connections.STRANGER_TIMEOUT_S, 0.3
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /web/static/access.css HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b" 200 " in await reader.readline()
            rest = await asyncio.wait_for(reader.read(), 3)
        finally:
            connections.STRANGER_TIMEOUT_S = before
            writer.close()
        assert b"color-scheme" in rest
