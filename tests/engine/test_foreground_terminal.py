"""The driver of a client in the user's own terminal: how often it reports why it waits."""

import asyncio
from dataclasses import replace

import pytest

from sm.core.events import Activity, DrivenBy
from sm.core.ports.provider import HOLD_REPORT_INTERVAL_S, ClientState, ReadyOptions
from sm.engine.client_link import SILENT
from sm.engine.foreground_terminal import REPORT_AFTER_S, ForegroundDriver
from tests.core.playbook import idle_session
from tests.fakes.clock import run_on_virtual_time

BUSY, DIALOG = "the client is busy", "a dialog is open"


class Waiting:
    """A driver whose client is busy, and its reports with their times in seconds since it began to wait."""

    def __init__(self):
        self.loop = asyncio.get_running_loop()
        run_on_virtual_time(self.loop)
        self.activity = Activity.BUSY
        self.began = self.now()
        self.reports = []
        self.session = idle_session(pane=None)
        self.driver = ForegroundDriver(self, self, lambda: self.session, lambda: ClientState(self.activity, "", "c0"))

    def now(self):
        return self.loop.time()

    def finished(self, transcript):
        return True

    def switch(self, activity):
        self.activity = activity

    def report(self, reason):
        self.reports.append((round(self.now() - self.began, 1), reason))

    async def wait(self, seconds):
        await self.driver.ready(ReadyOptions(), self.report, lambda: self.now() - self.began >= seconds)


@pytest.fixture
async def waiting():
    return Waiting()


async def test_a_reason_that_lasts_is_reported_once_and_then_at_the_port_s_interval(waiting):
    await waiting.wait(REPORT_AFTER_S + HOLD_REPORT_INTERVAL_S + 2)
    times, reasons = zip(*waiting.reports, strict=True)
    assert times == pytest.approx((REPORT_AFTER_S, REPORT_AFTER_S + HOLD_REPORT_INTERVAL_S), abs=0.2)
    assert set(reasons) == {BUSY}


async def test_another_reason_is_reported_as_it_comes(waiting):
    waiting.loop.call_later(5, waiting.switch, Activity.WAITING)
    waiting.loop.call_later(5.3, waiting.switch, Activity.BUSY)
    await waiting.wait(10)
    times, reasons = zip(*waiting.reports, strict=True)
    assert times == pytest.approx((REPORT_AFTER_S, 5, 5.3), abs=0.2)
    assert reasons == (BUSY, DIALOG, BUSY)


async def test_a_client_is_not_ended_before_its_session_knows_that_the_plugin_is_gone(waiting):
    """Another table says then what follows: by the plugin's, a context would be cleared that nothing clears."""
    waiting.switch(Activity.IDLE)
    waiting.session = replace(waiting.session, driver=DrivenBy.MOD)
    await waiting.wait(3)
    assert [reason for _, reason in waiting.reports] == [SILENT]
    waiting.session = replace(waiting.session, driver=DrivenBy.KEYS)
    assert await waiting.driver.ready(ReadyOptions(), waiting.report, lambda: False)


async def test_a_short_wait_is_not_reported(waiting):
    waiting.loop.call_later(REPORT_AFTER_S / 2, waiting.switch, Activity.IDLE)
    await waiting.wait(10)
    assert waiting.reports == []
