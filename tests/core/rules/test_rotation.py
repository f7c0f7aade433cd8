from dataclasses import replace

import pytest

from sm.core import effects as ef
from sm.core import events as ev
from sm.core.model.handoff import HandoffState, HandoffType
from sm.core.model.message import Channel, MessageState, message
from sm.core.model.rotation import Phase, Rotation
from sm.core.model.session import Status
from sm.core.rules.rotation import (
    ANOTHER_PROMPT,
    MAX_LOOKS,
    MAX_RETRIES,
    MAX_SAID,
    MAX_SAID_CHARACTERS,
    TIMEOUTS,
    UNKNOWN_STATE,
    prompt_of,
    reason_to_wait,
)
from sm.core.rules.session.advance import next_alarm
from tests.core.playbook import HANDOFF, WAKE, Playbook, advance, event, idle_session, result

NEW = "c1"


GIVEN_BACK = ef.RecordHandoff(HANDOFF, HandoffState.ACTIVE, "its session ended before it was picked up", held=False)


def working():
    return Playbook() >> event(ev.PromptSubmitted, text="do it")


def pending():
    return working() >> event(ev.HandoffRequested, handoff=HANDOFF) << ef.RecordHandoff(HANDOFF, HandoffState.PENDING)


def reserved():
    return pending() >> event(ev.TurnEnded) << ef.AwaitComposer(0, own=("/clear",))


def snapshot():
    return reserved() >> result(ev.ComposerReady) << ef.TakeSnapshot(0)


def clearing():
    return snapshot() >> result(ev.SnapshotTaken, path="/dump") << ef.ClearContext(0)


def cleared(**values):
    return event(ev.ConversationStarted, conversation=NEW, transcript="/t1", origin=ev.Origin.CLEAR, **values)


def empty():
    return clearing() >> cleared() << ef.InjectHandoff(HANDOFF, "/dump") << ef.AwaitComposer(0, own=(WAKE, "/clear"))


def prompting():
    return empty() >> result(ev.ComposerReady) << ef.TypeText(0, WAKE)


def woken(text=WAKE):
    return event(ev.PromptSubmitted, conversation=NEW, text=text)


STAGES = {
    Phase.PENDING: pending,
    Phase.RESERVED: reserved,
    Phase.SNAPSHOT: snapshot,
    Phase.CLEARING: clearing,
    Phase.EMPTY: empty,
    Phase.PROMPTING: prompting,
}
BEFORE = [Phase.RESERVED, Phase.SNAPSHOT, Phase.CLEARING]
AFTER = [Phase.EMPTY, Phase.PROMPTING]


def test_clears_the_context_and_wakes_the_agent_once_its_turn_ends():
    play = prompting() >> woken() << ef.RecordHandoff(HANDOFF, HandoffState.CONSUMED)
    assert play.end().phase is Phase.DONE
    assert (play.session.rotations, play.session.past, play.session.conversation.id) == (1, ("c0",), NEW)


def test_a_failed_snapshot_goes_on_without_a_reference_to_it():
    play = snapshot() >> result(ev.SnapshotTaken, path=None) << ef.ClearContext(0)
    play >> cleared() << ef.InjectHandoff(HANDOFF, None) << ef.AwaitComposer(0, own=(WAKE, "/clear"))


def test_the_last_call_in_a_turn_wins():
    other = HANDOFF.__class__(**{**{n: getattr(HANDOFF, n) for n in HANDOFF.__slots__}, "id": "HO-2"})
    play = pending() >> event(ev.HandoffRequested, handoff=other)
    play << ef.RecordHandoff(HANDOFF, HandoffState.CLEARED, "replaced by a newer one")
    play << ef.RecordHandoff(other, HandoffState.PENDING)
    assert play.session.rotation.handoff.id == "HO-2"


