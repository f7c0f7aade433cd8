"""What may go wrong with the plugin in a client, its server and their link, on the real client.

Whatever it is: the session is driven in another way or later, says so, and a handoff rotates once, with its document.
"""

import asyncio
import os
import shutil
import signal
import sys

import pytest

from sm import __version__
from sm.engine.client_link import SILENT
from sm.paths import plugin_directory
from sm.providers.claude.mod.folder import MODULE
from sm.providers.claude.traits import CLAUDE
from sm.testing.scenario import Call, Say, Together, Turn, scenario
from tests.e2e import people
from tests.e2e.people import AWOKE, hands_off, submit
from tests.e2e.rig import PATIENCE, ROOT, SHORT_LIVED, Rig
from tests.e2e.test_kills import NOTE, PHASES, reached, requests_with, settled, started, told

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

BY_MOD = '[claude]\ndriver = "auto"\n'
DOCUMENT = people.DOCUMENT
GOES_ON = Turn(AWOKE, steps=[Say("Going on.", delay=0.2)])
BY_TOOL = scenario(
    Turn("hand off", steps=[Call("mcp__sm__handoff", document=DOCUMENT), Say("Handed off.", delay=0.5)]),
    GOES_ON,
    otherwise=Say("ok"),
)


class OtherPlugin(Rig):
    """Its clients get the module with some words replaced."""

    changes: tuple[tuple[str, str], ...] = ()

    def server_command(self):
        module = (plugin_directory() / MODULE).read_text()
        for old, new in self.changes:
            assert module.count(old) == 1, old
            module = module.replace(old, new)
        place = self.root / "plugin"
        shutil.copytree(plugin_directory(), place, dirs_exist_ok=True)
        (place / MODULE).write_text(module)
        return [sys.executable, str(ROOT / "tests" / "e2e" / "other_plugin.py")]

    @property
    def loaded(self):
        """The module that its clients have loaded, and load again when it changes."""
        return self.home.root / f"mod-{__version__}" / MODULE


def with_module(script, *changes):
    rig = OtherPlugin(script, config=BY_MOD)
    rig.changes = changes
    return rig


SAYS_HELLO = "    link = await found($, e.isInteractive)\n"
SILENT_FROM_THE_START = {
    "an unknown name": (SAYS_HELLO, f"    await $.crystal.ball()\n{SAYS_HELLO}"),
    "throws as it is loaded": ("const HOLD_S", "throw new Error('boom')\nconst HOLD_S"),
    "throws as it registers": ("Register = on => {\n", "Register = on => {\n  throw new Error('boom')\n"),
    "a hook throws": (SAYS_HELLO, f"    throw new Error('boom')\n{SAYS_HELLO}"),
    "a hook hangs": (SAYS_HELLO, f"    await new Promise(() => undefined)\n{SAYS_HELLO}"),
}


@pytest.mark.parametrize("change", SILENT_FROM_THE_START.values(), ids=SILENT_FROM_THE_START.keys())
@pytest.mark.often("an unknown name")
async def test_a_session_whose_plugin_never_answers_is_driven_by_keys_and_says_why(change):
    async with with_module(hands_off(), change) as rig:
        session = await rig.new("please hand off")
        await people.wake_request(rig)
        await rig.wait_phase(session, "done")
        view = await rig.wait_view(session, lambda view: view["driver_note"] == CLAUDE.plugin_unanswered, "unanswered")
        assert (view["driver"], view["rotations"]) == ("keys", 1)


TURN = "    if (link !== undefined && e.agentId === undefined) {\n      tokens"
OVER = "      looking?.cancel()\n"


@pytest.mark.parametrize(
    "fault", ["throw new Error('boom')", "await new Promise(() => undefined)"], ids=["throw", "hang"]
)
@pytest.mark.parametrize("place", [TURN, OVER], ids=["turn.start", "turn.complete"])
@pytest.mark.soak
async def test_a_hook_that_fails_in_a_turn_is_skipped_and_the_plugin_rotates(place, fault):
    async with with_module(BY_TOOL, (place, f"      {fault}\n{place}")) as rig:
        session = await rig.new("please hand off")
        await rig.wait_view(session, lambda view: view["driver"] == "mod", "driven by the plugin")
        await settled_once(rig, session)
        assert (await rig.view(session))["driver"] == "mod"


