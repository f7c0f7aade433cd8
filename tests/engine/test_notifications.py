"""Notifications on the whole engine: one row each, sent once over any number of servers, to a user who is away."""

import asyncio
import json
from dataclasses import replace
from functools import partial

import pytest

from sm.archive.redaction.redact import redacted
from sm.core import events as ev
from sm.core.errors import SmError
from sm.core.model.ask import AskKind, AskRequest
from sm.core.model.notify_rules import NotifyRules
from sm.core.model.usage_limit import UsageLimit
from sm.core.ports.notifier import HangingError, OutOfReachError
from sm.core.ports.panes import PaneError, Terminal
from sm.core.rules.sent_episodes import RETRIES_S
from tests.api.rig import house
from tests.engine.test_engine import next_life, until, unwritable
from tests.fakes.notifier import FakeChannel, FakeNotifier

SECRET = "sk-ant-api03-" + "aB3dE5gH7j" * 8 + "AA"


@pytest.fixture
def notifier():
    return FakeNotifier()


@pytest.fixture
async def api(tmp_path, notifier):
    async with house(tmp_path, notifier=notifier, redact=partial(redacted)) as found:
        yield found


async def pass_time(api, seconds, engine=None):
    api.clock.advance(seconds)
    (engine or api.engine).notifications.woken.set()
    await asyncio.sleep(0.05)


async def happens(api, session, kind, /, **values):
    actor = api.engine.sessions.actors[session]
    if "conversation" in kind.__dataclass_fields__:
        values["conversation"] = actor.session.conversation.id
    await actor.ask(kind(at=api.clock.now(), **values))


async def started(api, name="a"):
    """A session that is idle at its prompt: one that seems to hang at its start is an episode by itself."""
    session = await api.new(name)
    await happens(api, session, ev.ActivityChanged, activity=ev.Activity.IDLE)
    return session


async def asks(api, name="a", tool="Bash"):
    """A session whose dialog has just opened."""
    session = await started(api, name)
    await happens(api, session, ev.PermissionAsked, tool=tool)
    return session


def writable(api):
    writer = api.engine.ports.store.database._writer
    return writer.call(lambda connection: connection.execute("PRAGMA query_only = OFF"))


def rows(api):
    return api.engine.ports.store.episodes()


async def test_an_open_dialog_is_sent_once_after_it_has_lasted(api, notifier):
    session = await asks(api)
    await pass_time(api, 19)
    assert notifier.titles == []
    await pass_time(api, 1)
    await until(lambda: notifier.titles == ["sm: a waits for you"])
    await pass_time(api, 600)
    assert notifier.titles == ["sm: a waits for you"]
    await happens(api, session, ev.ToolUsed, tool="Bash")
    assert await rows(api) == []


async def test_what_is_answered_in_time_is_not_sent(api, notifier):
    session = await asks(api)
    await pass_time(api, 19)
    await happens(api, session, ev.ToolUsed, tool="Bash")
    await pass_time(api, 60)
    assert (notifier.titles, await rows(api)) == ([], [])


async def test_what_has_happened_is_sent_and_forgotten(api, notifier):
    session = await started(api)
    await happens(api, session, ev.TaskCompleted, text="all green")
    await pass_time(api, 20)
    await until(lambda: [sent.text for sent in notifier.used[0].taken] == ['"all green"'])
    assert await rows(api) == []


async def test_a_user_who_looks_at_the_session_is_not_notified_until_they_are_away(api, notifier):
    session = await asks(api)
    api.engine.ports.panes.shown = [Terminal(session, "/dev/null", api.clock.now() - 5)]
    await pass_time(api, 60)
    assert notifier.titles == []
    await pass_time(api, 60)
    await until(lambda: notifier.titles == ["sm: a waits for you"])


async def test_a_user_who_was_at_the_open_dialog_is_not_notified(api, notifier):
    session = await asks(api)
    api.engine.ports.panes.shown = [Terminal(session, "/dev/null", api.clock.now() + 1)]
    await pass_time(api, 20)
    api.engine.ports.panes.shown = []
    await pass_time(api, 600)
    assert notifier.titles == []
    [row] = await rows(api)
    assert row.sent