@pytest.mark.parametrize("phase", BEFORE)
def test_a_person_who_submits_first_has_the_turn_and_the_rotation_waits_for_its_end(phase):
    play = STAGES[phase]() >> event(ev.PromptSubmitted, text="wait") << ef.LeavePane(0)
    assert play.phase is Phase.PENDING
    play >> event(ev.TurnEnded) << ef.AwaitComposer(0, own=("/clear",))


@pytest.mark.parametrize("phase", [Phase.PENDING, *BEFORE])
def test_what_is_said_between_document_and_clear_comes_into_the_new_context(phase):
    play = (STAGES[phase]() >> event(ev.PromptSubmitted, text="and use port 8080")).skip(ef.LeavePane)
    for own in ("<task-notification>of the client's own</task-notification>", "Your claude.ai usage limit has reset."):
        play = play >> event(ev.PromptSubmitted, text=own)
    play = play >> event(ev.TurnEnded) << ef.AwaitComposer(0, own=("/clear",))
    play = play >> result(ev.ComposerReady) << ef.TakeSnapshot(0)
    play = play >> result(ev.SnapshotTaken, path="/dump") << ef.ClearContext(0)
    (
        play
        >> cleared()
        << ef.InjectHandoff(HANDOFF, "/dump", said=("and use port 8080",))
        << ef.AwaitComposer(0, own=(WAKE, "/clear"))
    )


def test_of_what_is_said_the_newest_is_kept_and_a_newer_document_needs_none_of_it():
    play = pending()
    for number in range(MAX_SAID + 1):
        play = play >> event(ev.PromptSubmitted, text=f"{number}" + "x" * MAX_SAID_CHARACTERS)
    said = play.session.rotation.said
    assert ([text[0] for text in said], {len(text) for text in said}) == (list("12345"), {MAX_SAID_CHARACTERS})
    play = (play >> event(ev.HandoffRequested, handoff=HANDOFF)).skip(ef.RecordHandoff)
    assert play.session.rotation.said == ()


def test_a_document_made_without_the_agent_is_made_again_and_has_what_was_said():
    made = replace(HANDOFF, type=HandoffType.COMPACTION)
    play = (working() >> event(ev.HandoffRequested, handoff=made)).skip(ef.RecordHandoff)
    assert (play >> event(ev.PromptSubmitted, text="more")).session.rotation.said == ()


def test_an_escape_while_pending_changes_nothing_until_the_next_stop():
    play = pending() >> event(ev.ActivityChanged, activity=ev.Activity.IDLE)
    assert play.end().phase is Phase.PENDING
    play >> event(ev.PromptSubmitted, text="go on") >> event(ev.TurnEnded) << ef.AwaitComposer(0, own=("/clear",))


def test_a_failed_turn_rotates_once_idle():
    play = pending() >> event(ev.TurnFailed, error="server_error") << ef.AwaitComposer(0, own=("/clear",))
    assert play.phase is Phase.RESERVED


def test_a_rate_limited_turn_stays_pending():
    play = pending() >> event(ev.TurnFailed, error="rate_limit")
    assert play.end().phase is Phase.PENDING
    assert "rate limit" in play.session.rotation.note


def test_a_client_at_its_context_limit_rotates_at_once():
    play = pending() >> event(ev.ClientBlocked, reason="Context limit reached") << ef.AwaitComposer(0, own=("/clear",))
    assert play.session.status is Status.BLOCKED
    play >> result(ev.ComposerReady) << ef.TakeSnapshot(0)


def test_what_holds_the_composer_is_shown_and_waited_for():
    play = reserved() >> result(ev.ComposerHeld, reason="a dialog is open")
    assert play.end().session.rotation.note == "a dialog is open"
    assert play.session.rotation.deadline == play.now + TIMEOUTS[Phase.RESERVED]


@pytest.mark.parametrize("phase", [Phase.RESERVED, Phase.SNAPSHOT])
def test_a_dialog_that_is_about_to_stand_is_looked_for_before_the_next_key(phase):
    play = STAGES[phase]() >> event(ev.PermissionAsked, tool="Bash")
    play << ef.AwaitComposer(0, own=("/clear",), after=play.now + 1.0)
    assert play.phase is Phase.RESERVED