@pytest.mark.soak
async def test_a_plugin_that_spins_at_its_start_is_unloaded_and_the_keys_drive():
    async with with_module(hands_off(), (SAYS_HELLO, f"    for (;;) {{}}\n{SAYS_HELLO}")) as rig:
        compile_as_usual(rig)
        session = await rig.new("please hand off")
        await people.wake_request(rig, within=90)
        await rig.wait_phase(session, "done")
        assert (await rig.view(session))["driver_note"] == CLAUDE.plugin_unanswered


@pytest.mark.soak
async def test_a_plugin_that_spins_once_is_started_again_and_rotates():
    """The client replaces the worker, and the module in it is another generation (2.1.328)."""
    spins = (TURN, f"    if (e.text.includes('spin')) for (;;) {{}}\n{TURN}")
    async with with_module(BY_TOOL, spins) as rig:
        compile_as_usual(rig)
        session = await rig.new()
        await rig.wait_view(session, lambda view: view["driver"] == "mod", "driven by the plugin")
        await submit(rig, session, "spin")
        await rig.model.wait_for(lambda request: "spin" in request.user_text, within=PATIENCE)
        await eventually(rig, session, lambda view: view["status"] == "idle", "idle")
        await eventually(rig, session, lambda view: view["driver"] == "mod", "driven by the plugin")
        await rig.ask("POST", f"/sessions/{session}/messages", {"text": "please hand off"})
        await settled_once(rig, session)


def compile_as_usual(rig):
    """With the settings that make a client of a test start sooner its hooks worker cannot be ended while it spins."""
    for name in SHORT_LIVED:
        rig.env.pop(name)


SILENT_MODULE = "import type { Register } from 'claude-code'\nexport const register: Register = () => undefined\n"


@pytest.mark.soak
async def test_a_session_whose_plugin_falls_silent_in_mid_life_is_driven_by_keys_and_says_why():
    async with with_module(hands_off()) as rig:
        session = await rig.new("hello")
        await rig.wait_view(session, lambda view: view["driver"] == "mod" and view["status"] == "idle", "idle")
        rig.loaded.write_text(SILENT_MODULE)
        view = await eventually(rig, session, lambda view: view["driver"] == "keys", "driven by keys")
        assert view["driver_note"] == SILENT
        await rig.ask("POST", f"/sessions/{session}/messages", {"text": "please hand off"})
        await people.wake_request(rig)
        await rig.wait_phase(session, "done")


async def eventually(rig, session, expected, what):
    """Twice as long as a plugin is waited for that has fallen silent."""
    await rig.until(lambda: expected(rig.call("GET", f"/sessions/{session}")), what, patience=2 * PATIENCE)
    return await rig.view(session)


async def settled_once(rig, session):
    """Rotated once, with its document, and every message delivered once."""
    view = await settled(rig, session)
    (wake,) = requests_with(rig, AWOKE)
    assert view["rotations"] == 1
    assert wake.session == view["conversation"]
    assert DOCUMENT.strip() in wake.all_text
    return view


async def killed(rig):
    await rig.kill_server()
    await rig.start_server()


async def away(rig):
    await rig.kill_server()
    await asyncio.sleep(3)
    await rig.start_server()


async def hanging(rig):
    os.kill(rig.server.pid, signal.SIGSTOP)
    await asyncio.sleep(4)  # the module waits two seconds for a document
    os.kill(rig.server.pid, signal.SIGCONT)


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("happens", [killed, away, hanging])
@pytest.mark.often("hanging-clearing")
@pytest.mark.soak
async def test_a_server_that_is_killed_or_hangs_in_any_phase_finishes_the_rotation(happens, phase):
    async with Rig(BY_TOOL, config=BY_MOD) as rig:
        session = await started(rig)
        await rig.wait_view(session, lambda view: view["driver"] == "mod", "driven by the plugin")
        await reached(rig, phase)
        await happens(rig)
        view = await settled(rig, session)
        (wake,) = requests_with(rig, AWOKE)
        assert DOCUMENT.strip() in wake.all_text or f"Read {rig.home.root}" in wake.user_text
        await rig.until(lambda: told(rig, NOTE), "told of its message")
        assert told(rig, NOTE) == 1
        assert (view["rotations"], view["driver"]) == (1, "mod")


