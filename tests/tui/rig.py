"""The live screen on a server that runs inside of the test, and what it shows as text."""

import asyncio
import contextlib
import re
from dataclasses import dataclass, field

from sm.client import Client
from sm.tui.app import Dashboard
from tests.api.rig import USER, House, house

WIDTHS = (60, 200)
PATIENCE_S = 20.0
"""For what has to come, on a machine as busy as can be."""


def environment(root):
    return {
        "HOME": str(root / "home"),
        "SM_HOME": str(root / "state"),
        "SM_CONFIG": str(root / "config.toml"),
        "SM_NO_START": "1",
        "LANG": "C.UTF-8",
    }


class RecordingTerminal:
    """The terminal that a test does not have: it only remembers who would have got it."""

    def __init__(self):
        self.ran = []

    def run(self, arguments):
        self.ran.append(list(arguments))


@dataclass
class Watching:
    """A user in front of the screen."""

    api: House
    stack: contextlib.AsyncExitStack
    app: Dashboard | None = None
    pilot: object = None
    terminal: object = field(default_factory=RecordingTerminal)
    port: int | None = None
    """None while no server listens."""
    listener: contextlib.AsyncExitStack = field(default_factory=contextlib.AsyncExitStack)

    def client(self):
        return None if self.port is None else Client(f"http://127.0.0.1:{self.port}", USER)

    async def start_server(self):
        self.port = await self.listener.enter_async_context(self.api.listening())
        self.stack.push_async_callback(self.listener.aclose)

    async def stop_server(self):
        self.port = None
        await self.listener.aclose()

    def text(self):
        """All lines of the screen."""
        screen = self.app.screen
        shown = [strip.text.rstrip() for strip in screen._compositor.render_strips()]
        return "\n".join(shown)

    def words(self):
        """The same as if no line had ended, and no frame were around it."""
        return " ".join(re.sub("[│╭╮╰╯─▆▇▃▁▂▄▅█]", " ", self.text()).split())

    async def press(self, *keys):
        await self.pilot.press(*keys)

    async def type(self, text):
        names = {
            " ": "space",
            "-": "minus",
            ":": "colon",
            ".": "full_stop",
            "/": "slash",
            ",": "comma",
            "'": "apostrophe",
        }
        await self.pilot.press(*(names.get(character, character) for character in text))

    async def until(self, condition, what=""):
        """Wait for the condition, or for a text on the screen."""
        held = condition if callable(condition) else lambda: condition in self.words()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                while not held():
                    await self.pilot.pause(0.02)
                return
        raise AssertionError(f"not shown: {what or condition}\n{self.text()}")

    async def gone(self, text):
        await self.until(lambda: text not in self.words(), f"no {text}")

    def row(self, session):
        return next((row for row in self.app.main.rows if row.id == session), None)


@contextlib.asynccontextmanager
async def watching(root, width=100, height=30, before=None):
    """`before` prepares the sessions that are there when the screen opens."""
    async with house(root) as api, contextlib.AsyncExitStack() as stack:
        if before is not None:
            await before(api)
        found = Watching(api, stack)
        found.app = Dashboard(found.client, api.clock, found.terminal)
        await found.start_server()
        found.pilot = await stack.enter_async_context(found.app.run_test(size=(width, height)))
        await found.until(lambda: found.app.lost is None, "the first picture")
        await found.pilot.pause()
        yield found
