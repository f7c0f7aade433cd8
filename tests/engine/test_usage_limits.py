"""Who is left alone at a usage limit, and when each session of the account continues after it."""

from dataclasses import dataclass, field, replace

import pytest

from sm.core import events as ev
from sm.core.errors import SmError
from sm.core.model.rotation import Phase, Rotation
from sm.core.model.session import Status
from sm.core.model.usage_limit import ResumeRules, UsageLimit, UsedShare
from sm.engine.usage_limits import CLOCK_CHECK_INTERVAL_S, RETRY_INTERVAL_S, UsageLimits
from tests.core.playbook import HANDOFF, advance, idle_session
from tests.fakes.clock import FakeClock

NOW = 1_770_014_730.0
RESETS = NOW + 3_600
MET = UsageLimit("five_hour", RESETS, NOW, transcript="/t0", proven=True)
ACCOUNT = ("claude", "/c")


class FakeActor:
    """Takes each event at once."""

    def __init__(self, session):
        self.session, self.events, self.broken = session, [], False

    def put(self, event):
        self.events.append(event)
        self.session, _ = advance(self.session, event)

    async def ask(self, event):
        if self.broken:
            raise ValueError("a rule that fails")
        self.put(event)


class FakeSessions:
    def __init__(self):
        self.actors = {}

    def actor(self, session):
        return self.actors[session]

    def all(self):
        return [actor.session for actor in self.actors.values()]


class FakeProvider:
    cancelled = False
    continued = False

    def answered(self, transcript):
        return self.continued

    def wait_cancelled(self, transcript):
        return self.cancelled

    def task(self, transcript):
        return f"the task in {transcript}"


@dataclass
class FakePolicies:
    rules: ResumeRules = field(default_factory=ResumeRules)

    def resume_rules(self):
        return self.rules


@dataclass
class Fleet:
    clock: FakeClock = field(default_factory=FakeClock)
    policies: FakePolicies = field(default_factory=FakePolicies)
    sessions: FakeSessions = field(default_factory=FakeSessions)

    def __post_init__(self):
        self.limits = UsageLimits(self.sessions, self.clock, {"claude": FakeProvider()}, self.policies)

    def add(self, name, **changes):
        actor = self.sessions.actors[name] = FakeActor(replace(idle_session(), id=name, name=name, **changes))
        return actor

    def happens(self, name, event):
        """Let a session take an event, and the service hear of it."""
        actor = self.sessions.actors[name]
        before = actor.session
        actor.put(event)
        self.limits.follow(before, actor.session, event)

    def meets(self, name, limit=MET):
        self.happens(name, ev.TurnFailed(at=self.clock.now(), conversation="c0", error="rate_limit", limit=limit))

    async def after(self, seconds):
        """Return the names of those whose limit ends within one look then, in order, and the pause that follows."""
        self.clock.advance(seconds)
        before = {name: actor.session.limit for name, actor in self.sessions.actors.items()}
        pause = await self.limits._end_due()
        ended = [name for name, limit in before.items() if limit and self.sessions.actors[name].session.limit is None]
        return ended, pause

    def woken(self, name):
        return [event for event in self.sessions.actors[name].events if isinstance(event, ev.LimitEnded)]


@pytest.fixture
def fleet():
    return Fleet()


def test_what_one_session_meets_is_shared_with_its_account(fleet):
    fleet.add("a")
    near, far = fleet.add("b"), fleet.add("c", config="/other")
    gone = fleet.add("d", status=Status.EXITED)
    fleet.meets("a")
    assert [event.limit.kind for event in near.events] == ["five_hour"]
    assert (far.events, gone.events) == ([], [])


def test_the_limit_of_a_model_is_shared_with_sessions_of_that_model(fleet):
    fleet.add("a", model="opus")
    same, other = fleet.add("b", model="opus"), fleet.add("c", model="haiku")
    fleet.meets("a", replace(MET, kind="model"))
    assert (len(same.events), other.events) == (1, [])


