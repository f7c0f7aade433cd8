"""The driver inside the client, on the real one: no key is pressed, and the handoff is a tool."""

import asyncio
import time

import pytest

from sm.testing.scenario import Call, Say, Turn, scenario
from tests.e2e.people import box_shows
from tests.e2e.rig import PATIENCE, Rig

pytestmark = [pytest.mark.e2e, pytest.mark.matrix, pytest.mark.timeout(120)]

DOCUMENT = "# Handoff\n\n" + "A fact that the next context needs.\n" * 100 + "\nNext step: run the tests.\n"
WAKE = "continue from where you left off"
BY_MOD = '[claude]\ndriver = "auto"\n'
DRAFTS = {"one line": "and then the tests", "three lines": "first line\nsecond line\n  third line", "command": "/cle"}


def hands_off(*before):
    tool = Call("mcp__sm__handoff", document=DOCUMENT)
    return scenario(
        Turn("hand off", steps=[*before, tool, Say("Handed off.")]),
        Turn(WAKE, steps=[Say("Going on.")]),
        otherwise=Say("ok"),
    )


async def driven(rig, prompt=None):
    """A session whose plugin has said hello."""
    session = await rig.new(prompt)
    await rig.wait_view(session, lambda view: view["driver"] == "mod", "driven by the plugin")
    return session


async def woken(rig):
    return await rig.model.wait_for(lambda request: WAKE in request.user_text, within=20)


async def test_the_agent_hands_off_with_a_tool_and_continues_in_a_fresh_context():
    async with Rig(hands_off(), config=BY_MOD) as rig:
        session = await driven(rig, "please hand off")
        await rig.wait_phase(session, "done")
        request = await woken(rig)
        assert "=== HANDOFF LOADED (ID: HO-" in request.all_text
        assert "Next step: run the tests." in request.all_text
        assert "please hand off" not in request.all_text
        await rig.wait_screen(session, "Prompt from the sm plugin")
        view = await rig.view(session)
        assert view["conversation"] not in view["past_conversations"]
        assert len(view["past_conversations"]) == 1


@pytest.mark.soak
@pytest.mark.parametrize("draft", DRAFTS.values(), ids=DRAFTS.keys())
async def test_a_draft_stays_where_it_is_over_a_rotation_and_a_message(draft):
    async with Rig(hands_off(Call("Bash", command="sleep 2")), config=BY_MOD) as rig:
        session = await driven(rig)
        rig.tmux("set-buffer", "--", draft)
        rig.tmux("paste-buffer", "-p", "-t", rig.pane(session))
        await box_shows(rig, session, draft)
        await rig.ask("POST", f"/sessions/{session}/messages", {"text": "please hand off"})
        await rig.wait_phase(session, "done")
        await woken(rig)
        await box_shows(rig, session, draft)
        assert not any(draft in request.user_text for request in rig.model.requests)


@pytest.mark.soak
async def test_a_killed_server_takes_up_its_plugin_again():
    async with Rig(hands_off(Call("Bash", command="sleep 3")), config=BY_MOD) as rig:
        session = await driven(rig, "please hand off")
        await rig.kill_server()
        await asyncio.sleep(1)
        await rig.start_server()
        await rig.wait_phase(session, "done")
        assert DOCUMENT.strip()[-20:] in (await woken(rig)).all_text
        assert (await rig.view(session))["driver"] == "mod"
        await rig.wait_screen(session, "Prompt from the sm plugin")


LOOKS = Call("Bash", command="sleep 1")


async def test_a_warning_is_in_the_next_request_and_no_hook_runs_after_a_tool():
    steps = [LOOKS.but(context=size) for size in (50_000, 110_000, 111_000, 140_000, 141_000)]
    async with Rig(scenario(Turn("work", steps=steps), otherwise=Say("ok")), config=BY_MOD) as rig:
        session = await driven(rig, "work")
        await rig.until(lambda: len(rig.model.main_requests) >= 6, "6 requests")
        await rig.wait_status(session, "idle")
        said = [request.context_text for request in rig.model.main_requests]
        assert [number for number, text in enumerate(said) if "Consider writing a handoff doc" in text] == [2]
        assert [number for number, text in enumerate(said) if "Context critically high." in text] == [4]
        assert not await rig.events(session, "ToolUsed")


IMPORTANT = {"text": "the port is 8080", "mode": "important"}


