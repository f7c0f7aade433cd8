"""What looking at a client reports: once it has lasted, and never what a hook has told."""

import asyncio
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import pytest

from sm.core import events as ev
from sm.core.model.compaction import CompactionHold
from sm.core.model.foreground import Foreground
from sm.core.model.message import message
from sm.core.model.rotation import Phase, Rotation
from sm.core.model.session import Status
from sm.core.model.usage_limit import UsageLimit
from sm.core.ports.panes import PaneError, PaneStatus
from sm.core.ports.provider import ClientState
from sm.engine.client_link import SILENT
from sm.engine.client_monitor import (
    COLLECT_TIMEOUT_S,
    MISSED_STOP_S,
    MOVED_TIMEOUT_S,
    STARTUP_TIMEOUT_S,
    ClientMonitor,
)
from sm.processes import alive, start_time
from sm.providers.claude.traits import CLAUDE
from tests.core.playbook import advance, idle_session
from tests.fakes.clock import FakeClock, run_on_virtual_time

IDLE, BUSY, WAITING = ev.Activity.IDLE, ev.Activity.BUSY, ev.Activity.WAITING
OWN = "a" * 8


@dataclass
class FakeProvider:
    """What the client's files say."""

    shows: ClientState | None = None
    limit: object = None
    refused: str | None = None
    over: bool = False
    failed: str = ""
    kept: str | None = None

    def client_state(self, config, pid):
        return self.shows if alive(pid) else None

    def usage_limit(self, transcript, now):
        return self.limit

    def found_transcript(self, config, conversation):
        return self.kept

    def refusal(self, transcript):
        return self.refused

    def finished(self, transcript):
        return self.over

    def failure(self, transcript):
        return self.failed


@dataclass
class FakePanes:
    """One pane, which keeps what its client has printed."""

    shows: PaneStatus | None = None
    words: tuple[str, ...] = ()
    broken: bool = False

    async def status(self, pane):
        if self.broken:
            raise PaneError("tmux does not answer")
        return self.shows

    def pane(self, pane):
        return self

    async def printed(self):
        return [*self.words]


class FakeActor:
    def __init__(self, session):
        self.session, self.traits, self.link = session, CLAUDE, SimpleNamespace(silent=False)
        self.events = []

    def put(self, event, ticket=None):
        self.events.append(event)


@dataclass
class Watched:
    """A monitor with one client, which is this process until the test says otherwise."""

    actor: FakeActor = field(default_factory=lambda: FakeActor(replace(idle_session(), pid=os.getpid())))
    clock: FakeClock = field(default_factory=FakeClock)
    panes: FakePanes = field(default_factory=FakePanes)
    provider: FakeProvider = field(default_factory=FakeProvider)

    def __post_init__(self):
        sessions = SimpleNamespace(restoring=set(), actors={OWN: self.actor})
        self.monitor = ClientMonitor(sessions, self.panes, self.clock, {"claude": self.provider}, load=lambda: 0.0)

    def now_is(self, **changes):
        self.actor.session = replace(self.actor.session, **changes)

    def shows(self, activity, conversation="c0", detail=""):
        self.provider.shows = ClientState(activity, detail, conversation)

    async def look(self, after=0.0):
        """Return what is reported of one look."""
        self.clock.advance(after)
        self.actor.events.clear()
        await self.monitor.look(self.actor)
        return [replace(event, at=0.0) for event in self.actor.events]


@pytest.fixture
def watched():
    return Watched()


@pytest.fixture
def gone():
    """The pid of a process that has ended."""
    with subprocess.Popen([sys.executable, "-S", "-c", ""]) as process:
        process.wait()
    return process.pid


async def test_a_change_is_reported_once(watched):
    watched.shows(WAITING, detail="a dialog")
    assert await watched.look() == [ev.ActivityChanged(at=0.0, activity=WAITING, detail="a dialog")]
    watched.now_is(status=Status.WAITING)
    assert await watched.look() == []


async def test_a_state_that_lags_is_not_reported_whatever_the_hooks_have_told(watched):
    watched.provider.shows = ClientState(ev.Activity.UNKNOWN, "", "c0", lags=True)
    for status in (Status.WORKING, Status.IDLE):
        watched.now_is(status=status)
        assert await watched.look() == []


