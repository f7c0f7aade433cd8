"""Which episodes events begin and end, and when each is sent: once, to a user who is away."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sm.core import events as ev
from sm.core.effects import DropEpisode, OpenEpisode, RecordAsk, RecordEpisode, RecordMessage
from sm.core.model.ask import AskKind, AskRequest, Decision
from sm.core.model.message import MessageState
from sm.core.model.notification import Episode
from sm.core.model.notify_rules import NotificationKind as Kind
from sm.core.model.notify_rules import NotifyRules
from sm.core.model.report import Report
from sm.core.model.rotation import Phase, Rotation
from sm.core.model.session import Status
from sm.core.model.usage_limit import UsageLimit
from sm.core.rules import notifications as rules
from sm.core.rules import sent_episodes
from sm.core.rules.hook_delivery import CANCELLED
from sm.core.rules.notifications import Moment, due, quiet_for
from tests.core.playbook import HANDOFF, advance, idle_session

ASKED = ev.PermissionAsked(at=0, conversation="c0", tool="Bash")
WAITS = ev.ActivityChanged(at=0, activity=ev.Activity.WAITING, detail="permission prompt")
IDLE = ev.ActivityChanged(at=0, activity=ev.Activity.IDLE)
USED = ev.ToolUsed(at=0, conversation="c0", tool="Bash")
RELAUNCHED = ev.SessionLaunched(at=0, pane="%2", pid=2, conversation="c0")
LIMIT = UsageLimit("five_hour", 5_000.0, 10.0)


class Story:
    """A session's events, each ten seconds after the one before, and the episodes that they leave."""

    def __init__(self, **changes):
        self.session = replace(idle_session(), **changes)
        self.episodes = {}
        self.now = 100.0

    def __rshift__(self, event):
        self.now += 10.0
        before, event = self.session, replace(event, at=self.now)
        self.session, effects = advance(before, event)
        self.changed(before, event, [effect for effect in effects if isinstance(effect, RecordMessage | RecordAsk)])
        return self

    def becomes(self, *records, event=IDLE, **changes):
        """The session changes so, by whatever rule."""
        self.now += 10.0
        before, self.session = self.session, replace(self.session, **changes)
        self.changed(before, replace(event, at=self.now), records)
        return self

    def changed(self, before, event, records):
        meant = rules.follow(self.episodes.values(), before, self.session, event, records)
        assert not meant or rules.concerns(before, self.session, event, records)
        for record in meant:
            if isinstance(record, DropEpisode):
                del self.episodes[record.episode]
            else:
                assert isinstance(record, OpenEpisode)
                assert record.episode.id not in self.episodes
                self.episodes[record.episode.id] = record.episode

    def sent(self):
        self.episodes = {name: replace(episode, sent=True) for name, episode in self.episodes.items()}
        return self

    @property
    def kinds(self):
        return [episode.kind for episode in self.episodes.values()]

    @property
    def only(self):
        [episode] = self.episodes.values()
        return episode


# --- what begins and ends --------------------------------------------------------------------------------------------


def test_an_open_dialog_is_an_episode_until_it_is_answered():
    story = Story() >> ASKED
    assert (story.only.kind, story.only.since) == (Kind.ASK, 110.0)
    assert story.only.quoted == "asks for permission: Bash"
    assert (story >> WAITS).only.since == 110.0
    assert (story >> USED).kinds == []


def test_a_dialog_that_only_the_clients_state_shows_is_one_too():
    story = Story() >> WAITS
    assert (story.only.kind, story.only.quoted) == (Kind.ASK, "permission prompt")
    assert (story >> IDLE).kinds == []


def test_the_next_dialog_is_another_episode_though_no_answer_was_seen():
    story = (Story() >> ASKED).sent()
    first = story.only
    story = story >> ASKED
    assert story.only.id != first.id
    assert not story.only.sent


def opened(name, kind=AskKind.PERMISSION, tool="Bash", given='{"command": "touch x", "n": 1, "more": ["made by me"]}'):
    return ev.AskOpened(at=0, ask=name, kind=kind, tool=tool, request=AskRequest(kind, tool, given))