async def confirmed(rig, sent):
    deadline = time.monotonic() + PATIENCE
    while (message := await rig.ask("GET", f"/messages/{sent['id']}"))["state"] != "confirmed":
        assert time.monotonic() < deadline, message
        await asyncio.sleep(0.05)
    return message


async def test_an_important_message_is_in_the_next_request_of_the_running_turn():
    async with Rig(scenario(Turn("work", steps=[LOOKS] * 3), otherwise=Say("ok")), config=BY_MOD) as rig:
        session = await driven(rig, "work")
        await rig.until(lambda: len(rig.model.main_requests) >= 1, "the first request")
        await rig.wait_event(session, "ContextReported")
        sent = await rig.ask("POST", f"/sessions/{session}/messages", IMPORTANT)
        request = await rig.model.wait_for(lambda request: "the port is 8080" in request.all_text)
        assert request is rig.model.main_requests[1]
        assert (await confirmed(rig, sent))["channel"] == "plugin"
        await rig.wait_status(session, "idle")
        assert len(rig.model.main_requests) == 4


@pytest.mark.soak
async def test_a_message_that_comes_as_the_turn_ends_is_read_once():
    script = scenario(Turn("work", steps=[LOOKS, Say("Done.", delay=2.0)]), Turn("Read it above", steps=[Say("Read.")]))
    async with Rig(script, config=BY_MOD) as rig:
        session = await driven(rig, "work")
        await rig.until(lambda: len(rig.model.main_requests) >= 2, "the last request of the turn")
        sent = await rig.ask("POST", f"/sessions/{session}/messages", IMPORTANT)
        request = await rig.model.wait_for(lambda request: "the port is 8080" in request.all_text)
        assert request.all_text.count("the port is 8080") == 1
        await confirmed(rig, sent)
        await rig.wait_status(session, "idle")
        assert len(rig.model.main_requests) == 3


async def test_a_long_document_is_whole_in_the_first_request():
    long = "# Handoff\n\n" + "".join(
        f"Fact number {number} that the next context needs.\n" for number in range(1, 1300)
    )
    script = scenario(
        Turn("hand off", steps=[Call("mcp__sm__handoff", document=long), Say("Handed off.")]), otherwise=Say("ok")
    )
    async with Rig(script, config=BY_MOD) as rig:
        session = await driven(rig, "please hand off")
        await rig.wait_phase(session, "done")
        request = await woken(rig)
        assert long.strip() in request.all_text
        assert request.all_text.count("=== HANDOFF LOADED") == 1


@pytest.mark.soak
async def test_what_the_user_says_after_the_document_reaches_the_next_context():
    script = scenario(
        Turn("hand off", steps=[Call("mcp__sm__handoff", document=DOCUMENT), Say("Handed off.", delay=3.0)]),
        Turn("8080", steps=[Say("Noted.")]),
        otherwise=Say("ok"),
    )
    async with Rig(script, config=BY_MOD) as rig:
        session = await driven(rig, "please hand off")
        await rig.wait_phase(session, "pending")
        rig.type(session, "and use port 8080")
        rig.press(session, "Enter")
        await rig.wait_phase(session, "done")
        request = await woken(rig)
        assert "> and use port 8080\n" in request.all_text
        assert "please hand off" not in request.all_text


def stopped(view):
    return "stopped by you" in (view["handoff"]["note"] or "")


def cleared(view):
    return bool(view["past_conversations"])


@pytest.mark.soak
async def test_after_the_users_own_stop_it_says_so_and_continues_with_their_next_prompt():
    """From Escape on the client refuses every call of a plugin until its user sends something; 2.1.290 refuses none."""
    script = scenario(
        Turn("hand off", steps=[Call("mcp__sm__handoff", document=DOCUMENT), Say("Handed off.", delay=60.0)]),
        otherwise=Say("ok"),
    )
    async with Rig(script, config=BY_MOD) as rig:
        session = await driven(rig, "please hand off")
        await rig.wait_phase(session, "pending")
        await rig.model.wait_for(lambda request: any("scheduled" in result.text for result in request.tool_results))
        rig.press(session, "Escape")
        await rig.wait_status(session, "idle")
        await rig.ask("POST", f"/sessions/{session}/handoff/retry")
        view = await rig.wait_view(session, lambda view: stopped(view) or cleared(view), "stopped or cleared")
        if not cleared(view):
            rig.type(session, "go on")
            rig.press(session, "Enter")
        await rig.wait_phase(session, "done")
        assert "Next step: run the tests." in (await woken(rig)).all_text
