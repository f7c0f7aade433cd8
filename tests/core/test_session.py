from dataclasses import replace

import pytest

from sm.core import effects as ef
from sm.core import events as ev
from sm.core.ids import free_name, name_fault
from sm.core.model.ask import Ask, AskKind
from sm.core.model.capacity import ClientLimits, Lesson, Threshold
from sm.core.model.context import ContextReading, Policy, Source, ToolWork, ToolWorkKind
from sm.core.model.message import Channel, MessageState, digest, message
from sm.core.model.primer import primer
from sm.core.model.rotation import Phase, Rotation
from sm.core.model.session import DIALOG_DELAY_S, Foreground, Session, Status
from sm.core.model.usage_limit import UsageLimit
from sm.core.rules.context_thresholds import thresholds, turns_left
from sm.core.rules.session.advance import next_alarm
from sm.core.rules.session.conversation import follow_conversation
from sm.core.rules.session.refusals import (
    FAILED_STARTS_WINDOW_S,
    MAX_FAILED_STARTS,
    may_hand_off,
    may_switch,
    second_client,
    stays_down,
)
from sm.core.rules.session.status import runs_only_background
from sm.providers.claude.traits import CLAUDE
from tests.core.playbook import HANDOFF, Playbook, advance, event, idle_session, result


def read(tokens, *, conversation="c0", epoch=0, **values):
    reading = ContextReading(tokens=tokens, projected=tokens, source=Source.USAGE, exact=True, window=200_000, **values)
    return event(ev.ContextRead, conversation=conversation, epoch=epoch, reading=reading, usable=167_000)


def compacted(before, after, *, automatic=True):
    reading = ContextReading(
        tokens=after,
        projected=after,
        source=Source.BOUNDARY,
        lower_bound=True,
        window=200_000,
        boundary=(before, after),
        automatic=automatic,
    )
    return event(ev.ContextRead, epoch=0, reading=reading, usable=167_000)


def test_the_first_compaction_of_the_clients_own_teaches_the_limit():  # C13
    play = Playbook() >> event(ev.PromptSubmitted, text="do it") >> read(90_000)
    play = (play >> event(ev.CompactionStarted)).skip(ef.MakeDocument) >> compacted(120_000, 3_000)
    assert play.session.lesson == Lesson(None, 120_000)
    play = play.skip(ef.TellParent) >> read(20_000)
    assert play.session.conversation.monitor.usable == 120_000
    play = play >> event(ev.CompactionStarted)
    play = play.skip(ef.MakeDocument) >> compacted(150_000, 3_000)
    assert play.session.lesson == Lesson(None, 120_000)


@pytest.mark.parametrize(
    ("before", "automatic"),
    [
        ((event(ev.PromptSubmitted, text="x"), event(ev.CompactionStarted, automatic=False)), True),
        ((event(ev.CompactionStarted),), True),
        ((event(ev.PromptSubmitted, text="x"),), False),
    ],
    ids=["ordered", "at rest", "by its own record"],
)
def test_a_compaction_that_was_ordered_or_came_at_rest_teaches_nothing(before, automatic):  # C13
    play = Playbook() >> read(90_000)
    for earlier in before:
        play = (play >> earlier).skip(ef.MakeDocument)
    play = play >> compacted(120_000, 3_000, automatic=automatic)
    assert play.session.lesson is None


def test_a_person_may_have_the_tools_counted_in_place_of_the_clients_own_numbers():
    policy = Policy(baseline=False, warning=Threshold(tokens=600))
    play = Playbook(idle_session(policy=policy)) >> event(ev.PromptSubmitted, text="do it") >> read(104_011)
    (play >> event(ev.ToolUsed, tool="Edit", work=ToolWork(ToolWorkKind.EDIT))).end()
    play >> event(ev.ToolUsed, tool="Edit", work=ToolWork(ToolWorkKind.EDIT))
    (warning,) = play.left
    assert isinstance(warning, ef.AddContext)
    assert warning.text.startswith("[sm context] Context at 600 tokens")


