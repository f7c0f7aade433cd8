"""What a session may not send, and what each refusal says."""

from dataclasses import replace

import pytest

from sm.core.model.message import Mode, SendRequest, message
from sm.core.model.message_queue import MessageQueue
from sm.core.model.session import Status
from sm.core.rules.send_limits import SendLimits, looping, refusal, too_fast
from tests.core.playbook import idle_session

TARGET = replace(idle_session(), id="b" * 8, name="b")
ME = replace(idle_session(), id="a" * 8, name="a")
LIMITS = SendLimits(message_bytes=1_000, queued=10, sends_per_minute=60, exchanges=30)
FULL = replace(TARGET, outbox=MessageQueue(queue=(message("m1", "x"), message("m2", "y"))))


@pytest.mark.parametrize(
    ("request_", "sender", "target", "code", "words"),
    [
        (SendRequest(""), None, TARGET, "bad_request", "empty"),
        (SendRequest("é" * 6), None, TARGET, "too_large", "limits.message_bytes"),
        (SendRequest("x"), None, replace(TARGET, status=Status.CRASHED), "ended", "has ended"),
        (SendRequest("x"), ME, ME, "bad_request", "to itself"),
        (SendRequest("x", mode=Mode.STEER), None, TARGET, "not_working", "is not working (idle)"),
        (SendRequest("/compact", command=True), ME, TARGET, "forbidden", "a parent to its child"),
        (SendRequest("!ls", command=True), None, TARGET, "bad_request", "begins with /"),
        (SendRequest("/a\n/b", command=True), None, TARGET, "bad_request", "one line"),
        (SendRequest("x"), None, FULL, "queue_full", "limits.queued"),
    ],
)
def test_a_refusal_says_why_and_names_the_limit(request_, sender, target, code, words):
    refused = refusal(request_, sender, target, replace(LIMITS, message_bytes=11, queued=2))
    assert (refused.code, words in refused.message) == (code, True)
    assert refused.hint


@pytest.mark.parametrize(
    ("request_", "sender", "target"),
    [
        (SendRequest("x"), None, TARGET),
        (SendRequest("x"), ME, TARGET),
        (SendRequest("/compact", command=True), ME, replace(TARGET, parent=ME.id)),
        (SendRequest("/compact", command=True), None, TARGET),
        (SendRequest("x", mode=Mode.STEER), None, replace(TARGET, status=Status.WORKING)),
    ],
)
def test_what_may_be_sent(request_, sender, target):
    assert refusal(request_, sender, target, LIMITS) is None


def test_so_many_sends_a_minute_and_the_refusal_says_how_long_to_wait():
    sent = [float(second) for second in range(60)]
    assert too_fast(sent[:59], 59.0, LIMITS) is None
    refused = too_fast(sent, 59.5, LIMITS)
    assert (refused.code, refused.hint.startswith("wait 0 s")) == ("too_fast", True)
    assert too_fast(sent, 60.5, LIMITS) is None


@pytest.mark.parametrize(("there", "back", "paused"), [(15, 15, True), (15, 14, False), (1000, 0, False)])
def test_two_agents_that_answer_each_other_are_paused_and_one_way_traffic_is_not(there, back, paused):
    refused = looping(there, back, ("a", "b"), LIMITS)
    assert (refused is not None) is paused
    assert refused is None or (refused.code, "limits.exchanges" in refused.message) == ("paused", True)
