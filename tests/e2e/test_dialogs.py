"""No key goes out while anything but an empty input box would take it, and `sm handoff` itself opens no dialog."""

import asyncio

import pytest

from sm.testing.scenario import Call, Say, Turn, scenario
from tests.e2e.people import (
    DOCUMENT,
    GOES_ON,
    HANDED_OFF,
    SLOW,
    WROTE,
    Person,
    box_shows,
    hands_off,
    held,
    person_settings,
    wake_request,
)
from tests.e2e.rig import Rig

DRIVER = "keys"
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

FROM_STDIN = Call("Bash", command=f"sm handoff - <<'EOF'\n{DOCUMENT}EOF")
AFTER_A_CD = Call("Bash", command="cd . && sm handoff .sm/handoff.md")
LOOKED = Call("Bash", command="sm context; sm status")
MANUAL = {"permissions": {"defaultMode": "default"}}
MODES = {
    "manual": (MANUAL, (), [WROTE, HANDED_OFF]),
    "manual, document on stdin": (MANUAL, (), [FROM_STDIN]),
    "manual, after a cd": (MANUAL, (), [WROTE, AFTER_A_CD]),
    "manual, other commands of sm": (MANUAL, (), [LOOKED, WROTE, HANDED_OFF]),
    "default": ({}, (), [WROTE, HANDED_OFF]),
    "default, document on stdin": ({}, (), [FROM_STDIN]),
    "plan": (MANUAL, ("--permission-mode", "plan"), [FROM_STDIN]),
    "acceptEdits": (MANUAL, ("--permission-mode", "acceptEdits"), [WROTE, HANDED_OFF]),
}


@pytest.mark.parametrize(("settings", "arguments", "steps"), MODES.values(), ids=MODES.keys())
@pytest.mark.often("manual")
async def test_handing_off_asks_nobody_in_any_permission_mode(settings, arguments, steps):
    script = scenario(Turn("hand off", steps=[*steps, Say("Handed off.")]), GOES_ON, otherwise=Say("ok"))
    async with Rig(script, model_name="claude-opus-5-5") as rig:
        person_settings(rig, **settings)
        session = await rig.new("please hand off", *arguments)
        await wake_request(rig)
        await rig.wait_phase(session, "done")
        assert not await rig.events(session, "PermissionAsked")


async def test_an_agent_cannot_read_the_persons_token_or_the_database():
    async with Rig(scenario(otherwise=Say("ok"))) as rig:
        token, database = str(rig.home.token), str(rig.home.database)
        reads = [Call("Read", file_path=token), Call("Read", file_path=database), Call("Bash", command=f"cat {token}")]
        rig.model.play(Turn("look", steps=[*reads, Say("done")]))
        await rig.new("look")
        await rig.until(lambda: len(rig.model.main_requests) == 4, "three answers")
        results = [result for request in rig.model.main_requests for result in request.tool_results]
        assert [result.is_error for result in results] == [True, True, True]
        assert all("denied" in result.text for result in results)


ASKS = Call("Bash", command="touch asked-for")


async def test_a_permission_dialog_stands_untouched_until_the_person_answers_it():
    async with Rig(hands_off(ASKS, Say("Handed off."))) as rig:
        session = await rig.new("please hand off")
        view = await rig.wait_status(session, "waiting")
        assert "permission" in view["detail"]
        assert view["handoff"]["phase"] == "pending"
        await rig.ask("POST", f"/sessions/{session}/messages", {"text": "a message"})
        await rig.wait_screen(session, "Do you want to proceed?")
        before = rig.screen(session)
        await asyncio.sleep(0.5)  # a dialog is deaf for its first 0.1 s (2.1.328)

        rig.press(session, "Enter")
        await wake_request(rig)
        assert before.count("❯ 1. Yes") == 1
        assert (rig.project / "asked-for").exists()


@pytest.mark.soak
async def test_a_background_agents_dialog_at_the_turns_end_holds_the_rotation():
    launch = Call("Agent", description="look around", prompt="sub work", subagent_type="general-purpose")
    script = scenario(
        Turn("sub work", steps=[ASKS, Say("sub done")]),
        Turn("hand off", steps=[launch, WROTE, HANDED_OFF, Say("Handed off.", delay=1.5)]),
        GOES_ON,
        otherwise=Say("ok"),
    )
    async with Rig(script, config="[handoff]\nwait_background = 0\n") as rig:
        session = await rig.new("please hand off")
        with Person(rig, session):  # the client shows a background agent's dialog where somebody looks
            await held(rig, session, because="a dialog is open")
            await rig.wait_screen(session, "Do you want to proceed?")
            assert (await rig.view(session))["status"] == "waiting"
            assert not (rig.project / "asked-for").exists()
            await asyncio.sleep(0.5)  # a dialog is deaf at first

            rig.press(session, "Enter")
            await wake_request(rig)
            await rig.wait_phase(session, "done")


OPENED = {
    "model": (["/model", "Enter"], ["Escape"], "a dialog is open"),
    "config": (["/config", "Enter"], ["Escape", "Escape"], "a dialog is open"),
    "help": (["/help", "Enter"], ["Escape"], "a dialog is open"),
    "resume": (["/resume", "Enter"], ["Escape"], "a dialog is open"),
    "btw": (["/btw hi", "Enter"], ["Escape"], "a dialog is open"),
    "status": (["/status", "Enter"], ["Escape"], "a dialog is open"),
    "model picker": (["M-p"], ["Escape"], "another view"),
    "transcript": (["C-o"], ["C-o"], "another view"),
    "search": (["C-r"], ["Escape"], "another view"),
    "shell mode": (["!"], ["BSpace"], "shell mode"),
    "shell command": (["!ls"], ["BSpace", "BSpace", "BSpace"], "shell mode"),
}
KEYS = frozenset({"Enter", "Escape", "BSpace", "C-o", "C-r", "M-p"})


def do(rig, session, keys):
    for key in keys:
        rig.press(session, key) if key in KEYS else rig.type(session, key)


def still(screen):
    """The screen without what moves by itself."""
    return [line for line in screen.split("\n") if not line.startswith(("✻", "✽", "✶", "✢", "·"))]


@pytest.mark.parametrize(("opens", "closes", "reason"), OPENED.values(), ids=OPENED.keys())
@pytest.mark.often("model")
@pytest.mark.soak
async def test_what_the_person_opened_gets_no_key_and_the_rotation_follows_when_it_closes(opens, closes, reason):
    async with Rig(hands_off(SLOW)) as rig:
        session = await rig.new("please hand off")
        await rig.wait_phase(session, "pending")
        for key in opens:
            do(rig, session, [key])
            if key.startswith("/"):
                await box_shows(rig, session, key)
        await held(rig, session, because=reason)
        before = rig.screen(session)
        assert "/clear" not in before.replace("/clear or", "")
        await rig.ask("POST", f"/sessions/{session}/messages", {"text": "a message"})
        assert still(rig.screen(session)) == still(before)

        for key in closes:
            do(rig, session, [key])
            await asyncio.sleep(0.3)  # two Escapes in one read are another key
        await wake_request(rig)
        await rig.wait_phase(session, "done")


@pytest.mark.parametrize("draft", ["/mod", "@", "?"])
@pytest.mark.soak
async def test_a_half_typed_command_is_a_draft(draft):
    async with Rig(hands_off(SLOW)) as rig:
        session = await rig.new("please hand off")
        await rig.wait_phase(session, "pending")
        rig.type(session, draft)
        await wake_request(rig)
        await box_shows(rig, session, "" if draft == "?" else draft)
