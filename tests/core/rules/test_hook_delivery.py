"""Which hook's reply carries which message, and what becomes of one that does not arrive."""

from dataclasses import replace

import pytest

from sm.core import effects as ef
from sm.core import events as ev
from sm.core.model.message import Channel, MessageState, Mode, StoredMessage, message
from sm.core.model.message_queue import WINDOW
from sm.core.model.session import Session, Status
from sm.core.rules.hook_delivery import BATCH_MARGIN, MAX_BATCH
from sm.core.rules.session.advance import advance, next_alarm
from sm.core.rules.typed_delivery import MAX_RETRIES
from sm.providers.claude.traits import CLAUDE
from sm.providers.codex.traits import CODEX
from tests.core.playbook import HANDOFF, Playbook, event, result

ALL = tuple(Mode)


def post(play, name, mode=Mode.SEQUENTIAL, number=0, **values):
    queued = replace(message(name, values.pop("text", f"text of {name}")), mode=mode, number=number, **values)
    return play >> event(ev.MessageQueued, message=queued)


def working():
    return Playbook() >> event(ev.PromptSubmitted, text="do it")


def told(play):
    """What the reply carries."""
    return [note for effect in play.left if isinstance(effect, ef.AddContext) for note in effect.messages]


def all_modes():
    play = working()
    for number, mode in enumerate((Mode.SEQUENTIAL, Mode.IMPORTANT, Mode.STEER), start=1):
        play = post(play, f"m{number}", mode, number).end()
    return play


def delivered(name, channel):
    return ef.RecordMessage(name, MessageState.DELIVERED, channel=channel)


def sought(found=(), asked=("m1",), **values):
    return event(ev.MessagesSought, asked=asked, found=found, **values)


def test_a_tool_call_carries_what_is_important_and_the_turns_end_the_rest():
    play = all_modes() >> event(ev.ToolUsed, tool="Bash")
    assert told(play) == ["m2", "m3"]
    play = play.skip(ef.AddContext, ef.RecordMessage) >> event(ev.TurnEnded)
    assert told(play) == ["m1"]
    assert play.left[1] == delivered("m1", Channel.STOP)
    assert play.session.status is Status.WORKING


def test_a_second_stop_at_once_carries_nothing():
    play = (post(working(), "m1") >> event(ev.TurnEnded)).skip(ef.AddContext, ef.RecordMessage)
    assert told(play >> event(ev.TurnEnded)) == []


def test_a_stop_that_was_only_found_out_carries_nothing():
    play = post(working(), "m1") >> event(ev.TurnEnded, replayed=True)
    play << ef.AwaitComposer(0, patience=120.0)


