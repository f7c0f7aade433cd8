"""The driver by the plugin, where it does not do what it is asked or does not answer: the keys take over."""

import asyncio
import json

import pytest

from sm.core.events import Activity
from sm.core.ports.panes import PaneError
from sm.core.ports.provider import ClientOrder, ClientState, NoAnswerError, OrderResult, ReadyOptions
from sm.paths import plugin_directory
from sm.providers.claude.mod.driver import NO_KEYS, STOPPED_BY_USER, ModDriver, NoKeys
from sm.providers.claude.mod.folder import is_installed, write_folder
from tests.fakes.clock import run_on_virtual_time
from tests.fakes.driver import SlowDriver

never = lambda: False


class Plugin:
    def __init__(self):
        self.alive = True
        self.answer = OrderResult()
        self.orders = []

    async def ask(self, order):
        self.orders.append(order)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def plugin():
    return Plugin()


@pytest.fixture
def keys():
    driver = SlowDriver()
    driver.free.set()
    return driver


@pytest.fixture
def state():
    return {"activity": Activity.IDLE, "detail": "", "since": 1.0, "background": False}


@pytest.fixture
def driver(plugin, keys, state):
    now = lambda: ClientState(state["activity"], state["detail"], "c0", state["since"])
    return ModDriver(plugin, keys, now, lambda: state["background"])


async def test_it_clears_and_prompts_by_orders_and_presses_nothing(driver, plugin, keys):
    assert await driver.clear(never) is None
    assert await driver.prompt("hello", never) is None
    assert plugin.orders == [ClientOrder("rotate"), ClientOrder("prompt", "hello", as_user=True)]
    assert keys.typed == []


@pytest.mark.parametrize("answer", [OrderResult("not now"), NoAnswerError("not now")])
async def test_what_was_not_done_is_refused_in_the_clients_words(driver, plugin, keys, answer):
    plugin.answer = answer
    assert await driver.clear(never) == "not now"
    assert await driver.prompt("hello", never) == "not now"
    assert keys.typed == []


async def test_after_the_users_own_stop_it_says_what_it_waits_for(driver, plugin):
    plugin.answer = OrderResult("sm: $.command.run: the session was stopped and nobody has sent input since")
    assert await driver.clear(never) == STOPPED_BY_USER
    assert await driver.prompt("hello", never) == STOPPED_BY_USER


async def test_after_the_users_own_stop_it_orders_nothing_until_the_client_was_at_work_again(driver, plugin, state):
    run_on_virtual_time(asyncio.get_running_loop())
    plugin.answer = OrderResult("sm: $.prompt.submit: the session was stopped and nobody has sent input since")
    assert await driver.ready(ReadyOptions(), print, never)
    await driver.prompt("hello", never)
    asyncio.get_running_loop().call_later(50, state.update, {"since": 2.0})
    reasons = []
    assert await driver.ready(ReadyOptions(), reasons.append, never)
    assert reasons == [STOPPED_BY_USER] * 3
    assert len(plugin.orders) == 1


async def test_a_client_that_does_not_say_since_when_it_is_idle_is_asked_again(driver, plugin, state):
    state["since"] = 0.0
    plugin.answer = OrderResult("sm: $.prompt.submit: the session was stopped and nobody has sent input since")
    await driver.prompt("hello", never)
    assert await driver.ready(ReadyOptions(), print, never)


async def test_the_keys_take_over_from_a_plugin_that_is_gone(driver, plugin, keys):
    plugin.alive = False
    assert await driver.ready(ReadyOptions(), print, never)
    assert await driver.clear(never) is None
    assert await driver.prompt("hello", never) is None
    assert (keys.typed, plugin.orders) == (["/clear", "hello"], [])


async def test_where_no_key_may_be_pressed_it_waits_for_the_plugin_and_says_so(plugin, state):
    run_on_virtual_time(asyncio.get_running_loop())
    plugin.alive = False
    driver = ModDriver(plugin, NoKeys(NO_KEYS), lambda: ClientState(state["activity"], "", "c0"), lambda: False)
    assert await driver.clear(never) == NO_KEYS
    assert await driver.prompt("hello", never) == NO_KEYS
    reasons = []
    asyncio.get_running_loop().call_later(60, plugin.__dict__.update, {"alive": True})
    assert await driver.ready(ReadyOptions(), reasons.append, never)
    assert set(reasons) == {NO_KEYS}
    assert await driver.prompt("/compact", never) == NO_KEYS
    assert not await ModDriver(plugin, NoKeys(NO_KEYS), driver.client_state, driver.background).ready(
        ReadyOptions(busy=True), reasons.append, lambda: len(reasons) > 1
    )


async def test_the_plugin_takes_over_from_keys_that_wait(plugin, state):
    run_on_virtual_time(asyncio.get_running_loop())
    plugin.alive = False
    driver = ModDriver(plugin, SlowDriver(), lambda: ClientState(state["activity"], "", "c0"), lambda: False)
    asyncio.get_running_loop().call_later(3, plugin.__dict__.update, {"alive": True})
    assert await driver.ready(ReadyOptions(), print, never)


