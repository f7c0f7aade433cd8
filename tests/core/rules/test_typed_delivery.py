"""A message that is typed: what confirms it, and what only looks as if it did."""

from sm.core import effects as ef
from sm.core import events as ev
from sm.core.model.message import Channel, MessageState, Mode
from sm.core.model.session import Session
from sm.core.rules.typed_delivery import START_TIMEOUT_S
from tests.core.playbook import Playbook, advance, event, result
from tests.core.rules.test_hook_delivery import post, working


def typed():
    play = post(Playbook(), "m1", number=1) << ef.AwaitComposer(0, patience=120.0)
    return play >> result(ev.ComposerReady) << ef.TypeText(0, "text of m1")


def urgent():
    return post(working(), "m1", Mode.URGENT, number=1) << ef.AwaitBox(0)


def test_a_prompt_that_is_found_in_the_transcript_confirms_its_message():
    play = typed() >> event(ev.PromptSubmitted, text="text of m1", replayed=True)
    play << ef.RecordMessage("m1", MessageState.CONFIRMED, channel=Channel.PASTE)
    assert play.end().session.outbox.queue == ()


def test_the_users_own_words_leave_an_urgent_message_where_it_is():
    play = urgent() >> event(ev.PromptSubmitted, text="other words")
    assert [one.id for one in play.end().session.outbox.queue] == ["m1"]


def test_an_urgent_message_gives_way_to_a_dialog():
    play = urgent() >> event(ev.PermissionAsked) << ef.LeavePane(0)
    assert play.end().session.outbox.attempts == 1


def test_an_alarm_before_its_time_looks_for_nothing():
    play = typed()
    before = play.session.outbox
    assert before.deadline is not None
    play >> event(ev.AlarmRang)
    assert play.end().session.outbox == before


def test_a_box_that_is_said_to_be_free_once_more_is_not_typed_into_twice():
    play = typed() >> result(ev.ComposerReady)
    assert play.end().session.outbox.typed


def test_a_message_that_waits_for_its_box_belongs_to_the_conversation_whose_start_is_told_late():
    play = post(Playbook(), "m1", number=1) << ef.AwaitComposer(0, patience=120.0)
    play >> event(ev.ConversationStarted, transcript="/t0", origin=ev.Origin.STARTUP)
    assert play.skip(ef.AddContext).end().session.outbox.typed_in == "/t0"


def test_what_was_typed_before_the_user_cleared_the_context_counts_as_taken():
    play = typed() >> result(ev.Typed)
    play >> event(ev.ConversationStarted, conversation="c1", transcript="/t1", origin=ev.Origin.CLEAR)
    assert ef.RecordMessage("m1", MessageState.DELIVERED, channel=Channel.PASTE) in play.left
    assert [one.message.id for one in play.session.outbox.handed] == ["m1"]


def starting():
    """A client that shows its prompt, and whose first hook has not come."""
    session = Session(id="a" * 8, name="x", provider="claude", directory="/p", created=1.0)
    launched = ev.SessionLaunched(at=1.0, pane="%1", pid=1, conversation="c0", config="/c")
    play = Playbook(session) >> launched >> event(ev.ActivityChanged, activity=ev.Activity.IDLE)
    play = post(play, "m1", number=1) << ef.AwaitComposer(0, patience=120.0)
    return play >> result(ev.ComposerReady) << ef.TypeText(0, "text of m1")


def test_a_first_prompt_is_not_typed_again_before_the_client_has_told_where_its_transcript_is():
    play = starting()
    since = play.session.outbox.since
    while (deadline := play.session.outbox.deadline) < since + START_TIMEOUT_S:
        play.end() >> ev.AlarmRang(at=deadline)
    play.end() >> ev.AlarmRang(at=deadline)
    assert isinstance(play.left[0], ef.FindPrompt)


def test_a_first_prompt_is_looked_for_once_the_client_has_told_where_its_transcript_is():
    play = starting() >> event(ev.ConversationStarted, conversation="c0", transcript="/t0")
    play = play.skip(ef.AddContext) >> ev.AlarmRang(at=play.session.outbox.deadline)
    assert isinstance(play.left[0], ef.FindPrompt)