async def test_a_state_that_a_hook_has_moved_on_from_is_reported_again(watched):
    watched.shows(WAITING)
    await watched.look()
    watched.now_is(status=Status.WAITING)
    await watched.look()
    watched.now_is(status=Status.WORKING)
    assert await watched.look() == [ev.ActivityChanged(at=0.0, activity=WAITING)]


async def test_a_client_that_has_ended_without_a_pane_is_reported(watched, gone):
    watched.now_is(pid=gone, pane=None, adopted=True)
    assert await watched.look() == [ev.ClientExited(at=0.0, reason="the client has ended")]


async def test_a_pane_that_is_gone_with_its_client_is_lost(watched, gone):
    watched.now_is(pid=gone)
    assert [event.reason for event in await watched.look()] == ["pane lost (tmux stopped or machine rebooted)"]


async def test_a_pane_that_another_session_has_now_is_lost(watched, gone):
    watched.now_is(pid=gone)
    watched.panes.shows = PaneStatus("%1", gone, "b" * 8, dead=True, code=0)
    assert [event.reason for event in await watched.look()] == ["pane lost (tmux stopped or machine rebooted)"]


async def test_how_a_client_ended_is_reported_once_tmux_has_collected_it(watched, gone):
    watched.now_is(pid=gone)
    watched.panes.shows = PaneStatus("%1", gone, OWN, dead=True)
    assert await watched.look() == []
    watched.panes.shows = replace(watched.panes.shows, code=3)
    assert await watched.look(after=0.25) == [ev.ClientExited(at=0.0, code=3)]


async def test_a_client_that_tmux_does_not_collect_has_ended_all_the_same(watched, gone):
    watched.now_is(pid=gone)
    watched.panes.shows = PaneStatus("%1", gone, OWN, dead=False)
    assert await watched.look() == []
    assert await watched.look(after=COLLECT_TIMEOUT_S) == [ev.ClientExited(at=0.0)]


@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        (
            ("usage: x", " unknown --y "),
            "the client has ended at once: unknown --y",
        ),
        ((), ""),
    ],
)
async def test_the_last_words_of_a_client_that_never_came_up_are_reported(watched, gone, printed, reason):
    watched.now_is(pid=gone, status=Status.STARTING)
    watched.panes.shows, watched.panes.words = PaneStatus("%1", gone, OWN, dead=True, code=1), printed
    assert await watched.look() == [ev.ClientExited(at=0.0, code=1, reason=reason)]


async def test_a_client_in_the_users_terminal_ends_with_sm_run_only(watched, gone):
    here = os.getpid()
    watched.now_is(pid=gone, pane=None, foreground=Foreground(here, start_time(here), "1", ""))
    assert await watched.look() == []
    watched.now_is(foreground=Foreground(gone, "1", "1", ""))
    assert [event.reason for event in await watched.look()] == ["the client and sm run have ended"]


async def test_a_client_whose_sm_run_was_killed_is_hung_up(watched, gone):
    with subprocess.Popen(["/bin/sleep", "60"]) as client:
        own = Foreground(gone, "1", start_time(client.pid), "")
        watched.now_is(pid=client.pid, pane=None, foreground=own)
        try:
            await watched.look()
            assert client.wait(10) == -signal.SIGHUP
        finally:
            client.kill()


async def test_an_ended_session_is_not_looked_at(watched):
    watched.shows(BUSY)
    await watched.look()
    watched.now_is(status=Status.EXITED)
    assert await watched.look() == []
    assert watched.monitor.observed == {}


async def test_the_keys_take_over_from_a_plugin_that_is_silent(watched):
    watched.now_is(driver=ev.DrivenBy.MOD)
    assert await watched.look() == []
    watched.actor.link.silent = True
    assert await watched.look() == [ev.DriverChanged(at=0.0, driver=ev.DrivenBy.KEYS, reason=SILENT)]


async def test_a_client_that_does_not_come_up_is_asking_something(watched):
    watched.now_is(status=Status.STARTING)
    started = watched.actor.session.conversation.started
    watched.clock.time = started + STARTUP_TIMEOUT_S
    assert await watched.look() == []
    watched.monitor.load = lambda: 3.0 * (os.cpu_count() or 1)
    assert await watched.look(after=STARTUP_TIMEOUT_S) == []  # on a busy machine it only starts slowly
    watched.monitor.load = lambda: 0.0
    expected = ev.ActivityChanged(at=0.0, activity=WAITING, detail=CLAUDE.startup_question)
    assert await watched.look(after=0.25) == [expected]