CLEARS = "    await $.command.run({ command: 'clear' })\n"


@pytest.mark.soak
async def test_an_order_that_a_reload_of_the_module_cut_off_is_given_again():
    async with with_module(BY_TOOL, (CLEARS, f"    await $.clock.sleep(6_000)\n{CLEARS}")) as rig:
        session = await rig.new("please hand off")
        await rig.wait_phase(session, "clearing")
        await asyncio.sleep(0.5)
        rig.loaded.write_bytes((plugin_directory() / MODULE).read_bytes())
        view = await settled_once(rig, session)
        assert view["driver"] == "mod"


@pytest.mark.soak
async def test_an_idle_client_whose_module_is_loaded_again_gets_its_next_orders():
    async with with_module(BY_TOOL) as rig:
        session = await rig.new("hello")
        await rig.wait_view(session, lambda view: view["driver"] == "mod" and view["status"] == "idle", "idle")
        for number in range(3):
            rig.loaded.write_text(f"{rig.loaded.read_text()}\n// {number}\n")
            await asyncio.sleep(1)
        await rig.ask("POST", f"/sessions/{session}/messages", {"text": "please hand off"})
        await settled_once(rig, session)


@pytest.mark.soak
async def test_two_handoffs_and_retries_at_once_clear_once():
    both = [Call("mcp__sm__handoff", document=text) for text in ("# Old\n", DOCUMENT)]
    script = scenario(
        Turn("hand off", steps=[Together(*both), Say("Handed off.", delay=0.5)]), GOES_ON, otherwise=Say("ok")
    )
    async with Rig(script, config=BY_MOD) as rig:
        session = await started(rig)
        await reached(rig, "reserved")
        retries = (rig.ask("POST", f"/sessions/{session}/handoff/retry") for _ in range(5))
        await asyncio.gather(*retries, return_exceptions=True)
        await settled_once(rig, session)
        assert told(rig, NOTE) == 1
        assert len((await rig.view(session))["past_conversations"]) == 1


async def test_a_message_after_the_users_own_stop_waits_for_their_next_prompt():
    works = [Call("Bash", command="true"), Say("Done.", delay=60.0)]  # after a call the prompt is not put back
    script = scenario(Turn("work", steps=works), otherwise=Say("ok"))
    async with Rig(script, config=BY_MOD) as rig:
        session = await rig.new("work")
        await rig.wait_view(session, lambda view: view["driver"] == "mod", "driven by the plugin")
        await rig.model.wait_for(lambda request: bool(request.tool_results))
        rig.press(session, "Escape")
        await rig.wait_status(session, "idle")
        message = (await rig.ask("POST", f"/sessions/{session}/messages", {"text": "the port is 8080"}))["id"]
        await rig.until(lambda: "stopped by you" in rig.call("GET", f"/messages/{message}")["reason"], "why it waits")
        await asyncio.sleep(1)
        assert rig.call("GET", f"/messages/{message}")["state"] == "queued"
        await submit(rig, session, "go on")
        await rig.until(lambda: rig.call("GET", f"/messages/{message}")["state"] == "confirmed", "confirmed")
        assert told(rig, "the port is 8080") == 1


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.often("clearing")
async def test_escape_in_any_phase_loses_neither_document_nor_message(phase):
    """While the agent works it is the user's stop: the rotation then waits for their next prompt."""
    async with Rig(BY_TOOL, config=BY_MOD) as rig:
        session = await started(rig)
        await rig.wait_view(session, lambda view: view["driver"] == "mod", "driven by the plugin")
        await reached(rig, phase)
        rig.press(session, "Escape")
        await asyncio.sleep(3)
        await submit(rig, session, "go on")
        view = await settled(rig, session)
        wakes = [request for request in rig.model.main_requests if request.session == view["conversation"]]
        assert "=== HANDOFF LOADED" in wakes[0].all_text
        assert DOCUMENT.strip() in wakes[0].all_text
        assert "please hand off" not in wakes[0].all_text
        assert view["rotations"] == 1
        assert told(rig, NOTE) == 1