def test_a_prompt_that_the_client_takes_after_we_gave_it_up_for_lost_is_confirmed_all_the_same():
    play = Playbook() >> event(ev.MessageQueued, message=message("m1", "hello"))
    play = (play.skip(ef.AwaitComposer) >> result(ev.ComposerReady)).skip(ef.TypeText)
    play = (play >> ev.AlarmRang(at=next_alarm(play.session))).skip(ef.FindPrompt) >> result(ev.PromptMissing)
    play = (play.skip(ef.AwaitComposer) >> result(ev.ComposerHeld, reason="the client is busy")).end()
    play >> event(ev.PromptSubmitted, text="hello")
    assert play.left[0] == ef.RecordMessage("m1", MessageState.DELIVERED, channel=Channel.PASTE)
    assert play.session.outbox.queue == ()


def test_how_a_turn_failed_stays_said_when_the_client_is_seen_busy_and_idle_after_it():
    play = Playbook() >> event(ev.PromptSubmitted, text="do it") >> event(ev.TurnFailed, error="rate_limit")
    for activity in (ev.Activity.BUSY, ev.Activity.IDLE):
        play = (play >> event(ev.ActivityChanged, activity=activity)).skip(ef.AwaitComposer)
    assert (play.session.status, play.session.detail) == (Status.IDLE, "the last turn failed: rate_limit")
    play >> event(ev.ActivityChanged, activity=ev.Activity.WAITING, detail="dialog open")
    play >> event(ev.ActivityChanged, activity=ev.Activity.IDLE)
    assert (play.session.status, play.session.detail) == (Status.IDLE, "")


def test_with_a_lower_frequency_only_every_nth_call_decides():
    policy = Policy(check_frequency=3, warning=Threshold(tokens=600))
    play = Playbook(idle_session(policy=policy)) >> event(ev.PromptSubmitted, text="do it") >> read(100)
    for _ in range(2):  # 700 tokens after them: past the threshold, and nobody looks
        (play >> event(ev.ToolUsed, tool="Edit", work=ToolWork(ToolWorkKind.EDIT))).end()
    play >> event(ev.ToolUsed, tool="Edit", work=ToolWork(ToolWorkKind.EDIT))
    (warning,) = play.left
    assert warning.text.startswith("[sm context] Context at 1,000 tokens")


def test_a_warning_rides_on_the_reply_to_the_next_tool_call():
    play = Playbook() >> event(ev.PromptSubmitted, text="do it") >> read(104_011)
    play >> event(ev.ToolUsed, tool="Bash")
    (warning,) = play.left
    assert isinstance(warning, ef.AddContext)
    assert warning.text.startswith("[sm context] Context at 104,011 tokens (~62%).")
    play.left = []
    (play >> event(ev.ToolUsed, tool="Bash")).end()


def test_a_warning_that_no_hook_carried_is_owed_again():
    play = Playbook() >> event(ev.PromptSubmitted, text="do it") >> read(104_011) >> event(ev.ToolUsed, tool="Bash")
    notices = play.left.pop().notices
    play >> event(ev.ReplyLost, notices=notices) >> event(ev.ToolUsed, tool="Bash")
    assert play.left[0].notices == notices


def test_a_warning_to_an_idle_agent_is_a_message_ahead_of_the_others():
    play = Playbook() >> event(ev.PromptSubmitted, text="do it") >> event(ev.MessageQueued, message=message("m1", "hi"))
    play >> read(104_011) >> event(ev.TurnFailed) << ef.AwaitComposer(0, patience=120.0)
    play >> result(ev.ComposerReady)
    assert play.left[0].text.startswith("[sm context]")


def test_nothing_is_typed_into_a_client_that_refuses_to_continue_however_often_that_is_said():
    play = Playbook() >> event(ev.PromptSubmitted, text="do it") >> event(ev.MessageQueued, message=message("m1", "hi"))
    play >> event(ev.ClientBlocked, reason="too long") >> event(ev.ActivityChanged, activity=ev.Activity.IDLE)
    play >> read(104_011) >> event(ev.TurnFailed, error="too long", refusal="too long")
    assert play.end().session.detail == "too long"