def test_each_thing_that_a_client_asks_is_an_episode_with_its_words_and_how_to_answer():
    story = Story() >> opened("a1")
    assert (story.only.kind, story.only.subject) == (Kind.ASK, "a1")
    assert story.only.said == "asks for permission (sm approve a1, sm deny a1)"
    assert story.only.quoted == "Bash: touch x / made by me"
    story = story >> WAITS >> opened("a2", AskKind.QUESTION, "Ask", "no JSON")
    assert [episode.quoted for episode in story.episodes.values()] == ["Bash: touch x / made by me", "Ask"]
    story = story >> ev.AskAnswered(at=0, ask="a1", decision=Decision.ALLOW)
    assert (story.only.subject, story.only.said) == ("a2", "asks a question (sm answer a2)")


def test_what_a_client_asks_takes_the_place_of_the_dialog_that_its_state_showed():
    story = Story() >> WAITS
    dialog = story.only
    story = story >> opened("a1")
    assert (story.only.subject, story.only.id == dialog.id) == ("a1", False)


def test_a_start_of_the_server_asks_nothing_again():
    story = (Story() >> opened("a1")).sent()
    kept = story.only
    story = story >> ev.ServerStarted(at=0) >> opened("a1")
    assert story.only == kept
    assert (story >> ev.AskWithdrawn(at=0, ask="a1", reason="answered in its terminal") >> USED).kinds == []


def test_work_that_waits_for_its_users_word_after_a_limit_is_asked_for():
    story = Story().becomes(limit=LIMIT).sent().becomes(limit=replace(LIMIT, asks=True))
    assert (story.only.kind, story.only.subject, story.only.sent) == (Kind.ASK, "limit", False)
    assert "sm limits --resume" in story.only.said
    assert story.becomes(limit=None, event=USED).kinds == []


def test_a_start_of_the_server_ends_nothing_and_begins_nothing():
    story = (Story() >> ASKED >> WAITS).sent()
    kept = story.only
    story = story >> ev.ServerStarted(at=0)
    assert story.session.status is Status.UNKNOWN
    assert (story >> WAITS).only == kept
    assert (story >> IDLE).kinds == []


@pytest.mark.parametrize(("status", "kind"), [(Status.BLOCKED, Kind.BLOCKED), (Status.WAITING, Kind.ASK)])
def test_what_the_clients_state_shows_lasts_while_that_is_unknown(status, kind):
    story = Story().becomes(status=status, detail="at its context limit").sent()
    kept = story.only
    assert (kept.kind, kept.quoted) == (kind, "at its context limit")
    assert story.becomes(status=Status.UNKNOWN, detail="").only == kept
    assert story.becomes(status=status, detail="").only == kept
    assert story.becomes(status=Status.UNKNOWN, event=RELAUNCHED).kinds == []


def test_a_client_that_refuses_to_continue_does_so_until_it_works():
    story = Story().becomes(status=Status.BLOCKED).sent()
    kept = story.only
    assert story.becomes(status=Status.UNKNOWN).becomes(status=Status.IDLE).only == kept  # the server starts
    assert story.becomes(status=Status.BLOCKED).only == kept
    assert (story >> USED).kinds == []
    assert Story().becomes(status=Status.BLOCKED).becomes(status=Status.CRASHED).kinds == []


def test_a_blocked_client_that_a_handoff_will_clear_needs_no_one():
    rotation = Rotation(HANDOFF, Phase.PENDING)
    assert Story().becomes(status=Status.BLOCKED, rotation=rotation).kinds == []


def test_a_failed_handoff_lasts_until_it_is_tried_again():
    story = Story().becomes(rotation=Rotation(HANDOFF, Phase.FAILED, note="the client did not clear"))
    assert (story.only.kind, story.only.said) == (Kind.ROTATION_FAILED, "the client did not clear")
    assert story.becomes(rotation=Rotation(HANDOFF, Phase.RESERVED)).kinds == []