@pytest.mark.parametrize("phase", [Phase.CLEARING, Phase.PROMPTING])
def test_typing_gives_way_to_a_dialog(phase):
    conversation = "c0" if phase is Phase.CLEARING else NEW
    play = STAGES[phase]() >> event(ev.PermissionAsked, conversation=conversation) << ef.LeavePane(0)
    assert play.phase is phase


@pytest.mark.parametrize("phase", [Phase.CLEARING, Phase.PROMPTING])
def test_what_was_ordered_waits_as_long_as_a_menu_is_open_that_says_so(phase):
    play = STAGES[phase]()
    opened = event(ev.ActivityChanged, activity=ev.Activity.WAITING, detail="the model menu")
    assert (play >> opened).end().session.rotation.note == "a dialog is open: the model menu"
    assert (play.phase, next_alarm(play.session)) == (phase, None)
    play = (play >> event(ev.ActivityChanged, activity=ev.Activity.IDLE)).end()
    assert (play.phase, play.session.rotation.note) == (phase, "")
    assert play.session.rotation.deadline == play.now + TIMEOUTS[phase]


@pytest.mark.parametrize("phase", [Phase.CLEARING, Phase.PROMPTING])
def test_what_a_client_shows_that_waits_for_nobody_moves_no_deadline(phase):
    play = STAGES[phase]()
    before = play.session.rotation
    (play >> event(ev.ActivityChanged, activity=ev.Activity.BUSY)).skip(ef.ReadContext)
    assert play.end().session.rotation == before


@pytest.mark.parametrize("phase", [Phase.PENDING, *BEFORE])
def test_a_client_that_dies_before_the_clear_leaves_it_pending_and_the_next_start_injects_the_document(phase):
    play = (STAGES[phase]() >> event(ev.ClientExited, signal=9)).skip(ef.LeavePane) << GIVEN_BACK
    assert (play.phase, play.session.status) == (Phase.PENDING, Status.CRASHED)
    play >> event(ev.SessionLaunched, pane="%2", pid=2, conversation="c9", config="/c")
    play >> event(ev.ConversationStarted, conversation="c9", transcript="/t9")
    play.skip(ef.AddContext) << ef.InjectHandoff(HANDOFF, play.session.rotation.snapshot)
    play << ef.AwaitComposer(0, own=(WAKE, "/clear"))


@pytest.mark.parametrize("phase", AFTER)
def test_a_client_that_dies_after_the_clear_fails_it_and_its_restored_session_gets_the_document(phase):
    play = (STAGES[phase]() >> event(ev.ClientExited, signal=9)).skip(ef.LeavePane)
    play << GIVEN_BACK
    assert play.phase is Phase.FAILED
    play >> event(ev.SessionLaunched, pane="%2", pid=2, conversation="c9", config="/c")
    play >> event(ev.ConversationStarted, conversation="c9", transcript="/t9")
    play.skip(ef.AddContext) << ef.InjectHandoff(HANDOFF, "/dump") << ef.AwaitComposer(0, own=(WAKE, "/clear"))


def test_a_client_that_dies_before_it_answered_the_wake_prompt_still_owes_the_document():
    play = (prompting() >> woken()).skip(ef.RecordHandoff) >> event(ev.ClientExited, signal=9)
    play.skip(ef.LeavePane) << GIVEN_BACK
    assert play.session.rotations == 0


def test_once_answered_the_rotation_is_over():
    play = (prompting() >> woken()).skip(ef.RecordHandoff) >> event(ev.TurnEnded, conversation=NEW)
    play >> event(ev.ClientExited, signal=9)
    assert play.skip(ef.MakeDocument).end().phase is Phase.DONE


@pytest.mark.parametrize("phase", BEFORE)
def test_a_step_that_times_out_before_the_clear_is_pending_again_and_says_so(phase):
    play = STAGES[phase]()
    play >> ev.AlarmRang(at=next_alarm(play.session)) << ef.LeavePane(0)
    assert play.phase is Phase.PENDING
    assert "timed out" in play.session.rotation.note