def test_one_reply_carries_ten_messages_and_no_more_than_fit():
    play = working()
    for number in range(1, MAX_BATCH + 2):
        play = post(play, f"m{number:02}", number=number)
    assert len(told(play >> event(ev.TurnEnded))) == WINDOW
    play = working()
    for number in range(1, 4):
        play = post(play, f"m{number}", number=number, text="x" * ((CLAUDE.reply_characters - BATCH_MARGIN) // 2 - 10))
    assert told(play >> event(ev.TurnEnded)) == ["m1", "m2"]


def test_a_turn_is_kept_going_only_so_often_and_then_the_next_message_is_typed():
    play = working()
    for number in range(CLAUDE.continued_turns):
        play = post(play, f"m{number}") >> event(ev.TurnEnded, continued=number > 0)
        assert told(play) == [f"m{number}"]
        play = play.skip(ef.AddContext, ef.RecordMessage) >> sought((f"m{number}",), (f"m{number}",))
        play = play.skip(ef.RecordMessage)
    play = post(play, "last") >> event(ev.TurnEnded, continued=True)
    play << ef.AwaitComposer(0, patience=120.0)


def test_a_command_goes_alone_and_nothing_of_its_mode_before_it():
    play = post(post(working(), "m1", number=1, command=True, text="/compact"), "m2", number=2)
    play = post(play, "m3", Mode.IMPORTANT, 3) >> event(ev.TurnEnded)
    assert told(play) == ["m3"]


def test_a_clear_is_sought_in_the_conversation_that_it_begins_though_the_client_was_seen_idle_before():
    play = post(Playbook(), "m1", number=1, command=True, text="/clear") << ef.AwaitComposer(0, patience=120.0)
    play = (play >> result(ev.ComposerReady)).skip(ef.TypeText) >> result(ev.Typed) << delivered("m1", Channel.COMMAND)
    play = play >> event(ev.ActivityChanged, activity=ev.Activity.IDLE)  # of the turn before, seen late
    play = (play >> sought()).end()
    play = (play >> event(ev.ConversationStarted, conversation="c1", transcript="/t1", origin=ev.Origin.CLEAR)).skip()
    (handed,) = play.session.outbox.handed
    assert handed.transcript == "/t1"
    play >> sought(("m1",)) << ef.RecordMessage("m1", MessageState.CONFIRMED)


@pytest.mark.parametrize(
    ("origin", "confirmed"), [("clear", True), ("witness", True), ("compact", False), ("fork", False)]
)
def test_where_no_record_shows_a_command_the_conversation_that_begins_after_it_does(origin, confirmed):
    play = post(Playbook(), "m1", number=1, command=True, text="/clear") << ef.AwaitComposer(0, patience=120.0)
    play = (play >> result(ev.ComposerReady)).skip(ef.TypeText) >> result(ev.Typed) << delivered("m1", Channel.COMMAND)
    began = ev.ConversationStarted(at=play.now + 1, conversation="c1", transcript="/t1", origin=ev.Origin(origin))
    session, effects = advance(play.session, began, CODEX)
    assert (ef.RecordMessage("m1", MessageState.CONFIRMED) in effects, not session.outbox.handed) == (confirmed,) * 2


@pytest.mark.parametrize("origin", [ev.Origin.STARTUP, ev.Origin.RESUME])
@pytest.mark.parametrize("told_at", [0, 1, 2])
def test_a_first_prompt_is_typed_once_though_the_client_tells_late_that_it_has_started(origin, told_at):
    play = Playbook(Session(id="a" * 8, name="x", provider="claude", directory="/p", created=1.0))
    play >> event(ev.SessionLaunched, pane="%1", pid=1, conversation="c0", config="/c")
    play = (post(play, "m1") >> event(ev.ActivityChanged, activity=ev.Activity.IDLE)).skip(ef.AwaitComposer)
    started = event(ev.ConversationStarted, conversation="c0", transcript="/t0", origin=origin)
    for number, step in enumerate((ev.ComposerReady, ev.Typed, None)):
        if number == told_at:
            play = (play >> started).skip(ef.AddContext)
        if step is not None:
            play = (play >> result(step)).skip(ef.TypeText)
    assert play.session.outbox.typed_in == "/t0"
    play >> event(ev.PromptSubmitted, conversation="c0", text="text of m1")
    assert play.left == [delivered("m1", Channel.PASTE)]
    assert play.session.outbox.handed[0].transcript == "/t0"
    play.skip(ef.RecordMessage).end()


def test_messages_go_along_with_the_one_that_is_typed():
    play = post(Playbook(), "m1", number=1) << ef.AwaitComposer(0, patience=120.0)
    play = post(post(play, "m2", number=2), "m3", Mode.IMPORTANT, 3).skip(ef.AwaitComposer)
    play >> result(ev.ComposerReady)
    typed = play.left.pop().text
    play >> event(ev.PromptSubmitted, text=typed)
    assert play.left[0] == delivered(typed.split()[-1], Channel.PASTE)
    assert len(told(play)) == 2


def test_an_important_message_takes_its_turn_before_one_that_waits_for_the_pane():
    play = post(Playbook(), "m1", number=1) << ef.AwaitComposer(0, patience=120.0)
    play = post(play, "m2", Mode.IMPORTANT, 2) << ef.AwaitComposer(0, patience=120.0)
    play >> result(ev.ComposerReady) << ef.TypeText(0, "text of m2")


def test_an_urgent_message_is_typed_while_the_agent_works_and_is_in_the_clients_queue_then():
    play = post(working(), "m1", Mode.URGENT, 1) << ef.AwaitBox(0)
    play >> result(ev.BoxFree) << ef.TypeText(0, "text of m1", now=True)
    play >> event(ev.PromptSubmitted, text="text of m1") << delivered("m1", Channel.URGENT)
    play = play >> event(ev.TurnEnded) >> sought()
    assert play.end().session.outbox.handed
    play >> sought(("m1",)) << ef.RecordMessage("m1", MessageState.CONFIRMED)


def test_an_urgent_message_waits_while_a_dialog_stands():
    play = (working() >> event(ev.PermissionAsked, tool="Bash")).end()
    post(play, "m1", Mode.URGENT, 1).end() >> event(ev.ToolUsed, tool="Bash") << ef.AwaitBox(0)


def test_what_was_handed_over_is_confirmed_by_the_transcript():
    play = (post(working(), "m1") >> event(ev.TurnEnded)).skip(ef.AddContext, ef.RecordMessage)
    play >> ev.AlarmRang(at=next_alarm(play.session))
    assert [delivery.message.id for delivery in play.left.pop().handed] == ["m1"]
    play >> sought(("m1",)) << ef.RecordMessage("m1", MessageState.CONFIRMED)
    assert next_alarm(play.session) is None or play.session.outbox.look is None


def lost():
    play = (post(working(), "m1") >> event(ev.TurnEnded)).skip(ef.AddContext, ef.RecordMessage)
    play = (play >> event(ev.ActivityChanged, activity=ev.Activity.IDLE)).end()
    return play >> sought() << ef.RecordMessage("m1", MessageState.QUEUED, "the client continued without it")


def test_a_reply_that_the_client_never_showed_is_sent_again():
    lost() << ef.AwaitComposer(0, own=("text of m1",), patience=120.0)


def test_a_reply_that_the_client_may_still_show_is_waited_for():
    play = (post(working(), "m1") >> event(ev.TurnEnded)).skip(ef.AddContext, ef.RecordMessage)
    assert (play >> sought()).end().session.outbox.handed


def test_a_reply_that_never_left_is_queued_again_at_once():
    play = (post(working(), "m1", Mode.IMPORTANT) >> event(ev.ToolUsed, tool="Bash")).skip(
        ef.AddContext, ef.RecordMessage
    )
    play >> event(ev.ReplyLost, messages=("m1",))
    play << ef.RecordMessage("m1", MessageState.QUEUED, "the hook continued without it")
    assert told(play >> event(ev.ToolUsed, tool="Bash")) == ["m1"]


def test_a_transcript_that_cannot_be_read_ends_a_message_as_unconfirmed():
    play = (post(working(), "m1") >> event(ev.TurnEnded)).skip(ef.AddContext, ef.RecordMessage)
    play = (play >> event(ev.ActivityChanged, activity=ev.Activity.IDLE)) >> sought(unreadable=("m1",))
    play << ef.RecordMessage("m1", MessageState.UNCONFIRMED, "the client's transcript cannot be read")


def test_nothing_overtakes_a_message_that_may_have_to_come_again():
    play = post(working(), "m1", Mode.IMPORTANT, 1) >> event(ev.ToolUsed, tool="Bash")
    play = post(play.skip(ef.AddContext, ef.RecordMessage), "m2", Mode.IMPORTANT, 2)
    assert told(play >> event(ev.ToolUsed, tool="Bash")) == []
    play = (play >> sought(("m1",))).skip(ef.RecordMessage)
    assert told(play >> event(ev.ToolUsed, tool="Bash")) == ["m2"]


def test_a_message_whose_time_is_over_is_not_delivered():
    play = post(working(), "m1", expires=30.0)
    assert next_alarm(play.session) == 30.0
    play >> ev.AlarmRang(at=30.0) << ef.RecordMessage("m1", MessageState.EXPIRED, "expired before delivery")
    (play >> event(ev.TurnEnded)).end()


def test_what_waits_for_a_session_that_ends_waits_for_its_restore():
    play = post(working(), "m1") >> event(ev.ClientExited, signal=9)
    play = play.skip(ef.MakeDocument).end()
    play = play >> event(ev.SessionLaunched, pane="%2", pid=2, conversation="c0", config="/c")
    assert [queued.id for queued in play.session.outbox.queue] == ["m1"]


def test_what_was_handed_to_a_client_that_ended_is_looked_for_at_once():
    play = (post(working(), "m1") >> event(ev.TurnEnded)).skip(ef.AddContext, ef.RecordMessage)
    play = (play >> event(ev.ClientExited, signal=9)).skip(ef.MakeDocument)
    assert isinstance(play.left.pop(), ef.FindMessages)
    play >> sought() << ef.RecordMessage("m1", MessageState.QUEUED, "the client continued without it")


def handed_over():
    """The client rests, and was given a message at its turn's end."""
    play = (post(working(), "m1") >> event(ev.TurnEnded)).skip(ef.AddContext, ef.RecordMessage)
    return (play >> event(ev.ActivityChanged, activity=ev.Activity.IDLE)).end()


def test_what_the_client_keeps_for_its_next_request_is_not_handed_over_again():
    play = (handed_over() >> sought(kept=("m1",))).end()
    (play >> sought(("m1",)) << ef.RecordMessage("m1", MessageState.CONFIRMED)).end()


def test_what_was_kept_in_a_conversation_that_was_left_is_handed_over_in_the_next():
    play = handed_over() >> event(ev.ConversationStarted, transcript="/t1")
    play.left = []
    play >> sought(kept=("m1",)) << ef.RecordMessage("m1", MessageState.QUEUED, "the client continued without it")


@pytest.mark.parametrize("mode", ALL)
def test_a_pending_handoff_goes_first(mode):
    play = (working() >> event(ev.HandoffRequested, handoff=HANDOFF)).skip(ef.RecordHandoff)
    play = post(play, "m1", mode).end() >> event(ev.ToolUsed, tool="Bash")
    assert told(play) == []
    play = play.end() >> event(ev.TurnEnded)
    assert told(play) == []
    play.left = []


def test_the_window_is_small_and_the_table_fills_it_again_in_order():
    play = working()
    for number in range(1, WINDOW + 4):
        queued = replace(message(f"m{number:02}", "x"), number=number)
        stored = StoredMessage(queued.id, play.session.id, "x", number=number)
        play >> event(ev.MessageQueued, message=queued, stored=stored) << ef.KeepMessage(stored)
    assert (len(play.session.outbox.queue), play.session.outbox.waiting) == (WINDOW, WINDOW + 3)
    play = (play >> event(ev.TurnEnded)).skip(ef.AddContext, ef.RecordMessage)
    refill = play.left.pop().refill
    assert (refill.after, refill.known, refill.count) == (WINDOW, WINDOW + 3, WINDOW)
    rest = tuple(replace(message(f"m{number:02}", "x"), number=number) for number in range(11, 14))
    play = play >> event(ev.MessagesFetched, refill=refill, messages=rest, left=0)
    assert [queued.id for queued in play.end().session.outbox.queue] == ["m11", "m12", "m13"]
    assert play.session.outbox.waiting == 3


# --- taken back (C3) --------------------------------------------------------------------------------------------------


def cancel(name, mode=Mode.SEQUENTIAL, number=0, **values):
    return event(ev.MessageCancelled, id=name, mode=mode, number=number, **values)


CANCELLED = ef.RecordMessage("m1", MessageState.FAILED, "cancelled before it was delivered")


def test_a_message_that_waits_is_cancelled_and_the_next_one_goes():
    play = post(post(Playbook(), "m1", number=1).skip(ef.AwaitComposer), "m2", number=2)
    play >> cancel("m1", number=1) << ef.LeavePane(0) << CANCELLED << ef.AwaitComposer(0, patience=120.0)
    assert [queued.id for queued in play.session.outbox.queue] == ["m2"]


def test_a_message_that_is_being_typed_or_was_handed_over_is_not_cancelled():
    play = post(Playbook(), "m1", number=1).skip(ef.AwaitComposer)
    play >> result(ev.ComposerReady) << ef.TypeText(0, "text of m1") >> cancel("m1", number=1)
    play.end()
    play = post(working(), "m1", number=1) >> event(ev.TurnEnded)
    (play.skip(ef.AddContext, ef.RecordMessage) >> cancel("m1", number=1)).end()
    assert play.session.outbox.handed


def test_a_message_behind_the_window_is_cancelled_and_counts_no_more():
    play = working()
    for number in range(1, WINDOW + 3):
        play = post(play, f"m{number}", number=number).end()
    waiting = play.session.outbox.waiting
    name = f"m{WINDOW + 1}"
    play >> cancel(name, number=WINDOW + 1) << replace(CANCELLED, message=name)
    assert play.session.outbox.waiting == waiting - 1
    (play >> cancel("m99", number=99)).end()


def test_a_message_to_a_session_that_has_ended_is_cancelled():
    play = post(Playbook() >> event(ev.SessionKilled) << ef.EndClient(), "m1", number=1)
    play >> cancel("m1", number=1) << CANCELLED
    assert play.session.outbox.waiting == 0


# --- confirmed is more than submitted (C9), and what ended a client is not typed again (C3) ---------------------------


def submitted():
    """A message that was typed, and that the client has just submitted."""
    play = (post(Playbook(), "m1", number=1).skip(ef.AwaitComposer) >> result(ev.ComposerReady)).skip(ef.TypeText)
    return play >> event(ev.PromptSubmitted, text="text of m1") << delivered("m1", Channel.PASTE)


CONFIRMED = ef.RecordMessage("m1", MessageState.CONFIRMED)


@pytest.mark.parametrize("answer", [event(ev.ToolUsed, tool="Bash"), event(ev.TurnEnded)])
def test_a_submitted_message_is_confirmed_by_the_agents_next_hook(answer):
    (submitted() >> answer << CONFIRMED).end()


def test_a_submitted_message_is_confirmed_by_the_transcript():
    play = submitted()
    play >> ev.AlarmRang(at=next_alarm(play.session))
    assert isinstance(play.left.pop(), ef.FindMessages)
    (play >> sought(("m1",)) << CONFIRMED).end()


def test_a_turn_whose_end_was_only_found_out_answers_nothing():
    assert (submitted() >> event(ev.TurnEnded, replayed=True)).left == []


def test_a_submitted_message_keeps_nothing_from_the_turns_end():
    """Throughput: what waits behind it rides on the reply to the very Stop that confirms it."""
    play = (post(submitted(), "m2", number=2) >> event(ev.TurnEnded)) << CONFIRMED
    assert told(play) == ["m2"]


def ended(play):
    return (play >> event(ev.ClientExited, signal=9)).skip(ef.MakeDocument, ef.LeavePane, ef.RecordMessage)


def test_a_client_that_is_killed_before_it_wrote_a_submitted_message_gets_it_again_once():
    play = ended(submitted())
    assert isinstance(play.left.pop(), ef.FindMessages)
    play >> sought() << ef.RecordMessage("m1", MessageState.QUEUED, "the client continued without it")
    play >> event(ev.SessionLaunched, pane="%2", pid=2, conversation="c0", config="/c")
    play = (play >> event(ev.ConversationStarted, transcript="/t0")).skip(ef.AddContext)
    play >> event(ev.ActivityChanged, activity=ev.Activity.IDLE)
    assert isinstance(play.left.pop(), ef.AwaitComposer)
    play >> result(ev.ComposerReady) << ef.TypeText(0, "text of m1")
    play >> event(ev.PromptSubmitted, text="text of m1") << delivered("m1", Channel.PASTE)
    (play >> event(ev.TurnEnded) << CONFIRMED).end()


def test_a_client_that_wrote_a_submitted_message_before_it_was_killed_does_not_get_it_again():
    play = ended(submitted())
    assert isinstance(play.left.pop(), ef.FindMessages)
    play >> sought(("m1",)) << CONFIRMED
    assert play.session.outbox.queue == ()


def test_a_prompt_that_a_living_client_took_and_does_not_show_is_not_typed_again():
    """As one that a foreign hook has kept from the model, or that a person has taken back with Escape."""
    play = submitted() >> event(ev.ActivityChanged, activity=ev.Activity.IDLE)
    play.now += 10
    play = play.skip(ef.ReadContext) >> sought()
    play << ef.RecordMessage("m1", MessageState.UNCONFIRMED, "the client took it and does not show it")


def test_a_message_during_whose_typing_the_client_ended_is_not_typed_into_the_next_one():
    """C3: it may be what ended it, and the session could never be restored."""
    play = (post(Playbook(), "m1", number=1).skip(ef.AwaitComposer) >> result(ev.ComposerReady)).skip(ef.TypeText)
    play = (play >> event(ev.ClientExited, code=0)).skip(ef.LeavePane, ef.RecordMessage, ef.MakeDocument)
    assert isinstance(play.left.pop(), ef.FindMessages)
    why = "the client ended while it was typed; send it again if it is still wanted"
    play >> sought() << ef.RecordMessage("m1", MessageState.UNCONFIRMED, why)
    assert play.session.outbox.queue == ()


def test_of_two_messages_in_flight_only_the_one_whose_reply_was_lost_is_queued_again():
    play = post(post(working(), "m1", Mode.IMPORTANT, 1), "m2", Mode.IMPORTANT, 2)
    play = (play >> event(ev.ToolUsed, tool="Bash")).skip(ef.AddContext, ef.RecordMessage)
    assert [one.message.id for one in play.session.outbox.handed] == ["m1", "m2"]
    play >> event(ev.ReplyLost, messages=("m2",))
    play << ef.RecordMessage("m2", MessageState.QUEUED, "the hook continued without it")
    play.end()
    assert [one.message.id for one in play.session.outbox.handed] == ["m1"]
    assert [one.id for one in play.session.outbox.queue] == ["m2"]


def test_a_message_that_was_handed_over_as_often_as_is_sensible_is_not_delivered_again():
    play = post(working(), "m1", Mode.IMPORTANT, 1, tries=MAX_RETRIES)
    play = (play >> event(ev.ToolUsed, tool="Bash")).skip(ef.AddContext, ef.RecordMessage)
    (handed,) = play.session.outbox.handed
    play >> event(ev.ActivityChanged, activity=ev.Activity.IDLE)
    play.now += 10
    (play >> event(ev.TurnEnded)).left = []
    play.skip(ef.FindMessages) >> sought()
    assert [one for one in play.left if isinstance(one, ef.RecordMessage)] == [
        ef.RecordMessage("m1", MessageState.UNCONFIRMED, "the client never showed it")
    ]
    play.left = []
    assert handed.message.tries == MAX_RETRIES


def test_a_client_that_is_at_work_has_not_moved_on_from_what_it_was_told():
    play = submitted()
    before = play.session.outbox.handed
    play >> event(ev.ActivityChanged, activity=ev.Activity.BUSY)
    assert play.end().session.outbox.handed == before