def test_a_handoff_that_waits_for_its_user_is_one_that_failed():
    paused = Rotation(HANDOFF, Phase.PENDING, note="three handoffs without progress", paused=True)
    assert Story().becomes(rotation=paused).kinds == [Kind.ROTATION_FAILED]
    assert Story().becomes(rotation=replace(paused, phase=Phase.CANCELLED)).kinds == []


def test_the_end_of_a_limit_is_sent_to_whoever_knows_of_its_beginning():
    story = Story(config="/account").becomes(limit=LIMIT)
    assert (story.only.kind, story.only.account) == (Kind.LIMITED, "/account")
    assert story.becomes(limit=None).kinds == []
    story = Story(config="/account").becomes(limit=LIMIT).sent().becomes(limit=None, event=USED)
    assert (story.only.kind, story.only.account, story.only.said) == (Kind.RESUMED, "/account", "")
    story = Story().becomes(limit=LIMIT).sent().becomes(limit=None, event=ev.AlarmRang(at=0))
    assert (story.only.kind, story.only.said) == (Kind.RESUMED, "the limit is over")


def ended(told, name, **limit):
    """What the end of its limit means to a session that was told of it, while `told` are known of others."""
    story = Story(id=name * 8, name=name, config="/account").becomes(limit=replace(LIMIT, **limit)).sent()
    before, story.session = story.session, replace(story.session, limit=None)
    event = replace(USED, at=story.now + 10.0)
    meant = rules.follow([*story.episodes.values(), *told], before, story.session, event, ())
    return [record.episode for record in meant if isinstance(record, OpenEpisode)]


@pytest.mark.parametrize("is_sent", [False, True])
def test_the_end_of_a_limit_is_sent_once_for_all_sessions_of_an_account(is_sent):
    [first] = ended([], "a")
    told = [replace(first, sent=is_sent)]
    assert ended(told, "b") == []
    assert ended([replace(first, account="/other")], "b") != []
    assert ended(told, "b", kind="seven_day") != []
    assert ended(told, "b", since=first.since + 1.0) != []


def test_that_a_limit_is_over_is_known_while_a_session_waits_for_it():
    told = episode(1, Kind.RESUMED, account="/a", sent=True)
    waits = episode(2, Kind.LIMITED, account="/a", since=900.0)
    assert sent_episodes.settled(told, [waits]) == RecordEpisode(told)
    for other in ([], [replace(waits, account="/b")], [replace(waits, since=told.since + 1.0)]):
        assert sent_episodes.settled(told, other) == DropEpisode(told.id)
    assert not sent_episodes.is_over(replace(told, sent=False), [])


def test_a_removed_session_leaves_what_concerns_its_account_to_another_that_lives():
    mine = [episode(1, Kind.DIED), episode(2, Kind.RESUMED, account="/a", subject="five_hour", sent=True)]
    lives = replace(idle_session(), id="s9", name="b", config="/a")
    gone = (DropEpisode("e1"), DropEpisode("e2"))
    for others in [], [replace(lives, config="/b")], [replace(lives, status=Status.EXITED)]:
        assert sent_episodes.of_removed(mine, others) == gone
    taken_over = OpenEpisode(replace(mine[1], session="s9", name="b"))
    assert sent_episodes.of_removed(mine, [lives]) == (*gone, taken_over)


def test_a_limit_without_an_episode_of_its_own_ends_silently():
    assert Story(limit=LIMIT).becomes(limit=None, event=USED).kinds == []


def test_the_end_of_a_session_ends_what_lasts():
    story = Story() >> ASKED
    assert (story >> ev.SessionKilled(at=0)).kinds == []
    assert Story().becomes(limit=LIMIT).sent().becomes(limit=None, status=Status.EXITED).kinds == []


def test_a_crash_is_an_episode_until_the_session_lives_again():
    story = Story() >> ev.ClientExited(at=0, code=3, reason="panic at the disco")
    assert (story.only.kind, story.only.quoted) == (Kind.DIED, "panic at the disco")
    assert (story >> RELAUNCHED).kinds == []


