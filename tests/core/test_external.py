"""An external client, which the user started: measured and warned, and nothing else."""

from dataclasses import replace

from sm.core import effects as ef
from sm.core import events as ev
from sm.core.model.context import ContextReading, Level, Policy, Source
from sm.core.model.context_warnings import advice_by_tool, advice_for_user, critical_notice, warning_notice
from sm.core.model.handoff import HandoffState
from sm.core.model.message import message
from sm.core.model.session import Session, Status
from sm.core.rules.session.refusals import may_hand_off
from sm.providers.claude.traits import CLAUDE
from tests.core.playbook import HANDOFF, Playbook, advance, event, idle_session, result

USABLE = 167_000
PROMPT = "/p/.sm/continue-prompt.md"
KEPT = ef.KeepDocument(PROMPT)
ADVICE = advice_for_user(CLAUDE)
WARNED = warning_notice(110_000, 65.9, ADVICE)
CRITICAL = critical_notice(ADVICE)


def external(**policy):
    session = Session(id="a" * 8, name="x", provider="claude", directory="/p", created=1.0, policy=Policy(**policy))
    for told in (
        ev.SessionLaunched(at=1.0, pane=None, pid=1, conversation="c0", config="/c", adopted=True),
        ev.ActivityChanged(at=1.2, activity=ev.Activity.IDLE),
    ):
        session, _ = advance(session, told)
    return Playbook(session)


def read(tokens, window=200_000, usable=USABLE):
    reading = ContextReading(tokens=tokens, projected=tokens, source=Source.USAGE, exact=True, window=window)
    return event(ev.ContextRead, epoch=0, reading=reading, usable=usable)


def wrote(*, failed=False):
    return event(ev.ToolUsed, tool="Write", document=PROMPT, failed=failed)


USED = event(ev.ToolUsed, tool="Bash")


def test_its_agent_is_not_told_of_commands_that_it_does_not_have():
    play = external() >> event(ev.ConversationStarted, transcript="/t")
    play.end()


def test_it_is_told_of_the_skill_and_of_no_command():
    play = external() >> read(110_000) >> USED << ef.AddContext(WARNED, (WARNED,))
    play >> read(150_000) >> USED << ef.AddContext(CRITICAL, (CRITICAL,))
    assert "sm handoff <path>" not in WARNED + CRITICAL


def test_an_idle_one_is_told_with_its_next_prompt_since_nothing_is_typed():
    play = external() >> read(150_000)
    play.end()
    play >> event(ev.PromptSubmitted, text="hi") << ef.AddContext(CRITICAL, (CRITICAL,))


def test_a_message_waits_for_a_hook():
    play = external() >> event(ev.MessageQueued, message=message("m1", "hello"))
    assert play.session.outbox.step is None
    assert [queued.id for queued in play.session.outbox.queue] == ["m1"]


def test_a_written_prompt_ends_the_repeats_until_the_next_level():
    play = external(remind_every=1.0) >> read(110_000) >> USED << ef.AddContext(WARNED, (WARNED,))
    play >> wrote() << KEPT >> read(150_000) >> USED << ef.AddContext(CRITICAL, (CRITICAL,))
    play >> USED << ef.AddContext(CRITICAL, (CRITICAL,))
    play >> wrote(failed=True) << ef.AddContext(CRITICAL, (CRITICAL,))
    play >> wrote() << KEPT >> USED >> USED
    play.end()


def test_in_a_session_of_ours_a_written_document_is_no_handoff():
    play = Playbook(replace(idle_session(), policy=Policy(remind_every=1.0))) >> event(ev.PromptSubmitted, text="x")
    play >> read(150_000) >> USED
    play.skip(ef.AddContext) >> wrote()
    assert [type(effect) for effect in play.left] == [ef.AddContext]


