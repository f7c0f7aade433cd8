"""Web push: what a push service gets, that the browser alone can read it, and which addresses are never reached."""

import json
import os
import stat
import sys
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from sm.core.model.notification import TEST, UserNotification, notification, run_ended
from sm.core.model.notify_rules import NotificationKind
from sm.core.ports.notifier import ChannelError, OutOfReachError
from sm.notify import deliver_push
from sm.notify.push import PushChannel, PushSender
from sm.paths import open_home
from tests.notify.push_service import HOST, PushService, Subscriber, decoded, signed_by

ENVIRON = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}


@pytest.fixture
def service(tmp_path):
    with PushService(tmp_path).listening() as found:
        yield found


@pytest.fixture
async def sender(tmp_path, service):
    found = PushSender(open_home({"SM_HOME": str(tmp_path / "state")}), ENVIRON, service.program())
    await found.public_key()
    return found


def told(browser, service):
    return json.loads(browser.read(service.taken[-1][2]))


def test_the_browser_of_these_tests_reads_the_example_of_the_standard():
    """RFC 8291, section 5."""
    private = int.from_bytes(decoded("q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94"))
    browser = Subscriber(ec.derive_private_key(private, ec.SECP256R1()), decoded("BTBZMqHH6r4Tts7J_aSIgg"))
    body = (
        "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl"
        "7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
    )
    assert browser.read(decoded(body)) == b"When I grow up, I want to be a watermelon"


async def test_the_browser_alone_reads_it_and_this_server_has_signed_it(service, sender):
    browser = Subscriber()
    sent = UserNotification("sm: a waits for you", 'asks for permission: "Bash: make"\n– and more')
    await sender.send(browser.subscription("/x/y?z=1"), sent)
    [(path, headers, body)] = service.taken
    assert path == "/x/y?z=1"
    assert json.loads(browser.read(body)) == {"title": sent.title, "text": sent.text, "session": "", "run": ""}
    assert b"waits" not in body
    assert (headers["Content-Encoding"], headers["Host"].partition(":")[0]) == ("aes128gcm", HOST)
    point, claims = signed_by(headers["Authorization"])
    assert point == decoded(await sender.public_key())
    assert (claims["aud"], claims["sub"]) == (f"https://{HOST}", "mailto:sm@example.com")


async def test_a_click_leads_to_the_one_session_or_run_that_it_is_about(service, sender):
    browser = Subscriber()
    end = run_ended("r1", "project", "1 delivered", 0.0)
    asks = [
        replace(end, kind=NotificationKind.ASK, session=session, name=session) for session in ("aaaaaaaa", "bbbbbbbb")
    ]
    for episodes, about in (
        ([end], ("", "r1")),
        (asks[:1], ("aaaaaaaa", "")),
        (asks, ("", "")),
        ([end, *asks], ("", "")),
    ):
        await sender.send(browser.subscription(), notification(episodes))
        sent = told(browser, service)
        assert (sent["session"], sent["run"]) == about


@pytest.mark.parametrize("text", ['"' * 3_000, "漢" * 2_000])
async def test_a_text_of_any_length_is_what_a_service_takes(service, sender, text):
    browser = Subscriber()
    await sender.send(browser.subscription(), UserNotification(text[:400], text))
    assert len(service.taken[0][2]) <= 4_096
    shown = told(browser, service)["text"]
    assert shown.endswith("…")
    assert text.startswith(shown[:-1])


def channel(sender, subscription, gone=None):
    dropped = [] if gone is None else gone

    async def drop(push):
        dropped.append(push)

    return PushChannel("1a2b3c4d", "phone", sender, lambda: subscription, drop)


@pytest.mark.parametrize("status", [404, 410])
async def test_a_subscription_that_the_service_does_not_know_is_dropped_and_not_tried_again(service, sender, status):
    service.status, dropped, own = status, [], Subscriber().subscription()
    with pytest.raises(OutOfReachError):
        await channel(sender, own, dropped).send(TEST)
    assert dropped == [own]


