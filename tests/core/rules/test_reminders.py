"""What events mean for reminders, waits and stop notifications, and what is said when one is due."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sm.core import events as ev
from sm.core.effects import DropReminder, QueueNotice, RecordMessage, RecordReminder
from sm.core.model.message import MessageState, Mode, fits_composer, message
from sm.core.model.notices import DueReminder
from sm.core.model.reminder import Kind, Reminder
from sm.core.model.report import Report, quoted
from sm.core.model.session import Status
from sm.core.rules.due_reminders import already_over, fire
from sm.core.rules.reminders import (
    STOP_SETTLE_S,
    at_rest,
    check,
    follow,
    idle,
    reported,
    session_change,
)
from sm.core.rules.session.context import derived_events
from sm.providers.claude.traits import CLAUDE
from tests.core.playbook import HANDOFF, advance, idle_session

PARENT, CHILD = "b" * 8, "a" * 8
SHELL = ev.BackgroundTask("1", "shell", "npm run dev")
AGENT = ev.BackgroundTask("2", "subagent", "look around")
STOP = Reminder("r1", Kind.STOP, PARENT, CHILD, created=1.0, message="m1")
WAIT = Reminder("r2", Kind.WAIT, PARENT, CHILD, created=1.0, due=61.0, deadline=61.0)
TRACK = Reminder("r3", Kind.TRACK, PARENT, CHILD, created=1.0, due=601.0, every=600.0)
ONCE = Reminder("r4", Kind.ONCE, CHILD, CHILD, created=1.0, due=61.0, text="look at it")
EVERY = replace(ONCE, id="r5", kind=Kind.EVERY, every=60.0)
OWNER = replace(idle_session(), id=PARENT, name="boss")


def child(**changes):
    return idle_session(parent=PARENT, **changes)


class Story:
    """A child's events, one after the other, and what they make of one reminder."""

    def __init__(self, reminder, session=None):
        self.session = session or child()
        self.reminder = reminder
        self.now = 10.0
        self.said = []

    def on(self, kind, *, records=(), **values):
        self.now += 1
        if kind in {ev.PromptSubmitted, ev.ToolUsed, ev.TurnEnded, ev.TurnFailed, ev.PermissionAsked}:
            values = {"conversation": self.session.conversation.id, **values}
        event = kind(at=self.now, **values)
        before = self.session
        self.session, effects = advance(before, event)
        own = (*(effect for effect in effects if isinstance(effect, RecordMessage)), *records)
        self.take(follow([self.reminder] if self.reminder else [], session_change(before, self.session, event, own)))
        return self

    def prompt(self, text="x", *, taken=None):
        return self.on(ev.PromptSubmitted, text=text, records=(taken,) if taken else ())

    def stop(self, **values):
        return self.on(ev.TurnEnded, **values)

    def take(self, records):
        for record in records:
            if isinstance(record, RecordReminder):
                self.reminder = record.reminder
            elif isinstance(record, DropReminder):
                self.reminder = None
            else:
                self.said.append((record.notice.session, record.notice.text))

    def pass_time(self, seconds=1000.0, owner=OWNER):
        """Let what is due until then speak."""
        end = self.now + seconds
        while self.reminder and self.reminder.due is not None and self.reminder.due <= end:
            self.now = max(self.now, self.reminder.due)
            self.take(fire(DueReminder(self.reminder, owner, self.session, self.now)))
            if self.reminder and self.reminder.every:
                return self
        self.now = end
        return self


def confirmed(identity="m1"):
    return RecordMessage(identity, MessageState.CONFIRMED)


def begun():
    return Story(STOP).prompt(taken=confirmed())


# --- stop notifications ----------------------------------------------------------------------------------------------


def test_a_stop_is_told_once_it_has_lasted_with_the_agents_last_line_and_report():
    story = begun()
    story.session = replace(story.session, report=Report("on it", story.now - 89))
    story.stop(text='It "works".')
    assert story.pass_time(0.5).said == []
    assert story.pass_time().said == [
        (
            PARENT,
            (
                f"[sm] x ({CHILD}) has finished its turn and is idle. Last line: \"It 'works'.\"\n"
                'Its last report, 91s ago: "on it"'
            ),
        )
    ]
    assert story.reminder is None