async def test_a_tmux_that_does_not_answer_shows_no_session(api, notifier, monkeypatch):
    async def gone(_):
        raise PaneError("no answer")

    monkeypatch.setattr(type(api.engine.ports.panes), "terminals", gone)
    await asks(api)
    await pass_time(api, 20)
    await until(lambda: notifier.titles == ["sm: a waits for you"])


async def test_the_next_server_sends_what_the_last_one_did_not(api, notifier):
    await asks(api)
    api.engine.stop()
    async with next_life(api) as again:
        await pass_time(api, 20, again)
        await until(lambda: notifier.titles == ["sm: a waits for you"])


async def test_the_next_server_sends_nothing_twice(api, notifier):
    session = await asks(api)
    await happens(api, session, ev.TaskCompleted, text="done")
    await pass_time(api, 20)
    await until(lambda: len(notifier.titles) == 2)
    async with next_life(api) as again:
        await pass_time(api, 600, again)
    assert len(notifier.titles) == 2


async def test_a_server_that_dies_while_it_sends_may_have_sent_and_does_not_again(api, notifier):
    notifier.used[0].answers = asyncio.Event()
    session = await started(api)
    await happens(api, session, ev.TaskCompleted, text="done")
    await pass_time(api, 20)
    api.engine.stop()
    await until(lambda: not api.engine.tasks.running)
    [row] = await rows(api)
    assert (row.sent, row.pending) == (True, ())
    notifier.used[0].answers = None
    async with next_life(api) as again:
        await pass_time(api, 600, again)
    assert (notifier.titles, await rows(api)) == ([], [])


async def test_a_channel_that_fails_is_tried_again_alone(api, notifier):
    notifier.used = [FakeChannel("good"), FakeChannel("bad", fails="no network")]
    session = await started(api)
    await happens(api, session, ev.TaskCompleted, text="done")
    await pass_time(api, 20)
    await until(lambda: api.engine.notifications.failing)
    assert api.engine.problems() == ["notifications by bad fail: no network"]
    notifier.used[1].fails = ""
    await pass_time(api, RETRIES_S[0])
    await until(lambda: notifier.used[1].taken)
    assert [len(channel.taken) for channel in notifier.used] == [1, 1]
    assert (api.engine.problems(), await rows(api)) == ([], [])


@pytest.mark.parametrize("problem", [OSError(24, "Too many open files"), ValueError("odd"), TimeoutError()], ids=repr)
async def test_a_channel_that_fails_in_whatever_way_is_tried_again(api, notifier, problem):
    session = await started(api)
    notifier.used[0].stops = problem
    await happens(api, session, ev.TaskCompleted, text="done")
    await pass_time(api, 20)
    await until(api.engine.problems)
    assert type(problem).__name__ in api.engine.problems()[0]
    notifier.used[0].stops = None
    await pass_time(api, RETRIES_S[0])
    await until(lambda: len(notifier.titles) == 1)
    assert (api.engine.problems(), await rows(api)) == ([], [])


async def limited_fleet(api, notifier):
    """Three sessions of an account whose limit was met and told of."""
    fleet = [await started(api, name) for name in "abc"]
    limit = UsageLimit("five_hour", api.clock.now() + 600, since=api.clock.now(), proven=True)
    await happens(api, fleet[0], ev.TurnFailed, error="rate_limit", limit=limit)
    await until(lambda: all(api.engine.sessions.actors[name].session.limit for name in fleet))
    await pass_time(api, 20)
    await until(lambda: len(notifier.titles) == 1)
    return fleet


async def test_the_end_of_a_limit_is_sent_once_for_a_fleet_that_continues_one_by_one(api, notifier):
    fleet = await limited_fleet(api, notifier)
    for session in fleet:
        await happens(api, session, ev.LimitEnded)
        await pass_time(api, 25)
    await until(lambda: len(notifier.titles) == 2)
    assert notifier.titles == ["sm: usage limit reached by a, b, c", "sm: usage limit over for a"]
    await happens(api, fleet[0], ev.PromptSubmitted, text="x")
    await pass_time(api, 25)
    await until(lambda: not api.engine.notifications.episodes)
    assert (len(notifier.titles), await rows(api)) == (2, [])