@pytest.mark.parametrize("status", [pytest.param(400, marks=pytest.mark.soak), 429, 500])
async def test_any_other_refusal_is_a_failure_that_is_tried_again(service, sender, status):
    service.status, dropped = status, []
    with pytest.raises(ChannelError, match="did not take it") as problem:
        await channel(sender, Subscriber().subscription(), dropped).send(TEST)
    assert not isinstance(problem.value, OutOfReachError)
    assert dropped == []


async def test_a_redirect_is_not_followed(service, sender):
    service.status, service.location = 307, f"https://{HOST}:{service.port}/inside"
    with pytest.raises(ChannelError, match="did not take it"):
        await sender.send(Subscriber().subscription(), TEST)
    assert [path for path, *_ in service.taken] == ["/of/this/browser"]


async def test_a_device_that_is_not_notified_any_more_gets_nothing(service, sender):
    with pytest.raises(OutOfReachError):
        await channel(sender, None).send(TEST)
    assert service.taken == []


@pytest.mark.parametrize(
    "host",
    ["localhost", "0x7f.1", *(pytest.param(host, marks=pytest.mark.soak) for host in ("127.0.0.1", "2130706433"))],
)
async def test_a_name_that_leads_to_this_machine_is_not_connected_to(service, sender, host):
    """Whatever the name is at that moment: this is asked of the system each time."""
    real = replace(sender, program=service.program("None"))
    with pytest.raises(ChannelError, match="no public address"):
        await real.send(Subscriber().subscription(host=host), TEST)
    assert service.connections == 0


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.1"),
        *("224.0.0.1", "255.255.255.255", "198.18.0.1", "192.0.2.1", "240.0.0.1"),
        *("::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "ff02::1", "2001:db8::1"),
        *("::ffff:127.0.0.1", "::ffff:8.8.8.8", "::127.0.0.1", "2002:7f00:1::", "64:ff9b::7f00:1", "64:ff9b::a00:1"),
        *("2001:0:4136:e378:8000:63bf:3fff:fdd2", "x", ""),
    ],
)
def test_an_address_of_this_machine_or_of_a_network_of_its_own_is_not_public(address):
    assert not deliver_push.is_public(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "142.250.1.95", "2a00:1450:4001:80b::200a", "2606:4700::1111"])
def test_an_address_of_the_internet_is_public(address):
    assert deliver_push.is_public(address)


async def test_a_service_with_the_certificate_of_another_name_gets_nothing(service, sender):
    with pytest.raises(ChannelError, match="cannot be reached by https"):
        await sender.send(Subscriber().subscription(host="other.example.net"), TEST)
    assert (service.connections, service.taken) == (1, [])


@pytest.mark.parametrize("endpoint", ["http://push.example.net/x", "file:///etc/passwd"])
async def test_the_delivery_itself_takes_https_alone(service, sender, endpoint):
    with pytest.raises(ChannelError, match="no public address"):
        await sender.send(replace(Subscriber().subscription(), endpoint=endpoint), TEST)
    assert service.connections == 0


async def test_a_key_that_is_no_point_of_the_curve_is_a_failure(service, sender):
    own = replace(Subscriber().subscription(), p256dh="B" + "A" * 86)
    with pytest.raises(ChannelError, match="keys are not valid"):
        await sender.send(own, TEST)
    assert service.connections == 0


async def test_without_what_encrypts_it_says_what_to_install(service, sender):
    bare = replace(sender, program=(sys.executable, "-I", "-S", deliver_push.__file__))
    with pytest.raises(ChannelError, match=r"pip install 'agent-sm\[web\]'"):
        await bare.send(Subscriber().subscription(), TEST)


async def test_the_servers_key_is_made_once_and_is_its_users_alone(sender):
    first, file = await sender.public_key(), sender.home.push_key
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert await sender.public_key() == first
    assert b"PRIVATE KEY" in file.read_bytes()


async def test_a_key_that_others_can_read_signs_nothing(service, sender):
    sender.home.push_key.chmod(0o640)
    with pytest.raises(ChannelError, match="Others can read"):
        await sender.send(Subscriber().subscription(), TEST)
    assert service.connections == 0
