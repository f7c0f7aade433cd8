"""Who is notified: a device for itself, by an address of a push service, until it is logged out or it is refused."""

import asyncio
import json
from dataclasses import replace
from functools import partial

import pytest

from sm.archive.redaction.redact import redacted
from sm.core.model.notification import TEST
from sm.core.model.notify_rules import NotifyRules
from sm.web.access.devices import Devices
from sm.web.access.push import endpoint_fault
from tests.api.rig import house
from tests.engine.test_notifications import asks, pass_time, until
from tests.notify.push_service import PushService, Subscriber
from tests.web.browser import logged_in

KEYS = {"p256dh": "B" * 87, "auth": "a" * 22}


class OfDevices:
    """The notifications of this server, to its devices alone."""

    def __init__(self):
        self.devices = None

    def rules(self):
        return NotifyRules()

    def channels(self):
        return () if self.devices is None else self.devices.channels()

    def local_offset(self, at):
        return 0.0


@pytest.fixture
def service(tmp_path):
    with PushService(tmp_path).listening() as found:
        yield found


@pytest.fixture
async def api(tmp_path, service):
    notifier = OfDevices()
    async with house(tmp_path, notifier=notifier, redact=partial(redacted)) as found:
        notifier.devices = found.devices
        found.devices.push = replace(found.devices.push, program=service.program())
        yield found


async def notified(api, browser=None, **wanted):
    """A device that is notified, as its page has asked for."""
    visitor = await logged_in(api, **wanted)
    answer = await visitor.call("PUT", "/web/push", (browser or Subscriber()).body())
    assert answer.status_code == 200, answer.text
    return visitor


def titles(service, browser):
    return [json.loads(browser.read(body))["title"] for _, _, body in service.taken]


async def refused(visitor, content, **headers):
    answer = await visitor.call("PUT", "/web/push", content, **headers)
    assert answer.status_code >= 400, answer.text
    return answer.json()["code"]


async def test_a_device_gets_a_test_and_then_the_words_of_every_other_channel(api, service):
    browser = Subscriber()
    await notified(api, browser)
    assert titles(service, browser) == [TEST.title]
    session = await asks(api, "quiet-otter", "Bash")
    await pass_time(api, 21)
    await until(lambda: len(service.taken) == 2)
    told = json.loads(browser.read(service.taken[1][2]))
    assert (told["title"], told["session"]) == ("sm: quiet-otter waits for you", session)
    assert "Bash" in told["text"]


async def test_secrets_and_links_of_an_agent_are_taken_out_as_for_other_channels(api, service):
    browser, secret = Subscriber(), "sk-ant-api03-" + "aB3dE5gH7j" * 8 + "AA"
    await notified(api, browser)
    await asks(api, "a", f"{secret} <b>@all https://evil.test")
    await pass_time(api, 21)
    await until(lambda: len(service.taken) == 2)
    text = browser.read(service.taken[1][2]).decode()
    assert "sk-ant" not in text
    assert not {"<", "@"} & {*text}
    assert "://" not in text


async def test_a_read_only_device_may_be_notified_and_stop_it(api, service):
    visitor = await notified(api, read_only=True)
    assert (await visitor.call("GET", "/web/push")).json()["notified"] is True
    assert (await visitor.call("DELETE", "/web/push")).status_code == 200
    assert (await visitor.call("GET", "/web/push")).json()["notified"] is False
    session = await api.new("s1")
    assert (await visitor.call("DELETE", f"/sessions/{session}")).json()["code"] == "read_only"


async def test_a_revoked_device_gets_nothing_also_of_what_was_waiting(api, service):
    browser = Subscriber()
    await notified(api, browser)
    [device], [waiting] = api.devices.listed(), api.devices.channels()
    await api.devices.revoke(device)
    assert api.devices.channels() == ()
    await asks(api)
    await pass_time(api, 600)
    results = await api.engine.notifications._send_in_turn(waiting, [TEST])
    assert [result.problem for _, result in results] == ["this device is not notified any more"]
    assert titles(service, browser) == [TEST.title]
    again = await opened_again(api)
    assert [(known.id, known.push) for known in again.by_secret.values()] == [(device.id, None)]


async def opened_again(api):
    return await Devices.open(api.devices.database, api.clock, str(api.home.root), tuple)