def typed_in_vain():
    """It was typed, the transcript did not show it in time, and the input box is free again."""
    play = typed() >> result(ev.Typed)
    play = play >> ev.AlarmRang(at=play.session.outbox.deadline)
    play = play.skip(ef.FindPrompt) >> result(ev.PromptMissing) << ef.AwaitComposer(0, ("text of m1",), patience=120.0)
    return play >> result(ev.ComposerReady, position=70)


def test_before_a_text_is_typed_again_the_transcript_is_searched_from_where_it_was_typed_first():
    play = typed_in_vain()
    [find] = play.left
    assert (type(find), find.transcript, find.position) == (ef.FindPrompt, "/t0", 0)
    play = play.skip(ef.FindPrompt) >> result(ev.PromptMissing) << ef.TypeText(0, "text of m1")
    assert play.end().session.outbox.attempts == 1


def test_while_a_dialog_that_opened_during_the_search_is_open_nothing_is_typed_again():
    play = typed_in_vain().skip(ef.FindPrompt) >> event(ev.PermissionAsked)
    assert isinstance(play.left[0], ef.AwaitComposer)
    play = play.skip(ef.AwaitComposer) >> result(ev.PromptMissing)
    assert not play.end().session.outbox.typed
    play = typed_in_vain().skip(ef.FindPrompt) >> event(ev.ActivityChanged, activity=ev.Activity.WAITING)
    play = play >> result(ev.PromptMissing) << ef.AwaitComposer(0, ("text of m1",), patience=120.0)
    assert not play.end().session.outbox.typed


def test_a_search_that_is_never_answered_begins_again():
    play = typed_in_vain().skip(ef.FindPrompt)
    play = play >> ev.AlarmRang(at=play.session.outbox.deadline) << ef.LeavePane(0)
    play = play << ef.AwaitComposer(0, ("text of m1",), patience=120.0)
    assert play.end().session.outbox.attempts == 1


def test_a_text_that_the_client_has_taken_since_is_not_typed_again():
    play = typed_in_vain().skip(ef.FindPrompt) >> event(ev.PromptSubmitted, text="text of m1", replayed=True)
    play << ef.RecordMessage("m1", MessageState.CONFIRMED, channel=Channel.PASTE)
    assert play.end().session.outbox.queue == ()


def test_a_prompt_that_is_submitted_late_takes_back_what_is_just_typed_again():
    play = typed_in_vain().skip(ef.FindPrompt) >> result(ev.PromptMissing) << ef.TypeText(0, "text of m1")
    play >> event(ev.PromptSubmitted, text="text of m1")
    play << ef.RecordMessage("m1", MessageState.DELIVERED, channel=Channel.PASTE) << ef.LeavePane(0)


def test_the_message_before_says_nothing_about_one_that_was_never_typed():
    play = typed() >> event(ev.PromptSubmitted, text="text of m1")
    play = play.skip(ef.RecordMessage) >> event(ev.TurnEnded)
    assert play.skip(ef.FindMessages, ef.RecordMessage).end().session.outbox.since == 0


def looked_in_vain(play):
    play = (play.end() >> ev.AlarmRang(at=play.session.outbox.deadline)).skip(ef.FindPrompt)
    return play >> ev.PromptMissing(at=play.session.outbox.deadline - 9.0, step=play.session.step)


def test_a_prompt_that_a_client_holds_back_while_it_loads_is_waited_for_and_not_typed_again():
    play = starting() >> event(ev.ConversationStarted, conversation="c0", transcript="/t0")
    play, since = play.skip(ef.AddContext), play.session.outbox.since
    while play.session.outbox.deadline < since + START_TIMEOUT_S:
        play = looked_in_vain(play)
    play = looked_in_vain(play) << ef.AwaitComposer(0, ("text of m1",), patience=120.0)
    assert play.end().session.outbox.attempts == 1


def test_a_client_that_has_taken_a_prompt_holds_none_back():
    play = starting() >> event(ev.ConversationStarted, conversation="c0", transcript="/t0")
    assert play.skip(ef.AddContext).session.fresh
    play = play >> event(ev.PromptSubmitted, text="words of the user's")
    assert not play.session.fresh
    for origin, fresh in (ev.Origin.RESUME, True), (ev.Origin.CLEAR, False):
        started = ev.ConversationStarted(at=99.0, conversation="c0", transcript="/t0", origin=origin)
        assert advance(play.session, started)[0].fresh is fresh
