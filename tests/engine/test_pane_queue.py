"""One writer per pane: orders give way, and their results name their step."""

import asyncio
import contextlib
import threading

import pytest

from sm.core import effects as ef
from sm.core import events as ev
from sm.core.ports.panes import PaneError
from sm.engine.pane_queue import BEING_WRITTEN, PaneQueue, PaneWriter
from tests.fakes.clock import FakeClock
from tests.fakes.driver import SlowDriver


class FakePane:
    def __init__(self, history):
        self._history = history

    async def history(self):
        if isinstance(self._history, Exception):
            raise self._history
        return self._history


class FakeDocuments:
    def __init__(self):
        self.kept = {}
        self.disk = threading.Event()
        self.disk.set()

    def place_snapshot(self, session, at):
        return f"/archive/{session}/dump.txt"

    def keep_snapshot(self, path, text):
        self.disk.wait(10)
        if text == "too much":
            raise OSError("disk full")
        self.kept[path] = text


class FakeProvider:
    def __init__(self, found=None):
        self.found = found

    def submitted(self, transcript, digest, position):
        return self.found


@contextlib.asynccontextmanager
async def pane_queue(history="screen", found=None):
    events = []
    clock = FakeClock()
    driver = SlowDriver()
    worker = PaneQueue(events.append, clock)
    worker.writer = PaneWriter("s1", FakeProvider(found), FakePane(history), driver, FakeDocuments(), clock)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(worker.run())
        yield worker, driver, events
        task.cancel()


async def seen(events, count):
    async with asyncio.timeout(5):
        while len(events) < count:
            await asyncio.sleep(0.001)


async def test_an_order_tells_what_holds_it_and_then_that_it_is_ready():
    async with pane_queue() as (worker, driver, events):
        worker.give(ef.AwaitComposer(3))
        await seen(events, 1)
        driver.free.set()
        await seen(events, 2)
    assert [(type(event), event.step) for event in events] == [(ev.ComposerHeld, 3), (ev.ComposerReady, 3)]


async def test_a_newer_order_replaces_the_one_that_waits():
    async with pane_queue() as (worker, _, events):
        worker.give(ef.AwaitComposer(1))
        await seen(events, 1)
        worker.give(ef.TakeSnapshot(2))
        await seen(events, 2)
    assert events[1] == ev.SnapshotTaken(at=events[1].at, step=2, path="/archive/s1/dump.txt")
    assert not [event for event in events if isinstance(event, ev.ComposerReady)]


async def test_nothing_is_ready_to_be_cleared_before_the_document_is_written():
    async with pane_queue() as (worker, driver, events):
        driver.free.set()
        worker.document_written = asyncio.Event()
        worker.give(ef.AwaitComposer(3))
        await asyncio.sleep(0.05)
        assert [event.reason for event in events] == [BEING_WRITTEN]  # the user is shown why, and the phase gets time
        worker.document_written.set()
        await seen(events, 3)
    assert isinstance(events[-1], ev.ComposerReady)


async def test_typing_that_gave_way_is_refused_and_typed_nothing():
    async with pane_queue() as (worker, driver, events):
        worker.give(ef.TypeText(1, "hello"))
        await asyncio.sleep(0.01)
        worker.give(ef.LeavePane(1))
        await seen(events, 1)
    assert (events[0].step, events[0].reason, driver.typed) == (1, "gave way", [])


async def test_what_was_typed_is_said_to_be_typed_and_no_more():
    async with pane_queue() as (worker, driver, events):
        driver.free.set()
        worker.give(ef.ClearContext(1))
        await seen(events, 1)
    assert (type(events[0]), driver.typed) == (ev.Typed, ["/clear"])


async def test_the_users_own_terminal_is_not_saved():
    async with pane_queue() as (worker, _, events):
        worker.writer.pane = None
        worker.give(ef.TakeSnapshot(1))
        await seen(events, 1)
    assert events == [ev.SnapshotTaken(at=events[0].at, step=1, path=None)]


@pytest.mark.parametrize("history", ["   \n", PaneError("no pane"), OSError("disk full")])
async def test_a_snapshot_that_fails_is_a_snapshot_without_a_path(history):
    async with pane_queue(history) as (worker, _, events):
        worker.give(ef.TakeSnapshot(1))
        await seen(events, 1)
    assert events[0].path is None


@pytest.mark.parametrize(("history", "kept"), [("screen", {"/archive/s1/dump.txt": "screen"}), ("too much", {})])
async def test_a_snapshot_is_written_while_the_client_is_cleared(history, kept):
    """The redaction of 700 KB takes 0.4 s."""
    async with pane_queue(history) as (worker, driver, events):
        documents = worker.writer.documents
        documents.disk.clear()
        driver.free.set()
        worker.give(ef.TakeSnapshot(1))
        await seen(events, 1)
        worker.give(ef.ClearContext(2))
        await seen(events, 2)
        assert (type(events[1]), documents.kept) == (ev.Typed, {})
        documents.disk.set()
        await worker.snapshot_kept
        assert documents.kept == kept


@pytest.mark.parametrize(("found", "kind"), [(None, ev.PromptMissing), ("hello", ev.PromptSubmitted)])
async def test_a_prompt_is_looked_for_in_the_transcript(found, kind):
    async with pane_queue(found=found) as (worker, _, events):
        worker.give(ef.FindPrompt(1, "c1", "/t", "digest"))
        await seen(events, 1)
    assert isinstance(events[0], kind)


async def test_nothing_is_ready_before_the_time_an_order_names():
    async with pane_queue() as (worker, driver, events):
        driver.free.set()
        worker.give(ef.AwaitComposer(1, after=worker.clock.now() + 1.0))
        await asyncio.sleep(0.12)
        assert events == []
        worker.clock.advance(1.0)
        await seen(events, 2)
    assert isinstance(events[-1], ev.ComposerReady)


async def test_without_a_client_an_order_is_dropped():
    async with pane_queue() as (worker, _, events):
        worker.writer = None
        worker.give(ef.TakeSnapshot(1))
        await asyncio.sleep(0.01)
    assert events == []


async def test_a_fault_while_typing_is_a_refusal_and_the_next_order_is_carried_out():
    async with pane_queue() as (worker, driver, events):
        driver.prompt = lambda *_, **__: 1 / 0
        worker.give(ef.TypeText(1, "hello"))
        await seen(events, 1)
        worker.give(ef.TakeSnapshot(2))
        await seen(events, 2)
    assert (events[0].step, events[0].reason) == (1, "sm failed at it: ZeroDivisionError")
    assert events[1].path == "/archive/s1/dump.txt"


async def test_whoever_leaves_the_pane_takes_back_what_was_typed():
    async with pane_queue() as (worker, driver, events):
        left = ["the client is busy", "removes text of its own"]

        async def withdraw():
            return left.pop() if left else None

        driver.withdraw = withdraw
        worker.give(ef.LeavePane(1))
        worker.give(ef.LeavePane(2))
        async with asyncio.timeout(5):
            while left:
                await asyncio.sleep(0.001)
        assert events == []


async def test_a_pane_that_is_gone_has_nothing_to_take_back():
    async with pane_queue() as (worker, driver, events):
        asked = []

        async def withdraw():
            asked.append("withdraw")
            raise PaneError("no pane")

        driver.withdraw = withdraw
        driver.free.set()
        worker.give(ef.LeavePane(1))
        await asyncio.sleep(0.05)
        worker.give(ef.TypeText(2, "next"))
        await seen(events, 1)
        assert (asked, driver.typed) == (["withdraw"], ["next"])