def test_a_late_reading_of_an_old_conversation_is_dropped():
    play = Playbook() >> event(ev.ConversationStarted, conversation="c1", transcript="/t", origin=ev.Origin.CLEAR)
    assert (play >> read(150_000)).end().session.conversation.monitor.reading.tokens is None


def test_a_compaction_is_told_to_the_parent_with_its_sizes_and_counts_as_too_late():
    play = Playbook() >> event(ev.PromptSubmitted, text="do it") >> read(160_000) >> compacted(168_024, 2_917)
    play << ef.TellParent(
        "[sm context] Handoff too late: the client compacted the context of x (168,024 tokens → 2,917 tokens)."
    )
    assert play.session.too_late == 1
    assert play.session.conversation.monitor.crossed == ()


def test_an_ordered_compaction_is_no_handoff_that_came_too_late():
    play = Playbook() >> event(ev.PromptSubmitted, text="do it") >> read(160_000)
    play >> event(ev.CompactionStarted, automatic=False) << ef.MakeDocument(rotate=False)
    play >> compacted(21_502, 3_079)
    assert play.end().session.too_late == 0
    assert play.session.conversation.monitor.crossed == ()


def test_a_compaction_of_the_client_after_an_ordered_one_counts():
    play = Playbook() >> event(ev.PromptSubmitted, text="do it") >> read(160_000)
    for automatic in (False, True):
        play >> event(ev.CompactionStarted, automatic=automatic) << ef.MakeDocument(rotate=False)
    play >> compacted(168_024, 2_917)
    play << ef.TellParent(
        "[sm context] Handoff too late: the client compacted the context of x (168,024 tokens → 2,917 tokens)."
    )
    assert play.session.too_late == 1


def test_after_a_compaction_thresholds_may_be_crossed_again_and_old_readings_are_dropped():
    play = Playbook() >> event(ev.PromptSubmitted, text="do it") >> read(104_011)
    play >> event(ev.ConversationStarted, origin=ev.Origin.COMPACT)
    assert play.session.conversation.monitor.crossed == ()
    assert (play >> read(150_000, epoch=0)).session.conversation.monitor.reading.tokens is None


def test_rearmed_latches_let_what_is_known_be_told_again():
    play = Playbook() >> event(ev.PromptSubmitted, text="do it") >> read(104_011)
    play >> event(ev.ToolUsed, tool="Bash")
    first = play.left.pop()
    play >> event(ev.ToolUsed, tool="Bash") >> event(ev.LatchesReset) >> event(ev.ToolUsed, tool="Bash")
    assert (type(first), type(play.left.pop())) == (ef.AddContext, ef.AddContext)


def test_rearmed_latches_of_a_small_context_are_open():
    play = Playbook() >> event(ev.PromptSubmitted, text="do it") >> read(10_000) >> event(ev.LatchesReset)
    assert play.session.conversation.monitor.crossed == ()


def test_an_agent_is_told_its_commands_when_it_starts_and_not_after_a_clear():
    session = idle_session()
    told = primer(session.id)
    assert len(told) <= 1_500
    assert ".sm/handoff-aaaaaaaa.md" in told  # C2
    play = Playbook(session) >> event(ev.ConversationStarted, conversation="c1", origin=ev.Origin.CLEAR)
    play.end() >> event(ev.ConversationStarted, conversation="c2") << ef.AddContext(told)


def test_the_primer_can_be_switched_off():
    play = Playbook(idle_session(policy=Policy(primer=False)))
    (play >> event(ev.ConversationStarted, conversation="c1")).end()