def test_a_wait_that_times_out_after_the_clear_fails_and_a_person_can_retry():
    play = empty()
    play >> ev.AlarmRang(at=next_alarm(play.session)) << ef.LeavePane(0)
    play.skip(ef.RecordHandoff)
    assert play.phase is Phase.FAILED
    assert play.session.rotation.holds_messages
    play >> event(ev.HandoffRetried) << ef.AwaitComposer(0, own=(WAKE, "/clear"))


def test_a_wake_prompt_whose_hook_was_lost_is_found_in_the_transcript():
    play = prompting()
    play >> ev.AlarmRang(at=next_alarm(play.session))
    (order,) = play.left
    assert isinstance(order, ef.FindPrompt)
    assert order.conversation == NEW
    play.left = []
    play >> event(ev.PromptSubmitted, conversation=NEW, text=WAKE, replayed=True)
    play << ef.RecordHandoff(HANDOFF, HandoffState.CONSUMED)


def test_a_wake_prompt_that_never_arrived_is_typed_again_and_at_last_fails():
    play = prompting()
    for _ in range(MAX_RETRIES):
        play >> result(ev.TypingRefused, reason="the box did not show it")
        play << ef.AwaitComposer(0, own=(WAKE, "/clear"))
        play >> result(ev.ComposerReady) << ef.TypeText(0, WAKE)
    play >> result(ev.TypingRefused, reason="the box did not show it") << ef.LeavePane(0)
    play << ef.RecordHandoff(HANDOFF, HandoffState.FAILED, "the box did not show it")


def test_a_prompt_glued_to_a_draft_is_kept_from_the_model_and_mended():
    play = prompting() >> woken(f"my draft {WAKE}")
    block, order = play.left
    assert isinstance(block, ef.BlockPrompt)
    assert isinstance(order, ef.AwaitComposer)
    assert play.phase is Phase.EMPTY


def test_a_clear_glued_to_a_draft_is_kept_from_the_model():
    play = clearing() >> event(ev.PromptSubmitted, text="half a draft/clear")
    assert isinstance(play.left[0], ef.BlockPrompt)
    assert play.phase is Phase.RESERVED


def test_a_lost_session_start_is_made_up_for_with_the_prompt():
    play = clearing() >> event(
        ev.ConversationStarted, conversation=NEW, transcript="/t1", origin=ev.Origin.CLIENT_STATE
    )
    play << ef.AwaitComposer(0, own=(WAKE, "/clear"))
    play >> result(ev.ComposerReady) << ef.TypeText(0, WAKE) >> woken() << ef.InjectHandoff(HANDOFF, "/dump")
    play << ef.RecordHandoff(HANDOFF, HandoffState.CONSUMED)


def test_a_start_that_comes_only_with_the_prompt_carries_the_document_and_the_prompt_is_not_typed_again():
    seen = event(ev.ConversationStarted, conversation=NEW, origin=ev.Origin.CLIENT_STATE)
    play = clearing() >> seen << ef.AwaitComposer(0, own=(WAKE, "/clear"))
    play = play >> result(ev.ComposerReady) << ef.TypeText(0, WAKE)
    play = play >> cleared() << ef.InjectHandoff(HANDOFF, "/dump")
    assert (play.phase, play.session.rotation.announced) == (Phase.PROMPTING, True)
    play = play >> woken() << ef.RecordHandoff(HANDOFF, HandoffState.CONSUMED)
    assert play.phase is Phase.DONE


def test_a_clear_of_the_persons_own_takes_the_pending_document_along():
    play = pending() >> cleared() << ef.InjectHandoff(HANDOFF, None) << ef.AwaitComposer(0, own=(WAKE, "/clear"))
    assert play.phase is Phase.EMPTY


