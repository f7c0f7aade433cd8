"""The button that has a device notified, and what its worker shows, in a real browser.

The browser's own push service is out of reach here, so a stand-in subscribes in its place, with keys of the test, and
what the server has sent is given to the worker as the browser would give it (DevTools). Headless Chromium shows no
notification and says that none is allowed, whatever it is granted: what the worker wants shown is noted instead, and
its code for a click is called.
"""

import json
from dataclasses import replace

import pytest_asyncio

from sm.core.model.notification import TEST
from tests.notify.push_service import PushService, Subscriber
from tests.web.browser import login_link

SUBSCRIBES = """
Object.defineProperty(Notification, "permission", {{ get: () => "{permission}" }});
const kept = (value) => value ? localStorage.setItem("subscribed", value) : localStorage.removeItem("subscribed");
const subscription = (key) => ({{
    options: {{ applicationServerKey: key }},
    toJSON: () => ({{ ...{browser}, expirationTime: null }}),
    unsubscribe: async () => {{ kept(""); return true; }},
}});
PushManager.prototype.getSubscription = async () => localStorage.getItem("subscribed") ? subscription(null) : null;
PushManager.prototype.subscribe = async ({{ userVisibleOnly, applicationServerKey }}) => {{
    if (!userVisibleOnly || applicationServerKey.length !== 65) throw new TypeError("refused");
    kept("yes");
    return subscription(applicationServerKey);
}};
"""
NOTE = """
() => {
    self.shown = [];
    self.registration.showNotification = async (title, { body, data }) => self.shown.push({ title, body, ...data });
}
"""
CLICK = """
async (data) => {
    const opened = [];
    self.clients.openWindow = async (path) => opened.push(path);
    const event = new Event("notificationclick");
    event.notification = { close: () => {}, data };
    const done = [];
    event.waitUntil = (promise) => done.push(promise);
    self.dispatchEvent(event);
    await Promise.all(done);
    return opened;
}
"""


@pytest_asyncio.fixture(loop_scope="session")
async def here(here, tmp_path):
    with PushService(tmp_path).listening() as service:
        here.api.devices.push = replace(here.api.devices.push, program=service.program())
        here.service = service
        yield here


async def tab_of(here, browser, permissions=("notifications",), **wanted):
    """A device on the page of the devices, in a browser that subscribes with these keys."""
    tab = await here.empty_tab("phone")
    await tab.page.context.grant_permissions(list(permissions))
    await tab.page.context.add_init_script(
        SUBSCRIBES.format(browser=browser.body(), permission="granted" if permissions else "denied")
    )
    await tab.page.goto(await login_link(here.api, here.port, **wanted))
    await tab.page.get_by_role("button", name="Log in").click()
    await tab.page.wait_for_selector("#rows", state="attached")
    await tab.page.goto(here.at("/web/devices"))
    return tab


async def worker_of(tab):
    await tab.page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    [worker] = tab.page.context.service_workers
    return worker


async def delivered(tab, here, text):
    """Give the worker a message of the push service; return what it wants shown."""
    worker = await worker_of(tab)
    await worker.evaluate(NOTE)
    session = await tab.page.context.new_cdp_session(tab.page)
    registrations = []
    session.on("ServiceWorker.workerRegistrationUpdated", lambda event: registrations.extend(event["registrations"]))
    await session.send("ServiceWorker.enable")
    while not registrations:
        await tab.page.wait_for_timeout(20)
    told = {"origin": here.at(""), "registrationId": registrations[-1]["registrationId"], "data": text}
    await session.send("ServiceWorker.deliverPushMessage", told)
    while not (shown := await worker.evaluate("self.shown")):
        await tab.page.wait_for_timeout(20)
    return shown


async def test_a_device_is_notified_at_a_click_and_stops_at_another(here):
    browser = Subscriber()
    tab = await tab_of(here, browser, read_only=True)
    await tab.page.get_by_role("button", name="Notify this device").click()
    await tab.page.wait_for_selector("#notify-state.done")
    assert "test notification" in await tab.page.locator("#notify-state").inner_text()
    [channel] = here.api.devices.channels()
    assert channel.subscription() == browser.subscription()
    assert json.loads(browser.read(here.service.taken[0][2]))["title"] == TEST.title
    await tab.page.reload()
    assert await tab.page.locator(".tag", has_text="notified").count() == 1
    assert await tab.findings() == []
    await tab.page.get_by_role("button", name="Stop notifying this device").click()
    await tab.page.wait_for_selector("#notify-state.done")
    assert here.api.devices.channels() == ()
    assert await tab.page.evaluate("localStorage.getItem('subscribed')") is None
    assert (await tab.violations(), tab.complaints) == ([], [])


async def test_what_is_sent_is_shown_and_a_click_opens_its_session(here):
    browser = Subscriber()
    tab = await tab_of(here, browser)
    await tab.page.get_by_role("button", name="Notify this device").click()
    await tab.page.wait_for_selector("#notify-state.done")
    shown = await delivered(tab, here, browser.read(here.service.taken[0][2]).decode())
    assert shown == [{"title": TEST.title, "body": TEST.text, "session": "", "run": ""}]
    worker = await worker_of(tab)
    assert await worker.evaluate(CLICK, {"session": "0123abcd"}) == ["/web/sessions/0123abcd"]
    assert await worker.evaluate(CLICK, {"session": "", "run": "R-1"}) == ["/web/runs/R-1"]
    assert await worker.evaluate(CLICK, {"session": "", "run": ""}) == ["/"]


async def test_a_notification_leads_nowhere_else(here):
    worker = await worker_of(await tab_of(here, Subscriber()))
    for session in ("//evil.test", "../x", "javascript:alert(1)", "0123abcd/../..", "0123abcd\n", 7, None):
        assert await worker.evaluate(CLICK, {"session": session}) == ["/"], session
    for run in ("../x", "//evil.test", "R-1/../..", "..", "R 1", ".", "R-1?x", "R-1#x"):
        assert await worker.evaluate(CLICK, {"session": "", "run": run}) == ["/"], run


async def test_what_is_no_message_of_this_server_is_shown_without_words(here):
    tab = await tab_of(here, Subscriber())
    assert await delivered(tab, here, "not JSON <b>x</b>") == [
        {"title": "sm", "body": "", "session": None, "run": None}
    ]


async def test_a_browser_that_does_not_allow_it_says_so(here):
    tab = await tab_of(here, Subscriber(), permissions=())
    await tab.page.get_by_role("button", name="Notify this device").click()
    await tab.page.wait_for_selector("#notify-state.failed")
    assert "does not allow it" in await tab.page.locator("#notify-state").inner_text()
    assert here.api.devices.channels() == ()


async def test_a_service_that_does_not_take_the_test_leaves_nothing_behind(here):
    here.service.status = 500
    tab = await tab_of(here, Subscriber())
    await tab.page.get_by_role("button", name="Notify this device").click()
    await tab.page.wait_for_selector("#notify-state.failed")
    assert "did not take it" in await tab.page.locator("#notify-state").inner_text()
    assert here.api.devices.channels() == ()
    assert await tab.page.evaluate("localStorage.getItem('subscribed')") is None