def test_an_end_in_order_is_one_for_a_child_whose_task_is_not_done():
    left = ev.ClientExited(at=0, code=0)
    assert (Story() >> left).kinds == []
    assert (Story(parent="b" * 8) >> left).kinds == [Kind.DIED]
    assert (Story(parent="b" * 8, report=Report("ok", 1.0, done=True)) >> left).kinds == []


def test_a_compaction_that_came_too_late_is_one():
    assert Story().becomes(event=ev.CompactedTooLate(at=0, conversation="c0")).kinds == [Kind.TOO_LATE]


def test_a_task_is_reported_complete_once_and_a_childs_to_its_parent_only():
    done = ev.TaskCompleted(at=0, text="all tests pass")
    story = Story() >> done >> done
    assert (story.only.kind, story.only.quoted) == (Kind.FINISHED, "all tests pass")
    assert (Story(parent="b" * 8) >> done).kinds == []


@pytest.mark.parametrize("state", sorted(rules.LOST))
def test_a_message_that_did_not_arrive_is_one_and_a_cancelled_one_is_not(state):
    story = Story().becomes(RecordMessage("m1", state, "expired before delivery"))
    assert (story.only.kind, story.only.said) == (Kind.UNDELIVERED, "message m1: expired before delivery")
    assert Story().becomes(RecordMessage("m1", MessageState.FAILED, CANCELLED)).kinds == []
    assert Story().becomes(RecordMessage("m1", MessageState.CONFIRMED)).kinds == []


def test_two_messages_that_one_event_loses_are_two():
    lost = [RecordMessage(name, MessageState.EXPIRED, "expired") for name in ("m1", "m2")]
    assert Story().becomes(*lost).kinds == [Kind.UNDELIVERED, Kind.UNDELIVERED]


def test_a_tool_call_concerns_no_episode():
    session = replace(idle_session(), status=Status.WORKING)
    assert not rules.concerns(session, replace(session, last_activity=9.0), USED, ())


# --- when it is sent -------------------------------------------------------------------------------------------------

AWAY = NotifyRules()
NIGHT = NotifyRules(quiet=(22 * 60, 7 * 60))
HOUR = 3_600.0
MIDNIGHT = 20_000 * 24 * HOUR


def episode(number=1, kind=Kind.ASK, **values):
    return Episode(f"e{number}", kind, **{"session": f"s{number}", "name": f"n{number}", "since": 1_000.0, **values})


def told_of(found, set_rules=AWAY, channel="c"):
    return rules.notifications(found.ready, set_rules, channel)


def sent(found, set_rules=AWAY, channel="c"):
    return [[each.id for each in told.episodes] for told in told_of(found, set_rules, channel)]


def test_it_is_sent_after_it_has_lasted():
    found = due([episode()], AWAY, Moment(1_019.0))
    assert (sent(found), found.wait) == ([], 1.0)
    found = due([episode()], AWAY, Moment(1_020.0))
    assert (sent(found), found.seen, found.wait) == ([["e1"]], (), None)


def test_what_was_sent_is_not_sent_again():
    assert due([episode(sent=True)], AWAY, Moment(2_000.0)) == rules.Due()


def test_a_user_who_was_at_it_is_not_notified():
    found = due([episode()], AWAY, Moment(1_001.0, typed={"s1": 1_000.0}))
    assert ([each.id for each in found.seen], sent(found), found.wait) == (["e1"], [], None)


@pytest.mark.parametrize("ahead", [2.0, 3_600.0])
def test_a_key_that_was_pressed_before_the_clock_was_set_back_hides_nothing(ahead):
    moment = Moment(1_020.0, typed={"s1": 1_020.0 + ahead})
    assert sent(due([episode()], AWAY, moment)) == [["e1"]]


def test_a_user_who_may_still_look_is_notified_once_they_are_away():
    typed = {"s1": 990.0}
    found = due([episode()], AWAY, Moment(1_050.0, typed=typed))
    assert (sent(found), found.seen, found.wait) == ([], (), 60.0)
    assert sent(due([episode()], AWAY, Moment(1_110.0, typed=typed))) == [["e1"]]


