"""Rotation of a client in a person's own terminal, which `sm run` ends and starts again."""

from dataclasses import replace

import pytest

from sm.core import effects as ef
from sm.core import events as ev
from sm.core.model.context import ContextReading
from sm.core.model.foreground import Foreground
from sm.core.model.handoff import HandoffState
from sm.core.model.message import Channel, MessageState, Mode, message
from sm.core.model.rotation import Phase
from sm.core.model.session import Session, Status
from sm.core.rules.foreground_rotation import (
    INHERITED_S,
    MAX_RAPID_RESTARTS,
    MIN_PROGRESS_CALLS,
    RAPID_WINDOW_S,
    counted,
    held_back,
    inherited_restarts,
)
from sm.core.rules.rotation import not_before
from tests.core.playbook import HANDOFF, WAKE, Playbook, advance, event, result

NEXT = "c1"
GIVEN_BACK = "its session ended before it was picked up"


def foreground_session(restarts=()):
    here = Foreground(wrapper=7, born="100")
    session = Session(id="a" * 8, name="x", provider="claude", directory="/p", created=1.0, foreground=here)
    for earlier in (
        ev.SessionLaunched(at=1.0, pid=1, conversation="c0", config="/c", foreground=here),
        ev.ConversationStarted(at=1.1, conversation="c0", transcript="/t0"),
        ev.PromptSubmitted(at=1.2, conversation="c0", text="do it"),
    ):
        session, _ = advance(session, earlier)
    return replace(session, foreground=replace(here, restarts=restarts))


def pending(**place):
    play = Playbook(foreground_session(**place)) >> event(ev.HandoffRequested, handoff=HANDOFF)
    return play << ef.RecordHandoff(HANDOFF, HandoffState.PENDING)


def reserved(**place):
    return pending(**place) >> event(ev.TurnEnded) << ef.AwaitComposer(0, own=("/clear",))


def ordered():
    return reserved() >> result(ev.ComposerReady) << ef.RestartClient(0)


def taken():
    return ordered() >> result(ev.RestartTaken, conversation=NEXT)


def launched(play, conversation=NEXT, **values):
    here = play.session.foreground
    return play >> event(ev.SessionLaunched, pid=2, conversation=conversation, config="/c", foreground=here, **values)


def started(play, conversation=NEXT, origin=ev.Origin.STARTUP):
    return play >> event(ev.ConversationStarted, conversation=conversation, transcript="/t1", origin=origin, pid=2)


def begun():
    return started(launched(taken())).skip(ef.AddContext) << ef.InjectHandoff(HANDOFF, None)


def woken(text=WAKE, **values):
    return event(ev.PromptSubmitted, conversation=NEXT, text=text, **values)


def test_a_fresh_client_takes_over_once_the_turn_has_ended():
    play = begun()
    assert play.phase is Phase.PROMPTING
    play >> woken() << ef.RecordHandoff(HANDOFF, HandoffState.CONSUMED)
    assert (play.phase, play.session.rotations, play.session.past) == (Phase.DONE, 1, ("c0",))


def test_nothing_is_ever_typed_there():
    play = Playbook(foreground_session())
    play >> event(ev.TurnEnded) >> event(ev.ActivityChanged, activity=ev.Activity.IDLE)
    assert play.end().session.status is Status.IDLE


def test_a_person_who_submits_first_takes_the_order_back():
    play = ordered() >> event(ev.PromptSubmitted, text="wait") << ef.LeavePane(0)
    assert play.phase is Phase.PENDING
    play >> event(ev.TurnEnded) << ef.AwaitComposer(0, own=("/clear",))


def test_an_order_of_an_earlier_step_is_not_taken():
    play = ordered()
    stale = ev.RestartTaken(at=0, step=play.session.step - 1, conversation="c9")
    assert (play >> stale).end().session.rotation.next == ""


def test_an_order_is_taken_once():
    play = taken() >> result(ev.RestartTaken, conversation="c9")
    assert play.end().session.rotation.next == NEXT


@pytest.mark.parametrize("kind", [ev.ToolUsed, ev.PromptSubmitted, ev.TurnEnded])
def test_what_the_old_client_still_says_while_it_is_ended_changes_nothing(kind):
    values = {ev.ToolUsed: {"tool": "Bash"}, ev.PromptSubmitted: {"text": "wait"}}.get(kind, {})
    assert (taken() >> event(kind, **values)).skip(ef.AddContext).end().phase is Phase.CLEARING