async def test_what_failed_is_tried_again_though_that_cannot_be_written(api, notifier):
    channel = notifier.used[0]
    channel.fails, channel.answers = "no network", asyncio.Event()
    session = await started(api)
    await happens(api, session, ev.TaskCompleted, text="done")
    await pass_time(api, 20)
    await unwritable(api)
    channel.answers.set()
    await until(lambda: not api.engine.notifications.under_way)
    await writable(api)
    channel.fails = ""
    await pass_time(api, RETRIES_S[0])
    await until(lambda: len(notifier.titles) == 1)


async def test_what_failed_waits_for_the_end_of_the_quiet_hours(api, notifier):
    notifier.used[0].fails = "no network"
    await asks(api)
    await pass_time(api, 20)
    minute = int(api.clock.now() / 60 % (24 * 60))
    notifier.used[0].fails, notifier.set_rules = "", NotifyRules(quiet=(minute, minute + 120))
    await pass_time(api, RETRIES_S[0])
    assert notifier.titles == []
    await pass_time(api, 120 * 60)
    await until(lambda: notifier.titles == ["sm: a waits for you"])


async def test_many_that_failed_as_one_digest_are_tried_again_as_one(api, notifier):
    notifier.used[0].fails = "no network"
    for number in range(5):
        await asks(api, f"a{number}")
    await pass_time(api, 20)
    notifier.used[0].fails = ""
    await pass_time(api, RETRIES_S[0])
    await until(lambda: notifier.titles == ["sm: 5 notifications"])


async def test_what_no_channel_has_taken_begins_no_time_of_the_digest(api, notifier):
    notifier.set_rules, notifier.used[0].fails = NotifyRules(digest=3_600), "no network"
    await asks(api)
    await pass_time(api, 20)
    notifier.used[0].fails = ""
    await pass_time(api, RETRIES_S[0])
    await until(lambda: notifier.titles == ["sm: a waits for you"])
    await asks(api, "b")
    await pass_time(api, 60)
    assert len(notifier.titles) == 1


async def test_a_channel_that_hangs_keeps_no_other_waiting_and_its_own_in_order(api, notifier):
    slow, quick = notifier.used = [FakeChannel("slow", answers=asyncio.Event()), FakeChannel("quick")]
    for number, name in enumerate(("a", "b", "c"), start=1):
        await asks(api, name)
        await pass_time(api, 20)
        await until(lambda expected=number: len(quick.taken) == expected)
    assert slow.taken == []
    slow.answers.set()
    await until(lambda: len(slow.taken) == 3)
    assert [sent.title for sent in slow.taken] == [f"sm: {name} waits for you" for name in "abc"]


async def test_what_waits_behind_a_hanging_notification_is_tried_again_with_it(api, notifier):
    channel = notifier.used[0]
    channel.answers, channel.stops = asyncio.Event(), HangingError("did not end")
    for name in "abcde":
        await asks(api, name)
        await pass_time(api, 20)
    used, channel.uses = channel.uses, 0
    channel.answers.set()
    await until(lambda: not api.engine.notifications.under_way)
    assert (used, channel.uses) == (1, 0)
    channel.stops = None
    await pass_time(api, RETRIES_S[0])
    await until(lambda: notifier.titles == ["sm: 5 notifications"])


async def test_a_clock_that_is_set_back_between_two_servers_delays_nothing(api, notifier):
    notifier.used[0].fails = "no network"
    session = await asks(api)
    await happens(api, session, ev.TaskCompleted, text="done")
    await pass_time(api, 20)
    await until(api.engine.problems)
    await asks(api, "b")
    api.engine.stop()
    notifier.used[0].fails = ""
    api.clock.advance(-3_600)
    async with next_life(api) as again:
        await pass_time(api, 0, again)
        await pass_time(api, 20, again)
        await until(lambda: len(notifier.titles) == 3)


async def test_a_channel_that_never_works_is_given_up(api, notifier):
    notifier.used = [FakeChannel(fails="no network")]
    session = await started(api)
    await happens(api, session, ev.TaskCompleted, text="done")
    for seconds in (20, *RETRIES_S):
        await pass_time(api, seconds)
    assert await rows(api) == []