async def test_a_client_that_continues_an_old_conversation_is_given_the_same_time_to_come_up(watched):
    watched.now_is(status=Status.STARTING)
    watched.clock.time = watched.actor.session.conversation.started + 86_400.0
    assert await watched.look() == []
    assert await watched.look(after=STARTUP_TIMEOUT_S) == []
    expected = ev.ActivityChanged(at=0.0, activity=WAITING, detail=CLAUDE.startup_question)
    assert await watched.look(after=0.25) == [expected]


async def test_a_refusal_to_continue_is_reported_in_place_of_idleness(watched):
    watched.now_is(status=Status.WORKING)
    watched.shows(IDLE)
    watched.provider.refused = "Prompt is too long"
    assert await watched.look() == [ev.ClientBlocked(at=0.0, reason="Prompt is too long")]


@pytest.mark.parametrize("refused", [None, "Prompt is too long"])
async def test_a_server_that_has_just_started_takes_no_client_that_refuses_to_continue_for_an_idle_one(
    watched, refused
):
    watched.now_is(status=Status.UNKNOWN)
    watched.shows(IDLE)
    watched.provider.refused = refused
    blocked = ev.ClientBlocked(at=0.0, reason="Prompt is too long")
    assert (await watched.look() == [blocked]) is (refused is not None)


@pytest.mark.parametrize("held", [False, True])
async def test_a_client_that_was_held_and_whose_turn_has_failed_is_asked_why(watched, held):
    current = watched.actor.session.conversation
    watched.now_is(
        status=Status.IDLE, conversation=replace(current, hold=CompactionHold(fork_asked=1.0 if held else 0.0))
    )
    watched.shows(IDLE)
    watched.provider.refused = "Prompt is too long"
    refused = ev.ClientBlocked(at=0.0, reason="Prompt is too long")
    assert (refused in await watched.look()) is held


async def test_idleness_that_no_hook_tells_is_reported_at_the_second_look(watched):
    watched.now_is(status=Status.WORKING)
    watched.shows(IDLE)
    assert await watched.look() == []
    assert await watched.look(after=0.25) == [ev.ActivityChanged(at=0.0, activity=IDLE)]


@pytest.mark.parametrize("kept", ["/c/projects/p/c0.jsonl", None])
async def test_a_usage_limit_whose_hook_was_lost_is_read_from_the_transcript(watched, kept):
    watched.now_is(status=Status.WORKING)
    watched.shows(IDLE)
    watched.provider.limit, watched.provider.kept = UsageLimit("five_hour", 9.0), kept
    limit = UsageLimit("five_hour", 9.0, proven=kept is not None)
    expected = ev.TurnFailed(at=0.0, conversation="c0", error="rate_limit", limit=limit)
    assert await watched.look() == [expected]


@pytest.mark.parametrize(("since", "is_new"), [(20.0, False), (20.5, True), (0.0, True)])
async def test_the_notice_of_the_last_limit_is_none_of_a_turn_that_begins(watched, since, is_new):
    prompt = ev.PromptSubmitted(at=20.0, conversation="c0", text="go on")
    watched.actor.session, _ = advance(watched.actor.session, prompt)
    watched.provider.shows = ClientState(IDLE, "", "c0", since)
    watched.provider.limit = UsageLimit("five_hour", 9.0)
    found = [event for event in await watched.look() if isinstance(event, ev.TurnFailed)]
    assert len(found) == is_new


@pytest.mark.parametrize("over", [True, False])
async def test_a_turn_whose_hook_was_lost_has_ended_if_the_transcript_says_so(watched, over):
    async def ended(after):
        return [event for event in await watched.look(after) if isinstance(event, ev.TurnEnded)]

    watched.now_is(status=Status.WORKING, at_prompt=False)
    watched.shows(IDLE)
    watched.provider.over = over
    assert await ended(0.0) == await ended(MISSED_STOP_S / 2) == []
    assert await ended(MISSED_STOP_S / 2) == [ev.TurnEnded(at=0.0, conversation="c0", replayed=True)] * over
    assert await ended(MISSED_STOP_S) == [], "the transcript is asked once"


async def test_a_turn_that_failed_without_a_hook_has_failed_if_the_transcript_says_so(watched):
    watched.now_is(status=Status.WORKING, at_prompt=False)
    watched.shows(IDLE)
    watched.provider.failed = "unauthorized"
    await watched.look(0.0)
    found = [event for event in await watched.look(MISSED_STOP_S) if isinstance(event, ev.TurnFailed)]
    assert [event.error for event in found] == ["unauthorized"]