@pytest.mark.parametrize(
    ("happened", "status"),
    [
        (event(ev.PromptSubmitted, text="x"), Status.WORKING),
        (event(ev.ToolUsed, tool="Bash"), Status.WORKING),
        (event(ev.PermissionAsked, tool="Bash"), Status.WAITING),
        (event(ev.TurnFailed), Status.IDLE),
        (event(ev.TurnFailed, refusal="Prompt is too long"), Status.BLOCKED),
        (event(ev.CompactionStarted), Status.COMPACTING),
        (event(ev.ClientBlocked, reason="limit"), Status.BLOCKED),
        (event(ev.ClientExited, code=0), Status.EXITED),
        (event(ev.ClientExited, code=1), Status.CRASHED),
        (event(ev.ClientExited, signal=9), Status.CRASHED),
        (event(ev.ActivityChanged, activity=ev.Activity.WAITING, detail="dialog open"), Status.WAITING),
        (event(ev.ServerStarted), Status.UNKNOWN),
    ],
)
def test_the_status_follows_what_the_client_says_and_shows(happened, status):
    play = Playbook() >> happened
    assert play.session.status is status


def test_a_blocked_client_is_not_taken_for_idle():
    play = Playbook() >> event(ev.ClientBlocked, reason="limit") >> event(ev.ActivityChanged, activity=ev.Activity.IDLE)
    assert play.session.status is Status.BLOCKED


def test_a_silent_agent_is_said_to_be_silent_until_it_is_heard_again():
    play = Playbook() >> event(ev.PromptSubmitted, text="x")
    play >> ev.AlarmRang(at=next_alarm(play.session))
    assert play.session.status is Status.SILENT
    assert (play >> event(ev.ToolUsed, tool="Bash")).session.status is Status.WORKING


def test_a_dialog_outlives_a_state_file_that_lags_behind_its_hook():
    play = Playbook() >> event(ev.PermissionAsked, tool="Bash")
    now = play.now
    play >> ev.ActivityChanged(at=now + 0.1, activity=ev.Activity.IDLE)
    assert play.session.status is Status.WAITING
    play >> ev.ActivityChanged(at=now + 1.0, activity=ev.Activity.IDLE)
    assert (play.session.status, play.session.dialog) == (Status.IDLE, None)


def test_a_busy_client_whose_subagent_runs_on_is_idle_at_its_prompt():
    task = ev.BackgroundTask("a", "subagent", "explore")
    play = Playbook() >> event(ev.PromptSubmitted, text="x") >> event(ev.TurnEnded, background=(task,))
    play >> event(ev.ActivityChanged, activity=ev.Activity.BUSY)
    assert play.session.status is Status.IDLE
    assert runs_only_background(play.session)


def test_a_busy_client_rests_again_once_no_dialog_came_for_what_its_subagent_asks():
    task = ev.BackgroundTask("a", "subagent", "explore")
    play = Playbook() >> event(ev.PromptSubmitted, text="x") >> event(ev.TurnEnded, background=(task,))
    play >> event(ev.PermissionAsked, tool="Bash")
    now = play.now
    for later, status in ((0.5, Status.WAITING), (DIALOG_DELAY_S, Status.IDLE)):
        play >> ev.ActivityChanged(at=now + later, activity=ev.Activity.BUSY)
        assert play.session.status is status


def test_an_ended_session_hears_only_a_new_launch_and_its_person():
    play = (Playbook() >> event(ev.ClientExited, signal=9)).skip(ef.MakeDocument)
    ended = play.session
    for late in (event(ev.TurnEnded), event(ev.ConversationStarted, conversation="c1"), event(ev.ServerStarted)):
        assert (play >> late).end().session == ended
    assert (play >> event(ev.SessionRenamed, name="y")).session.name == "y"
    assert may_hand_off(ended).code == "ended"


def test_a_policy_that_changed_holds_from_then_on():
    policy = Policy(warning=Threshold(tokens=10))
    assert (Playbook() >> event(ev.PolicyChanged, policy=policy)).session.policy == policy


def test_a_rotation_under_way_takes_no_second_handoff():
    play = (Playbook() >> event(ev.HandoffRequested, handoff=HANDOFF)).skip(ef.RecordHandoff, ef.AwaitComposer)
    assert may_hand_off(play.session).code == "rotating"
    assert play.session.shown_status is Status.ROTATING


WAIT = ef.AwaitComposer(0, patience=120.0)
AGAIN = ef.AwaitComposer(0, patience=120.0, own=("hello",))


