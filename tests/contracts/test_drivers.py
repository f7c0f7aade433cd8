"""The port `Driver`, for each one there is and for the fake: when a client may be given a prompt, and what is done."""

import asyncio
from dataclasses import dataclass, field

import pytest

from sm.core.events import Activity
from sm.core.ports.provider import ClientState, OrderResult, ReadyOptions
from sm.engine.foreground_terminal import ForegroundDriver
from sm.providers.claude.keys.driver import KeysDriver
from sm.providers.claude.mod.driver import ModDriver
from sm.providers.codex.app.driver import PAUSE_GOAL, RESUME_GOAL, AppDriver
from sm.providers.codex.tui.driver import TuiDriver
from sm.providers.codex.tui.input_box import InputBox
from tests.core.playbook import idle_session
from tests.fakes.box import FakeBox
from tests.fakes.clock import run_on_virtual_time
from tests.fakes.codex_box import FakeCodexBox
from tests.fakes.driver import SlowDriver

never = lambda: False


@pytest.fixture(autouse=True)
async def virtual_time():
    run_on_virtual_time(asyncio.get_running_loop())


class ByKeys:
    def __init__(self):
        self.box = FakeBox(activity=Activity.BUSY)
        self.driver = KeysDriver(self.box, self.box.client_state, never)

    def become_idle(self):
        self.box.activity = Activity.IDLE

    @property
    def submitted(self):
        return [*self.box.sent, *filter(None, [self.box.text])]


@dataclass
class InForeground:
    activity: Activity = Activity.BUSY
    submitted: list = field(default_factory=list)

    def __post_init__(self):
        session = idle_session(pane=None)
        self.driver = ForegroundDriver(self, self, lambda: session, lambda: ClientState(self.activity, "", "c0"))

    def now(self):
        return asyncio.get_running_loop().time()

    def finished(self, transcript):
        return True

    def become_idle(self):
        self.activity = Activity.IDLE


@dataclass
class ByPlugin:
    """A plugin that does what it is told, and keys that nobody may press."""

    activity: Activity = Activity.BUSY
    submitted: list = field(default_factory=list)
    alive: bool = True

    def __post_init__(self):
        state = lambda: ClientState(self.activity, "", "c0")
        self.driver = ModDriver(self, ByFake().driver, state, never)

    async def ask(self, order):
        self.submitted.append("/clear" if order.kind == "rotate" else order.text)
        return OrderResult()

    def become_idle(self):
        self.activity = Activity.IDLE


class ByPluginInForeground(ByPlugin):
    def __post_init__(self):
        state = lambda: ClientState(self.activity, "", "c0")
        self.driver = ModDriver(self, InForeground().driver, state, never)


class ByCodexKeys:
    def __init__(self):
        self.box = FakeCodexBox(activity=Activity.BUSY)
        self.driver = TuiDriver(InputBox(self.box, self.box.client_state, never))

    def become_idle(self):
        self.box.activity = Activity.IDLE

    @property
    def submitted(self):
        return [*self.box.sent, *filter(None, [self.box.text])]


class ByAppServer(ByPlugin):
    def __post_init__(self):
        self.driver = AppDriver(self, lambda: ClientState(self.activity, "", "c0"))

    async def ask(self, order, number=None):
        if order.kind in {PAUSE_GOAL, RESUME_GOAL}:
            return OrderResult()
        return await super().ask(order)


class ByFake:
    def __init__(self):
        self.driver = SlowDriver()

    def become_idle(self):
        self.driver.free.set()

    @property
    def submitted(self):
        return self.driver.typed


@pytest.fixture(
    params=[ByKeys, ByCodexKeys, ByPlugin, ByAppServer, InForeground, ByPluginInForeground, ByFake],
    ids=lambda kind: kind.__name__,
)
async def client(request):
    return request.param()


async def wait_for_ready(client, leave=never):
    reasons = []
    async with asyncio.timeout(10):
        return await client.driver.ready(ReadyOptions(), reasons.append, leave), reasons


async def test_it_is_ready_once_the_client_is_idle_and_says_until_then_why_not(client):
    asyncio.get_running_loop().call_later(3, client.become_idle)
    ready, reasons = await wait_for_ready(client)
    assert ready
    assert set(reasons) == {"the client is busy"}
    assert client.submitted == []


async def test_waiting_gives_way(client):
    end = asyncio.get_running_loop().time() + 3
    ready, _ = await wait_for_ready(client, leave=lambda: asyncio.get_running_loop().time() >= end)
    assert not ready


@pytest.mark.parametrize("act", ["clear", "prompt"])
async def test_what_is_not_refused_was_submitted_and_what_is_refused_was_not(client, act):
    client.become_idle()
    await wait_for_ready(client)
    refused = await (client.driver.clear(never) if act == "clear" else client.driver.prompt("look", never))
    expected = "/clear" if act == "clear" else "look"
    assert client.submitted == ([expected] if refused is None else [])
    assert refused is None or isinstance(client, InForeground)


async def test_a_prompt_gives_way_and_leaves_nothing_behind(client):
    client.become_idle()
    await wait_for_ready(client)
    assert await client.driver.prompt("look", lambda: True)
    assert client.submitted == []
