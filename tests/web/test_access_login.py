"""The link: for one login within five minutes, of a browser that the user has in front of them."""

import asyncio
import json
import os
import re
import sys

import pytest
import structlog

from sm.peers import Peer, user_of
from sm.web.access.links import LINK_LIFETIME_S, MAX_LINKS, MAX_WRONG
from sm.web.access.login import browser_name
from tests.web.browser import FORM, Visitor, logged_in, login_path, served

OWN = "http://127.0.0.1:9"
SAME = {"Origin": OWN, "Sec-Fetch-Site": "same-origin"}


async def form(api, code, token=None, **headers):
    return await Visitor(api).send("POST", "/login", f"code={code}", **{**FORM, **SAME, **headers})


async def new_code(api):
    return (await login_path(api)).partition("code=")[2]


async def test_opening_the_link_uses_nothing_up(api):
    path = await login_path(api)
    for _ in range(3):
        shown = await Visitor(api).get(path)
        assert (shown.status_code, shown.headers.get("set-cookie")) == (200, None)
    assert (await Visitor(api).press(path)).status_code == 303


async def test_a_link_lets_in_once(api):
    code = await new_code(api)
    assert (await form(api, code)).status_code == 303
    again = await form(api, code)
    assert (again.status_code, again.json()["code"], again.headers.get("set-cookie")) == (403, "bad_link", None)
    assert len(api.devices.listed()) == 1


async def test_two_logins_with_one_link_at_the_same_time_are_one(api):
    code = await new_code(api)
    answers = await asyncio.gather(*(form(api, code) for _ in range(8)))
    assert sorted(answer.status_code for answer in answers) == [303, *[403] * 7]


@pytest.mark.parametrize(("late", "status"), [(LINK_LIFETIME_S - 1, 303), (LINK_LIFETIME_S, 403)])
async def test_a_link_is_good_for_five_minutes(api, late, status):
    code = await new_code(api)
    api.clock.advance(late)
    assert (await form(api, code)).status_code == status


@pytest.mark.parametrize("code", ["", "x", "A" * 43, "../" * 14 + "x", "%00" * 10, "é" * 43, "x" * 3000])
async def test_a_guessed_code_lets_no_one_in(api, code):
    await new_code(api)
    answer = await form(api, code)
    assert (answer.status_code, answer.headers.get("set-cookie")) == (403, None)


async def test_a_code_given_twice_in_a_form_is_the_first(api):
    code = await new_code(api)
    assert (await form(api, f"wrong&code={code}")).status_code == 403


async def test_wrong_codes_are_limited_and_the_owner_still_gets_in(api):
    for _ in range(MAX_WRONG):
        assert (await form(api, "A" * 43)).status_code == 403
    answer = await form(api, "A" * 43)
    assert (answer.status_code, answer.json()["code"]) == (429, "too_many_logins")
    assert (await form(api, await new_code(api))).status_code == 303
    api.clock.advance(60)
    assert (await form(api, "A" * 43)).status_code == 403


async def test_the_log_has_neither_code_nor_secret(api):
    code = await new_code(api)
    with structlog.testing.capture_logs() as logs:
        visitor = Visitor(api)
        await visitor.press(f"/login?code={code}")
        await form(api, code)
        await form(api, "A" * 43)
    text = json.dumps(logs)
    assert [entry["event"] for entry in logs] == ["device let in", *["login refused: the link is not valid"] * 2]
    assert code not in text
    assert "A" * 43 not in text
    assert visitor.secret not in text


async def test_only_hashes_of_code_and_secret_are_kept(api):
    code = await new_code(api)
    assert code not in repr(api.devices.links)
    visitor = await logged_in(api)
    assert visitor.secret not in repr(api.devices)
    assert visitor.secret.encode() not in b"".join(
        path.read_bytes() for path in api.home.root.iterdir() if path.name.startswith("sm.db")
    )


async def test_the_oldest_of_many_unused_links_is_dropped(api):
    codes = [await new_code(api) for _ in range(MAX_LINKS + 1)]
    assert (await form(api, codes[0])).status_code == 403
    assert (await form(api, codes[1])).status_code == 303


@pytest.mark.parametrize("code", ["", "x", '"><script>alert(1)</script>' + "x" * 16, "A" * 44])
async def test_the_login_page_shows_nothing_that_is_no_code(api, code):
    answer = await Visitor(api).get(f"/login?code={code}")
    assert answer.status_code == 400
    assert "<script" not in answer.text
    assert "<form" not in answer.text


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "https://evil.example",
        "http://127.0.0.1:10",
        "http://localhost:9",
        "http://127.0.0.1",
        "",
        "127.0.0.1:9",
    ],
)
async def test_another_page_cannot_log_a_browser_in(api, origin):
    code = await new_code(api)
    answer = await form(api, code, Origin=origin)
    assert (answer.status_code, answer.json()["code"]) == (403, "foreign_origin")
    assert (await form(api, code)).status_code == 303  # and has not used the link up


async def test_a_login_without_an_origin_is_refused(api):
    code = await new_code(api)
    answer = await Visitor(api).send("POST", "/login", f"code={code}", **FORM)
    assert (answer.status_code, answer.json()["code"]) == (403, "foreign_origin")


@pytest.mark.parametrize("site", ["same-site", "cross-site"])
async def test_a_login_that_another_site_has_begun_is_refused(api, site):
    assert (await form(api, await new_code(api), **{"Sec-Fetch-Site": site})).status_code == 403