def queued():
    return Playbook() >> event(ev.MessageQueued, message=message("m1", "hello")) << WAIT


def test_a_message_to_an_idle_agent_is_typed_and_delivered_by_its_submission():
    play = queued() >> result(ev.ComposerReady) << ef.TypeText(0, "hello")
    (
        play
        >> event(ev.PromptSubmitted, text="hello")
        << ef.RecordMessage("m1", MessageState.DELIVERED, channel=Channel.PASTE)
    )
    assert play.session.outbox.queue == ()


def test_a_message_queued_twice_is_one_message():
    play = queued() >> event(ev.MessageQueued, message=message("m1", "hello"))
    assert len(play.end().session.outbox.queue) == 1


def test_a_person_who_submits_first_goes_first_and_the_message_after():
    play = queued() >> event(ev.PromptSubmitted, text="mine") << ef.LeavePane(0)
    play >> event(ev.TurnEnded) << ef.AddContext("hello", messages=("m1",))
    play << ef.RecordMessage("m1", MessageState.DELIVERED, channel=Channel.STOP)


def test_a_message_mixed_with_a_draft_is_kept_from_the_model_and_tried_again():
    play = queued() >> result(ev.ComposerReady) << ef.TypeText(0, "hello")
    play >> event(ev.PromptSubmitted, text="draft hello")
    assert isinstance(play.left[0], ef.BlockPrompt)
    assert play.left[1].own == ("hello",)


def test_a_message_nobody_ever_took_ends_as_unconfirmed():
    play = queued() >> result(ev.ComposerReady) << ef.TypeText(0, "hello")
    for _ in range(3):
        play >> result(ev.TypingRefused, reason="not shown") << AGAIN
        play = (play >> result(ev.ComposerReady)).skip(ef.FindPrompt)
        play >> result(ev.PromptMissing) << ef.TypeText(0, "hello")
    play >> result(ev.PromptMissing)
    play << ef.RecordMessage("m1", MessageState.UNCONFIRMED, "the client never submitted it")


def test_a_message_whose_hook_was_lost_is_looked_for_in_the_transcript():
    play = queued() >> result(ev.ComposerReady) << ef.TypeText(0, "hello")
    play >> ev.AlarmRang(at=next_alarm(play.session))
    assert isinstance(play.left[0], ef.FindPrompt)


def test_after_a_restart_a_message_that_is_not_there_yet_is_waited_for_before_it_is_typed_again():
    play = queued() >> result(ev.ComposerReady, position=99) << ef.TypeText(0, "hello")
    play = play >> event(ev.ServerStarted)
    assert play.left[0].position == 99  # C4: the same words before are another message's
    play = (play.skip(ef.FindPrompt) >> result(ev.PromptMissing)).end()
    play = (play >> ev.AlarmRang(at=play.session.outbox.deadline)).skip(ef.FindPrompt)
    play >> result(ev.PromptMissing) << AGAIN


def test_a_message_gives_way_to_a_dialog_before_its_enter():
    play = queued() >> event(ev.PermissionAsked, tool="Bash")
    play << replace(WAIT, after=play.now + 1.0)
    play = queued() >> result(ev.ComposerReady) << ef.TypeText(0, "hello")
    play >> event(ev.PermissionAsked, tool="Bash") << ef.LeavePane(0)


def test_a_restart_before_the_enter_begins_the_message_again():
    play = queued() >> event(ev.ServerStarted) << ef.LeavePane(0)
    play >> event(ev.ActivityChanged, activity=ev.Activity.IDLE) << WAIT


def test_what_a_composer_does_to_text_is_no_difference():
    assert digest("a  \r\nb\n") == digest("a\nb")
    pasted = '\n\n<pasted_content id="69c4">\nlong text\n</pasted_content id="69c4">'
    assert CLAUDE.as_typed(pasted).strip() == "long text"