def test_a_session_that_is_started_during_it_is_left_alone(fleet):
    fleet.add("a")
    fleet.meets("a")
    late = fleet.add("b")
    launched = ev.SessionLaunched(at=NOW, pane="%2", pid=2, conversation="c0", config="/c")
    fleet.happens("b", launched)
    assert late.session.limit is not None
    fleet.clock.advance(3_601)
    fleet.add("c")
    fleet.happens("c", launched)
    assert fleet.sessions.actors["c"].session.limit is None


async def test_each_is_woken_after_the_clients_patience_one_after_the_other(fleet):
    fleet.add("a")
    fleet.add("b")
    fleet.meets("a")
    fleet.clock.advance(1)
    fleet.meets("b", replace(MET, since=NOW + 1))
    assert await fleet.after(3_598) == ([], CLOCK_CHECK_INTERVAL_S)
    assert await fleet.after(180) == ([], pytest.approx(1.0))
    assert await fleet.after(1) == (["a"], 20.0)
    assert await fleet.after(19) == ([], 1.0)
    assert (await fleet.after(1))[0] == ["b"]
    assert [event.text for event in fleet.woken("b")] == ["the task in /t0"]
    assert len(fleet.woken("a")) == 1


async def test_sessions_with_nothing_to_do_are_free_at_once(fleet):
    fleet.add("a")
    fleet.add("b")
    fleet.add("c")
    fleet.add("d", rotation=Rotation(HANDOFF, phase=Phase.PENDING))
    fleet.meets("a")
    assert (await fleet.after(3_600 + 180))[0] == ["a", "b", "c"]
    assert (await fleet.after(20))[0] == ["d"]
    assert not any(event.resumes for event in fleet.woken("b"))


async def test_another_account_does_not_wait_for_its_turn(fleet):
    fleet.add("a")
    fleet.add("b", config="/other")
    fleet.meets("a")
    fleet.meets("b")
    assert (await fleet.after(3_780))[0] == ["a", "b"]


@pytest.mark.parametrize("status", [Status.UNKNOWN, Status.STARTING, Status.WAITING])
async def test_a_client_that_is_not_ready_is_waited_for(fleet, status):
    actor = fleet.add("a")
    fleet.meets("a")
    actor.session = replace(actor.session, status=status)
    assert await fleet.after(3_780) == ([], RETRY_INTERVAL_S)
    actor.session = replace(actor.session, status=Status.IDLE)
    assert (await fleet.after(1))[0] == ["a"]


async def test_a_client_at_work_of_which_no_hook_has_told_is_waited_for(fleet):
    actor = fleet.add("a")
    fleet.meets("a")
    actor.session = replace(actor.session, status=Status.WORKING)
    assert await fleet.after(3_780) == ([], RETRY_INTERVAL_S)
    fleet.happens("a", ev.TurnEnded(at=fleet.clock.now(), conversation="c0"))
    await fleet.after(1)
    assert (actor.session.limit, fleet.woken("a")) == (None, [])


async def test_what_was_continued_while_no_server_ran_is_not_continued_again(fleet):
    fleet.limits.providers["claude"].continued = True
    fleet.add("a")
    fleet.meets("a")
    assert (await fleet.after(3_780))[0] == ["a"]
    assert [event.resumes for event in fleet.woken("a")] == [False]


async def test_an_ended_session_is_woken_once_it_is_restored(fleet):
    actor = fleet.add("a")
    fleet.meets("a")
    actor.session = replace(actor.session, status=Status.EXITED)
    assert (await fleet.after(7_200))[0] == []
    actor.session = replace(actor.session, status=Status.IDLE)
    assert (await fleet.after(1))[0] == ["a"]