def test_the_hook_of_the_new_client_may_come_before_the_word_of_its_start():
    play = started(taken()).skip(ef.AddContext) << ef.InjectHandoff(HANDOFF, None)
    assert play.phase is Phase.PROMPTING
    assert launched(play).end().phase is Phase.PROMPTING
    play >> woken() << ef.RecordHandoff(HANDOFF, HandoffState.CONSUMED)


def test_a_second_hook_for_the_same_start_injects_nothing():
    assert started(begun()).skip(ef.AddContext).end().phase is Phase.PROMPTING


def test_a_prompt_whose_start_was_not_heard_gets_the_document_itself():
    play = launched(taken()) >> woken()
    play << ef.InjectHandoff(HANDOFF, None) << ef.RecordHandoff(HANDOFF, HandoffState.CONSUMED)
    assert play.phase is Phase.DONE


def test_hooks_that_found_no_server_are_made_up_for_by_the_transcript():
    play = launched(taken(), transcript="/t1").skip(ef.FindPrompt) >> woken(replayed=True)
    play << ef.RecordHandoff(HANDOFF, HandoffState.CONSUMED)
    assert play.phase is Phase.DONE


@pytest.mark.parametrize("kind", [ev.ToolUsed, ev.TurnEnded, ev.TurnFailed, ev.PermissionAsked])
def test_an_agent_that_works_in_the_new_context_has_its_prompt(kind):
    values = {ev.ToolUsed: {"tool": "Bash"}}.get(kind, {})
    play = launched(taken()) >> event(kind, conversation=NEXT, **values)
    play.skip(ef.AddContext) << ef.RecordHandoff(HANDOFF, HandoffState.CONSUMED)


def test_the_persons_own_clear_takes_the_document_along():
    play = started(pending(), "c5", ev.Origin.CLEAR) << ef.InjectHandoff(HANDOFF, None) << ef.LeavePane(0)
    assert play.phase is Phase.EMPTY
    (
        play
        >> event(ev.PromptSubmitted, conversation="c5", text="go on")
        << ef.RecordHandoff(HANDOFF, HandoffState.CONSUMED)
    )


@pytest.mark.parametrize("stage", [pending, reserved, ordered, taken])
def test_a_client_that_ends_before_the_next_one_runs_leaves_the_document(stage):
    play = (stage() >> event(ev.ClientExited, code=0)).skip(ef.LeavePane)
    assert (play.phase, play.session.status) == (Phase.PENDING, Status.EXITED)


@pytest.mark.parametrize("stage", [lambda: launched(taken()), begun])
def test_a_client_that_ends_before_its_prompt_leaves_the_document(stage):
    play = (stage() >> event(ev.ClientExited, signal=9)).skip(ef.LeavePane)
    play << ef.RecordHandoff(HANDOFF, HandoffState.ACTIVE, GIVEN_BACK, held=False)
    assert (play.phase, play.session.status) == (Phase.FAILED, Status.CRASHED)


@pytest.mark.parametrize(
    ("end", "status"), [({"code": 130}, Status.EXITED), ({"signal": 1}, Status.EXITED), ({"code": 1}, Status.CRASHED)]
)
def test_what_a_person_ends_has_not_crashed(end, status):
    assert (Playbook(foreground_session()) >> event(ev.ClientExited, **end)).session.status is status


def test_a_server_that_was_away_gives_its_order_again():
    play = reserved() >> event(ev.ServerStarted) << ef.AwaitComposer(0, own=("/clear",))
    assert play.phase is Phase.RESERVED
    play = ordered() >> event(ev.ServerStarted) << ef.AwaitComposer(0, own=("/clear",))
    assert play.phase is Phase.RESERVED


def test_a_server_that_was_away_lets_what_was_taken_go_on():
    assert (taken() >> event(ev.ServerStarted)).end().phase is Phase.CLEARING
    play = begun() >> event(ev.ServerStarted)
    assert isinstance(play.left[0], ef.FindPrompt)


def test_an_answer_that_was_lost_is_ordered_again():
    play = taken()
    taken_at = play.session.foreground.restarts[-1]
    play >> ev.AlarmRang(at=play.session.rotation.deadline) << ef.AwaitComposer(0, own=("/clear",), after=taken_at)
    play.now = play.session.last_activity + 100
    play >> result(ev.ComposerReady) << ef.RestartClient(0)
    play >> result(ev.RestartTaken, conversation="c2")
    assert play.session.rotation.next == "c2"


