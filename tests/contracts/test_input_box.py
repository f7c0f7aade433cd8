"""The input box as the driver by keys relies on it: the real client's, the scripted one's, and the one in memory.

One session serves the whole of it: text goes in, comes out, is set aside, is submitted, and a draft comes back.
"""

import contextlib
from itertools import repeat

import pytest

from sm.core.ports.panes import Key
from sm.providers.claude.keys.driver import STASH
from sm.providers.claude.keys.screen import read_box
from sm.testing.scenario import Say, scenario
from tests.e2e import people
from tests.e2e.rig import Rig
from tests.fakes.box import FakeBox

pytestmark = pytest.mark.timeout(120)


class InMemory:
    def __init__(self):
        self.box = FakeBox()

    async def paste(self, text):
        await self.box.paste(text)

    async def press(self, key, times=1):
        await self.box.press(key, times)

    async def until(self, expected):
        view = await self.box.look()
        assert expected(read_box(view.lines, view.cursor))


class InPane:
    def __init__(self, rig, session):
        self.rig, self.session = rig, session

    async def paste(self, text):
        people.paste(self.rig, self.session, text)

    async def press(self, key, times=1):
        self.rig.press(self.session, *repeat(key, times))

    async def until(self, expected):
        def shown():
            box = people.look(self.rig, self.session)
            return box is not None and expected(box)

        await self.rig.until(shown, "the box as expected")


@contextlib.asynccontextmanager
async def input_box(kind):
    if kind == "in memory":
        yield InMemory()
        return
    async with Rig(scenario(otherwise=Say("ok"))) as rig:
        if kind == "scripted":
            rig.use_scripted_agent()
        session = await rig.new("hello")
        await rig.wait_event(session, "TurnEnded")
        await rig.wait_status(session, "idle")
        yield InPane(rig, session)


@pytest.mark.parametrize("kind", ["in memory", "scripted", pytest.param("claude", marks=pytest.mark.e2e)])
async def test_text_goes_in_comes_out_is_set_aside_and_submitted(kind):
    async with input_box(kind) as box:
        await box.until(lambda now: now.empty and now.cursor_inside and not now.stashed)
        await box.paste("one two")
        await box.until(lambda now: now.holds("one two") and now.front == "one two")
        if kind != "scripted":  # its cursor stays at the end
            await box.press(Key.LEFT, 3)
            await box.until(lambda now: now.front == "one " and now.text == "one two")
            await box.press(Key.BACKSPACE, 4)
            await box.until(lambda now: now.text == "two" and not now.front)
            await box.paste("one ")
            await box.until(lambda now: now.holds("one two"))
        await box.press(Key.BACKSPACE)
        await box.until(lambda now: len(now.text) == len("one two") - 1)
        await box.press(STASH)
        await box.until(lambda now: now.empty and now.stashed)
        await box.press(STASH)
        await box.until(lambda now: now.text and not now.stashed)
        await box.press(STASH)
        await box.until(lambda now: now.empty and now.stashed)
        await box.paste("look here")
        await box.until(lambda now: now.holds("look here"))
        await box.press(Key.ENTER)
        await box.until(lambda now: now.text and not now.stashed)