def test_the_part_of_a_client_that_begins_anew_gets_the_document_of_a_conversation_that_was_lost():
    play = (Playbook() >> event(ev.HandoffRequested, handoff=HANDOFF)).skip(ef.RecordHandoff, ef.AwaitComposer)
    play >> result(ev.ComposerReady) << ef.TakeSnapshot(0) >> result(ev.SnapshotTaken) << ef.ClearContext(0)
    play = (play >> event(ev.ConversationStarted, conversation="c1", origin=ev.Origin.CLEAR)).skip(
        ef.InjectHandoff, ef.AwaitComposer
    )
    wake = (play >> result(ev.ComposerReady)).left.pop().text
    play = (play >> event(ev.PromptSubmitted, conversation="c1", text=wake)).skip(ef.RecordHandoff)
    play = play >> event(ev.TurnEnded, conversation="c1") >> event(ev.ClientExited, signal=9)
    play = (
        play.skip(ef.MakeDocument) >> event(ev.SessionLaunched, pane="%2", pid=2, conversation="c2", config="/c")
    ).skip(ef.LeavePane, ef.RecordHandoff)
    play >> event(ev.ConversationStarted, conversation="c2")
    assert isinstance(play.skip(ef.AddContext).left.pop(0), ef.InjectHandoff)
    play.left = []


def test_a_name_that_is_taken_gets_a_number():
    assert free_name("api", frozenset()) == "api"
    assert free_name("api", frozenset({"api", "api-2"})) == "api-3"
    assert free_name("0123abcd", frozenset()) == "0123abcd-2"
    assert free_name("\u200b", frozenset()) == "_"
    assert free_name(" ", frozenset()) == "sm"
    assert name_fault(free_name("x" * 255, frozenset({"x" * 56}))) is None
    assert name_fault(free_name("--x", frozenset({"x"}))) is None  # C43
    assert name_fault("-x")


def test_the_clients_state_does_not_take_away_what_a_dialog_asks():
    play = Playbook() >> event(ev.PermissionAsked, tool="Bash")
    play.skip(ef.PaneCommand) >> event(ev.ActivityChanged, activity=ev.Activity.WAITING, detail="permission prompt")
    assert (play.session.status, play.session.detail) == (Status.WAITING, "asks for permission: Bash")


def contexts_noted(*events):
    """What is recorded of contexts while a session of its own goes through these events."""
    session = Session(id="a" * 8, name="x", provider="claude", directory="/p", created=1.0)
    noted = []
    for number, given in enumerate(events):
        session, effects = advance(session, replace(given, at=float(number)))
        noted += [effect for effect in effects if isinstance(effect, ef.RecordContext)]
    return noted


LAUNCHED = ev.SessionLaunched(at=0, pane="%1", pid=1, conversation="c0")
BEGUN = ev.ConversationStarted(at=0, conversation="c0", transcript="/t0", log_end=90)


def test_each_context_is_noted_with_where_it_begins_in_the_log():
    left = ev.ConversationEnded(at=0, conversation="c0", reason="clear", log_end=500)
    cleared = ev.ConversationStarted(at=0, conversation="c1", transcript="/t1", log_end=700)
    assert contexts_noted(LAUNCHED, BEGUN, left, cleared) == [
        ef.RecordContext("c0", None, 0.0, 0, "claude"),
        ef.RecordContext("c0", "/t0", 0.0, 90, "claude"),
        ef.RecordContext("c1", "/t1", 3.0, 500, "claude"),
    ]


def test_without_the_clients_word_that_it_leaves_a_context_begins_with_its_own_hook():
    foreign = ev.ConversationEnded(at=0, conversation="other", log_end=500)
    cleared = ev.ConversationStarted(at=0, conversation="c1", log_end=700)
    assert contexts_noted(LAUNCHED, BEGUN, foreign, cleared)[-1].log_start == 700


def test_a_conversation_that_is_taken_up_again_or_compacted_is_no_other_context():
    left = ev.ConversationEnded(at=0, conversation="c0", log_end=500)
    again = replace(BEGUN, origin=ev.Origin.RESUME, log_end=800)
    compacted = replace(BEGUN, origin=ev.Origin.COMPACT, log_end=900)
    assert len(contexts_noted(LAUNCHED, BEGUN, left, LAUNCHED, again, compacted)) == 2