def test_the_written_prompt_waits_for_the_next_session_once_this_one_has_ended():
    play = external() >> wrote() << KEPT
    play = play >> event(ev.DocumentKept, handoff=HANDOFF) << ef.RecordHandoff(HANDOFF, HandoffState.ACTIVE, held=True)
    play >> ev.ClientExited(at=0, reason="the client has ended")
    [back] = [effect for effect in play.left if isinstance(effect, ef.RecordHandoff)]
    assert (back.handoff, back.state, back.held) == (HANDOFF, HandoffState.ACTIVE, False)


def test_its_compaction_is_never_put_off_since_nobody_would_rotate_it():
    play = external(on_compact="rotate") >> read(150_000)
    play >> event(ev.CompactionStarted) << ef.MakeDocument(rotate=False)
    play.end()


def test_a_window_that_the_status_line_tells_is_judged_by():
    play = external() >> read(140_000, window=1_000_000, usable=967_000) >> USED
    play.end()
    play >> event(ev.WindowTold, window=200_000, usable=USABLE) >> USED << ef.AddContext(CRITICAL, (CRITICAL,))
    assert play.session.window == 200_000
    assert play.session.conversation.monitor.crossed_levels == {Level.WARNING, Level.CRITICAL}


def with_plugin(**policy):
    return external(**policy) >> ev.DriverChanged(at=2.0, driver=ev.DrivenBy.MOD)


def test_with_the_plugin_in_it_its_agent_is_told_of_the_tool_and_it_is_rotated():
    play = with_plugin() >> read(150_000)
    assert may_hand_off(play.session) is None
    notice = critical_notice(advice_by_tool(CLAUDE))
    assert "mcp__sm__handoff" in notice
    assert play.session.conversation.monitor.owed == (notice,)
    play >> event(ev.PromptSubmitted, text="hi") << ef.AddContext(notice, (notice,))


def test_the_document_is_given_to_the_next_context_and_no_file_is_named():
    play = with_plugin() >> event(ev.PromptSubmitted, text="x")
    for told in (
        event(ev.HandoffRequested, handoff=HANDOFF),
        event(ev.TurnEnded),
        result(ev.ComposerReady),
        result(ev.SnapshotTaken),
        event(ev.ConversationStarted, conversation="c1", origin=ev.Origin.CLEAR),
        result(ev.ComposerReady),
    ):
        play.skip(ef.Effect)
        play >> told
    [wake] = [effect.text for effect in play.left if isinstance(effect, ef.TypeText)]
    assert HANDOFF.id in wake
    assert HANDOFF.copy not in wake
    assert HANDOFF.path not in wake


def test_a_user_who_declines_is_not_asked_again_for_the_same_level():
    play = with_plugin(remind_every=1.0) >> event(ev.PromptSubmitted, text="x") >> read(150_000)
    play.skip(ef.AddContext) >> event(ev.HandoffDeclined) >> read(150_500) >> USED
    assert not [effect for effect in play.left if isinstance(effect, ef.AddContext)]


def test_once_its_plugin_is_silent_it_is_only_watched_again():
    play = with_plugin() >> ev.DriverChanged(at=3.0, driver=ev.DrivenBy.KEYS, reason="silent")
    assert may_hand_off(play.session).code == "adopted"


def test_it_cannot_be_rotated():
    refused = may_hand_off(external().session)
    assert refused.code == "adopted"
    assert refused.hint


def test_a_gate_never_closes_for_it():
    play = external(gate=True) >> read(150_000) >> event(ev.ToolAsked, tool="Bash", permitted=False)
    play.end()


def test_restored_into_a_pane_it_is_a_session_like_any_other():
    play = external() >> ev.ClientExited(at=0, reason="the client has ended")
    assert play.session.status is Status.EXITED
    play >> event(ev.SessionLaunched, pane="%1", pid=2, config="/c")
    assert (play.session.adopted, play.session.pane, may_hand_off(play.session)) == (False, "%1", None)
    assert HANDOFF.conversation == play.session.conversation.id