@pytest.mark.parametrize("phase", [Phase.PENDING, Phase.RESERVED, Phase.SNAPSHOT])
def test_it_can_be_taken_back_before_the_clear(phase):
    play = STAGES[phase]() >> event(ev.HandoffCancelled) << ef.LeavePane(0)
    play << ef.RecordHandoff(HANDOFF, HandoffState.CLEARED, "cancelled")
    assert play.phase is Phase.CANCELLED


@pytest.mark.parametrize("phase", [Phase.CLEARING, Phase.EMPTY, Phase.PROMPTING])
def test_it_cannot_be_taken_back_afterwards(phase):
    assert (STAGES[phase]() >> event(ev.HandoffCancelled)).end().phase is phase


def test_a_killed_session_cancels_and_gives_its_document_back():
    play = (pending() >> event(ev.SessionKilled)).skip(ef.LeavePane)
    play << GIVEN_BACK << ef.EndClient()
    assert (play.phase, play.session.status) == (Phase.CANCELLED, Status.EXITED)


@pytest.mark.parametrize(
    ("phase", "order"),
    [
        (Phase.RESERVED, ef.AwaitComposer(0, own=("/clear",))),
        (Phase.SNAPSHOT, ef.AwaitComposer(0, own=("/clear",))),
        (Phase.CLEARING, ef.AwaitComposer(0, own=("/clear",))),
        (Phase.EMPTY, ef.AwaitComposer(0, own=(WAKE, "/clear"))),
    ],
)
def test_a_restarted_server_looks_again_from_what_the_client_shows(phase, order):
    STAGES[phase]() >> event(ev.ServerStarted) << order


def test_a_server_restarted_while_prompting_looks_for_the_prompt_first():
    play = prompting() >> event(ev.ServerStarted)
    assert isinstance(play.left[0], ef.FindPrompt)


def test_background_tasks_are_waited_for_and_then_named():
    task = ev.BackgroundTask("t1", "shell", "npm run dev")
    play = pending() >> event(ev.TurnEnded, background=(task,))
    assert play.end().phase is Phase.PENDING
    assert "npm run dev" in play.session.rotation.note
    play >> ev.AlarmRang(at=next_alarm(play.session)) << ef.AwaitComposer(0, own=("/clear",))
    play >> result(ev.ComposerReady) << ef.TakeSnapshot(0)
    play >> result(ev.SnapshotTaken) << ef.ClearContext(0)
    play >> cleared()
    assert "npm run dev" in play.left[1].own[0]


def test_asked_for_while_idle_it_goes_on_at_once():
    play = Playbook() >> event(ev.HandoffRequested, handoff=HANDOFF)
    play << ef.RecordHandoff(HANDOFF, HandoffState.PENDING) << ef.AwaitComposer(0, own=("/clear",))


def test_asked_for_right_after_its_turn_while_the_client_still_shows_busy_it_goes_on_at_once():
    play = working() >> event(ev.TurnEnded) >> event(ev.ActivityChanged, activity=ev.Activity.BUSY)
    play >> event(ev.HandoffRequested, handoff=HANDOFF)
    play << ef.RecordHandoff(HANDOFF, HandoffState.PENDING) << ef.AwaitComposer(0, own=("/clear",))


def test_a_file_that_is_gone_leaves_the_copy_to_be_read():
    play = reserved() >> event(ev.DocumentGone, handoff=HANDOFF.id)
    assert play.session.rotation.handoff.shown_path == HANDOFF.copy


def test_messages_wait_for_the_new_context_and_come_after_the_wake_prompt():
    note = message("m1", "a note")
    play = pending() >> event(ev.MessageQueued, message=note)
    play = play.end() >> event(ev.TurnEnded) << ef.AwaitComposer(0, own=("/clear",))
    play >> result(ev.ComposerReady) << ef.TakeSnapshot(0) >> result(ev.SnapshotTaken) << ef.ClearContext(0)
    play = (play >> cleared()).skip(ef.InjectHandoff, ef.AwaitComposer)
    play >> result(ev.ComposerReady) << ef.TypeText(0, WAKE)
    play = (play >> woken()).skip(ef.RecordHandoff).end()
    play >> event(ev.TurnEnded, conversation=NEW) << ef.AddContext("a note", messages=("m1",))
    play << ef.RecordMessage("m1", MessageState.DELIVERED, channel=Channel.STOP)