async def test_a_token_is_no_way_to_log_in(api):
    code = await new_code(api)
    agent = api.tokens[await api.new("s1")]
    for token in (agent, "the-user-token", "wrong"):
        answer = await form(api, code, Authorization=f"Bearer {token}")
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    assert (await form(api, code)).status_code == 303


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "multipart/form-data", ""])
async def test_the_login_takes_a_form_alone(api, kind):
    answer = await form(api, await new_code(api), **{"Content-Type": kind})
    assert (answer.status_code, answer.json()["code"]) == (415, "bad_type")


async def test_a_form_is_taken_by_the_login_alone(api):
    visitor = await logged_in(api)
    session = await api.new("s1")
    answer = await visitor.call("POST", f"/sessions/{session}/messages", "text=x", **FORM)
    assert (answer.status_code, answer.json()["code"]) == (415, "bad_type")


async def test_a_large_form_is_refused(api):
    answer = await form(api, "A" * 5000)
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


async def test_the_cookie_is_for_this_server_alone_and_no_script_reads_it(api):
    answer = await Visitor(api).press(await login_path(api))
    name, _, rest = answer.headers["set-cookie"].partition("=")
    value, *attributes = [part.strip().lower() for part in rest.split(";")]
    assert name == f"sm_device_{api.devices.home_id}"
    assert len(value) == 43
    assert set(attributes) == {"httponly", "samesite=strict", "path=/", "max-age=34560000"}


@pytest.mark.parametrize(("origin", "secure"), [("https://127.0.0.1:9", True), (OWN, False)])
async def test_the_cookie_is_secure_where_the_browser_came_by_https_whatever_a_header_of_a_proxy_says(
    api, origin, secure
):
    headers = {"X-Forwarded-Proto": "http" if secure else "https", "Forwarded": "proto=https"}
    answer = await form(api, await new_code(api), Origin=origin, **headers)
    assert ("; secure" in answer.headers["set-cookie"].lower()) is secure


async def test_a_browser_that_was_started_by_an_agents_client_is_not_let_in(api):
    session = await api.new("s1")
    async with api.listening() as port:
        code = await new_code(api)
        await api.alter(session, pid=os.getpid())  # this test is below the session's client now
        assert b" 403 " in await over_a_connection(port, code)
        await api.alter(session, pid=None)
        assert b" 303 " in await over_a_connection(port, code)


def request_of_login(port, code):
    form, host = f"code={code}", f"127.0.0.1:{port}"
    head = f"POST /login HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nConnection: close\r\n"
    return f"{head}Content-Type: {FORM['Content-Type']}\r\nContent-Length: {len(form)}\r\n\r\n{form}".encode()


async def over_a_connection(port, code):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request_of_login(port, code))
    line = await reader.readline()
    writer.close()
    return line


@pytest.mark.skipif(os.getuid() != 0 or sys.platform != "linux", reason="needs another user's process")
async def test_another_user_of_the_machine_cannot_use_a_link_that_was_seen(tmp_path):
    async with served(tmp_path) as (api, port):
        code = await new_code(api)
        line = await asyncio.to_thread(as_another_user, request_of_login(port, code), port)
        assert b" 403 " in line
        assert b" 303 " in await over_a_connection(port, code)


def as_another_user(request, port):
    """Send the request from a process of another user; return the first line of the answer."""
    code = (
        "import encodings.idna, os, socket, sys; os.setgid(65534); os.setuid(65534); s = socket.socket();"
        f"s.connect(('127.0.0.1', {port})); s.sendall(sys.stdin.buffer.read());"
        "sys.stdout.buffer.write(s.recv(4096))"
    )
    import subprocess

    environment = {"PATH": "/usr/bin:/bin"}
    ran = subprocess.run([sys.executable, "-c", code], input=request, capture_output=True, check=True, env=environment)
    return ran.stdout.partition(b"\r\n")[0]


async def test_the_user_at_the_other_end_is_known(api):
    async with api.listening() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        del reader
        await asyncio.sleep(0.05)
        own = writer.get_extra_info("sockname")[1]
        assert user_of(Peer("127.0.0.1", own, port)) == os.getuid()
        assert user_of(Peer("127.0.0.1", 1, port)) is None
        writer.close()


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        ("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0 Safari/537.36",
         "Chrome on Linux"),
        ("Mozilla/5.0 (Linux; Android 16; Pixel) AppleWebKit/537.36 Chrome/142.0 Mobile Safari/537.36",
         "Chrome on Android"),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 26_0 like Mac OS X) Version/26.0 Mobile/15E148 Safari/604.1",
         "Safari on iPhone"),
        ("Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:145.0) Gecko/20100101 Firefox/145.0", "Firefox on Windows"),
        ("Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) Chrome/142.0 Safari/537.36 Edg/142.0", "Edge on Mac"),
        ("<script>", "browser"),
        ("", "browser"),
    ],
)  # fmt: skip
def test_a_device_is_named_by_its_browser_in_words_of_ours(agent, name):
    assert browser_name(agent) == name


async def test_a_login_page_sends_its_origin_and_every_page_keeps_others_out(api):
    answer = await Visitor(api).get(await login_path(api))
    assert answer.headers["referrer-policy"] == "same-origin"
    assert answer.headers["cache-control"] == "no-store"
    policy = answer.headers["content-security-policy"]
    assert policy == (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "font-src 'self'; manifest-src 'self'; worker-src 'self'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    )
    assert not re.search("<script|style=|<style| on[a-z]+=", answer.text)
