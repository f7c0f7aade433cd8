"""How a turn may end after `sm handoff`, and what becomes of the rotation."""

import asyncio
import re
from pathlib import Path

import pytest

from sm.testing.scenario import Call, Fail, Say, Together, Turn, scenario
from tests.e2e.people import (
    AWOKE,
    DOCUMENT,
    GOES_ON,
    HANDED_OFF,
    SLOW,
    WROTE,
    client_is,
    hands_off,
    held,
    person_settings,
    refused_for_length,
    submit,
    wake_request,
)
from tests.e2e.rig import Rig

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]


CODEX_SAYS = {400: '{"error":{"message":"no",', 403: "unexpected status 403 ", 404: "unexpected status 404 "}
"""How the words begin that are all it says of such a failure (0.171.0)."""


@pytest.mark.parametrize(
    ("status", "error"), [(400, "unknown"), (403, "authentication_failed"), (404, "model_not_found")]
)
@pytest.mark.often("400-unknown")
async def test_a_turn_that_fails_after_the_handoff_is_followed_by_the_rotation(status, error):
    async with Rig(hands_off(*[Fail(status, "no")] * 20)) as rig:  # a 400 is tried again, with less in it each time
        session = await rig.new("please hand off")
        await wake_request(rig)
        await rig.wait_phase(session, "done")
        words = (await rig.events(session, "TurnFailed"))[0]["data"]["error"]
        assert words.startswith(CODEX_SAYS[status]) if rig.codex else words == error


@pytest.mark.soak
async def test_at_a_rate_limit_the_handoff_waits_for_the_next_turns_end():
    async with Rig(hands_off(Fail(429, "slow down", should_retry=False))) as rig:
        session = await rig.new("please hand off")
        await held(rig, session, because="rate limit")
        view = await rig.view(session)
        assert (view["handoff"]["phase"], view["detail"]) == ("pending", "the last turn failed: rate_limit")
        await submit(rig, session, "go on")
        await wake_request(rig)


async def test_a_client_that_blocks_at_its_limit_is_shown_and_rotates_at_once_if_a_handoff_is_pending():
    last = Say("Handed off.", context=199_000)
    async with Rig(hands_off(*refused_for_length(last))) as rig:
        session = await rig.new("please hand off", DISABLE_AUTO_COMPACT="1")
        await wake_request(rig)
        await rig.wait_phase(session, "done")
        by_server = rig.codex and not rig.terminal
        assert await rig.events(session, "TurnFailed" if by_server else "ClientBlocked")


@pytest.mark.soak
async def test_a_client_that_blocks_with_no_handoff_pending_is_shown_as_blocked():
    script = scenario(Turn("work", steps=refused_for_length(Say("not reached"))))
    async with Rig(script) as rig:
        session = await rig.new("work", DISABLE_AUTO_COMPACT="1")
        view = await rig.wait_status(session, "blocked")
        assert ("ran out of room" if rig.codex else "Prompt is too long") in view["detail"]
        assert len(rig.model.main_requests) == 1


SLEEPS = Call("Bash", command="sleep 60", run_in_background=True)
ALLOW_SLEEP = {"permissions": {"defaultMode": "default", "allow": ["Bash(sleep:*)", "Bash(touch:*)"]}}


NO_BACKGROUND = "the app-server names no command that goes on after its turn, and no rotation waits for one"


@pytest.mark.parametrize("seconds", [0, 1])
@pytest.mark.claude_only(NO_BACKGROUND)
@pytest.mark.soak
async def test_a_background_shell_is_waited_for_as_long_as_configured_and_named_to_the_new_context(seconds):
    script = scenario(Turn("hand off", steps=[SLEEPS, WROTE, HANDED_OFF, Say("Handed off.")]), GOES_ON)
    async with Rig(script, config=f"[handoff]\nwait_background = {seconds}\n") as rig:
        person_settings(rig, **ALLOW_SLEEP)
        session = await rig.new("please hand off")
        if seconds:
            await held(rig, session, because="waits for background tasks: sleep 60")
        request = await wake_request(rig)
        assert "Still running in the background: sleep 60" in request.user_text
        await rig.wait_phase(session, "done")


