"""What a round reads of configuration and settings: once for all sessions that share it, and of each its own."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace

import pytest

from sm.core import events as ev
from sm.core.model.capacity import ClientLimits
from sm.core.model.context import Policy
from sm.engine.configuration_monitor import INTERVAL_S, ConfigurationMonitor
from tests.core.playbook import idle_session
from tests.fakes.clock import FakeClock, run_on_virtual_time

NEW_POLICY, NEW_LIMITS = Policy(max_hold=7.0), ClientLimits(percent=50)


class Actor:
    def __init__(self, name, directory):
        self.session = replace(idle_session(), id=name, directory=directory, config="/c", asked=(("x", "1"),))
        self.events = []

    def put(self, event):
        self.events.append(event)


class Files:
    """What is configured, and how often that was read."""

    def __init__(self):
        self.read = []

    def policy(self, directory):
        self.read.append(directory)
        return NEW_POLICY

    def limits(self, config, directory, asked):
        self.read.append((config, directory))
        return NEW_LIMITS

    def found_transcript(self, config, conversation):
        return None


@pytest.fixture
def files():
    return Files()


async def test_a_round_reads_what_sessions_share_once_and_tells_each(files):
    run_on_virtual_time(asyncio.get_running_loop())
    actors = {name: Actor(name, directory) for name, directory in {"a": "/p", "b": "/p", "c": "/q"}.items()}
    resized = []
    readers = SimpleNamespace(resize=lambda actor, _: resized.append(actor))
    sessions = SimpleNamespace(actors=actors)
    monitor = ConfigurationMonitor(sessions, FakeClock(), {"claude": files}, files, readers)
    running = asyncio.get_running_loop().create_task(monitor.run())
    await asyncio.sleep(INTERVAL_S + 0.1)
    running.cancel()
    assert sorted(map(str, files.read)) == ["('/c', '/p')", "('/c', '/q')", "/p", "/q"]
    assert resized == [*actors.values()]
    for actor in actors.values():
        policy, limits = actor.events[:2]
        assert (policy.policy, limits.limits) == (NEW_POLICY, NEW_LIMITS)
        assert isinstance(limits, ev.LimitsChanged)