def test_the_stop_of_an_earlier_task_tells_nothing():
    story = Story(STOP).prompt("older").stop().pass_time()
    assert (story.said, story.reminder) == ([], STOP)
    assert len(story.prompt(taken=confirmed()).stop().pass_time().said) == 1


def test_a_message_that_was_absorbed_by_the_running_turn_makes_that_turns_stop_the_one():
    delivered = RecordMessage("m1", MessageState.DELIVERED)
    story = Story(STOP).prompt("older").on(ev.ToolUsed, tool="Bash", records=(delivered,))
    assert len(story.stop().pass_time().said) == 1


def test_a_message_that_rides_on_the_stops_own_reply_is_no_stop_yet():
    story = Story(STOP).prompt("older").stop(records=(RecordMessage("m1", MessageState.DELIVERED),))
    assert story.pass_time().said == []
    assert len(story.on(ev.ToolUsed, tool="Bash").stop().pass_time().said) == 1


def test_without_a_message_the_next_prompt_is_meant():
    story = Story(replace(STOP, message="")).stop().pass_time()
    assert story.said == []
    assert len(story.prompt("anything").stop().pass_time().said) == 1


def test_a_turn_that_goes_on_at_once_has_not_stopped():
    story = begun().stop().on(ev.ToolUsed, tool="Bash")
    assert story.pass_time().said == []
    assert len(story.stop().pass_time().said) == 1


def test_a_background_agent_is_work_and_its_end_begins_another_turn():
    story = begun().stop(background=(AGENT,)).pass_time()
    assert story.said == []
    assert len(story.prompt("<task-notification>").stop().pass_time().said) == 1


def test_a_background_shell_is_waited_for_as_long_as_a_rotation_does_and_then_named():
    story = begun().stop(background=(SHELL,))
    assert story.pass_time(119).said == []
    [(_, text)] = story.pass_time(2).said
    assert text.endswith('Still running in the background: "npm run dev"')


def test_a_turn_that_ends_in_a_rotation_is_no_stop():
    story = begun().on(ev.HandoffRequested, handoff=HANDOFF).stop().pass_time()
    assert story.said == []
    assert story.reminder.running


def test_a_failed_turn_is_told_with_its_error():
    [(_, text)] = begun().on(ev.TurnFailed, error="rate_limit").pass_time().said
    assert text == f"[sm] x ({CHILD}) has stopped: the last turn failed: rate_limit."


@pytest.mark.parametrize("story", [Story(STOP), begun()], ids=["before its task", "at its task"])
def test_the_end_of_a_client_is_told_with_its_reason(story):
    [(_, text)] = story.on(ev.ClientExited, code=None, signal=9).pass_time().said
    assert text == f"[sm] x ({CHILD}) has ended: the client has ended (signal 9)."


def test_whoever_killed_it_need_not_be_told():
    assert begun().on(ev.SessionKilled, by=PARENT).pass_time().said == []
    [(_, text)] = begun().on(ev.SessionKilled, reason="killed").pass_time().said
    assert text == f"[sm] x ({CHILD}) has ended: killed."


def test_a_client_that_refuses_to_go_on_has_stopped():
    [(_, text)] = begun().on(ev.ClientBlocked, reason="Context limit reached").pass_time().said
    assert "has stopped: Context limit reached." in text


def test_a_message_that_was_never_taken_is_told():
    lost = RecordMessage("m1", MessageState.UNCONFIRMED)
    [(_, text)] = Story(STOP).on(ev.AlarmRang, records=(lost,)).pass_time().said
    assert text == f"[sm] x ({CHILD}) never received the message you wait for; it is idle."


@pytest.mark.parametrize(("before", "told"), [(5, 0), (29, 0), (31, 1)])
def test_an_agent_that_has_just_reported_itself_is_not_told_about(before, told):
    story = begun()
    story.take(reported([story.reminder], PARENT, story.now + 100 - before))
    story.now += 100 - STOP_SETTLE_S - 1  # the next event is a second later
    assert len(story.stop().pass_time().said) == told
    assert story.reminder is None