def test_a_restart_that_is_needed_again_at_once_is_held_back_and_the_person_is_told():
    play = pending(restarts=(8.0, 9.0, 10.0)) >> event(ev.TurnEnded)
    told, *_ = play.left
    assert isinstance(told, ef.TellUser)
    assert play.phase is Phase.FAILED
    assert "this context stays" in play.session.rotation.note
    assert play.session.status is Status.IDLE


def test_a_person_may_ask_for_a_restart_that_was_held_back():
    play = (pending(restarts=(8.0, 9.0, 10.0)) >> event(ev.TurnEnded)).skip(ef.TellUser, ef.LeavePane, ef.RecordHandoff)
    play >> event(ev.HandoffRetried) << ef.AwaitComposer(0, own=("/clear",), after=20.0)
    assert play.phase is Phase.RESERVED


def test_restarts_are_counted_and_a_person_who_goes_on_begins_anew():
    play = taken()
    assert len(play.session.foreground.restarts) == 1
    play = started(launched(play)).skip(ef.AddContext, ef.InjectHandoff) >> woken()
    play.skip(ef.RecordHandoff) >> event(ev.TurnEnded, conversation=NEXT)
    assert len(play.session.foreground.restarts) == 1
    play.now += 10.0
    play >> event(ev.PromptSubmitted, conversation=NEXT, text="and now this")
    assert play.session.foreground.restarts == ()


HERE = Foreground(wrapper=7)


def test_three_restarts_within_two_minutes_are_a_storm():
    storm = counted(counted(counted(HERE, 0.0, 2), 30.0, 2), 60.0, 2)
    assert held_back(storm, 100.0, 2)
    assert not held_back(storm, RAPID_WINDOW_S + 1, 2)
    assert not held_back(storm, 100.0, MIN_PROGRESS_CALLS)
    assert len(storm.restarts) == MAX_RAPID_RESTARTS


def test_as_many_restarts_without_progress_as_configured_are_enough():
    place = HERE
    for number in range(HERE.limit):
        assert not held_back(place, number * 1000.0, 2)
        place = counted(place, number * 1000.0, 2)
    assert held_back(place, 1e6, 2)
    assert counted(place, 1e6, MIN_PROGRESS_CALLS).restarts == (1e6,)


def test_each_restart_without_progress_waits_longer():
    place = counted(HERE, 0.0, 2)
    assert not_before(place) == 0.0
    place = counted(place, 10.0, 2)
    assert not_before(place) == 15.0
    assert not_before(counted(place, 20.0, MIN_PROGRESS_CALLS)) == 20.0


def test_no_restart_at_all_can_be_wished_for():
    assert held_back(Foreground(wrapper=7, limit=0), 0.0, 50)


def test_a_server_that_comes_back_gives_the_restart_that_was_taken_its_whole_time_again():
    play = taken().skip(ef.TellUser)
    before = play.session.rotation.deadline
    play >> event(ev.ServerStarted)
    play.end()
    assert play.phase is Phase.CLEARING
    assert play.session.rotation.deadline > before


def test_an_alarm_of_something_else_leaves_a_restart_alone():
    play = ordered()
    before = play.session.rotation
    play >> event(ev.AlarmRang)
    assert play.end().session.rotation == before


def test_a_prompt_that_is_not_found_leaves_a_restart_alone():
    play = taken().skip(ef.TellUser)
    before = play.session.rotation
    play >> result(ev.PromptMissing)
    assert play.end().session.rotation == before


def test_a_retry_of_what_has_not_failed_changes_nothing():
    play = taken().skip(ef.TellUser)
    before = play.session.rotation
    play >> event(ev.HandoffRetried)
    assert play.end().session.rotation == before


def ended(at=100.0, **changes):
    session = replace(foreground_session(restarts=(9.0,)), status=Status.EXITED, last_activity=at)
    return replace(session, **changes)


@pytest.mark.parametrize(
    ("sessions", "restarts"),
    [
        ([], ()),
        ([ended()], (9.0,)),
        ([ended(100.0 - INHERITED_S - 1)], ()),
        ([ended(directory="/q")], ()),
        ([ended(status=Status.IDLE)], ()),
        ([ended(foreground=None)], ()),
        ([ended(), ended(101.0, foreground=Foreground(wrapper=8, restarts=(7.0,)))], (7.0,)),
    ],
)
def test_a_new_run_inherits_the_restarts_of_the_last_one_that_has_just_ended_in_its_directory(sessions, restarts):
    assert inherited_restarts(sessions, "/p", 100.0) == restarts


# --- cleared in place, by the plugin in the client -------------------------------------------------------------------