def test_an_idle_session_knows_no_rotation():
    assert Playbook(idle_session()).phase is None


@pytest.mark.parametrize("stage", [empty, prompting])
def test_a_second_hook_for_the_same_start_injects_nothing_and_disturbs_nothing(stage):
    play = stage()
    before = play.session.rotation
    assert (play >> cleared()).end().session.rotation == before


def test_a_session_that_has_ended_has_no_deadline_left():
    tasks = (ev.BackgroundTask("t", "shell"),)
    play = pending() >> event(ev.TurnEnded, background=tasks)
    assert next_alarm(play.session) is not None
    play >> event(ev.ClientExited, signal=9)
    assert next_alarm(play.session) is None


def test_after_a_restart_a_wake_prompt_that_is_not_there_yet_is_waited_for_before_it_is_typed_again():
    play = (prompting() >> event(ev.ServerStarted)).skip(ef.FindPrompt)
    play = (play >> result(ev.PromptMissing)).end()
    assert play.phase is Phase.PROMPTING
    late = ev.AlarmRang(at=play.session.rotation.deadline)
    play = (play >> late).skip(ef.FindPrompt) >> result(ev.PromptMissing)
    play << ef.AwaitComposer(0, own=(WAKE, "/clear"))


def test_a_wake_prompt_that_a_slow_client_takes_after_we_gave_it_up_for_lost_is_not_typed_again():
    play = (prompting() >> result(ev.PromptMissing)) << ef.AwaitComposer(0, own=(WAKE, "/clear"))
    play = (play >> result(ev.ComposerHeld, reason="the client is busy")).end()
    play = (play >> woken()).skip(ef.RecordHandoff) << ef.LeavePane(0)
    assert play.phase is Phase.DONE
    (play >> result(ev.ComposerReady)).end()


def test_a_wake_prompt_that_a_client_holds_back_while_it_loads_is_waited_for_and_typed_again_once():
    play = prompting()
    play.session = replace(play.session, fresh=True)
    for look in range(1, MAX_LOOKS + 1):
        assert (play.phase, play.session.rotation.attempts) == (Phase.PROMPTING, look - 1)
        rang = ev.AlarmRang(at=play.session.rotation.deadline)
        play = (play.end() >> rang).skip(ef.FindPrompt) >> result(ev.PromptMissing)
    play = play << ef.AwaitComposer(0, own=(WAKE, "/clear"))
    play = (play >> result(ev.ComposerReady) << ef.TypeText(0, WAKE)) >> woken()
    assert play.phase is Phase.DONE
    play.skip(ef.RecordHandoff) << ef.LeavePane(0)
    assert not play.end().session.fresh


# --- C32: a turn that was interrupted has no Stop ---------------------------------------------------------------------


def interrupted():
    play = Playbook() >> event(ev.PromptSubmitted, text="x") >> event(ev.HandoffRequested, handoff=HANDOFF)
    play = play.skip(ef.RecordHandoff)
    assert play.session.rotation.note == "waits for the turn's end"
    return (play >> event(ev.ActivityChanged, activity=ev.Activity.IDLE)).end()


def test_an_interrupted_turn_says_what_happens_and_rotates_if_no_prompt_comes():
    play = interrupted()
    assert play.session.rotation.note.startswith("the turn was interrupted: rotates in 60 s, or at the end")
    play >> ev.AlarmRang(at=next_alarm(play.session))
    assert isinstance(play.left.pop(), ef.AwaitComposer)
    assert play.phase is Phase.RESERVED


