"""A rotation that another client continues: what changes with the client, what stays, and who comes back when."""

from dataclasses import replace

import pytest

from sm.core import effects as ef
from sm.core import events as ev
from sm.core.model.handoff import HandoffState
from sm.core.model.rotation import Phase, Switch
from sm.core.model.session import Status
from sm.core.model.usage_limit import UsageLimit
from sm.core.rules.rotation import TIMEOUTS, Verdict
from tests.core.playbook import HANDOFF, WAKE, Playbook, event, idle_session, result

NEW = "c1"
BEGUN = ef.RecordHandoff(HANDOFF, HandoffState.PENDING)


def requested(to="codex", session=None, arguments=()):
    play = Playbook(session) >> event(ev.PromptSubmitted, text="do it")
    return play >> event(ev.HandoffRequested, handoff=HANDOFF, switch=Switch(to, arguments)) << BEGUN


def ready(play):
    play = play >> event(ev.TurnEnded) << ef.AwaitComposer(0, own=("/clear",))
    return play >> result(ev.ComposerReady) << ef.TakeSnapshot(0) >> result(ev.SnapshotTaken, path="/dump")


def switching(**changes):
    return ready(requested(session=idle_session(**changes))) << ef.SwitchClient()


def launched(provider="codex", **values):
    values = {"pane": "%2", "pid": 2, "conversation": NEW, "provider": provider, "in_place": True, **values}
    return event(ev.SessionLaunched, **values)


def began(**values):
    return event(ev.ConversationStarted, **{"conversation": NEW, "transcript": "/t1", **values})


def failed(reason="not found", **values):
    return event(ev.SwitchFailed, handoff=HANDOFF.id, reason=reason, **values)


def told(words):
    return ef.TellUser(f"sm: {words}"), ef.TellParent(f"[sm handoff] {words}")


def test_the_other_client_takes_up_the_document_and_is_woken():
    play = switching(parent="b" * 8, model="model-a", window=200_000, limit=None)
    play = play >> launched()
    assert (play.session.provider, play.session.model, play.session.window) == ("codex", None, None)
    assert (play.session.status, play.session.parent, play.session.id) == (Status.STARTING, "b" * 8, "a" * 8)
    play = (play >> began()).skip(ef.AddContext)
    play = play << ef.InjectHandoff(HANDOFF, "/dump") << ef.AwaitComposer(0, own=(WAKE, "/clear"))
    play = play >> result(ev.ComposerReady) << ef.TypeText(0, WAKE)
    play = play >> event(ev.PromptSubmitted, conversation=NEW, text=WAKE)
    play << ef.RecordHandoff(HANDOFF, HandoffState.CONSUMED)
    assert play.end().phase is Phase.DONE
    assert (play.session.rotations, play.session.past) == (1, ("c0",))


def test_what_is_known_of_one_client_holds_for_no_other():
    play = switching() >> launched()
    assert play.session.limit is None
    other = replace(play.session, limit=UsageLimit("five_hour", 900.0, 100.0))
    assert (Playbook(other) >> launched("codex", pid=3)).session.limit is not None
    assert (Playbook(other) >> launched("claude", pid=3)).session.limit is None


def test_a_handoff_to_the_sessions_own_client_is_an_ordinary_one():
    play = ready(requested(to="claude")) << ef.ClearContext(0)
    assert play.session.rotation.switch is None


def test_a_client_that_cannot_be_started_leaves_the_handoff_to_the_one_that_is_there():
    play = switching() >> failed(ended=False)
    for effect in told("codex was not started: not found; the handoff continues with the client as it is"):
        play << effect
    play << ef.AwaitComposer(0, own=("/clear",))
    play = play >> result(ev.ComposerReady) << ef.TakeSnapshot(0)
    play >> result(ev.SnapshotTaken, path="/dump") << ef.ClearContext(0)
    assert play.session.rotation.switch is None


def started_in_vain(play):
    return play >> failed("exit code 1") << told_back("exit code 1")[0] << told_back("exit code 1")[1]


def told_back(why):
    return told(f"codex did not start: {why}; claude continues from the document")


STAGES = {
    "before it was launched": switching,
    "launched": lambda: switching() >> launched(),
    "begun": lambda: (switching() >> launched() >> began()).skip(ef.AddContext, ef.InjectHandoff, ef.AwaitComposer),
}