GONE = "the client's plugin does not answer"
BY_PLUGIN = event(ev.DriverChanged, driver=ev.DrivenBy.MOD)
PLUGIN_GONE = event(ev.DriverChanged, driver=ev.DrivenBy.KEYS, reason=GONE)
WAITS = ef.AwaitComposer(0, own=("/clear",))


def inside(**place):
    """A session whose client has a plugin that answers."""
    return (Playbook(foreground_session(**place)) >> BY_PLUGIN).session


def reserved_inside(**place):
    play = Playbook(inside(**place)) >> event(ev.HandoffRequested, handoff=HANDOFF)
    play << ef.RecordHandoff(HANDOFF, HandoffState.PENDING)
    return play >> event(ev.TurnEnded)


def clearing():
    play = reserved_inside() << WAITS
    play >> result(ev.ComposerReady) << ef.TakeSnapshot(0)
    return play >> result(ev.SnapshotTaken) << ef.ClearContext(0)


def cleared():
    return started(clearing(), "c1", ev.Origin.CLEAR) << ef.InjectHandoff(HANDOFF, None)


def prompting():
    play = cleared().skip(ef.AwaitComposer)
    return play >> result(ev.ComposerReady) << ef.TypeText(0, WAKE)


def test_the_plugin_clears_and_wakes_in_the_same_process():
    play = prompting() >> woken() << ef.RecordHandoff(HANDOFF, HandoffState.CONSUMED)
    assert (play.phase, play.session.rotations, play.session.past) == (Phase.DONE, 1, ("c0",))


@pytest.mark.parametrize("stage", [lambda: reserved_inside() << WAITS, clearing])
def test_a_plugin_that_is_lost_before_the_clear_leaves_it_to_a_restart(stage):
    play = stage() >> PLUGIN_GONE << WAITS
    assert play.phase is Phase.RESERVED
    play >> result(ev.ComposerReady) << ef.RestartClient(0)


@pytest.mark.parametrize("stage", [lambda: cleared().skip(ef.AwaitComposer), prompting])
def test_a_plugin_that_is_lost_after_the_clear_leaves_the_same_document_to_a_restart(stage):
    play = stage() >> PLUGIN_GONE << WAITS
    assert (play.phase, play.session.rotation.note) == (Phase.EMPTY, GONE)
    play >> result(ev.ComposerReady) << ef.RestartClient(0)
    play >> result(ev.RestartTaken, conversation="c2")
    play = started(launched(play, "c2"), "c2").skip(ef.AddContext) << ef.InjectHandoff(HANDOFF, None)
    play >> event(ev.PromptSubmitted, conversation="c2", text=WAKE) << ef.RecordHandoff(HANDOFF, HandoffState.CONSUMED)
    assert (play.session.rotations, play.session.past) == (1, ("c0", "c1"))


def restart_of_a_cleared_context():
    play = cleared().skip(ef.AwaitComposer) >> PLUGIN_GONE << WAITS
    return play >> result(ev.ComposerReady) << ef.RestartClient(0)


def test_a_user_who_continues_in_the_cleared_context_keeps_it():
    play = restart_of_a_cleared_context() >> woken("go on") << ef.LeavePane(0)
    play << ef.RecordHandoff(HANDOFF, HandoffState.CONSUMED)
    assert play.phase is Phase.DONE


def test_a_plugin_that_answers_again_takes_the_restart_back():
    play = restart_of_a_cleared_context() >> BY_PLUGIN << WAITS
    assert play.phase is Phase.RESERVED
    play = ordered() >> BY_PLUGIN << WAITS
    play >> result(ev.ComposerReady) << ef.TakeSnapshot(0)


def test_a_restart_that_was_taken_ends_as_one_though_the_new_client_has_a_plugin():
    """Its prompt is an argument of its start: given once more it would be read twice."""
    play = launched(taken(), plugin=True) >> BY_PLUGIN
    assert play.end().phase is Phase.EMPTY
    play = started(play).skip(ef.AddContext) << ef.InjectHandoff(HANDOFF, None)
    assert play.end().phase is Phase.PROMPTING
    play >> woken() << ef.RecordHandoff(HANDOFF, HandoffState.CONSUMED)


def test_a_plugin_that_is_lost_while_the_clear_has_timed_out_rotates_at_once():
    play = clearing()
    play >> ev.AlarmRang(at=play.session.rotation.deadline) << ef.LeavePane(0)
    assert play.phase is Phase.PENDING
    play.now = play.session.last_activity + 40
    play >> PLUGIN_GONE << WAITS


