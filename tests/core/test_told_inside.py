"""What the plugin in a client reports of the context, and when the agent is told something by it."""

from dataclasses import replace

import pytest

from sm.core import effects as ef
from sm.core import events as ev
from sm.core.model.context import ContextReading, Policy, Source
from sm.core.model.message import Channel, MessageState, Mode, message
from sm.core.model.session import Status
from tests.core.playbook import Playbook, event, idle_session


def driven(**values):
    return Playbook(idle_session(**values)) >> event(ev.DriverChanged, driver=ev.DrivenBy.MOD)


def at_work(**values):
    return driven(**values) >> event(ev.PromptSubmitted, text="do it")


def read(tokens, *, continues=True, **values):
    values = {"projected": tokens + 300, "window": 200_000, **values}
    found = ContextReading(tokens=tokens, source=Source.USAGE, exact=True, continues=continues, **values)
    return event(ev.ContextRead, epoch=0, reading=found, usable=167_000)


def reported(tokens, window=200_000):
    return event(ev.ContextReported, tokens=tokens, window=window, usable=167_000)


def post(play, mode=Mode.IMPORTANT):
    return play >> event(ev.MessageQueued, message=replace(message("m1", "hello"), mode=mode))


def context(play):
    return play.session.conversation.monitor.reading


def told(play):
    return [effect for effect in play.left if isinstance(effect, ef.AddContext)]


def test_a_warning_waits_for_no_hook():
    [notice] = told(at_work() >> read(110_000))
    assert "Consider writing a handoff doc" in notice.text
    assert notice.notices


@pytest.mark.parametrize("driver", [ev.DrivenBy.KEYS, ev.DrivenBy.MOD])
def test_it_is_told_only_where_a_request_follows(driver):
    """What the plugin adds to a turn that ends waits for the next prompt, and an idle agent has none."""
    play = at_work() >> event(ev.DriverChanged, driver=driver)
    assert told(play >> read(110_000, continues=driver is ev.DrivenBy.KEYS)) == []


def test_the_clients_own_count_outranks_a_transcript_that_is_not_written_yet():
    play = (at_work() >> read(50_000) >> reported(110_000)).skip(ef.ReadContext)
    assert (context(play).tokens, context(play).window, context(play).continues) == (110_000, 200_000, False)
    assert play.session.conversation.monitor.owed  # and no request is known to follow yet
    play = play >> read(50_000)
    assert (context(play).tokens, told(play)) == (110_000, [])
    play = play >> read(110_000)
    assert (context(play).tokens, context(play).projected, len(told(play))) == (110_000, 110_300, 1)


def test_the_keys_read_the_transcript_alone():
    play = (at_work() >> reported(110_000)).skip(ef.ReadContext) >> event(ev.DriverChanged, driver=ev.DrivenBy.KEYS)
    assert context(play >> read(50_000)).tokens == 50_000


def test_the_window_is_the_one_that_the_client_reports():
    play = at_work() >> read(50_000, window=200_000) >> reported(50_000, window=1_000_000)
    assert (context(play).window, context(play).assumed, play.session.window) == (1_000_000, False, 1_000_000)


def test_without_the_clients_counts_its_report_changes_no_size():
    play = at_work(policy=Policy(baseline=False)) >> reported(110_000)
    assert context(play).tokens is None
    assert not play.session.conversation.monitor.owed


def test_a_report_shows_that_the_session_is_alive():
    play = at_work() >> reported(50_000)
    assert play.session.last_activity == play.now


def test_an_important_message_is_told_in_the_turn():
    play = post((at_work() >> read(50_000)).end())
    assert [effect.messages for effect in told(play)] == [("m1",)]
    assert ef.RecordMessage("m1", MessageState.DELIVERED, channel=Channel.PLUGIN) in play.left


@pytest.mark.parametrize("mode", [Mode.SEQUENTIAL, Mode.URGENT])
def test_another_message_is_not(mode):
    assert told(post((at_work() >> read(50_000)).end(), mode)) == []


def test_it_waits_until_a_request_is_known_to_follow():
    play = post(at_work())
    assert told(play) == []
    assert len(told(play.end() >> read(50_000))) == 1


def test_a_tool_that_comes_back_does_not_show_that_it_was_lost():
    """Of tools side by side one may come back long before the request that carries what was told."""
    play = post((at_work() >> read(50_000)).end()).skip(ef.AddContext, ef.RecordMessage)
    play = play >> event(ev.ToolUsed, tool="Edit")
    assert play.session.outbox.handed[0].over is None
    play = play >> event(ev.TurnEnded) >> event(ev.ActivityChanged, activity=ev.Activity.IDLE)
    assert play.session.outbox.handed[0].over is not None


def lost(play):
    play = post((play >> read(50_000)).end()).skip(ef.AddContext, ef.RecordMessage)
    play = play >> event(ev.TurnEnded) >> event(ev.ActivityChanged, activity=ev.Activity.IDLE)
    return play.end()


def later(play):
    """After the transcript has had its time to show what the turn has read."""
    play.now += 10
    return play


def test_an_agent_whose_turn_ended_without_reading_it_is_pointed_to_it():
    """The client keeps it for the next prompt: the same words again would be there twice."""
    play = later(lost(at_work())) >> event(ev.MessagesSought, asked=("m1",), found=())
    first = play.session.outbox.first
    assert (first.pasted, first.id) == ("[sm] Message m1 came as your last turn ended. Read it above.", "m1")


def test_it_is_told_again_whole_in_another_conversation():
    play = lost(at_work())
    play = play >> event(ev.ConversationStarted, conversation="c1", transcript="/t1", origin=ev.Origin.CLEAR)
    play = later(play.end()) >> event(ev.MessagesSought, asked=("m1",), found=())
    assert play.session.outbox.first.pasted == "hello"


def test_a_client_started_with_the_plugin_says_that_it_is_awaited():
    launched = event(ev.SessionLaunched, pane="%1", pid=7, conversation="c9", plugin=True)
    play = Playbook() >> launched
    assert (play.session.driver, play.session.driver_note) == (ev.DrivenBy.KEYS, ev.AWAITED)
    assert (Playbook() >> replace(launched, plugin=False)).session.driver_note == ""
    assert play.session.status is Status.STARTING