def test_a_word_to_somebody_else_or_before_the_task_is_no_report():
    assert reported([STOP], PARENT, 5.0) == ()
    assert reported([replace(STOP, running=True)], "c" * 8, 5.0) == ()


def test_two_tasks_that_ended_in_one_turn_are_one_stop():
    running = replace(STOP, running=True, due=5.0)
    other = replace(running, id="r9", message="m2")
    foreign = replace(running, id="r8", owner="c" * 8)
    session = begun().stop().session
    records = fire(DueReminder(running, OWNER, session, 5.0, (other, foreign)))
    assert [record.reminder for record in records if isinstance(record, DropReminder)] == ["r1", "r9"]
    assert len([record for record in records if isinstance(record, QueueNotice)]) == 1


def test_a_busy_session_is_not_taken_for_stopped_when_a_server_takes_over():
    story = begun().stop()
    story.on(ev.ServerStarted)
    assert story.session.status is Status.UNKNOWN
    assert story.on(ev.ActivityChanged, activity=ev.Activity.BUSY).pass_time().said == []


def test_done_tells_the_parent_once_and_spares_it_the_stop():
    story = begun().on(ev.TaskCompleted, text="built").on(ev.TaskCompleted, text="built!")
    assert story.said == [(PARENT, f'[sm] x ({CHILD}) is done: "built"')]
    assert story.reminder is None
    assert story.session.report == Report("built!", story.now, done=True)


def test_another_watcher_is_told_of_the_stop_all_the_same():
    story = Story(replace(STOP, owner="c" * 8)).prompt(taken=confirmed()).on(ev.TaskCompleted, text="built")
    assert [target for target, _ in story.stop().pass_time().said] == [PARENT, "c" * 8]


def test_a_new_task_is_not_done():
    finished = child(report=Report("built", 1.0, done=True))
    session, _ = advance(finished, ev.PromptSubmitted(at=2.0, conversation="c0", text="x"))
    assert session.report is None  # what was said of the task before is nothing to say of this one


@pytest.mark.parametrize("story", [lambda: Story(STOP), begun], ids=["before its task", "at its task"])
def test_a_dialog_that_nobody_answers_is_told_and_the_stop_still_comes(story):
    story = story().on(ev.PermissionAsked, tool="Bash")
    assert story.pass_time(19).said == []
    assert story.pass_time(2).said == [(PARENT, f"[sm] x ({CHILD}) waits for the user: asks for permission: Bash.")]
    assert len(story.pass_time().said) == 1
    story.prompt(taken=confirmed()).stop().pass_time()
    assert len(story.said) == 2


def test_a_dialog_that_is_answered_in_time_is_not_told():
    story = begun().on(ev.PermissionAsked, tool="Bash").on(ev.ToolUsed, tool="Bash").pass_time()
    assert (story.said, story.reminder.due) == ([], None)
    story = Story(STOP).on(ev.ActivityChanged, activity=ev.Activity.WAITING, detail="trust")
    assert story.on(ev.ActivityChanged, activity=ev.Activity.IDLE).pass_time().said == []


# --- waits -----------------------------------------------------------------------------------------------


def test_a_wait_ends_when_the_target_is_idle():
    story = Story(WAIT).prompt()
    assert story.reminder == WAIT
    told = f'[sm wait] x ({CHILD}) is idle. Last line: "Ready."'
    assert story.stop(text="Ready.").pass_time(2).said == [(PARENT, told)]


def test_a_wait_ends_with_its_time_and_says_what_the_target_does():
    [(_, text)] = Story(WAIT).prompt().pass_time(60).said
    assert text == f"[sm wait] x ({CHILD}) is not idle after 1m: working."


@pytest.mark.parametrize("left", [AGENT, SHELL])
def test_whatever_runs_in_the_background_keeps_a_session_from_being_idle(left):
    story = Story(WAIT).prompt().stop(background=(left,))
    assert story.pass_time(30).said == []
    [(_, text)] = story.pass_time().said
    assert f'is not idle after 1m: idle. Still running in the background: "{left.description}"' in text


def test_a_session_with_a_message_on_its_way_is_not_idle():
    session, _ = advance(child(), ev.MessageQueued(at=2.0, message=message("m1", "work")))
    assert not idle(session)
    assert idle(child())
    assert not at_rest(replace(child(), background=(AGENT,)))