def test_a_terminal_that_shows_another_session_holds_nothing():
    assert sent(due([episode()], AWAY, Moment(1_050.0, typed={"s2": 1_049.0}))) == [["e1"]]


def test_episodes_of_one_kind_in_one_session_are_one_notification():
    lost = [episode(1, Kind.UNDELIVERED), episode(2, Kind.UNDELIVERED, session="s1"), episode(3)]
    assert sent(due(lost, AWAY, Moment(1_100.0))) == [["e1", "e2"], ["e3"]]


def test_a_limit_is_sent_once_for_all_sessions_of_an_account():
    limits = [episode(number, Kind.LIMITED, account="/a") for number in (1, 2)]
    other = episode(3, Kind.LIMITED, account="/b")
    assert sent(due([*limits, other], AWAY, Moment(1_100.0))) == [["e1", "e2"], ["e3"]]
    later = episode(4, Kind.LIMITED, account="/a", since=1_090.0)
    told = [replace(each, sent=True) for each in limits]
    found = due([*told, later, other], AWAY, Moment(1_100.0))
    assert ([each.id for each in found.seen], sent(found)) == (["e4"], [["e3"]])
    assert due([replace(told[0], pending=("command",)), later], AWAY, Moment(1_100.0)).seen == ()


def test_many_at_one_moment_are_one_notification():
    many = [episode(number) for number in range(rules.MAX_AT_ONCE + 1)]
    assert len(sent(due(many[1:], AWAY, Moment(1_100.0)))) == rules.MAX_AT_ONCE
    [told] = told_of(due(many, AWAY, Moment(1_100.0)))
    assert (told.title, told.text.count("\n")) == ("sm: 4 notifications", 3)


def test_a_digest_waits_for_its_time_and_is_one_notification():
    hourly = NotifyRules(digest=HOUR)
    assert sent(due([episode()], hourly, Moment(1_100.0))) == [["e1"]]
    found = due([episode(1), episode(2)], hourly, Moment(2_000.0, last_sent=1_000.0))
    assert (sent(found), found.wait) == ([], 2_600.0)
    assert sent(due([episode(1), episode(2)], hourly, Moment(4_600.0, last_sent=1_000.0)), hourly) == [["e1", "e2"]]


def test_quiet_hours_hold_what_is_still_open_at_their_end():
    late = episode(since=MIDNIGHT - 2 * HOUR)
    found = due([late], NIGHT, Moment(MIDNIGHT - HOUR))
    assert (sent(found), found.wait) == ([], 8 * HOUR)
    assert sent(due([late], NIGHT, Moment(MIDNIGHT + 7 * HOUR))) == [["e1"]]
    assert sent(due([late], NIGHT, Moment(MIDNIGHT, local_offset=9 * HOUR))) == [["e1"]]


@pytest.mark.parametrize(
    ("quiet", "hour", "left"),
    [
        (None, 3, 0), ((22, 7), 21.5, 0), ((22, 7), 22, 9), ((22, 7), 0, 7), ((22, 7), 6.5, 0.5), ((22, 7), 7, 0),
        ((9, 17), 8, 0), ((9, 17), 9, 8), ((9, 17), 17, 0), ((9, 9), 9, 0),
    ],
)  # fmt: skip
def test_quiet_hours_may_span_midnight(quiet, hour, left):
    minutes = None if quiet is None else (quiet[0] * 60, quiet[1] * 60)
    assert quiet_for(minutes, MIDNIGHT + hour * HOUR) == left * HOUR


@given(st.integers(0, 1439), st.integers(0, 1439), st.floats(0, 86_400))
def test_a_quiet_time_ends_within_a_day_and_then_is_over(start, end, local):
    left = quiet_for((start, end), MIDNIGHT + local)
    assert 0 <= left <= 24 * HOUR
    assert quiet_for((start, end), MIDNIGHT + local + left + 0.001) == 0 or left == 0


