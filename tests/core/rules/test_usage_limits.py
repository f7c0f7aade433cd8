"""A session of a limited account is left alone, and the work that the limit interrupted continues once."""

from dataclasses import replace

import pytest

from sm.core import effects as ef
from sm.core import events as ev
from sm.core.model.message import Mode, message
from sm.core.model.rotation import Phase, Rotation
from sm.core.model.session import Status
from sm.core.model.usage_limit import HELD_REASON, UsageLimit
from sm.core.rules.session.usage_limits import CONTINUED
from tests.core.playbook import HANDOFF, WAKE, Playbook, event, idle_session, result

MET = UsageLimit("five_hour", 5_000.0, 100.0)
SHARED = event(ev.LimitShared, limit=MET)
OVER = event(ev.LimitEnded, resumes=True, text="Build the parser.\nThen test it.")
RESUMED = (
    "[sm limits] Continue the task that a usage limit has interrupted, and do not repeat what is done already. "
    'The task began with: "Build the parser. Then test it."'
)


def prompt(text):
    return event(ev.PromptSubmitted, text=text)


def cut_off():
    """A session whose turn has ended at the limit."""
    play = Playbook() >> prompt("Build the parser.") >> event(ev.TurnFailed, error="rate_limit", limit=MET)
    return play >> event(ev.ActivityChanged, activity=ev.Activity.IDLE)


def queued(play, **options):
    text = message("m1", "hello")
    return (play >> event(ev.MessageQueued, message=replace(text, **options))).end()


def typed(play):
    """Let the first message be typed; return its text."""
    assert isinstance(play.left.pop(0), ef.AwaitComposer)
    play >> result(ev.ComposerReady)
    command = play.left.pop(0)
    assert isinstance(command, ef.TypeText)
    return command.text


# --- the work continues once ----------------------------------------------------------------------------------------


def test_the_agent_is_woken_with_its_task():
    play = cut_off() >> OVER
    assert play.session.limit is None
    assert typed(play) == RESUMED
    play = (play >> prompt(RESUMED)).skip(ef.RecordMessage)
    assert (play.end().session.status, play.session.outbox.queue) == (Status.WORKING, ())


def test_it_is_woken_without_its_task_where_that_is_unknown():
    assert typed(cut_off() >> event(ev.LimitEnded, resumes=True)) == RESUMED.partition(" The task began")[0]


def test_what_waits_is_typed_after_that():
    play = queued(cut_off())
    assert typed(play >> OVER) == RESUMED


def test_nothing_is_typed_if_the_work_is_not_to_continue():
    play = (cut_off() >> event(ev.LimitEnded)).end()
    assert play.session.shown_status is Status.IDLE


def test_a_session_that_another_one_has_limited_has_nothing_to_continue():
    play = ((Playbook() >> SHARED) >> OVER).end()
    assert (play.session.limit, play.session.shown_status) == (None, Status.IDLE)


def test_an_end_that_comes_late_changes_nothing():
    play = cut_off() >> prompt("the client's own continuation") >> event(ev.TurnEnded)
    assert (play >> OVER).end().session.outbox.queue == ()


def test_the_client_that_continues_first_is_not_woken_again():
    play = cut_off() >> OVER
    play.left.clear()
    play = play >> prompt("Your claude.ai usage limit has reset. Continue")
    assert play.session.outbox.queue == ()
    play << ef.LeavePane(0)
    assert (play >> event(ev.TurnEnded)).end().session.outbox.step is None


def test_the_client_that_continues_while_the_text_is_typed_is_not_woken_again_either():
    play = cut_off() >> OVER
    typed(play)
    play >> prompt("Your claude.ai usage limit has reset. Continue")
    assert (play.session.outbox.queue, play.session.outbox.handed) == ((), ())


def test_an_urgent_message_that_goes_first_does_not_lose_the_task():
    play = queued(cut_off(), mode=Mode.URGENT) >> OVER
    assert typed(play) == "hello"
    play = (play >> prompt("hello")).skip(ef.RecordMessage)
    assert [effect.text for effect in play.left] == [RESUMED]


def test_a_rotation_that_waits_continues_the_work_itself():
    play = (cut_off() >> event(ev.HandoffRequested, handoff=HANDOFF)).skip(ef.RecordHandoff).end() >> OVER
    assert (play.session.rotation.phase, play.session.outbox.queue) == (Phase.RESERVED, ())


def test_the_users_own_clear_leaves_nothing_to_continue():
    cleared = event(ev.ConversationStarted, conversation="c1", origin=ev.Origin.CLEAR)
    play = (cut_off() >> cleared >> OVER).skip(ef.AddContext).end()
    assert play.session.outbox.queue == ()


def test_a_client_that_was_restarted_is_woken():
    play = cut_off() >> event(ev.ClientExited, signal=9)
    play = play.skip(ef.MakeDocument) >> event(ev.SessionLaunched, pane="%2", pid=2, conversation="c0", config="/c")
    assert (play.session.shown_status, play.session.limit.left) == (Status.LIMITED, True)
    play = play >> event(ev.ActivityChanged, activity=ev.Activity.IDLE) >> OVER
    assert typed(play) == RESUMED


def test_the_user_who_is_asked_sees_that_it_waits_for_them():
    play = (cut_off() >> event(ev.ResumeAsked)).end()
    assert (play.session.shown_status, play.session.limit.asks) == (Status.LIMITED, True)
    assert play.session.shown_detail.endswith("waits for you: sm limits --resume")
    assert typed(play >> OVER) == RESUMED


# --- and not twice, though the client's own wait continues ----------------------------------------------------------

BY_CLIENT = "Your claude.ai usage limit has reset. Continue the task you were working on when the limit was reached"
BLOCKED = ef.BlockPrompt(CONTINUED)