def test_a_client_that_ends_again_and_again_without_a_turn_stays_down_for_a_while():  # restart by a loop
    play = Playbook()
    for number in range(MAX_FAILED_STARTS):
        assert stays_down(play.session, play.now) is None, number
        play = (play >> event(ev.ClientExited, code=3)).skip(ef.Effect)
        play = (play >> event(ev.SessionLaunched, pane="%1", pid=2, conversation="c0", config="/c")).skip(ef.Effect)
    first = play.session.failed_starts[0]
    refused = stays_down(play.session, play.now)
    assert refused.code == "restart_loop"
    assert "x stays down: its client has ended 5 times" in refused.message
    assert "sm restore x --force" in refused.hint
    assert stays_down(play.session, first + FAILED_STARTS_WINDOW_S) is None
    assert stays_down(play.session, first - 3600) is None, "the clock was set back: what lies in the future counts not"
    play = (play >> event(ev.TurnEnded)).skip(ef.Effect)
    assert stays_down(play.session, play.now) is None, "it has worked"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"adopted": True}, "adopted"),
        ({"foreground": Foreground(wrapper=1)}, "switch_refused"),
        ({"attempt": "r/1/1"}, "switch_refused"),
        ({}, None),
    ],
)
def test_no_other_client_continues_what_is_in_a_terminal_of_its_own_or_part_of_a_run(changes, code):
    refused = may_switch(replace(idle_session(), **changes))
    assert (refused.code if refused else None) == code


END_FIRST = "end that client first (/exit in its terminal, or kill 7), then run this command again"


@pytest.mark.parametrize(
    ("terminal", "living", "shown", "hint"),
    [
        ("/dev/pts/3", {}, "pid 7, /dev/pts/3", END_FIRST),
        ("", {"pid": 8, "pane": "%1"}, "pid 7, without a terminal", END_FIRST),
        ("/dev/pts/3", {"pid": 7, "pane": None}, "session x, pid 7, /dev/pts/3", END_FIRST),
        ("/dev/pts/3", {"pid": 7, "pane": "%1"}, "session x, pid 7, /dev/pts/3", "sm attach x shows it"),
    ],
)
def test_a_second_client_on_a_conversation_is_refused_with_where_the_first_one_is(terminal, living, shown, hint):
    refused = second_client("c0", 7, terminal, [replace(idle_session(), **living)], "/exit")
    assert (refused.code, refused.hint) == ("running_elsewhere", hint)
    assert refused.message == f"Another client has conversation c0 open: {shown}"


def test_a_client_that_the_user_ended_counts_as_no_failed_start():
    play = Playbook()
    for _ in range(MAX_FAILED_STARTS):
        play = (play >> event(ev.SessionKilled)).skip(ef.Effect)
        play = (play >> event(ev.SessionLaunched, pane="%1", pid=2, conversation="c0", config="/c")).skip(ef.Effect)
    assert play.session.failed_starts == ()


def test_a_transcript_that_the_client_has_moved_is_read_where_it_is_now():
    play = Playbook() >> event(ev.TranscriptMoved, transcript="/moved")
    assert play.end().session.conversation.transcript == "/moved"


def test_a_box_that_is_free_shows_that_no_dialog_is_open_any_more():
    play = Playbook() >> event(ev.PromptSubmitted, text="x") >> event(ev.PermissionAsked)
    assert play.session.dialog is not None
    play.now += 10
    play >> result(ev.ComposerReady)
    assert play.end().session.dialog is None


def test_a_transcript_of_a_session_without_a_conversation_is_moved_nowhere():
    fresh = Session(id="a" * 8, name="x", provider="claude", directory="/p", created=1.0)
    moved = ev.TranscriptMoved(at=2.0, conversation="c0", transcript="/moved")
    assert follow_conversation(fresh, moved, CLAUDE) == (fresh, ())