async def test_the_user_is_asked_once(fleet):
    fleet.policies.rules = ResumeRules("ask", 180.0, 20.0)
    actor = fleet.add("a")
    other = fleet.add("b")
    fleet.meets("a")
    assert (await fleet.after(3_780))[0] == ["b"]
    assert (await fleet.after(100))[0] == []
    assert [type(event) for event in actor.events if not isinstance(event, ev.TurnFailed)] == [ev.ResumeAsked]
    assert actor.session.shown_status is Status.LIMITED
    await fleet.limits.resume("a")
    assert fleet.woken("a")[-1].resumes
    assert not fleet.woken("b")[-1].resumes
    assert other.session.limit is None


async def test_whoever_has_ended_the_clients_wait_is_asked_at_the_reset(fleet):
    fleet.limits.providers["claude"].cancelled = True
    actor = fleet.add("a")
    fleet.meets("a")
    assert (await fleet.after(3_599))[0] == []
    assert not actor.session.limit.asks
    assert (await fleet.after(1))[0] == []
    assert actor.session.limit.asks


@pytest.mark.parametrize(
    ("resume", "adopted", "after"), [("off", False, 3_780), ("auto", True, 3_780), ("auto", False, 100_000)]
)
async def test_some_are_not_woken(fleet, resume, adopted, after):
    fleet.policies.rules = ResumeRules(resume, 180.0, 20.0)
    fleet.add("a", adopted=adopted)
    fleet.meets("a")
    assert (await fleet.after(after))[0] == ["a"]
    assert [event.resumes for event in fleet.woken("a")] == [False]


async def test_an_account_that_is_answered_before_the_reset_is_free(fleet):
    for name in "abc":
        fleet.add(name)
    fleet.meets("a")
    fleet.meets("b")
    fleet.clock.advance(60)
    fleet.happens("a", ev.PromptSubmitted(at=fleet.clock.now(), conversation="c0", text="I have bought more"))
    assert (await fleet.after(1))[0] == []
    fleet.happens("a", ev.TurnEnded(at=fleet.clock.now(), conversation="c0"))
    assert fleet.limits.limit_of(ACCOUNT) is None
    assert (await fleet.after(1))[0] == ["b", "c"]
    assert fleet.woken("b")[0].resumes


async def test_the_exact_end_is_taken_from_what_the_clients_report(fleet):
    fleet.add("a")
    b = fleet.add("b")
    fleet.meets("a", replace(MET, kind="usage", resets_at=None))
    fleet.limits.reported(b.session, [UsedShare("five_hour", 100.0, RESETS)], by_client=True)
    assert {actor.session.limit.resets_at for actor in fleet.sessions.actors.values()} == {RESETS}
    fleet.limits.reported(b.session, [UsedShare("seven_day", 40.0, RESETS + 9)], by_client=True)
    assert {share.percent for share in fleet.limits.shares[ACCOUNT].values()} == {100.0, 40.0}
    assert {actor.session.limit.resets_at for actor in fleet.sessions.actors.values()} == {RESETS}


@pytest.mark.parametrize(
    ("percent", "resets_at", "known"),
    [(100.0, RESETS + 41, RESETS + 41), (100.0, RESETS + 60, RESETS), (80.0, RESETS + 41, RESETS)],
)
def test_the_exact_end_counts_though_it_was_reported_before_the_turn_failed(fleet, percent, resets_at, known):
    a = fleet.add("a")
    fleet.limits.reported(a.session, [UsedShare("five_hour", percent, resets_at)], by_client=True)
    fleet.meets("a")
    b = fleet.add("b")
    fleet.happens("b", ev.LimitShared(at=NOW, limit=MET))
    assert {actor.session.limit.resets_at for actor in (a, b)} == {known}


def test_a_status_line_which_an_agent_can_play_tells_of_its_own_session_only(fleet):
    fleet.add("a")
    fleet.add("b")
    fleet.meets("a")
    share = UsedShare("five_hour", 100.0, RESETS + 60)
    fleet.limits.reported(fleet.sessions.actors["a"].session, [share], by_client=False)
    assert [actor.session.limit.resets_at for actor in fleet.sessions.actors.values()] == [RESETS + 60, RESETS]


