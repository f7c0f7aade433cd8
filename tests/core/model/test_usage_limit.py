"""C20: a session that has met a usage limit of its account is left alone until that is over."""

from dataclasses import replace

import pytest

from sm.core import effects as ef
from sm.core import events as ev
from sm.core.model import usage_limit as rules
from sm.core.model.context import ContextReading, Source
from sm.core.model.message import message
from sm.core.model.rotation import Phase, Rotation
from sm.core.model.session import Status
from sm.core.model.usage_limit import UsageLimit
from sm.core.rules.reminders import idle
from tests.core.playbook import HANDOFF, Playbook, event, result

RESETS = 5_000.0
MET = UsageLimit("five_hour", RESETS, 100.0)
FAILED = event(ev.TurnFailed, error="rate_limit", limit=MET)
PAST = ev.LimitEnded(at=RESETS + 180)


def limited(*before):
    play = Playbook() >> event(ev.PromptSubmitted, text="do it")
    for earlier in before:
        play = (play >> earlier).skip(ef.RecordHandoff)
    return (play >> FAILED).end() >> event(ev.ActivityChanged, activity=ev.Activity.IDLE)


def test_it_is_shown_with_its_kind_and_end():
    play = limited()
    assert (play.session.shown_status, play.session.limit) == (Status.LIMITED, replace(MET, transcript="/t0"))
    assert play.session.detail == "5-hour limit reached; messages wait until it resets"
    assert play.session.limit.ends_at(200.0) == RESETS
    assert not idle(play.session)


def test_messages_wait_and_are_typed_once_the_client_has_gone_on():
    play = (limited() >> event(ev.MessageQueued, message=message("m1", "hello"))).end()
    play = (play >> event(ev.PromptSubmitted, text="Your usage limit has reset.")).end()
    assert (play.session.limit.tried, play.session.shown_status) == (True, Status.WORKING)
    play >> event(ev.TurnEnded)
    assert play.session.limit is None
    assert any(isinstance(effect, ef.AddContext | ef.AwaitComposer) for effect in play.left)


def test_messages_are_typed_some_time_after_the_reset_if_the_client_has_not_gone_on():
    play = (limited() >> event(ev.MessageQueued, message=message("m1", "hello"))).end()
    play = (play >> ev.AlarmRang(at=RESETS)).end()
    play >> PAST
    assert isinstance(play.left[0], ef.AwaitComposer)
    assert (play.session.shown_status, play.session.detail) == (Status.IDLE, "")


def test_a_pending_handoff_waits_and_begins_after_it():
    play = limited(event(ev.HandoffRequested, handoff=HANDOFF))
    assert (play.session.rotation.phase, play.session.rotation.note) == (Phase.PENDING, rules.HELD_REASON)
    play = (play >> event(ev.HandoffRetried)).end()
    assert (play.session.rotation.phase, play.session.rotation.note) == (Phase.PENDING, rules.HELD_REASON)
    play >> PAST
    assert isinstance(play.left[0], ef.AwaitComposer)
    assert play.session.rotation.phase is Phase.RESERVED


def test_a_handoff_begins_at_the_end_of_the_turn_that_the_client_goes_on_with():
    play = limited(event(ev.HandoffRequested, handoff=HANDOFF)) >> event(ev.PromptSubmitted, text="go on")
    play >> event(ev.TurnEnded)
    assert play.session.rotation.phase is Phase.RESERVED


def test_nothing_is_cleared_while_it_lasts():
    play = (limited() >> event(ev.ClearRequested)).end()
    assert (play.session.rotation.phase, play.session.rotation.note) == (Phase.PENDING, rules.HELD_REASON)
    play >> PAST
    assert play.session.rotation.phase is Phase.RESERVED


def test_a_warning_waits_too():
    reading = ContextReading(tokens=140_000, projected=140_000, source=Source.USAGE, exact=True, window=200_000)
    play = (limited() >> event(ev.ContextRead, epoch=0, reading=reading, usable=167_000)).end()
    assert len(play.session.conversation.monitor.owed) == 1
    play >> PAST
    assert isinstance(play.left[0], ef.AwaitComposer)


@pytest.mark.parametrize("activity", [ev.Activity.IDLE, ev.Activity.UNKNOWN])
def test_what_the_client_says_of_itself_meanwhile_is_no_end(activity):
    play = limited() >> event(ev.ActivityChanged, activity=activity) >> event(ev.ServerStarted)
    assert play.session.shown_status is Status.LIMITED


def test_a_dialog_is_more_pressing():
    play = limited() >> event(ev.ActivityChanged, activity=ev.Activity.WAITING)
    assert play.session.shown_status is Status.WAITING
    play = (play >> event(ev.ActivityChanged, activity=ev.Activity.IDLE)).end()
    assert play.session.shown_status is Status.LIMITED


def test_a_limit_whose_end_is_not_told_is_tried_again_after_an_hour():
    play = Playbook() >> event(ev.TurnFailed, error="rate_limit", limit=UsageLimit("usage", None, 100.0))
    assert play.session.limit.ends_at(100.0) == 100.0 + rules.UNKNOWN_RESET_RETRY_S
    play = play >> ev.LimitTold(at=0.0, conversation="c0", kind="seven_day", resets_at=9_000.0)
    assert play.session.limit.ends_at(100.0) == 9_000.0


@pytest.mark.parametrize(("kind", "most"), [("five_hour", 18_600.0), ("seven_day", 605_400.0), ("usage", 605_400.0)])
def test_a_reset_later_than_such_a_limit_lasts_is_not_believed(kind, most):
    for resets_at, believed in ((1 + most, 1 + most), (2 + most, None), (9_999_999_999.0, None)):
        limit = UsageLimit(kind, resets_at, 1.0)
        play = Playbook() >> ev.TurnFailed(at=1.0, conversation="c0", error="rate_limit", limit=limit)
        assert play.session.limit.resets_at == believed
        play = play >> ev.LimitTold(at=1.0, conversation="c0", kind=kind, resets_at=resets_at)
        assert play.session.limit.resets_at == believed
        assert limit.ends_at(1.0) == (believed or 1.0 + rules.UNKNOWN_RESET_RETRY_S)


def test_a_plain_rate_limit_is_none():
    play = Playbook() >> event(ev.TurnFailed, error="rate_limit")
    assert (play.session.limit, play.session.shown_status) == (None, Status.IDLE)


def test_a_step_of_an_older_order_does_not_type_into_it():
    play = (limited() >> result(ev.ComposerReady)).end()
    assert play.session.shown_status is Status.LIMITED


def test_a_rotation_that_has_failed_is_not_tried_again_before_the_end_of_the_limit():
    play = limited()
    play.session = replace(play.session, rotation=Rotation(HANDOFF, phase=Phase.FAILED))
    play >> event(ev.HandoffRetried)
    assert (play.end().phase, play.session.rotation.note) == (Phase.FAILED, rules.HELD_REASON)


@pytest.mark.parametrize(
    ("resets_at", "recent"),
    [(1.0, False), (200_000.0 - 86_400, False), (200_000.0 - 86_399, True), (200_100.0, True), (None, False)],
)
def test_what_a_transcript_tells_of_a_limit_counts_for_a_day_after_its_reset(resets_at, recent):
    assert rules.is_recent(UsageLimit("usage", resets_at, 1.0), 200_000.0) is recent
