"""`sm run` with the plugin in its client, on the real one in a pseudo-terminal: cleared in the same process.

Where the plugin is not there, or is lost, the client is ended and started again.
"""

import asyncio
import os
import stat
from contextlib import suppress

import pytest

from sm import __version__
from sm.processes import alive
from sm.testing.scenario import Call, Say, Turn, scenario
from tests.e2e.foreground import Terminal, answered
from tests.e2e.people import AWOKE, GOES_ON, HANDED_OFF, WROTE
from tests.e2e.rig import REAL_CLIENT, Rig

pytestmark = [pytest.mark.e2e, pytest.mark.matrix, pytest.mark.timeout(180)]

BY_MOD = '[claude]\ndriver = "mod"\n'
MODEL = ("--model", "claude-sonnet-4-5")
DOCUMENT = "# Handoff\n\nThe goal is G.\nNext step: run the tests.\n"
TOOL = Call("mcp__sm__handoff", document=DOCUMENT)
SLEEPS = Call("Bash", command="sleep 2")
DRAFT = "and then the tests"
SCRIPT = scenario(
    Turn("hand off", steps=[SLEEPS, TOOL, Say("Handed off.")]),
    Turn("by file", steps=[SLEEPS, WROTE, HANDED_OFF, Say("Handed off.")]),
    GOES_ON,
    otherwise=Say("ok"),
)


async def driven(rig, terminal):
    """A session whose plugin has said hello."""
    session = await terminal.session()
    await happened(rig, session, "DriverChanged", driver="mod")
    return session


def wakes(rig):
    return [request for request in rig.model.main_requests if AWOKE in request.user_text]


async def happened(rig, session, kind, count=1, **data):
    """Wait for an event for longer than the rig does: a silent plugin is given half a minute."""
    for _ in range(2):
        with suppress(AssertionError):
            return await rig.wait_event(session, kind, count, **data)
    return await rig.wait_event(session, kind, count, **data)


async def settled(rig, session):
    """Wait for each step by itself: a busy machine takes its time for all of them."""
    await happened(rig, session, "HandoffRequested")
    await rig.wait_view(session, lambda v: v["handoff"]["phase"] not in {"pending", "reserved"}, "begun")
    await rig.wait_phase(session, "done")
    view = await rig.wait_view(
        session, lambda v: v["handoff"]["phase"] == "done" and v["status"] == "idle", "rotated and idle"
    )
    await asyncio.sleep(1)  # a second copy would come now
    return view


async def in_place(rig, session, first, *, killed=False):
    """The work goes on from its document, once and in the process that began it."""
    view = await settled(rig, session)
    (wake,) = wakes(rig)
    named = f"Read {view['handoff']['copy']} and {AWOKE}"
    # A server killed as it answers the hook of the start has given nothing: the prompt names the file.
    assert "Next step: run the tests." in wake.all_text or (named in wake.user_text and killed)
    assert "please hand off" not in wake.all_text
    assert (view["pid"], view["past_conversations"]) == (first["pid"], [first["conversation"]])
    assert (view["driver"], view["rotations"]) == ("mod", 1)
    assert not await rig.events(session, "RestartTaken")
    return view


async def restarted(rig, terminal, session, first):
    """The work goes on from its document, once and in a new client."""
    view = await settled(rig, session)
    assert len(wakes(rig)) == 1
    assert view["pid"] != first["pid"]
    assert not alive(first["pid"])
    assert await rig.events(session, "RestartTaken")
    assert await terminal.quit() == 0
    assert terminal.modes == terminal.before
    return view


async def test_the_context_is_cleared_in_the_same_process_and_the_draft_stays_in_the_box():
    async with Rig(SCRIPT, config=BY_MOD) as rig:
        with Terminal(rig, (*MODEL, "please hand off")) as terminal:
            session = await driven(rig, terminal)
            first = await rig.view(session)
            terminal.type(DRAFT)
            await in_place(rig, session, first)
            terminal.type("\r")
            request = await rig.model.wait_for(lambda request: DRAFT in request.user_text, within=20)
            assert request.user_text.strip() == DRAFT
            assert "Next step: run the tests." in request.all_text
            await rig.wait_status(session, "idle")
            assert await terminal.quit() == 0
            assert terminal.modes == terminal.before


async def test_a_message_reaches_an_idle_agent_and_the_draft_stays_in_the_box():
    async with Rig(SCRIPT, config=BY_MOD) as rig:
        with Terminal(rig, (*MODEL, "hello there")) as terminal:
            session = await driven(rig, terminal)
            await answered(rig, session)
            terminal.type(DRAFT)
            await asyncio.sleep(0.3)
            await rig.ask("POST", f"/sessions/{session}/messages", {"text": "a note"})
            request = await rig.model.wait_for(lambda request: "a note" in request.user_text, within=20)
            assert DRAFT not in request.user_text
            await rig.wait_event(session, "TurnEnded", 2)
            terminal.type("\r")
            request = await rig.model.wait_for(lambda request: DRAFT in request.user_text, within=20)
            assert request.user_text.strip() == DRAFT
            assert (await rig.view(session))["queued"] == 0