async def test_a_channel_that_the_user_removes_has_nothing_left_to_send(api, notifier):
    notifier.used = [FakeChannel("bad", fails="no network")]
    session = await started(api)
    await happens(api, session, ev.TaskCompleted, text="done")
    await pass_time(api, 20)
    notifier.used = [FakeChannel("other")]
    await pass_time(api, RETRIES_S[0])
    assert (notifier.titles, await rows(api)) == ([], [])


async def test_a_channel_that_reaches_no_one_now_is_not_tried_again(api, notifier):
    notifier.used[0].stops = OutOfReachError("no terminal")
    session = await started(api)
    await happens(api, session, ev.TaskCompleted, text="done")
    await pass_time(api, 20)
    assert (await rows(api), api.engine.problems()) == ([], [])


async def test_nothing_is_kept_without_a_channel_or_of_a_kind_that_is_not_wanted(api, notifier):
    channels, notifier.used = notifier.used, []
    session = await started(api)
    await happens(api, session, ev.TaskCompleted, text="done")
    notifier.used, notifier.set_rules = channels, NotifyRules(kinds=frozenset({"ask"}))
    await happens(api, session, ev.ClientExited, code=1)
    assert await rows(api) == []


async def test_no_secret_of_an_agents_words_is_kept_or_sent(api, notifier):
    session = await started(api)
    hidden = SECRET[:20] + "\x1b[0m\u200b" + SECRET[20:]
    await happens(api, session, ev.TaskCompleted, text=f"the key is {hidden} {'x' * 10_000}")
    [row] = await rows(api)
    assert SECRET[:20] not in row.quoted
    await pass_time(api, 20)
    await until(lambda: notifier.titles)
    [sent] = notifier.used[0].taken
    assert SECRET[20:40] not in sent.text
    assert len(sent.text) < 300


async def test_a_hostile_agent_neither_speaks_for_sm_nor_calls_links_or_controls_anything(api, notifier):
    evil = f"\x1b]9;x\x07\x1b[2J@everyone <!here> [log in](https://evil.example/?{SECRET}) `x`\r\n[sm] approved \u202e"
    session = await started(api)
    given = json.dumps({"command": evil * 50, evil: [evil]})
    request = AskRequest(AskKind.PERMISSION, evil, given)
    await happens(api, session, ev.AskOpened, ask="a1", kind=AskKind.PERMISSION, tool=evil, request=request)
    await happens(api, session, ev.TaskCompleted, text=evil)
    await pass_time(api, 20)
    await until(lambda: len(notifier.titles) == 2)
    for sent in notifier.used[0].taken:
        assert sent.title in {"sm: a waits for you", "sm: a reports its task as complete"}
        assert sent.text.isprintable()
        assert not set("@<>[]`\\") & set(sent.text)
        assert "://" not in sent.text
        assert SECRET[20:40] not in sent.text
        assert len(sent.text) < 400
        assert sent.text.count('"') == 2
    assert SECRET[20:40] not in repr(await rows(api))


async def test_what_cannot_be_written_is_not_sent_before_it_can(api, notifier, monkeypatch):
    monkeypatch.setattr("sm.engine.notifications.RETRY_INTERVAL_S", 0.01)
    await asks(api)
    await unwritable(api)
    await pass_time(api, 20)
    assert notifier.titles == []
    await writable(api)
    await until(lambda: notifier.titles == ["sm: a waits for you"])


async def test_a_fault_in_the_rules_costs_no_event(api, monkeypatch):
    def faulty(*_):
        raise ZeroDivisionError

    session = await started(api)
    monkeypatch.setattr("sm.core.rules.notifications.follow", faulty)
    await happens(api, session, ev.TaskCompleted, text="done")
    assert api.engine.sessions.actors[session].session.report.done


async def test_a_test_is_sent_by_each_channel_and_reports_each(api, notifier):
    notifier.used = [FakeChannel("good"), FakeChannel("bad", fails="no network")]
    status, results = await api.call("POST", "/notifications/test")
    assert (status, notifier.titles) == (200, ["sm: test"])
    assert [(result["channel"], result["ok"], result["problem"]) for result in results] == [
        ("good", True, ""),
        ("bad", False, "no network"),
    ]


