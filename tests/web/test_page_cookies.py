"""What a real browser does with the cookie of a device: whom it sends it to, and what another page can do with it."""

import asyncio
import contextlib
from dataclasses import dataclass, field

import pytest
import pytest_asyncio

from tests.web.browser import login_path
from tests.web.page_rig import begin, eventually

pytestmark = pytest.mark.timeout(60)
FORM = """<!doctype html><title>other</title><form method="post" action="{action}" enctype="text/plain">
<input name='{{"text": "owned", "x": "' value='"}}'><button>Win</button></form><a href="{home}">Look</a>"""


@dataclass
class OtherProgram:
    """Another server on this machine, on a port of its own, that keeps what a browser sends it."""

    port: int = 0
    page: str = ""
    heads: list = field(default_factory=list)

    async def answer(self, reader, writer):
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.heads.append(head)
            body = self.page.encode()
            kind = "Content-Type: text/html; charset=utf-8\r\nConnection: close"
            writer.write(f"HTTP/1.1 200 OK\r\n{kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
            await writer.drain()
        writer.close()

    def cookies(self):
        lines = [line for head in self.heads for line in head.split("\r\n")]
        return [line for line in lines if line.lower().startswith("cookie:")]


@pytest_asyncio.fixture(loop_scope="session")
async def other():
    found = OtherProgram()
    server = await asyncio.start_server(found.answer, "127.0.0.1", 0)
    found.port = server.sockets[0].getsockname()[1]
    async with server:
        yield found


async def cookies(tab):
    return await tab.page.context.cookies()


def requests(tab):
    """What the browser asks for from now on."""
    found = []
    tab.page.on("request", lambda request: found.append(request))  # noqa: PLW0108  # Playwright marks what it calls
    return found


async def at_loopback(here):
    """A device that has logged in at 127.0.0.1 instead of the server's own name."""
    tab = await here.empty_tab()
    await tab.page.goto(f"http://127.0.0.1:{here.port}{await login_path(here.api)}")
    await tab.page.get_by_role("button", name="Log in").click()
    await tab.page.wait_for_selector("#rows", state="attached")
    return tab


async def test_the_cookie_is_the_own_names_alone_and_no_script_reads_it(here):
    tab = await here.tab()
    [found] = await cookies(tab)
    assert (found["name"], found["domain"]) == (here.api.devices.cookie, here.api.devices.host)
    assert (found["httpOnly"], found["sameSite"], found["secure"], found["path"]) == (True, "Strict", False, "/")
    assert await tab.page.evaluate("document.cookie") == ""


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "other.localhost"])
async def test_another_port_under_another_name_is_sent_no_cookie(here, other, host):
    tab = await here.tab()
    await tab.page.goto(f"http://{host}:{other.port}/")
    assert other.heads
    assert other.cookies() == []


async def test_a_device_of_the_plain_address_sends_its_cookie_to_every_port_of_it_and_not_to_the_own_name(here, other):
    tab = await at_loopback(here)
    await tab.page.goto(f"http://127.0.0.1:{other.port}/")
    assert here.api.devices.cookie in other.cookies()[0]
    await tab.page.goto(here.at("/"))
    await tab.page.get_by_role("heading", name="Not logged in").wait_for()


async def test_the_own_name_with_another_port_would_be_sent_the_cookie_so_no_page_of_ours_names_one(here, other):
    tab = await here.tab()
    hosts = await tab.page.evaluate(
        "[...document.querySelectorAll('[href], [src], [action]')].map((one) => new URL(one.href || one.src ||"
        " one.action, location).host)"
    )
    assert set(hosts) == {f"{here.api.devices.host}:{here.port}"}
    await tab.page.goto(f"http://{here.api.devices.host}:{other.port}/")
    assert here.api.devices.cookie in other.cookies()[0]


@pytest.mark.parametrize("host", ["127.0.0.1", "other.localhost"])
async def test_a_page_of_another_site_posts_without_the_cookie_and_changes_nothing(here, other, host):
    session = await here.api.new("me")
    other.page = FORM.format(action=here.at(f"/sessions/{session}/messages"), home=here.at("/"))
    tab = await here.tab()
    sent = requests(tab)
    await tab.page.goto(f"http://{host}:{other.port}/")
    async with tab.page.expect_navigation():
        await tab.page.get_by_role("button", name="Win").click()
    posted = next(request for request in sent if request.method == "POST")
    assert "cookie" not in await posted.all_headers()
    assert (await posted.response()).status == 403
    assert (await here.api.call("GET", f"/sessions/{session}/messages"))[1] == []


async def test_a_link_on_another_site_comes_without_the_cookie_and_the_page_leads_on(here, other):
    await here.api.new("me")
    other.page = FORM.format(action="/", home=here.at("/"))
    tab = await here.tab()
    sent = requests(tab)
    await tab.page.goto(f"http://other.localhost:{other.port}/")
    await tab.page.get_by_role("link", name="Look").click()
    await tab.page.get_by_role("link", name="Open sm").wait_for()
    assert await tab.page.locator(".row").count() == 0
    asked = next(request for request in sent if request.url == here.at("/"))
    assert "cookie" not in await asked.all_headers()
    await tab.page.get_by_role("link", name="Open sm").click()
    await tab.page.locator(".row", has_text="me").wait_for()


async def test_a_page_on_another_port_of_the_own_name_has_the_cookie_sent_and_is_refused_all_the_same(here, other):
    session = await here.api.new("me")
    other.page = FORM.format(action=here.at(f"/sessions/{session}/messages"), home=here.at("/"))
    tab = await here.tab()
    sent = requests(tab)
    await tab.page.goto(f"http://{here.api.devices.host}:{other.port}/")
    read = "(path) => fetch(path, { credentials: 'include' }).then((answer) => answer.text(), () => 'refused')"
    assert await tab.page.evaluate(read, here.at("/sessions")) == "refused"
    async with tab.page.expect_navigation():
        await tab.page.get_by_role("button", name="Win").click()
    posted = next(request for request in sent if request.method == "POST")
    assert here.api.devices.cookie in (await posted.all_headers())["cookie"]
    assert (await posted.response()).status == 403
    assert (await here.api.call("GET", f"/sessions/{session}/messages"))[1] == []


async def test_a_cookie_that_is_revoked_while_its_page_is_open_opens_nothing_any_more(here):
    session = await here.api.new("me")
    await begin(here.api, session)
    tab = await here.tab()
    await tab.page.goto(here.at(f"/web/sessions/{session}"))
    live = here.api.app.app.state.live_pages
    await eventually(lambda: live.pages == 1)
    [device] = here.api.devices.listed()
    assert (await here.api.call("DELETE", f"/web/devices/{device.id}"))[0] == 200
    await eventually(lambda: live.pages == 0)
    await tab.page.get_by_role("heading", name="Not logged in").wait_for()
    assert len(await cookies(tab)) == 1  # the browser keeps it, the server does not
    status = "(path) => fetch(path).then((answer) => answer.status)"
    for path in ("/sessions", "/web/live", f"/web/sessions/{session}/screen", f"/web/sessions/{session}/transcript"):
        assert await tab.page.evaluate(status, path) == 401, path
