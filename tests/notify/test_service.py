"""A notification service through the real apprise: what is posted, and that no secret of its URL is shown."""

import os
import subprocess
import sys

import pytest

from sm.core.model.notification import TEST, UserNotification
from sm.core.ports.notifier import ChannelError
from sm.notify import deliver, process
from sm.notify.service import ServiceChannel
from tests.notify.endpoint import Endpoint

ENVIRON = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}


@pytest.fixture
def endpoint():
    with Endpoint().listening() as found:
        yield found


def channel(url, number=1):
    return ServiceChannel(number, url, ENVIRON)


def posts_to(endpoint):
    return channel(endpoint.url.replace("http://", "json://"))


async def test_it_is_posted_once_with_title_and_plain_text(endpoint):
    sent = UserNotification("sm: *a* waits", "`x` <b>bold</b> &amp; {{ y }}")
    await posts_to(endpoint).send(sent)
    [taken] = endpoint.taken
    assert (taken["title"], taken["message"]) == (sent.title, sent.text)


@pytest.mark.soak
async def test_a_service_that_refuses_is_a_failure(endpoint):
    endpoint.status = 500
    with pytest.raises(ChannelError, match="did not take it"):
        await posts_to(endpoint).send(TEST)


@pytest.mark.soak
async def test_a_service_that_does_not_answer_is_given_up(endpoint, monkeypatch):
    monkeypatch.setattr(process, "TIMEOUT_S", 3.0)
    endpoint.delay = 4.0
    with pytest.raises(ChannelError):
        await posts_to(endpoint).send(TEST)


@pytest.mark.parametrize(
    "url",
    [
        *(pytest.param(url, marks=pytest.mark.soak) for url in ("nothing-like-a-url", "tgram://", "")),
        "nosuch://secret@h",
    ],
)
async def test_a_url_that_apprise_does_not_know_is_a_failure_without_its_secrets(url):
    with pytest.raises(ChannelError, match="does not know this kind of URL"):
        await channel(url).send(TEST)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("tgram://123:secret/456", "url 2 (tgram)"),
        ("secret", "url 2 (unknown)"),
        ("secret\x1b://x", "url 2 (unknown)"),
        ("", "url 2 (unknown)"),
    ],
)
def test_its_name_is_the_kind_of_service_alone(url, name):
    assert channel(url, 2).name == name


def test_without_apprise_it_says_what_to_install():
    bare = (sys.executable, "-I", "-S", deliver.__file__)
    ran = subprocess.run(bare, input=b'{"url": "json://x"}', capture_output=True, check=False)
    assert deliver.PROBLEMS[ran.returncode].startswith("apprise is not installed: pip install 'agent-sm[notify]'")


def test_no_process_of_sm_but_the_deliverer_imports_apprise():
    code = "import sys, sm.notify.configured, sm.notify.deliver; sys.exit('apprise' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