async def test_the_keys_take_over_while_a_client_is_waited_for(driver, plugin, keys, state):
    run_on_virtual_time(asyncio.get_running_loop())
    state["activity"] = Activity.BUSY
    asyncio.get_running_loop().call_later(3, plugin.__dict__.update, {"alive": False})
    reasons = []
    assert await driver.ready(ReadyOptions(), reasons.append, never)
    assert set(reasons) == {"the client is busy"}


async def test_what_joins_a_turn_that_runs_is_typed(driver, plugin, keys, state):
    state["activity"] = Activity.BUSY
    assert await driver.ready(ReadyOptions(busy=True), print, never)
    assert await driver.prompt("stop that", never, now=True) is None
    assert (keys.typed, plugin.orders) == (["stop that"], [])


@pytest.mark.parametrize("command", ["/compact", "!ls", "# remember"])
async def test_a_command_is_typed(driver, plugin, keys, command):
    assert await driver.prompt(command, never) is None
    assert (keys.typed, plugin.orders) == ([command], [])


async def test_a_client_that_only_its_background_tasks_keep_busy_is_ready(driver, state):
    state.update(activity=Activity.BUSY, background=True)
    assert await driver.ready(ReadyOptions(), print, never)


@pytest.mark.parametrize("activity", [Activity.WAITING, Activity.STOPPED])
async def test_a_dialog_or_menu_is_waited_for_and_named_however_long_it_is_open(driver, plugin, keys, state, activity):
    run_on_virtual_time(asyncio.get_running_loop())
    state.update(activity=activity, detail="the model menu")
    asyncio.get_running_loop().call_later(50, state.update, {"activity": Activity.IDLE})
    reasons = []
    assert await driver.ready(ReadyOptions(), reasons.append, never)
    assert len(reasons) == 3  # a rotation that hears nothing for two minutes begins anew
    assert all("the model menu" in reason for reason in reasons)
    assert (plugin.orders, keys.typed) == ([], [])


async def test_a_client_whose_state_nothing_tells_gets_its_order(driver, state):
    """The plugin answers, so there is one, and it waits by itself for what is open."""
    state["activity"] = Activity.UNKNOWN
    assert await driver.ready(ReadyOptions(), print, never)


def test_its_folder_is_written_once_and_again_only_where_it_differs(tmp_path):
    """A running client loads the module again whenever its file changes."""
    folder = write_folder(plugin_directory(), tmp_path / "mod", "1.0")
    files = [path for path in folder.rglob("*") if path.is_file()]
    before = {path: path.stat().st_ino for path in files}
    assert {str(path.relative_to(folder)) for path in files} == {
        ".claude-plugin/plugin.json",
        "hooks/hooks.json",
        "hooks/alone.ts",
        "hooks/sm.ts",
    }
    write_folder(plugin_directory(), folder, "1.0")
    assert {path: path.stat().st_ino for path in files} == before
    (folder / "hooks/sm.ts").write_text("of an older version")
    write_folder(plugin_directory(), folder, "1.0")
    assert (folder / "hooks/sm.ts").read_bytes() == (plugin_directory() / "hooks/sm.ts").read_bytes()


def test_where_the_user_has_installed_the_plugin_the_folder_has_its_skills_too(tmp_path):
    folder = write_folder(plugin_directory(), tmp_path / "mod", "1.0", skills=True)
    skills = {path.relative_to(folder / "skills") for path in (folder / "skills").rglob("*") if path.is_file()}
    assert skills == {
        path.relative_to(plugin_directory() / "skills")
        for path in (plugin_directory() / "skills").rglob("*")
        if path.is_file()
    }
    assert (folder / "common.sh").is_file()
    assert not (folder / "hooks/offer.sh").exists()
    assert json.loads((folder / "hooks/hooks.json").read_text()) == {"modules": ["./sm.ts"]}


@pytest.mark.parametrize(
    ("settings", "installed"),
    [
        ({}, False),
        ({"enabledPlugins": {"sm@sm": True}}, True),
        ({"enabledPlugins": {"sm@another": True, "smart@x": True}}, True),
        ({"enabledPlugins": {"sm@sm": False, "smart@sm": True}}, False),
        ({"enabledPlugins": ["sm@sm"]}, False),
    ],
)
def test_the_plugin_is_installed_where_settings_enable_it(settings, installed):
    assert is_installed(settings) is installed


async def test_what_the_keys_have_left_in_the_box_is_removed_before_the_plugin_is_ordered_anything(driver, keys):
    left = ["removes text of its own", PaneError("busy")]

    async def withdraw():
        problem = left.pop() if left else None
        if isinstance(problem, PaneError):
            raise problem
        return problem

    keys.withdraw = withdraw
    assert await driver.ready(ReadyOptions(), print, never)
    assert left == []