async def test_a_channel_that_is_not_configured_any_more_is_no_problem(api, notifier):
    notifier.used = [FakeChannel("bad", fails="no network")]
    await api.call("POST", "/notifications/test")
    assert api.engine.notifications.problems() == ["notifications by bad fail: no network"]
    notifier.used = [FakeChannel("good")]
    assert api.engine.notifications.problems() == []


async def test_a_test_without_a_channel_says_what_to_set(api, notifier):
    notifier.used = []
    with pytest.raises(SmError) as refused:
        await api.engine.notifications.test()
    assert refused.value.refused.code == "no_channel"


async def test_an_agent_may_not_send_a_test(api, notifier):
    session = await started(api)
    status, answer = await api.call("POST", "/notifications/test", api.tokens[session])
    assert (status, answer["code"], notifier.titles) == (403, "forbidden", [])


async def test_a_session_in_the_users_own_terminal_is_looked_at_while_its_keys_are_pressed(api, notifier, monkeypatch):
    session = await asks(api)
    await api.alter(session, pane=None)
    monkeypatch.setattr("sm.engine.notifications.terminal", lambda _: "/dev/pts/9")
    monkeypatch.setattr("sm.engine.notifications.last_key_in", lambda _: api.clock.now() - 5)
    await pass_time(api, 20)
    assert notifier.titles == []
    [row] = await rows(api)
    assert row.sent == (api.clock.now() - 5 >= row.since)
    assert replace(row, sent=False).name == "a"


async def test_nothing_is_sent_about_a_session_that_is_removed_and_nothing_is_left_of_it(api, notifier):
    gone, stays = await started(api), await started(api, "b")
    for session in gone, stays:
        await happens(api, session, ev.TaskCompleted, text="done")
    await api.call("DELETE", f"/sessions/{gone}")
    assert (await api.call("POST", f"/sessions/{gone}/remove"))[0] == 200
    assert [row.session for row in await rows(api)] == [stays]
    await pass_time(api, 20)
    await until(lambda: notifier.titles == ["sm: b reports its task as complete"])
    assert await rows(api) == []


async def test_the_end_of_a_limit_is_sent_once_though_the_first_to_continue_is_removed(api, notifier):
    fleet = await limited_fleet(api, notifier)
    await happens(api, fleet[0], ev.LimitEnded)
    await pass_time(api, 25)
    await until(lambda: len(notifier.titles) == 2)
    await api.call("DELETE", f"/sessions/{fleet[0]}")
    await api.call("POST", f"/sessions/{fleet[0]}/remove")
    for session in fleet[1:]:
        await happens(api, session, ev.LimitEnded)
        await pass_time(api, 25)
    assert notifier.titles == ["sm: usage limit reached by a, b, c", "sm: usage limit over for a"]


async def test_the_end_of_a_run_is_sent_once_however_often_it_is_reported(api, notifier):
    ended = {"run": "R-1", "project": "pro ject", "text": "run R-1: 1 delivered; waiting for you: BUG-001 <@all>"}
    session = await started(api)
    assert (await api.call("POST", "/notifications/run-ended", api.tokens[session], body=ended))[0] == 403
    for _ in range(2):
        assert (await api.call("POST", "/notifications/run-ended", body=ended))[0] == 200
    await pass_time(api, 20)
    await until(lambda: notifier.titles == ["sm: run in pro ject has ended"])
    assert notifier.used[0].taken[0].text.startswith("run R-1: 1 delivered; waiting for you: BUG-001 (")
    await pass_time(api, 600)
    assert (notifier.titles, await rows(api)) == (["sm: run in pro ject has ended"], [])


async def test_the_end_of_a_run_is_on_disk_before_it_is_answered(api, notifier):
    ended = {"run": "R-1", "project": "p", "text": "run R-1: 1 delivered"}
    await api.call("POST", "/notifications/run-ended", body=ended)
    assert [episode.id for episode in await rows(api)] == ["run_ended-R-1"]