async def test_a_device_that_was_not_used_for_long_gets_nothing(api, service):
    await notified(api)
    api.clock.advance(31 * 86_400)
    assert api.devices.channels() == ()


async def test_a_server_that_starts_again_knows_whom_to_notify(api, service):
    browser = Subscriber()
    await notified(api, browser, name="phone")
    [channel] = (await opened_again(api)).channels()
    assert channel.name == f"push to phone ({channel.device})"
    assert channel.subscription() == browser.subscription()


async def test_a_device_has_one_subscription_and_a_browser_is_one_device(api, service):
    old, new = Subscriber(), Subscriber()
    visitor = await notified(api, old)
    assert (await visitor.call("PUT", "/web/push", new.body(path="/new"))).status_code == 200
    assert [channel.subscription() for channel in api.devices.channels()] == [new.subscription("/new")]
    api.clock.advance(1)
    again = await logged_in(api)
    assert (await again.call("PUT", "/web/push", new.body(path="/new"))).status_code == 200
    [channel] = api.devices.channels()
    assert channel.device == api.devices.listed()[0].id


async def test_what_the_service_no_longer_knows_is_forgotten(api, service):
    await notified(api)
    service.status = 410
    await asks(api)
    await pass_time(api, 21)
    await until(lambda: api.devices.channels() == ())
    assert (await opened_again(api)).channels() == ()
    await pass_time(api, 4_000)
    assert len(service.taken) == 2


async def test_what_fails_is_tried_again_later_and_later(api, service):
    await notified(api)
    service.status = 503
    await asks(api)
    await pass_time(api, 21)
    await until(lambda: len(service.taken) == 2)
    await until(lambda: api.engine.notifications.failing != {})
    await pass_time(api, 20)
    assert len(service.taken) == 2
    await pass_time(api, 11)
    await until(lambda: len(service.taken) == 3)
    [problem] = api.engine.notifications.problems()
    assert "push to" in problem
    assert "did not take it" in problem


async def test_what_takes_no_test_is_not_kept(api, service):
    service.status = 500
    visitor = await logged_in(api)
    answer = await visitor.call("PUT", "/web/push", Subscriber().body())
    assert (answer.status_code, answer.json()["code"]) == (409, "no_push")
    assert "did not take it" in answer.json()["error"]
    assert api.devices.channels() == ()


async def test_one_address_is_tried_at_a_time(api, service):
    one, two = await logged_in(api), await logged_in(api)
    await api.devices.push.public_key()
    answers = await asyncio.gather(*(visitor.call("PUT", "/web/push", Subscriber().body()) for visitor in (one, two)))
    assert sorted(answer.status_code for answer in answers) == [200, 409]
    assert len(service.taken) == 1


async def test_a_device_logged_out_during_the_test_is_not_notified(api, service):
    visitor = await logged_in(api)
    [device] = api.devices.listed()

    async def revoke():
        await until(lambda: service.connections)
        await api.devices.revoke(device)

    answer, _ = await asyncio.gather(visitor.call("PUT", "/web/push", Subscriber().body()), revoke())
    assert api.devices.channels() == ()
    assert all(known.push is None for known in api.devices.by_secret.values()), answer.text


HOSTILE = [
    *("http://push.example.net/x", "HTTP://push.example.net", "file:///etc/passwd", "ftp://push.example.net", "x", ""),
    *("https://127.0.0.1/", "https://127.1/", "https://2130706433/", "https://0x7f000001/", "https://017700000001/"),
    *("https://[::1]/", "https://[::ffff:127.0.0.1]/", "https://[fe80::1%25eth0]/", "https://10.0.0.1/"),
    *("https://169.254.169.254/latest/meta-data", "https://192.168.0.1.:443/", "https://a.0x7f/"),
    *("https://localhost/", "https://LOCALHOST/", "https://localhost./", "https://x.localhost/", "https://nas.local/"),
    *("https://db.internal/", "https://router.home.arpa/", "https://intranet/", "https://-a.example.net/"),
    *("https://user@push.example.net/", "https://push.example.net@127.0.0.1/", "https://u:p@push.example.net/"),
    *("https://push.example.net:22/", "https://push.example.net:8443/", "https://push.example.net:0/"),
    *("https://push.example.net:x/", "https://push.example.net/#x", "https://push.example.net\\@127.0.0.1/"),
    *("https://push.example.net/\r\nHost: x", "https://push.example.net/ x", "https://push.exämple.net/", "https:///x"),
    *(
        "https://push.example.net\x00.evil/",
        "https://pu_sh.example.net/",
        f"https://{'a' * 64}.net/",
        "https://a..net/",
    ),
]