@given(st.lists(st.sampled_from(["look", "type", "ask", "answer"]), max_size=30), st.booleans())
def test_no_episode_is_sent_twice_and_none_that_is_over(steps, digest):
    """Looks, keys, dialogs and answers in any order, ten seconds apart."""
    story, typed, told, set_rules = Story(), {}, [], NotifyRules(digest=45.0 if digest else 0.0)
    last = None
    for step in steps:
        story.now += 10.0
        if step == "type":
            typed = {story.session.id: story.now}
        elif step == "look":
            found = due(story.episodes.values(), set_rules, Moment(story.now, last_sent=last, typed=typed))
            now_sent = [each for one in told_of(found, set_rules) for each in one.episodes]
            last = story.now if now_sent else last
            told += [each.id for each in now_sent]
            assert all(each.id in story.episodes and not each.sent for each in now_sent)
            for each in (*now_sent, *found.seen):
                story.episodes[each.id] = replace(each, sent=True)
        else:
            story = story >> (ASKED if step == "ask" else USED)
    assert len(told) == len(set(told))


# --- a channel that fails --------------------------------------------------------------------------------------------


def test_a_channel_that_fails_is_tried_again_at_growing_intervals_and_then_given_up():
    found, now, gaps = episode(sent=True), 2_000.0, []
    while (again := sent_episodes.after_failure(found, ("command",), now)).pending and again != found:
        assert due([again], AWAY, Moment(again.retry_at - 1)) == rules.Due(wait=1.0)
        assert due([again], AWAY, Moment(again.retry_at)).ready == (again,)
        gaps.append(again.retry_at - now)
        now, found = again.retry_at, replace(again, pending=())
    assert tuple(gaps) == sent_episodes.RETRIES_S
    assert RecordEpisode(found).episode.pending == ()


def test_no_time_that_lies_ahead_is_waited_for():
    behind = episode(since=1_000.0, tries=2, retry_at=1_200.0, sent=True, pending=("command",))
    assert sent_episodes.not_ahead(behind, 1_100.0) is behind
    ahead = sent_episodes.not_ahead(behind, 500.0)
    assert (ahead.since, ahead.retry_at) == (500.0, 500.0)
    assert due([sent_episodes.not_ahead(episode(), 500.0)], AWAY, Moment(500.0)).wait == AWAY.after
    assert due([ahead], AWAY, Moment(500.0)).wait == AWAY.after


FAILED = {"sent": True, "pending": ("command",), "tries": 1, "retry_at": 1_050.0}


def test_what_failed_is_tried_again_by_that_channel_alone():
    found = due([episode(1, **FAILED), episode(2)], AWAY, Moment(1_100.0))
    assert (sent(found, channel="command"), sent(found, channel="url")) == ([["e1"], ["e2"]], [["e2"]])


def test_what_failed_waits_for_the_end_of_the_quiet_hours_too():
    failed = episode(**{**FAILED, "since": MIDNIGHT - 2 * HOUR, "retry_at": MIDNIGHT})
    assert due([failed], NIGHT, Moment(MIDNIGHT)) == rules.Due(wait=7 * HOUR)
    assert due([failed], NIGHT, Moment(MIDNIGHT + 7 * HOUR)).ready == (failed,)


def test_what_failed_is_collected_in_the_digest_too():
    hourly, failed = NotifyRules(digest=HOUR), episode(**FAILED)
    assert due([failed], hourly, Moment(1_100.0, last_sent=1_050.0)).ready == ()
    found = due([failed, episode(2)], hourly, Moment(4_650.0, last_sent=1_050.0))
    assert sent(found, hourly, "command") == [["e1", "e2"]]


def test_many_that_failed_are_one_notification_again():
    many = [episode(number, **FAILED) for number in range(12)]
    assert len(sent(due(many, AWAY, Moment(1_100.0)), channel="command")) == 1


def test_a_user_who_was_at_what_failed_is_not_notified_again():
    failed = episode(**FAILED)
    assert due([failed], AWAY, Moment(1_100.0, typed={"s1": 1_000.0})).seen == (failed,)
