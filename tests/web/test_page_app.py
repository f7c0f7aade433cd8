"""The page as an app on a device: its manifest and icons, and the worker that says when the server is away."""

import asyncio
import struct

from sm.web.static_files import files
from tests.web.browser import login_link

ACTIVE = "navigator.serviceWorker.ready.then((found) => [found.scope, found.active.scriptURL])"
MANIFEST = """
fetch(document.querySelector('link[rel=manifest]').href).then((answer) => answer.json())
"""
STORED = "caches.keys().then((names) => names.length)"


def png_size(name):
    content, kind = files()[name]
    assert kind == "image/png"
    return struct.unpack("!II", content[16:24])


async def test_the_manifest_names_icons_of_the_size_that_it_says(here):
    tab = await here.tab()
    found = await tab.page.evaluate(MANIFEST)
    assert (found["start_url"], found["scope"], found["display"]) == ("/", "/", "standalone")
    drawn = {icon["src"]: (icon["sizes"], icon["purpose"]) for icon in found["icons"] if icon["type"] == "image/png"}
    assert {f"{width}x{height}" for width, height in map(png_size, drawn)} == {"192x192", "512x512"}
    assert all(drawn[name][0] == "x".join(str(side) for side in png_size(name)) for name in drawn)
    assert {purpose for _, purpose in drawn.values()} == {"any", "maskable"}


async def controlled(tab):
    """Wait until the worker has the page."""
    scope, script = await tab.page.evaluate(ACTIVE)
    while not await tab.page.evaluate("navigator.serviceWorker.controller !== null"):  # the policy forbids eval to wait
        await asyncio.sleep(0.02)
    return scope, script


async def test_the_worker_has_the_whole_site_and_keeps_nothing_of_it(here):
    await here.api.new("quiet-otter")
    tab = await here.tab()
    assert await controlled(tab) == (here.at("/"), here.at("/web/static/worker.js"))
    await tab.page.goto(here.at("/web/devices"))
    await tab.page.goto(here.at("/"))
    await tab.page.wait_for_selector(".row")
    assert await tab.page.evaluate(STORED) == 0
    assert (await tab.violations(), tab.complaints) == ([], [])


async def test_without_the_server_the_device_says_so_and_shows_nothing_old(here):
    await here.api.new("quiet-otter")
    tab = await here.tab("phone")
    await controlled(tab)
    await tab.page.context.set_offline(True)
    answer = await tab.page.goto(here.at("/"))
    assert answer.status == 503
    shown = await tab.page.locator("body").inner_text()
    assert "The server is not reachable" in shown
    assert "quiet-otter" not in shown
    assert await tab.findings() == []
    await tab.page.context.set_offline(False)
    await tab.page.get_by_role("link", name="Try again").click()
    await tab.page.wait_for_selector(".row")


async def test_the_worker_does_not_let_another_site_open_the_page(here):
    """What a worker asks for itself counts as the page's own: Sec-Fetch-Site and cookies would let it pass."""
    tab = await here.tab()
    await controlled(tab)
    target = here.at("/")
    attack = f'<a id="go" href="{target}">go</a>'
    await tab.page.route("http://evil.test/", lambda route: route.fulfill(body=attack, content_type="text/html"))
    await tab.page.goto("http://evil.test/")
    async with tab.page.expect_navigation() as navigation:
        await tab.page.click("#go")
    answer = await navigation.value
    assert answer.status == 403
    assert await tab.page.locator("#rows").count() == 0


async def test_a_device_with_the_worker_logs_out_and_in_again(here):
    tab = await here.tab()
    await controlled(tab)
    tab.agrees = True
    await tab.page.goto(here.at("/web/devices"))
    await tab.page.get_by_role("button", name="Log out").click()
    await tab.page.wait_for_selector("text=Not logged in")
    await tab.page.goto(await login_link(here.api, here.port))
    await tab.page.get_by_role("button", name="Log in").click()
    await tab.page.wait_for_selector("#rows", state="attached")
    assert await tab.violations() == []