def test_a_wait_for_a_session_that_ends_is_over_at_once():
    [(_, text)] = Story(WAIT).prompt().on(ev.ClientExited, code=0).pass_time(0).said
    assert text == f"[sm wait] x ({CHILD}) has ended: the client has ended (exit code 0)."


# --- reminders -----------------------------------------------------------------------------------------------


def test_a_reminder_speaks_once():
    story = Story(ONCE).pass_time()
    assert (story.said, story.reminder) == ([(CHILD, "[sm remind] look at it")], None)


def test_a_repeated_one_keeps_its_rhythm_and_speaks_once_for_all_it_has_missed():
    records = fire(DueReminder(EVERY, child(), child(), at=61.0 + 60 * 10 + 7))
    assert records[0].reminder.due == 61.0 + 60 * 11
    assert len(records) == 2


def test_a_repeated_one_waits_until_the_agent_has_read_the_last():
    queued, _ = advance(child(), ev.MessageQueued(at=2.0, message=message("n1", "[sm remind] look at it")))
    [record] = fire(DueReminder(replace(EVERY, message="n1"), queued, queued, at=61.0))
    assert record.reminder.due == 121.0


def test_track_asks_then_asks_again_and_tells_the_owner_once():
    story = Story(TRACK).prompt()
    for _ in range(3):
        story.pass_time()
    assert [target for target, _ in story.said] == [CHILD, CHILD, PARENT, CHILD]
    assert story.said[0][1].startswith("[sm track] Report what you are doing: sm status TEXT")
    assert story.said[1][1].startswith("[sm track] You have not reported for 20m.")
    assert story.said[2][1] == f"[sm track] x ({CHILD}) has not reported for 20m; it is working."


def test_a_report_begins_the_time_anew():
    story = Story(TRACK).prompt().pass_time()
    story.on(ev.StatusReported, text="on\nit")
    assert (story.reminder.unanswered, story.reminder.due) == (0, story.now + 600)
    assert story.session.report == Report("on it", story.now)


def test_an_idle_agent_is_not_asked():
    story = Story(TRACK).pass_time()
    assert (story.said, story.reminder.unanswered) == ([], 0)


@pytest.mark.parametrize("kind", [ev.TaskCompleted, ev.ClearRequested])
@pytest.mark.parametrize("reminder", [ONCE, EVERY, TRACK])
def test_a_complete_task_ends_its_reminders(reminder, kind):
    kept = reminder is TRACK and kind is ev.ClearRequested
    assert (Story(reminder).prompt().on(kind).reminder is None) is not kept


def test_the_death_of_the_target_ends_track():
    assert Story(TRACK).on(ev.ClientExited, code=1).reminder is None


@pytest.mark.parametrize(
    ("delay", "every", "owned", "code"),
    [
        (1.0, False, 0, None),
        (0.5, False, 0, "bad_delay"),
        (-1.0, False, 0, "bad_delay"),
        (float("nan"), False, 0, "bad_delay"),
        (float("inf"), False, 0, "bad_delay"),
        (9.0, True, 0, "bad_delay"),
        (10.0, True, 99, None),
        (10.0, True, 100, "too_many"),
    ],
)
def test_a_delay_has_bounds_and_so_has_their_number(delay, every, owned, code):
    refused = check(delay, every=every, owned=owned)
    assert (refused.code if refused else None) == code


def test_an_agent_that_has_not_read_the_last_question_is_not_asked_again_but_complained_of():
    asked = replace(TRACK, message="n1", unanswered=1)
    working, _ = advance(begun().session, ev.MessageQueued(at=2.0, message=message("n1", "report")))
    records = fire(DueReminder(asked, OWNER, working, at=601.0))
    assert [record.notice.session for record in records if isinstance(record, QueueNotice)] == [PARENT]


# --- what a stale look must not make of them ----------------------------------------------------------------------


def working():
    return begun().session


def test_a_wait_whose_target_works_again_goes_on_to_its_time():
    [record] = fire(DueReminder(replace(WAIT, due=20.0), OWNER, working(), at=20.0))
    assert record.reminder.due == 61.0