def test_a_plugin_that_answers_before_the_word_of_its_start_is_not_forgotten():
    session = replace(inside(), pid=2)
    assert launched(Playbook(session), "c0", plugin=True).session.driver is ev.DrivenBy.MOD
    other = replace(inside(), pid=1)
    after = launched(Playbook(other), "c0", plugin=True).session
    assert (after.driver, after.driver_note) == (ev.DrivenBy.KEYS, ev.AWAITED)


def test_a_context_that_is_cleared_in_place_counts_like_a_restart():
    play = clearing() >> event(ev.ConversationEnded)
    assert play.session.foreground.restarts == (play.now,)
    play = reserved_inside(restarts=(8.0, 9.0, 10.0))
    assert (play.phase, isinstance(play.left[0], ef.TellUser)) == (Phase.FAILED, True)


def test_with_few_calls_reported_the_replies_show_progress():
    reading = ContextReading(tokens=1, projected=1, messages=MIN_PROGRESS_CALLS)
    session = inside(restarts=(8.0, 9.0, 10.0))
    current = session.conversation
    session = replace(session, conversation=replace(current, monitor=replace(current.monitor, reading=reading)))
    play = Playbook(session) >> event(ev.HandoffRequested, handoff=HANDOFF)
    play = play.skip(ef.RecordHandoff) >> event(ev.TurnEnded)
    assert play.skip(ef.AwaitComposer).end().phase is Phase.RESERVED


# --- messages --------------------------------------------------------------------------------------------------------

NOTE = message("m1", "a note")


def idle_inside():
    return (Playbook(inside()) >> event(ev.TurnEnded)).session


def under_way():
    play = Playbook(idle_inside()) >> event(ev.MessageQueued, message=NOTE)
    assert isinstance(play.left.pop(0), ef.AwaitComposer)
    return play


def test_a_message_to_an_idle_agent_is_a_prompt_of_the_plugin():
    play = under_way() >> result(ev.ComposerReady) << ef.TypeText(0, NOTE.pasted)
    play >> event(ev.PromptSubmitted, text=NOTE.pasted)
    assert [effect.state for effect in play.left if isinstance(effect, ef.RecordMessage)] == [MessageState.DELIVERED]


def test_a_message_that_waits_goes_out_once_the_plugin_answers():
    play = Playbook(foreground_session()) >> event(ev.TurnEnded) >> event(ev.MessageQueued, message=NOTE)
    assert isinstance((play >> BY_PLUGIN).left.pop(0), ef.AwaitComposer)
    play.end()


def test_a_message_whose_plugin_is_lost_waits_for_the_next_hook():
    play = under_way() >> PLUGIN_GONE << ef.LeavePane(0)
    play >> event(ev.PromptSubmitted, text="go on")
    play >> event(ev.ToolUsed, tool="Bash")
    assert play.end().session.outbox.waiting == 1
    assert [effect.text for effect in (play >> event(ev.TurnEnded)).left if isinstance(effect, ef.AddContext)]


@pytest.mark.parametrize("found", [True, False])
def test_a_message_that_the_lost_plugin_may_have_submitted_is_looked_for(found):
    play = under_way() >> result(ev.ComposerReady) << ef.TypeText(0, NOTE.pasted)
    play >> PLUGIN_GONE
    assert isinstance(play.left.pop(0), ef.FindPrompt)
    if found:
        play >> event(ev.PromptSubmitted, text=NOTE.pasted, replayed=True)
        play << ef.RecordMessage(NOTE.id, MessageState.CONFIRMED, channel=Channel.PASTE)
    else:
        play >> result(ev.PromptMissing) << ef.LeavePane(0)
    assert play.end().session.outbox.waiting == (not found)


@pytest.mark.parametrize("seen", ["told inside", "after a tool"])
def test_an_urgent_one_is_told_in_the_turn_where_nothing_is_typed(seen):
    reading = ContextReading(tokens=1, projected=1, continues=True)
    session = inside()
    current = session.conversation
    session = replace(session, conversation=replace(current, monitor=replace(current.monitor, reading=reading)))
    session = session if seen == "told inside" else replace(session, driver=ev.DrivenBy.KEYS)
    play = Playbook(session) >> event(ev.MessageQueued, message=replace(NOTE, mode=Mode.URGENT))
    play = play if seen == "told inside" else play >> event(ev.ToolUsed, tool="Bash")
    assert [effect.messages for effect in play.left if isinstance(effect, ef.AddContext)] == [(NOTE.id,)]


def test_a_composer_that_is_ready_after_the_new_client_has_its_prompt_changes_nothing():
    play = launched(taken()) >> result(ev.ComposerReady)
    assert play.end().phase is Phase.EMPTY