async def test_the_turn_that_a_known_usage_limit_has_ended_does_not_fail_again_once_its_client_is_restored(watched):
    watched.now_is(status=Status.IDLE, at_prompt=False, limit=UsageLimit("five_hour", 3_600.0))
    watched.shows(IDLE)
    watched.provider.failed = "usage_limit_exceeded"
    await watched.look(0.0)
    assert not [event for event in await watched.look(MISSED_STOP_S) if isinstance(event, ev.TurnFailed)]


async def test_a_turn_that_failed_for_its_length_keeps_the_session_blocked(watched):
    """What becomes its next prompt would have the client compact first."""
    watched.now_is(status=Status.BLOCKED, at_prompt=False)
    watched.shows(IDLE)
    watched.provider.failed = "context_window_exceeded"
    watched.provider.refused = "out of room"
    await watched.look(0.0)
    [found] = [event for event in await watched.look(MISSED_STOP_S) if isinstance(event, ev.TurnFailed)]
    assert found.refusal == "out of room"


async def test_another_conversation_is_reported_once_it_has_lasted(watched):
    watched.shows(IDLE, "c1")
    await watched.look()
    assert await watched.look(after=MOVED_TIMEOUT_S / 2) == []
    expected = ev.ConversationStarted(at=0.0, conversation="c1", origin=ev.Origin.CLIENT_STATE)
    assert await watched.look(after=MOVED_TIMEOUT_S / 2) == [expected]


async def test_a_return_to_the_known_conversation_is_no_move(watched):
    watched.shows(IDLE, "c1")
    await watched.look()
    watched.shows(IDLE, "c0")
    await watched.look(after=MOVED_TIMEOUT_S)
    watched.shows(IDLE, "c1")
    assert await watched.look() == []


async def rounds(watched, seconds, during=lambda: None):
    """Return how often the provider was asked within so many seconds."""
    asked = []
    state = watched.provider.client_state
    watched.provider.client_state = lambda *where: asked.append(where) or state(*where)
    running = asyncio.get_running_loop().create_task(watched.monitor.run())
    await asyncio.sleep(seconds)
    running.cancel()
    watched.provider.client_state = state
    return len(asked)


async def test_a_client_at_rest_is_looked_at_now_and_then_and_any_other_four_times_a_second(watched):
    run_on_virtual_time(asyncio.get_running_loop())
    watched.now_is(status=Status.IDLE)
    watched.shows(IDLE)
    assert await rounds(watched, 20) == 10
    watched.shows(WAITING)
    assert await rounds(watched, 20) >= 70
    watched.shows(IDLE)
    watched.now_is(status=Status.WORKING)
    assert await rounds(watched, 20) >= 70


async def test_a_thousand_clients_at_rest_are_looked_at_forty_times_a_second(watched):
    run_on_virtual_time(asyncio.get_running_loop())
    watched.shows(IDLE)
    watched.now_is(status=Status.IDLE)
    watched.monitor.sessions.actors.update(
        {f"{number:08}": FakeActor(replace(watched.actor.session, id=f"{number:08}")) for number in range(999)}
    )
    assert await rounds(watched, 20) == pytest.approx(
        1000 + 18 * 40, abs=100
    )  # each at once, then for two seconds none


async def test_a_client_with_something_under_way_does_not_rest(watched):
    run_on_virtual_time(asyncio.get_running_loop())
    watched.shows(IDLE)
    watched.now_is(status=Status.IDLE, rotation=Rotation(None, Phase.RESERVED))
    assert await rounds(watched, 20) >= 70
    watched.now_is(rotation=None, outbox=replace(watched.actor.session.outbox, queue=(message("m1", "x"),)))
    assert await rounds(watched, 20) >= 70


async def test_a_client_that_cannot_be_looked_at_is_looked_at_again(watched, gone):
    run_on_virtual_time(asyncio.get_running_loop())
    watched.now_is(pid=gone)
    watched.panes.broken = True
    running = asyncio.get_running_loop().create_task(watched.monitor.run())
    await asyncio.sleep(1)
    watched.panes.broken = False
    await asyncio.sleep(1)
    running.cancel()
    assert {event.reason for event in watched.actor.events} == {"pane lost (tmux stopped or machine rebooted)"}