@pytest.mark.parametrize("after", ["prompt", "busy"])
def test_a_turn_that_follows_an_interrupted_one_is_waited_for(after):
    play = interrupted()
    busy = event(ev.ActivityChanged, activity=ev.Activity.BUSY)
    play >> (event(ev.PromptSubmitted, text="no, wait") if after == "prompt" else busy)
    assert (play.phase, play.session.rotation.note) == (Phase.PENDING, "waits for the turn's end")
    assert play.session.rotation.deadline is None
    play >> event(ev.TurnEnded)
    assert play.phase is Phase.RESERVED


def test_a_retry_does_not_wait_for_the_grace():
    play = interrupted() >> event(ev.HandoffRetried)
    assert isinstance(play.left.pop(), ef.AwaitComposer)
    assert play.phase is Phase.RESERVED


def test_another_documents_message_and_an_early_alarm_change_nothing():
    play = reserved()
    before = play.session.rotation
    play >> event(ev.DocumentGone, handoff="HO-another") >> event(ev.AlarmRang)
    assert play.end().session.rotation == before


def test_what_holds_a_step_that_has_no_wait_of_its_own_is_not_noted():
    play = snapshot() >> result(ev.ComposerHeld, reason="the user is typing")
    assert play.end().session.rotation.note == ""


def test_what_an_agent_writes_in_a_context_that_begins_without_a_document_concerns_no_document():
    play = working() >> event(ev.ClearRequested)
    play.left = []
    play >> event(ev.ToolUsed, tool="Write", written="/p/.sm/handoff.md")
    assert play.end().session.rotation.handoff is None


def test_the_events_of_another_phase_and_of_another_document_change_nothing():
    play = clearing()
    before = play.session.rotation
    for one in (
        event(ev.TurnEnded),
        event(ev.TurnFailed, error="unknown"),
        event(ev.HandoffWithdrawn, handoff="HO-another", reason="x"),
        result(ev.SnapshotTaken, path="/late"),
    ):
        (play >> one).skip(ef.ReadContext)
        assert play.end().session.rotation == before, one


def test_the_wake_prompt_of_a_context_that_begins_without_a_document_is_empty():
    assert prompt_of(Rotation(None)) == ""


def test_another_prompt_in_the_empty_context_is_noted_and_the_wake_prompt_still_waits():
    play = (clearing() >> cleared()).skip(ef.InjectHandoff, ef.AwaitComposer, ef.RecordHandoff)
    assert play.phase is Phase.EMPTY
    play = (play >> event(ev.PromptSubmitted, conversation=NEW, text="hello")).skip(ef.AwaitComposer)
    assert (play.end().phase, play.session.rotation.note) == (Phase.EMPTY, ANOTHER_PROMPT)


def test_what_the_agents_own_tools_write_into_its_document_is_taken_in():
    play = pending()
    play.session, effects = advance(
        play.session, ev.ToolUsed(at=20.0, conversation="c0", tool="Write", written="/p/.sm/handoff.md")
    )
    assert ef.RefreshDocument(HANDOFF, "/p/.sm/handoff.md") in effects


def test_what_the_clients_state_shows_changes_nothing_once_the_rotation_is_under_way():
    play = reserved()
    before = play.session.rotation
    (play >> event(ev.ActivityChanged, activity=ev.Activity.BUSY)).skip(ef.ReadContext)
    assert play.end().session.rotation == before


@pytest.mark.parametrize(
    ("activity", "detail", "reason"),
    [
        (ev.Activity.IDLE, "", None),
        (ev.Activity.BUSY, "", "the client is busy"),
        (ev.Activity.WAITING, "", "a dialog is open"),
        (ev.Activity.WAITING, "permission prompt", "a dialog is open: permission prompt"),
        (ev.Activity.STOPPED, "stopped by Ctrl-Z", "stopped by Ctrl-Z"),
        (ev.Activity.UNKNOWN, "", UNKNOWN_STATE),
    ],
)
def test_what_a_client_says_of_itself_tells_why_it_takes_no_prompt(activity, detail, reason):
    assert reason_to_wait(activity, detail) == reason