@pytest.mark.soak
async def test_an_agent_that_is_told_of_its_full_context_hands_off_in_place_again_and_again():
    full = [Call("Bash", command="true").but(context=150_000), *[Call("Bash", command="sleep 1")] * 2, Say("Full.")]
    script = scenario(
        Turn("fill up", steps=full),
        Turn(context="Context critically high", steps=[TOOL, Say("Handed off.")]),
        Turn(AWOKE, steps=full),
        otherwise=Say("ok"),
    )
    unguarded = "[handoff]\nmin_growth = 0\nmax_without_progress = 0\n"
    async with Rig(script, config=BY_MOD + unguarded) as rig:
        with Terminal(rig, (*MODEL, "please fill up"), options=("--max-restarts", "2")) as terminal:
            session = await driven(rig, terminal)
            first = await rig.view(session)
            for rotation in (1, 2):
                await rig.wait_view(session, lambda v, number=rotation: v["rotations"] == number, "rotated")
            view = await rig.wait_phase(session, "failed")
            assert (view["rotations"], view["pid"]) == (2, first["pid"])
            assert "rotated 2 times without progress" in view["handoff"]["note"]
            await rig.until(lambda: "this context stays" in terminal.plain, "told on the terminal")


# --- without the plugin ----------------------------------------------------------------------------------------------


def without_plugin(rig):
    """A client that leaves the plugin out, as one whose settings forbid it."""
    wrapper = rig.root / "claude"
    wrapper.write_text(WITHOUT_PLUGIN.format(client=REAL_CLIENT))
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
    rig.client = str(wrapper)


WITHOUT_PLUGIN = """\
#!/bin/bash
kept=()
while [ $# -gt 0 ]; do
    if [ "$1" = --plugin-dir ]; then shift 2; else kept+=("$1"); shift; fi
done
exec {client} "${{kept[@]}}"
"""


@pytest.mark.soak
async def test_a_client_whose_plugin_never_answers_is_started_again():
    async with Rig(SCRIPT, config=BY_MOD) as rig:
        without_plugin(rig)
        with Terminal(rig, (*MODEL, "by file please")) as terminal:
            session = await terminal.session()
            first = await rig.view(session)
            assert (first["driver"], "has not answered yet" in first["driver_note"]) == ("keys", True)
            view = await restarted(rig, terminal, session, first)
            assert view["driver"] == "keys"


def module(rig):
    return rig.home.root / f"mod-{__version__}" / "hooks" / "sm.ts"


async def replace_plugin(rig, terminal, text):
    """The client loads a module again as soon as its file has changed, and keeps the old one if it throws (2.1.328)."""
    await asyncio.to_thread(module(rig).write_text, text)
    await asyncio.sleep(1.5)
    assert terminal.process.poll() is None


IDLE_MODULE = "export const register = on => { on('session.start', async ($, e, next) => next(e)) }\n"


@pytest.mark.soak
async def test_a_plugin_that_is_unloaded_before_the_clear_leaves_it_to_a_restart():
    async with Rig(SCRIPT, config=BY_MOD) as rig:
        with Terminal(rig, (*MODEL, "hello there")) as terminal:
            session = await driven(rig, terminal)
            first = await answered(rig, session)
            await replace_plugin(rig, terminal, IDLE_MODULE)
            await rig.ask("POST", f"/sessions/{session}/messages", {"text": "a note for later"})
            terminal.type("by file please")
            await asyncio.sleep(0.3)
            terminal.type("\r")
            await happened(rig, session, "HandoffRequested")
            await happened(rig, session, "DriverChanged", driver="keys")
            view = await restarted_with_plugin(rig, session, first)
            assert view["queued"] == 0
            read = [request for request in rig.model.main_requests if "a note for later" in request.all_text]
            assert read
            assert await terminal.quit() == 0


PROMPTS = "    for (const order of answer.orders ?? []) inBackground(carryOut($, order))\n"
ENDS_AT_A_PROMPT = "    if ((answer.orders ?? []).some(order => order.kind === 'prompt')) return\n"


@pytest.mark.soak
async def test_a_plugin_that_is_lost_between_the_clear_and_the_prompt_leaves_the_document_to_a_restart():
    async with Rig(SCRIPT, config=BY_MOD) as rig:
        with Terminal(rig, (*MODEL, "hello there")) as terminal:
            session = await driven(rig, terminal)
            first = await answered(rig, session)
            text = module(rig).read_text()
            assert PROMPTS in text
            await replace_plugin(rig, terminal, text.replace(PROMPTS, ENDS_AT_A_PROMPT + PROMPTS))
            terminal.type("please hand off")
            await asyncio.sleep(0.3)
            terminal.type("\r")
            await happened(rig, session, "ConversationStarted", 2)
            await happened(rig, session, "DriverChanged", driver="keys")
            view = await restarted_with_plugin(rig, session, first)
            assert len(view["past_conversations"]) == 2
            assert "Next step: run the tests." in wakes(rig)[0].all_text
            assert await terminal.quit() == 0