def test_a_limit_that_only_an_agent_may_have_told_of_is_not_shared(fleet):
    fleet.add("a")
    other, late = fleet.add("b"), fleet.add("c")
    fleet.meets("a", replace(MET, proven=False))
    fleet.happens("c", ev.SessionLaunched(at=NOW, pane="%2", pid=2, conversation="c0", config="/c"))
    assert (other.session.limit, late.session.limit, fleet.limits.limit_of(ACCOUNT)) == (None, None, None)
    fleet.meets("a")
    assert other.session.limit is not None


async def test_a_session_that_cannot_be_woken_keeps_no_other_waiting(fleet):
    broken = fleet.add("a")
    fleet.add("b")
    fleet.meets("a")
    fleet.clock.advance(1)
    fleet.meets("b", replace(MET, since=NOW + 1))
    broken.broken = True
    assert await fleet.after(3_780) == (["b"], CLOCK_CHECK_INTERVAL_S)
    broken.broken = False
    assert (await fleet.after(20))[0] == ["a"]


@pytest.mark.parametrize("resets_at", [None, NOW + 86_400 + 3_600])
async def test_a_limit_met_while_the_clock_was_ahead_ends_within_the_hour(fleet, resets_at):
    fleet.add("a")
    fleet.clock.advance(86_400)
    fleet.meets("a", replace(MET, since=fleet.clock.now(), resets_at=resets_at))
    fleet.clock.advance(-86_400)
    assert (await fleet.after(3_600 + 180))[0] == ["a"]
    assert fleet.woken("a")[0].resumes


@pytest.mark.parametrize(("status", "code"), [(Status.IDLE, "not_limited"), (Status.EXITED, "ended")])
async def test_nothing_is_resumed_that_does_not_wait(fleet, status, code):
    fleet.add("a", status=status)
    with pytest.raises(SmError) as refused:
        await fleet.limits.resume("a")
    assert refused.value.refused.code == code


async def refused(fleet, name):
    """Return the code and the words with which `--resume` is refused; None if it is not."""
    try:
        await fleet.limits.resume(name)
    except SmError as problem:
        return problem.refused.code, problem.refused.message
    return None


async def test_nothing_is_resumed_before_the_reset(fleet):
    fleet.add("a")
    fleet.add("b")
    fleet.meets("a")
    fleet.limits.providers["claude"].cancelled = True
    fleet.clock.advance(3_599)
    for name in "ab":
        code, words = await refused(fleet, name)
        assert (code, "waits for a usage limit that resets at" in words) == ("not_reset", True)
        assert not fleet.woken(name)


async def test_nothing_is_resumed_whose_client_may_still_continue_by_itself(fleet):
    actor = fleet.add("a")
    fleet.add("b")
    fleet.meets("a")
    fleet.clock.advance(3_600 + 179)
    assert (await refused(fleet, "a"))[0] == "client_continues"
    assert await refused(fleet, "b") is None  # it was not interrupted
    assert not fleet.woken("a")
    actor.session = replace(actor.session, limit=replace(actor.session.limit, left=True))
    assert await refused(fleet, "a") is None
    assert fleet.woken("a")[-1].resumes


async def test_whoever_has_ended_the_clients_wait_may_resume_at_the_reset(fleet):
    fleet.add("a")
    fleet.meets("a")
    fleet.limits.providers["claude"].cancelled = True
    fleet.clock.advance(3_600)
    assert await refused(fleet, "a") is None
    assert fleet.woken("a")[-1].resumes


async def test_a_limit_that_is_over_for_the_client_too_is_resumed(fleet):
    fleet.add("a")
    fleet.meets("a")
    fleet.clock.advance(3_600 + 180)
    assert await refused(fleet, "a") is None
