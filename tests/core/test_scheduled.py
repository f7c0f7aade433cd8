"""Jobs that the client runs later, as by CronCreate: they survive `/clear`, and the new context is told of them."""

from sm.core import effects as ef
from sm.core import events as ev
from sm.core.model.message import fits_composer
from sm.core.model.rotation import Phase
from sm.core.rules.reminders import at_rest, idle
from sm.providers.claude.traits import CLAUDE
from tests.core.playbook import HANDOFF, WAKE, Playbook, event, result


def test_the_wake_prompt_names_what_is_scheduled():
    jobs = ("look at the build (*/5 * * * *, a1b2)",)
    play = Playbook() >> event(ev.PromptSubmitted, text="x") >> event(ev.HandoffRequested, handoff=HANDOFF)
    play = play.skip(ef.RecordHandoff) >> event(ev.TurnEnded, scheduled=jobs)
    assert play.phase is Phase.RESERVED, "a job that may come in a week is not waited for"
    play = (play.skip(ef.AwaitComposer) >> result(ev.ComposerReady)).skip(ef.TakeSnapshot)
    play = (play >> result(ev.SnapshotTaken)).skip(ef.ClearContext)
    play >> ev.ConversationStarted(at=0, conversation="c1", transcript="/t1", origin=ev.Origin.CLEAR)
    play = play.skip(ef.InjectHandoff, ef.AwaitComposer) >> result(ev.ComposerReady)
    wake = f"{WAKE}\nStill scheduled in this client: look at the build (*/5 * * * *, a1b2)"
    play << ef.TypeText(0, wake)
    assert fits_composer(wake, CLAUDE)
    (play >> event(ev.PromptSubmitted, conversation="c1", text=wake)).skip(ef.RecordHandoff).end()
    assert play.phase is Phase.DONE


def test_a_stop_that_was_only_found_out_leaves_what_is_scheduled_known():
    play = Playbook() >> event(ev.PromptSubmitted, text="x") >> event(ev.TurnEnded, scheduled=("j",))
    play >> event(ev.PromptSubmitted, text="y") >> event(ev.TurnEnded, replayed=True)
    assert play.session.scheduled == ("j",)
    (play >> event(ev.PromptSubmitted, text="z") >> event(ev.TurnEnded)).end()
    assert play.session.scheduled == ()


def test_a_session_with_a_scheduled_job_is_idle_all_the_same():
    play = Playbook() >> event(ev.PromptSubmitted, text="x") >> event(ev.TurnEnded, scheduled=("j",))
    play >> event(ev.ActivityChanged, activity=ev.Activity.IDLE)
    assert idle(play.session)
    assert at_rest(play.session)