async def restarted_with_plugin(rig, session, first):
    view = await settled(rig, session)
    assert len(wakes(rig)) == 1
    assert (view["pid"] != first["pid"], alive(first["pid"])) == (True, False)
    return await rig.wait_view(session, lambda v: v["driver"] == "mod", "the new client's plugin answers")


# --- kills -----------------------------------------------------------------------------------------------------------

FIRST_CLEAR = "(SELECT min(number) FROM events WHERE kind = 'SnapshotTaken')"
PHASES = {
    "pending": "kind = 'HandoffRequested'",
    "reserved": "kind = 'TurnEnded'",
    "ordered": "kind = 'SnapshotTaken'",
    "ended": "kind = 'ConversationEnded'",
    "started": f"kind = 'ConversationStarted' AND number > {FIRST_CLEAR}",
    "ready": f"kind = 'ComposerReady' AND number > {FIRST_CLEAR}",
    "prompted": f"kind = 'PromptSubmitted' AND number > {FIRST_CLEAR}",
}
"""The event that begins each stretch, as the database shows it."""
ARGUMENTS = (*MODEL, "please hand off")


@pytest.mark.soak
@pytest.mark.parametrize("phase", PHASES)
async def test_a_server_killed_in_any_phase_continues_in_the_same_process(phase):
    async with Rig(SCRIPT, config=BY_MOD) as rig:
        with Terminal(rig, ARGUMENTS) as terminal:
            session = await driven(rig, terminal)
            first = await rig.view(session)
            await rig.recorded(PHASES[phase])
            await rig.kill_server()
            await rig.start_server()
            await in_place(rig, session, first, killed=True)
            assert terminal.process.poll() is None


@pytest.mark.soak
async def test_a_document_whose_server_is_away_for_a_while_is_not_lost():
    async with Rig(SCRIPT, config=BY_MOD) as rig:
        with Terminal(rig, ARGUMENTS) as terminal:
            session = await driven(rig, terminal)
            first = await rig.view(session)
            await rig.recorded(PHASES["pending"])
            await rig.kill_server()
            await asyncio.sleep(3)
            assert not wakes(rig)
            await rig.start_server()
            await in_place(rig, session, first)


@pytest.mark.soak
@pytest.mark.parametrize("phase", PHASES)
async def test_sm_run_killed_in_any_phase_leaves_no_client_and_its_document_to_be_restored(phase):
    async with Rig(SCRIPT, config=BY_MOD) as rig:
        with Terminal(rig, ARGUMENTS) as terminal:
            session = await driven(rig, terminal)
            await rig.recorded(PHASES[phase])
            terminal.process.kill()
            view = await rig.wait_view(session, lambda v: v["status"] in {"exited", "crashed"}, "ended")
            assert not alive(view["pid"])
            if view["handoff"]["phase"] != "done":
                before = len(wakes(rig))
                await rig.ask("POST", f"/sessions/{session}/restore", {"env": rig.env})
                view = await settled(rig, session)
                assert (bool(view["pane"]), view["foreground"]) == (True, False)
                assert len(wakes(rig)) == before + 1
                assert "Next step: run the tests." in wakes(rig)[-1].all_text


@pytest.mark.soak
@pytest.mark.parametrize("phase", PHASES)
async def test_a_client_killed_in_any_phase_ends_sm_run_and_leaves_its_document_to_be_restored(phase):
    slow = scenario(
        Turn("hand off", steps=[TOOL, Say("Handed off.")]),
        Turn(AWOKE, steps=[Say("Going on.", delay=2.0)]),
        otherwise=Say("ok"),
    )
    async with Rig(slow, config=BY_MOD) as rig:
        with Terminal(rig, (*MODEL, "hello there")) as terminal:
            session = await driven(rig, terminal)
            await answered(rig, session)
            await rig.ask("POST", f"/sessions/{session}/messages", {"text": "please hand off"})
            await rig.recorded(PHASES[phase] if phase != "reserved" else f"{PHASES[phase]} AND number > {HANDED}")
            os.kill((await rig.view(session))["pid"], 9)
            assert await terminal.ended() == 137
            assert terminal.modes == terminal.before
            await rig.wait_status(session, "crashed")
            before = len(wakes(rig))
            await rig.ask("POST", f"/sessions/{session}/restore", {"env": rig.env})
            await settled(rig, session)
            assert len(wakes(rig)) == before + 1
            assert "Next step: run the tests." in wakes(rig)[-1].all_text


HANDED = "(SELECT min(number) FROM events WHERE kind = 'HandoffRequested')"