@pytest.mark.claude_only(NO_BACKGROUND)
@pytest.mark.soak
async def test_goes_on_as_soon_as_the_background_shell_has_ended():
    shell = Call("Bash", command="until [ -e ended ]; do sleep 0.1; done", run_in_background=True)
    script = scenario(Turn("hand off", steps=[shell, WROTE, HANDED_OFF, Say("Handed off.")]), GOES_ON)
    async with Rig(script) as rig:
        person_settings(rig, permissions={"defaultMode": "default", "allow": ["Bash"]})
        session = await rig.new("please hand off")
        await held(rig, session, because="waits for background tasks")
        (rig.project / "ended").touch()
        request = await wake_request(rig)
        assert "Still running" not in request.user_text


@pytest.mark.claude_only("a subagent of Codex reports to the thread that was left")
@pytest.mark.soak
async def test_a_background_agent_runs_on_through_the_rotation():
    launch = Call("Agent", description="look around", prompt="sub work", subagent_type="general-purpose")
    script = scenario(
        Turn("sub work", steps=[Say("sub done", delay=4.0)]),
        Turn("hand off", steps=[launch, WROTE, HANDED_OFF, Say("Handed off.")]),
        GOES_ON,
        otherwise=Say("ok"),
    )
    async with Rig(script, config="[handoff]\nwait_background = 0\n") as rig:
        await rig.new("please hand off")
        request = await wake_request(rig)
        assert "Still running in the background: look around" in request.user_text
        report = await rig.model.wait_for(lambda r: "sub done" in r.all_text and "task-notification" in r.all_text)
        assert report.session == request.session


@pytest.mark.claude_only("the hook is of Claude Code's settings")
@pytest.mark.soak
async def test_a_foreign_stop_hook_of_two_seconds_only_delays_it():
    async with Rig(hands_off()) as rig:
        hook = {"hooks": [{"type": "command", "command": "sleep 2"}]}
        person_settings(rig, permissions={"defaultMode": "default"}, hooks={"Stop": [hook]})
        session = await rig.new("please hand off")
        await wake_request(rig)
        await rig.wait_phase(session, "done")


@pytest.mark.soak
async def test_a_file_that_is_gone_is_replaced_by_the_copy_taken_at_the_call():
    gone = Call("Bash", command="rm .sm/handoff.md")
    async with Rig(hands_off(gone, Say("Handed off."))) as rig:
        person_settings(rig, permissions={"defaultMode": "default", "allow": ["Bash"]})
        session = await rig.new("please hand off")
        request = await wake_request(rig)
        copy = (await rig.view(session))["handoff"]["copy"]
        assert request.user_text.strip() == f"Read {copy} and {AWOKE}."


@pytest.mark.soak
async def test_a_handoff_that_is_taken_back_changes_nothing():
    cancel = Call("Bash", command="sm handoff --cancel")
    async with Rig(hands_off(cancel, Say("Never mind."))) as rig:
        session = await rig.new("please hand off")
        await rig.wait_phase(session, "cancelled")
        await rig.wait_status(session, "idle")
        await asyncio.sleep(0.5)
        assert (await rig.view(session))["past_conversations"] == []
        assert not [r for r in rig.model.main_requests if AWOKE in r.user_text]


@pytest.mark.soak
async def test_the_last_handoff_of_a_turn_wins():
    second = Call("Bash", command="sm handoff - <<'EOF'\nSECOND DOCUMENT\nEOF")
    async with Rig(hands_off(second, Say("Handed off."))) as rig:
        await rig.new("please hand off")
        request = await rig.model.wait_for(lambda r: AWOKE in r.user_text, within=20)
        assert "SECOND DOCUMENT" in request.all_text
        assert DOCUMENT not in request.all_text