@pytest.mark.parametrize(("status", "again"), [(Status.WORKING, None), (Status.UNKNOWN, 20.0 + STOP_SETTLE_S)])
def test_a_stop_of_a_session_that_is_not_at_rest_waits_for_what_comes(status, again):
    session = replace(working(), status=status)
    [record] = fire(DueReminder(replace(STOP, running=True, due=20.0), OWNER, session, at=20.0))
    assert (record.reminder.due, record.reminder.running) == (again, True)


def test_a_rest_that_has_begun_is_not_begun_again_by_a_witness():
    waits, stops = Story(WAIT).prompt().stop(), begun().stop()
    for story in (waits, stops):
        due = story.reminder.due
        story.on(ev.ActivityChanged, activity=ev.Activity.IDLE)
        assert story.reminder.due == due


@pytest.mark.parametrize(
    ("session", "how"),
    [
        (child(), "is idle already"),
        (replace(child(), status=Status.CRASHED, detail="exit code 1"), "has ended already: exit code 1"),
    ],
)
def test_a_wait_that_is_over_before_it_began_says_so(session, how):
    assert already_over(WAIT, session).notice.text == f"[sm wait] x ({CHILD}) {how}."


@pytest.mark.parametrize("status", [Status.WORKING, Status.WAITING, Status.BLOCKED])
def test_a_wait_for_one_that_still_works_has_just_begun(status):
    assert already_over(WAIT, replace(child(), status=status)) is None


# --- words -----------------------------------------------------------------------------------------------


@given(st.text(max_size=2000))
def test_another_agents_words_stay_inside_their_quotation(text):
    found = quoted(text)
    assert found[0] == found[-1] == '"'
    assert not set(found[1:-1]) & set('"<>[]\\\n')
    assert len(found) <= 202
    assert found.isprintable()


@given(st.text(max_size=2000), st.text(max_size=2000), st.text(min_size=1, max_size=2000))
def test_a_notice_always_fits_the_composer(words, report, name):
    story = begun()
    shown = replace(story.session, report=Report(report, 1.0), name=(name.strip() or "x")[:64])
    story.session = shown
    story.stop(text=words, background=(SHELL,))
    [(_, text)] = story.pass_time().said
    assert fits_composer(text, CLAUDE)


def test_a_check_ends_with_a_message_that_is_lost_and_begins_with_one_that_is_taken():
    check_up = Reminder("r6", Kind.CHECK, PARENT, CHILD, created=1.0, every=60.0, message="m1")
    begun_check = Story(check_up).prompt(taken=confirmed())
    assert begun_check.reminder.due == begun_check.now + 60.0
    assert Story(check_up).prompt(taken=RecordMessage("m1", MessageState.EXPIRED)).reminder is None


def test_a_message_whose_reply_was_lost_puts_its_task_back_to_its_beginning():
    story = begun().on(ev.ReplyLost, records=(RecordMessage("m1", MessageState.QUEUED),))
    assert (story.reminder.running, story.reminder.due) == (False, None)


def test_the_owner_who_cancels_its_message_is_not_told_of_the_stop():
    assert Story(STOP).on(ev.MessageCancelled, id="m1", mode=Mode.SEQUENTIAL, number=1, by=PARENT).reminder is None
    assert Story(STOP).on(ev.MessageCancelled, id="m2", mode=Mode.SEQUENTIAL, number=2, by=PARENT).reminder == STOP


def test_a_check_that_is_due_says_how_the_target_is_and_is_over():
    check_up = Reminder("r6", Kind.CHECK, PARENT, CHILD, created=1.0, every=60.0, message="m1")
    story = Story(check_up).prompt(taken=confirmed())
    story.pass_time()
    ((owner, text),) = story.said
    assert owner == PARENT
    assert text.startswith("[sm wait] 1m after your message x")
    assert story.reminder is None


def test_nothing_follows_from_an_event_that_begins_another_conversation():
    before = child()
    event = ev.ConversationStarted(at=20.0, conversation="c1", transcript="/t1", origin=ev.Origin.CLEAR)
    after, _ = advance(before, event)
    assert derived_events(before, after, event) == ()
