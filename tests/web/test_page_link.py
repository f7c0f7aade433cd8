"""A page that stays open: the server restarts, devices are beside each other, one is revoked, one only looks."""

import asyncio

import pytest

from tests.api.test_asks import asking
from tests.web.browser import login_link, served
from tests.web.page_rig import SIZES, begin, chromium, eventually, prompt, row

pytestmark = pytest.mark.timeout(90)


async def test_a_server_that_is_gone_is_shown_over_the_last_picture_and_comes_back(tmp_path):
    async with chromium(tmp_path) as browser, served(tmp_path) as (api, _):
        context = await browser.new_context(viewport=SIZES["phone"])
        page = await context.new_page()
        async with api.listening() as port:
            await api.new("me")
            await page.goto(await login_link(api, port))
            await page.get_by_role("button", name="Log in").click()
            await page.locator('#link[data-state="live"]').wait_for()
        await page.locator("#lost").wait_for()
        assert "does not answer" in await page.locator("#lost").inner_text()
        assert await page.locator(".row", has_text="me").is_visible()
        await api.new("later")
        async with api.listening(port):
            await page.locator("#lost").wait_for(state="hidden")
            await page.locator(".row", has_text="later").wait_for()


async def test_two_devices_see_the_same_and_the_second_answer_is_refused(here):
    session = await here.api.new("me")
    desk, phone = await here.tab(), await here.tab("phone")
    async with asking(here.api, session) as client:
        for tab in (desk, phone):
            await tab.page.locator(f"#ask-{client.id}").wait_for()
        await desk.page.locator(f"#ask-{client.id}").get_by_role("button", name="Allow", exact=True).click()
        await client.hook
        for tab in (desk, phone):
            await tab.page.locator(f"#ask-{client.id}").wait_for(state="detached")
        refused = await phone.page.evaluate("(path) => smCall('POST', path, {decision: 'deny'})", f"/asks/{client.id}")
        assert "was allowed already" in refused


async def test_a_device_that_is_revoked_on_another_one_is_out_at_once(here):
    await here.api.new("me")
    desk, phone = await here.tab(name="desk"), await here.tab("phone", name="phone")
    await desk.page.goto(here.at("/web/devices"))
    desk.agrees = True
    await desk.page.locator("li", has_text="phone").get_by_role("button", name="Revoke").click()
    await phone.page.get_by_role("heading", name="Not logged in").wait_for()
    assert await phone.page.locator(".row").count() == 0


async def test_a_read_only_device_sees_what_is_asked_and_has_no_buttons(here):
    session = await here.api.new("me")
    await begin(here.api, session)
    tab = await here.tab(read_only=True)
    async with asking(here.api, session) as client:
        await tab.page.locator(f"#ask-{client.id}").get_by_text("command: make").wait_for()
        assert await tab.page.locator("form[data-api]:visible").count() == 0
        refused = await tab.page.evaluate("(path) => smCall('POST', path, {decision: 'allow'})", f"/asks/{client.id}")
        assert "read-only" in refused
        assert (await here.api.call("GET", f"/asks/{client.id}"))[1]["state"] == "open"


async def test_a_page_that_was_away_gets_what_it_missed_and_no_more(here):
    await here.api.new("first")
    session = await here.api.new("second")
    tab = await here.tab()
    live = here.api.app.app.state.live_pages
    await tab.page.locator('#link[data-state="live"]').wait_for()
    await row(tab, "first").get_by_text("$0.00").wait_for()
    mark = live.mark
    await begin(here.api, session)
    await prompt(here.api, session)
    await row(tab, "second").get_by_text("working").wait_for()
    missed = [event async for event in _first(live.stream(mark), 3)]
    html = "".join(str(event.data) for event in missed if event.event == "fleet")
    assert f"row-{session}" in html
    assert 'id="row-' in html
    assert html.count("<li") == 1
    whole = [event async for event in _first(live.stream("another-7"), 3)]
    assert "".join(str(event.data) for event in whole if event.event == "fleet").count("<li") == 2


async def _first(stream, count):
    try:
        async with asyncio.timeout(5):
            for _ in range(count):
                yield await anext(stream)
    finally:
        await stream.aclose()


async def test_nothing_is_made_while_no_page_is_open(here):
    await here.api.new("me")
    tab = await here.tab()
    live = here.api.app.app.state.live_pages
    await eventually(lambda: live.pages == 1)
    await tab.page.context.close()
    await eventually(lambda: live.pages == 0)
    await asyncio.sleep(0.5)  # the picture that was being made
    version = live.version
    await here.api.new("other")
    await asyncio.sleep(1.3)
    assert live.version == version