def test_a_document_that_is_withdrawn_is_the_sessions_newest_no_more():
    play = Playbook(replace(idle_session(), kept=HANDOFF)) >> event(
        ev.HandoffWithdrawn, handoff=HANDOFF.id, reason="taken"
    )
    assert play.end().session.kept is None


def test_the_clients_own_limits_are_those_it_has_now():
    limits = ClientLimits(auto_compact=100_000)
    assert (Playbook() >> event(ev.LimitsChanged, limits=limits)).end().session.limits == limits


def test_a_session_says_how_its_client_is_driven_until_another_client_is_started():
    session = advance(idle_session(), event(ev.DriverChanged, driver=ev.DrivenBy.MOD))[0]
    assert (session.driver, session.driver_note) == ("mod", "")
    session = advance(session, event(ev.DriverChanged, driver=ev.DrivenBy.KEYS, reason="it does not answer"))[0]
    assert (session.driver, session.driver_note) == ("keys", "it does not answer")
    session = advance(session, event(ev.SessionLaunched, pid=2, conversation="c1"))[0]
    assert (session.driver, session.driver_note) == ("keys", "")


def test_a_status_is_known_since_it_began_and_by_what_was_last_seen():
    play = Playbook() >> event(ev.PromptSubmitted, text="do it")
    began = play.now
    play = (play >> event(ev.ToolUsed, tool="Bash")).skip(ef.Effect)
    assert (play.session.shown_since, play.session.shown_evidence) == (began, "its client ran a tool")
    play = (play >> event(ev.TurnEnded, text="All tests pass.")).skip(ef.Effect)
    assert (play.session.shown_since, play.session.said) == (play.now, "All tests pass.")
    play = (play >> event(ev.TurnEnded)).skip(ef.Effect)
    assert play.session.said == "All tests pass.", "what it has said stays"


def test_turns_left_are_counted_by_how_the_context_has_grown():
    play = Playbook()
    assert turns_left(play.session) is None
    for tokens in (20_000, 30_000, 40_000):
        play = (play >> event(ev.PromptSubmitted, text="more")).skip(ef.Effect)
        play = (play >> read(tokens)).skip(ef.Effect)
        play = (play >> event(ev.TurnEnded)).skip(ef.Effect)
    critical = thresholds(play.session.conversation.monitor, play.session.policy)[1]
    assert critical == round(0.8 * 167_000)
    assert (play.session.conversation.start, play.session.conversation.turns) == (20_000, 3)
    assert turns_left(play.session) == (133_600 - 40_000) * 3 // 20_000
    past = (play >> event(ev.PromptSubmitted, text="more")).skip(ef.Effect)
    past = (past >> read(160_000)).skip(ef.Effect)
    assert turns_left(past.session) == 0


ROTATES = {"rotation": Rotation(HANDOFF, Phase.CLEARING, since=70.0, deadline=90.0)}
LIMITED = {"limit": UsageLimit("five_hour", 9_000.0, 60.0)}
ASKED = {"asks": (Ask("a1", AskKind.PERMISSION, "Bash", asked=50.0, hidden=True),)}


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({}, (Status.IDLE, 40.0, "its screen")),
        ({"since": 0.0}, (Status.IDLE, 1.0, "its screen")),
        (ROTATES, (Status.ROTATING, 70.0, "the handoff")),
        (LIMITED, (Status.LIMITED, 60.0, "the client's words")),
        (ASKED, (Status.WAITING, 50.0, "its hook")),
    ],
)
def test_what_is_shown_above_the_status_has_a_beginning_and_evidence_of_its_own(changes, shown):
    session = replace(idle_session(), **{"created": 1.0, "since": 40.0, "evidence": "its screen", **changes})
    assert (session.shown_status, session.shown_since, session.shown_evidence) == shown


def test_turns_left_are_not_known_where_the_context_has_not_grown():
    play = Playbook()
    play = (play >> event(ev.PromptSubmitted, text="more")).skip(ef.Effect)
    play = (play >> read(20_000)).skip(ef.Effect)
    play = (play >> event(ev.TurnEnded)).skip(ef.Effect)
    assert turns_left(play.session) is None