LONG = ("a long message " * 80).strip()
MESSAGES = {
    "plain": "look at the tests",
    "three lines": "one\ntwo\nthree",
    "long": LONG,
    "shell command": "!touch owned",
    "command": "/clear",
    "ends in a backslash": "wait\\",
    "option": "--help",
    "key": "Enter",
    "wide characters": "検査 — naïve 🙂",
    "letters the client would compose": "cafe\u0301",
}


@pytest.mark.parametrize("text", MESSAGES.values(), ids=MESSAGES.keys())
@pytest.mark.often("shell command")
async def test_a_message_that_came_with_a_handoff_reaches_the_new_context_once(text):
    async with Rig(hands_off(SLOW)) as rig:
        session = await rig.new("please hand off")
        await rig.wait_phase(session, "pending")
        sent = await rig.ask("POST", f"/sessions/{session}/messages", {"text": text})
        woken = await wake_request(rig)
        await rig.until(lambda: rig.call("GET", f"/messages/{sent['id']}")["state"] == "confirmed", "confirmed")
        if rig.codex and not rig.terminal:  # the next prompt of the new thread
            request = await rig.model.wait_for(lambda r: r.session == woken.session and AWOKE not in r.user_text)
            told = request.user_text.strip()
            await client_is(rig, "idle")
            assert [r.user_text.strip() for r in rig.model.main_requests].count(told) == 1
        else:
            mark = f"(message {sent['id']})\n"  # it rides on the Stop of the turn that the wake prompt began
            request = await rig.model.wait_for(lambda r: mark in r.all_text)
            await client_is(rig, "idle")
            assert request.all_text.count(mark) == 1
            told = re.split(r"\n?</(?:system-reminder|hook_prompt)>|\n$", request.all_text.partition(mark)[2])[0]
        assert request.session == woken.session
        if told != text:
            told = Path(told.removeprefix("Read the message in ").removesuffix(" and act on it.")).read_text()
        assert told == text
        assert not (rig.project / "owned").exists()


PATHS = {
    "blanks": "my notes/hand off.md",
    "quotes": 'it\'s "quoted".md',
    "unicode": "übergabe 検査.md",
    "decomposed letters": "cafe\u0301.md",
    "leading dash": "-notes.md",
    "a shell's words": "$(touch owned);`x`&.md",
}


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS.keys())
@pytest.mark.claude_only("a sandboxed agent's document is a text, or in a file .sm/NAME.md")
@pytest.mark.soak
async def test_a_document_with_any_name_is_handed_off(path):
    quoted = "'" + path.replace("'", "'\\''") + "'"
    option = "-- " if path.startswith("-") else ""
    prepare = f"mkdir -p 'my notes'; cat > ./{quoted} <<'EOF'\n{DOCUMENT}EOF\nsm handoff {option}{quoted}"
    script = scenario(Turn("hand off", steps=[Call("Bash", command=prepare), Say("Handed off.")]), GOES_ON)
    async with Rig(script) as rig:
        person_settings(rig, permissions={"defaultMode": "default", "allow": ["Bash"]})
        session = await rig.new("please hand off")
        request = await wake_request(rig)
        handoff = (await rig.view(session))["handoff"]
        assert handoff["path"] == str(rig.project / path)
        told = request.user_text.strip().removeprefix("Read ").removesuffix(f" and {AWOKE}.")
        assert told in {handoff["path"], handoff["copy"]}
        assert Path(told).is_file()
        assert not (rig.project / "owned").exists()


@pytest.mark.soak
async def test_parallel_tools_beside_the_handoff_are_no_obstacle():
    both = Together(WROTE, Call("Bash", command="sm status"))
    script = scenario(Turn("hand off", steps=[both, HANDED_OFF, Say("Handed off.")]), GOES_ON)
    async with Rig(script) as rig:
        await rig.new("please hand off")
        await wake_request(rig)