@pytest.mark.parametrize("stage", STAGES)
def test_a_client_that_ends_at_once_gives_the_document_back_to_the_one_before(stage):
    play = started_in_vain(STAGES[stage]()) << ef.SwitchClient()
    assert play.session.rotation.switch == Switch("claude", left="codex", back=True)
    assert not play.session.ended
    play = play >> launched("claude", pid=3, conversation="c2") >> began(conversation="c2", transcript="/t2")
    play.skip(ef.AddContext) << ef.InjectHandoff(HANDOFF, "/dump") << ef.AwaitComposer(0, own=(WAKE, "/clear"))
    assert (play.session.provider, play.phase) == ("claude", Phase.EMPTY)


def test_a_client_that_asks_something_at_its_start_has_its_time_and_no_more():
    play = switching() >> launched() >> event(ev.ActivityChanged, activity=ev.Activity.WAITING, detail="log in")
    deadline = play.session.rotation.deadline
    assert deadline == pytest.approx(play.now - 2 + TIMEOUTS[Verdict.SWITCHES])
    play = play >> replace(event(ev.AlarmRang), at=deadline)
    for effect in told_back("no conversation began within 120 s"):
        play << effect
    play << ef.SwitchClient()


def test_of_two_clients_that_do_not_start_the_document_is_left():
    play = started_in_vain(switching()) << ef.SwitchClient()
    play = play >> failed("again") >> event(ev.LaunchFailed, reason="the client could not be started: not found")
    given_back = ef.RecordHandoff(HANDOFF, HandoffState.ACTIVE, "its session ended before it was picked up", held=False)
    play << given_back
    assert (play.session.status, play.session.next_provider) == (Status.CRASHED, "claude")


def test_a_session_that_was_killed_in_between_is_not_brought_back_by_its_new_client():
    play = switching() >> event(ev.SessionKilled)
    play = play.skip(ef.LeavePane, ef.RecordHandoff, ef.EndClient) >> launched()
    assert (play.session.ended, play.session.provider) == (True, "claude")
    assert not (Playbook(play.session) >> launched(in_place=False)).session.ended


def test_the_failure_of_another_handoffs_client_changes_nothing():
    before = switching().session
    play = Playbook(before) >> replace(failed(), handoff="HO-other")
    assert play.end().session.rotation == before.rotation


def test_a_prompt_that_comes_first_waits_for_its_turn_and_the_switch_with_it():
    play = switching() >> event(ev.PromptSubmitted, text="wait")
    assert play.skip(ef.LeavePane).phase is Phase.PENDING
    assert play.session.rotation.switch == Switch("codex", left="claude")
    ready(play) << ef.SwitchClient()


def test_the_driver_of_the_new_client_begins_nothing_before_its_conversation():
    play = switching() >> launched() >> event(ev.DriverChanged, driver=ev.DrivenBy.MOD)
    assert play.end().phase is Phase.CLEARING


def test_the_next_server_looks_again_and_clears_a_client_that_has_taken_its_place():
    play = switching() >> launched() >> event(ev.ServerStarted) << ef.AwaitComposer(0, own=("/clear",))
    play = play >> result(ev.ComposerReady) << ef.TakeSnapshot(0)
    play >> result(ev.SnapshotTaken, path="/dump") << ef.ClearContext(0)


def test_a_session_that_ended_before_is_started_again_with_the_client_that_was_wanted():
    play = requested() >> event(ev.ClientExited, signal=9)
    assert play.skip(ef.LeavePane, ef.RecordHandoff, ef.MakeDocument).session.next_provider == "codex"
    assert idle_session().next_provider == "claude"


def test_the_last_call_decides_which_client_continues():
    play = requested() >> event(ev.HandoffRequested, handoff=HANDOFF)
    play.skip(ef.RecordHandoff)
    assert play.session.rotation.switch is None


LIMIT = UsageLimit("five_hour", 900.0, 100.0)


def test_a_usage_limit_does_not_hold_what_another_client_continues():
    play = requested() >> event(ev.TurnFailed, error="rate_limit", limit=LIMIT) << ef.AwaitComposer(0, own=("/clear",))
    play = play >> result(ev.ComposerReady) << ef.TakeSnapshot(0) >> result(ev.SnapshotTaken, path="/dump")
    play = play << ef.SwitchClient() >> launched()
    assert play.session.limit is None


def test_a_session_that_waits_for_the_end_of_a_limit_is_continued_at_once_by_another_client():
    waits = Playbook() >> event(ev.PromptSubmitted, text="x") >> event(ev.TurnFailed, error="rate_limit", limit=LIMIT)
    own = Playbook(waits.session) >> event(ev.HandoffRequested, handoff=HANDOFF) << BEGUN
    assert own.end().phase is Phase.PENDING
    other = Playbook(waits.session) >> event(ev.HandoffRequested, handoff=HANDOFF, switch=Switch("codex")) << BEGUN
    assert other.skip(ef.AwaitComposer).phase is Phase.RESERVED