def woken():
    """A session whose agent has been woken before the reset, and has answered."""
    play = cut_off() >> OVER
    typed(play)
    play = (play >> prompt(RESUMED)).skip(ef.RecordMessage)
    return (play >> event(ev.TurnEnded)).skip(ef.RecordMessage).end()


@pytest.mark.parametrize("between", [[], [ev.ServerStarted], [ev.CompactionStarted, ev.CompactionEnded]])
def test_the_client_does_not_continue_what_was_continued(between):
    play = woken()
    for kind in between:
        play = (play >> event(kind)).skip(ef.MakeDocument, ef.AddContext)
    before = play.session
    play = (play >> prompt(BY_CLIENT)) << BLOCKED
    assert play.end().session == replace(before, resumed=False)
    assert (play >> prompt(BY_CLIENT)).end().session.status is Status.WORKING


def test_nor_what_was_continued_beside_another_message():
    play = queued(cut_off(), mode=Mode.URGENT) >> OVER
    typed(play)
    play = (play >> prompt("hello")).skip(ef.RecordMessage, ef.AddContext) >> event(ev.TurnEnded)
    (play.skip(ef.RecordMessage, ef.FindMessages) >> prompt(BY_CLIENT)) << BLOCKED


def test_it_continues_what_failed_again():
    play = woken() >> prompt("and now?") >> event(ev.TurnFailed, error="rate_limit", limit=MET)
    assert (play >> prompt(BY_CLIENT)).end().session.status is Status.WORKING


def test_it_continues_what_only_another_prompt_has_followed():
    play = cut_off() >> OVER
    play.left.clear()
    play >> prompt("What is the time?")
    play.left.clear()
    assert (play >> prompt(BY_CLIENT)).end().session.status is Status.WORKING


def test_it_continues_what_is_not_to_be_continued_by_sm():
    play = cut_off() >> event(ev.LimitEnded) >> prompt(BY_CLIENT)
    assert play.end().session.status is Status.WORKING


# --- other sessions of the account ----------------------------------------------------------------------------------


def test_another_session_of_the_account_is_limited_too():
    play = (Playbook() >> SHARED).end()
    assert (play.session.shown_status, play.session.limit.interrupted) == (Status.LIMITED, False)
    assert (
        play.session.shown_detail
        == "5-hour limit reached by another session of the account; messages wait until it resets"
    )


def test_its_messages_wait():
    play = queued(Playbook() >> SHARED)
    assert typed(play >> event(ev.LimitEnded)) == "hello"


def test_a_message_on_its_way_is_stopped_before_its_first_key():
    play = Playbook() >> event(ev.MessageQueued, message=message("m1", "hello"))
    play.left.clear()
    play = (play >> SHARED) << ef.LeavePane(0)
    play = (play >> result(ev.ComposerReady)).end()
    assert typed(play >> event(ev.LimitEnded)) == "hello"


def test_a_message_that_is_typed_already_may_still_arrive():
    play = Playbook() >> event(ev.MessageQueued, message=message("m1", "hello"))
    typed(play)
    assert (play >> SHARED).end().session.outbox.typed


@pytest.mark.parametrize("mode", [Mode.IMPORTANT, Mode.URGENT, Mode.SEQUENTIAL])
def test_a_turn_that_still_runs_is_given_nothing(mode):
    play = queued(Playbook() >> prompt("do it") >> SHARED, mode=mode)
    play = (play >> event(ev.ToolUsed, tool="Bash")).end()
    assert (play >> event(ev.TurnEnded)).end().session.shown_status is Status.LIMITED


def test_its_own_turn_may_meet_the_limit_as_well():
    play = Playbook() >> prompt("do it") >> SHARED >> event(ev.TurnFailed, error="rate_limit", limit=MET)
    assert play.session.limit.interrupted


def test_another_failure_leaves_it_limited():
    play = Playbook() >> prompt("do it") >> SHARED >> event(ev.TurnFailed, error="server_error")
    assert play.session.limit is not None


def test_its_users_prompt_that_is_answered_ends_it():
    play = Playbook() >> SHARED >> prompt("and now?")
    assert play.session.shown_status is Status.WORKING
    assert (play >> event(ev.TurnEnded)).session.limit is None


def in_phase(phase, **changes):
    play = Playbook(replace(idle_session(), rotation=Rotation(HANDOFF, phase=phase, **changes), at_prompt=True))
    return play >> SHARED


@pytest.mark.parametrize("phase", [Phase.RESERVED, Phase.SNAPSHOT])
def test_a_rotation_that_has_not_cleared_yet_waits(phase):
    play = in_phase(phase) << ef.LeavePane(0)
    assert (play.phase, play.session.rotation.note) == (Phase.PENDING, HELD_REASON)
    play = (play >> event(ev.TurnEnded)).end() >> event(ev.LimitEnded)
    assert isinstance(play.left[0], ef.AwaitComposer)
    assert play.phase is Phase.RESERVED


def test_a_context_that_is_cleared_is_woken_after_it():
    play = in_phase(Phase.EMPTY, cleared=True) << ef.LeavePane(0)
    assert (play.phase, play.session.rotation.deadline) == (Phase.EMPTY, None)
    late = ev.ComposerReady(at=0, step=99)
    play = (play >> late).end() >> event(ev.LimitEnded)
    assert typed(play) == WAKE


def test_a_clear_that_is_out_already_is_followed_by_no_prompt():
    play = in_phase(Phase.CLEARING).end()
    started = event(ev.ConversationStarted, conversation="c1", origin=ev.Origin.CLEAR)
    play = (play >> started).skip(ef.InjectHandoff) << ef.LeavePane(0)
    assert play.phase is Phase.EMPTY
    assert typed(play >> event(ev.LimitEnded)) == WAKE
