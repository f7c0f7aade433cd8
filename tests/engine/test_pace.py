"""How often the server looks at everything it has: with hundreds of sessions less often, so that rest stays cheap."""

import asyncio
from types import SimpleNamespace

import pytest

from sm.engine.archive_service import Archiving
from sm.engine.configuration_monitor import ConfigurationMonitor
from sm.engine.log_keeper import LogKeeper
from tests.fakes.clock import FakeClock, run_on_virtual_time


class Looks:
    """Stands for whatever a look asks; notes when it began."""

    def __init__(self):
        self.at = []

    def note(self):
        self.at.append(round(asyncio.get_running_loop().time() - self.began, 1))

    async def all(self):
        self.note()
        return {}

    async def contexts(self):
        self.note()
        raise OSError("nothing more is looked at here")


class Sessions:
    def __init__(self, count, note=lambda: None):
        self.count, self.actors = count, Actors(count, note)

    def all(self):
        return [None] * self.count


class Actors:
    """So many; asked for when a round begins."""

    def __init__(self, count, note):
        self.count, self.note = count, note

    def __len__(self):
        return self.count

    def values(self):
        self.note()
        return ()


def archive(looks, count):
    return Archiving(Sessions(count), looks, None, FakeClock())


def configuration(looks, count):
    return ConfigurationMonitor(Sessions(count, looks.note), FakeClock(), {}, None, None)


def logs(looks, count):
    return LogKeeper(looks, SimpleNamespace(), FakeClock(), Sessions(count))


@pytest.mark.parametrize(
    ("made", "count", "at"),
    [
        (archive, 3, [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]),
        (archive, 250, [0.0, 5.0, 10.0]),
        (archive, 50_000, [0.0]),
        (configuration, 3, [2.0, 4.0, 6.0, 8.0, 10.0]),
        (configuration, 1_000, [4.0, 8.0]),
        (logs, 3, [5.0, 10.0]),
        (logs, 300, [9.0]),
    ],
)
async def test_a_look_at_everything_waits_longer_the_more_there_is(made, count, at):
    run_on_virtual_time(asyncio.get_running_loop())
    looks = Looks()
    looks.began = asyncio.get_running_loop().time()
    running = asyncio.get_running_loop().create_task(made(looks, count).run())
    await asyncio.sleep(10.5)
    running.cancel()
    assert looks.at == at