@pytest.mark.parametrize("endpoint", HOSTILE)
def test_an_address_that_is_none_of_a_push_service_is_refused(endpoint):
    assert endpoint_fault(endpoint)


@pytest.mark.parametrize(
    "endpoint",
    [
        "https://fcm.googleapis.com/fcm/send/abc:APA91b-x_y",
        "https://updates.push.services.mozilla.com/wpush/v2/gAAAA",
        "https://web.push.apple.com/QGuQyavXutnMH",
        "https://wns2-par02p.notify.windows.com/w/?token=BQYAAAC%2bx%3d",
        "https://push.example.net:443/x",
    ],
)
def test_an_address_as_browsers_name_it_is_taken(endpoint):
    assert endpoint_fault(endpoint) == ""


async def test_a_hostile_address_reaches_nothing_through_the_route(api, service):
    visitor = await logged_in(api)
    good = json.loads(Subscriber().body())
    for endpoint in ("https://127.0.0.1/x", "https://localhost/x", "https://push.example.net:22/x"):
        assert await refused(visitor, json.dumps({**good, "endpoint": endpoint})) == "no_push"
    assert await refused(visitor, json.dumps({**good, "endpoint": f"https://a.net/{'x' * 1_100}"})) == "bad_request"
    assert (service.connections, api.devices.channels()) == (0, ())


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"p256dh": "B" * 87},
        {**KEYS, "auth": "a" * 21},
        {**KEYS, "p256dh": "B" * 88},
        {**KEYS, "auth": "=" * 22},
        {**KEYS, "auth": "a" * 22 + "\n"},
        {**KEYS, "more": "x"},
        {**KEYS, "auth": 7},
    ],
)
async def test_keys_of_another_form_are_refused(api, service, keys):
    visitor = await logged_in(api)
    assert await refused(visitor, json.dumps({"endpoint": "https://push.example.net/x", "keys": keys})) == "bad_request"
    assert service.connections == 0


async def test_neither_the_command_line_nor_an_agent_is_a_device(api, service):
    """An agent that could name an address would have this server post to it."""
    token, body = api.tokens[await api.new("s1")], json.loads(Subscriber().body())
    await notified(api)
    taken = len(service.taken)
    for method in ("GET", "PUT", "DELETE"):
        sent = body if method == "PUT" else None
        for caller in (None, token):
            more = {} if caller is None else {"token": caller}
            status, answer = await api.call(method, "/web/push", body=sent, **more)
            assert (status, answer["code"]) == (403, "forbidden"), method
    assert len(api.devices.channels()) == 1
    assert len(service.taken) == taken


async def test_a_device_changes_and_sees_no_other_one(api, service):
    browser = Subscriber()
    await notified(api, browser, name="phone")
    laptop = await logged_in(api, name="laptop")
    assert (await laptop.call("GET", "/web/push")).json()["notified"] is False
    assert (await laptop.call("DELETE", "/web/push")).status_code == 200
    [channel] = api.devices.channels()
    assert (channel.called, channel.subscription()) == ("phone", browser.subscription())
    shown = (await laptop.call("GET", "/web/devices")).text
    assert {device["name"]: device["notified"] for device in json.loads(shown)} == {"phone": True, "laptop": False}
    assert browser.subscription().endpoint not in shown


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"X-SM-CSRF": "x"}, "bad_csrf"),
        ({"Origin": "http://evil.test"}, "foreign_origin"),
        ({"Sec-Fetch-Site": "cross-site"}, "foreign_origin"),
        ({"Origin": "http://127.0.0.1:10"}, "foreign_origin"),
    ],
)
async def test_another_page_notifies_nobody(api, service, headers, code):
    visitor = await logged_in(api)
    assert await refused(visitor, Subscriber().body(), **headers) == code
    assert (service.connections, api.devices.channels()) == (0, ())


async def test_the_servers_key_is_the_same_for_every_device(api, service):
    first, second = await logged_in(api), await logged_in(api, read_only=True)
    keys = {(await visitor.call("GET", "/web/push")).json()["key"] for visitor in (first, second)}
    assert len(keys) == 1
    assert len(keys.pop()) == 87
