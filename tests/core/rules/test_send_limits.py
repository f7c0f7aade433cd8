"""What the mailbox refuses, and what each refusal says."""

from dataclasses import replace

import pytest

from sm.core.model.message import Mode, message
from sm.core.model.message_queue import MessageQueue
from sm.core.model.session import Status
from sm.core.rules.send_limits import SendLimits, Wish, looping, refusal, too_fast
from tests.core.playbook import idle_session

TARGET = replace(idle_session(), id="b" * 8, name="b")
ME = replace(idle_session(), id="a" * 8, name="a")
FULL = replace(TARGET, outbox=MessageQueue(queue=(message("m1", "x"), message("m2", "y"))))


@pytest.mark.parametrize(
    ("wish", "target", "code", "words"),
    [
        (Wish(""), TARGET, "bad_request", "empty"),
        (Wish("é" * 6), TARGET, "too_large", "limits.message_bytes"),
        (Wish("x"), replace(TARGET, status=Status.CRASHED), "ended", "has ended"),
        (Wish("x", ME), ME, "bad_request", "to itself"),
        (Wish("x", mode=Mode.STEER), TARGET, "not_working", "is not working (idle)"),
        (Wish("/compact", ME, command=True), TARGET, "forbidden", "a parent to its child"),
        (Wish("!ls", command=True), TARGET, "bad_request", "begins with /"),
        (Wish("/a\n/b", command=True), TARGET, "bad_request", "one line"),
        (Wish("x"), FULL, "queue_full", "limits.queued"),
    ],
)
def test_a_refusal_says_why_and_names_the_limit(wish, target, code, words):
    refused = refusal(wish, target, SendLimits(message_bytes=11, queued=2))
    assert (refused.code, words in refused.message) == (code, True)
    assert refused.hint


@pytest.mark.parametrize(
    ("wish", "target"),
    [
        (Wish("x"), TARGET),
        (Wish("x", ME), TARGET),
        (Wish("/compact", ME, command=True), replace(TARGET, parent=ME.id)),
        (Wish("/compact", command=True), TARGET),
        (Wish("x", mode=Mode.STEER), replace(TARGET, status=Status.WORKING)),
    ],
)
def test_what_may_be_sent(wish, target):
    assert refusal(wish, target, SendLimits()) is None


def test_so_many_sends_a_minute_and_the_refusal_says_how_long_to_wait():
    sent = [float(second) for second in range(60)]
    assert too_fast(sent[:59], 59.0, SendLimits()) is None
    refused = too_fast(sent, 59.5, SendLimits())
    assert (refused.code, refused.hint.startswith("wait 0 s")) == ("too_fast", True)
    assert too_fast(sent, 60.5, SendLimits()) is None


@pytest.mark.parametrize(("there", "back", "paused"), [(15, 15, True), (15, 14, False), (1000, 0, False)])
def test_two_agents_that_answer_each_other_are_paused_and_one_way_traffic_is_not(there, back, paused):
    refused = looping(there, back, ("a", "b"), SendLimits())
    assert (refused is not None) is paused
    assert refused is None or (refused.code, "limits.exchanges" in refused.message) == ("paused", True)
