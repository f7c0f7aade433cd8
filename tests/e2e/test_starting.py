"""What may stand between `sm new` and a client that works."""

import asyncio

import pytest

from sm.testing.scenario import Say, scenario
from tests.e2e.people import AWOKE, hands_off, person_settings
from tests.e2e.rig import Rig

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

SCRIPT = scenario(otherwise=Say("ok"))


@pytest.mark.soak
async def test_the_trust_question_is_left_to_the_person_and_the_prompt_waits_for_the_answer():
    async with Rig(SCRIPT, trusted=False) as rig:
        session = await rig.new("hello")
        view = await rig.wait_status(session, "waiting")
        assert "trust this folder?" in view["detail"]
        assert view["queued"] == 1
        assert "❯ No, exit" in rig.screen(session)
        assert not rig.model.requests

        rig.press(session, "Down")
        await rig.wait_screen(session, "❯ Yes, I trust this folder")
        rig.press(session, "Enter")
        request = await rig.model.wait_for(lambda r: bool(r.user_text))
        assert request.user_text.strip() == "hello"


@pytest.mark.soak
async def test_a_person_who_does_not_trust_the_directory_ends_the_session():
    async with Rig(SCRIPT, trusted=False) as rig:
        session = await rig.new("hello")
        await rig.wait_status(session, "waiting")  # an Enter that comes as soon as the question shows is dropped
        rig.press(session, "Enter")
        await rig.wait_view(session, lambda view: view["status"] in {"exited", "crashed"}, "ended")
        assert not rig.model.requests


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--no-such-option",), "unknown option '--no-such-option'"),
        (("--permission-mode", "nonsense"), "'nonsense' is invalid"),
    ],
)
@pytest.mark.soak
async def test_a_client_that_ends_at_once_is_shown_with_its_last_words(arguments, said):
    async with Rig(SCRIPT) as rig:
        session = await rig.new("hello", *arguments)
        view = await rig.wait_status(session, "crashed")
        assert said in view["detail"]
        assert said in (await rig.ask("GET", f"/sessions/{session}/output"))["text"]


async def test_a_persons_hook_policy_that_stops_http_hooks_is_met_with_command_hooks():
    async with Rig(SCRIPT) as rig:
        person_settings(rig, permissions={"defaultMode": "default"}, allowedHttpHookUrls=[], httpHookAllowedEnvVars=[])
        session = await rig.new("hello")
        await rig.wait_event(session, "TurnEnded")
        await rig.wait_status(session, "idle")


@pytest.mark.soak
async def test_a_session_without_hooks_is_refused():
    async with Rig(SCRIPT) as rig:
        person_settings(rig, disableAllHooks=True)
        with pytest.raises(Exception, match="switched off by"):
            await rig.new("hello")


@pytest.mark.soak
async def test_hooks_of_the_person_that_are_slower_than_our_patience_double_no_prompt():
    async with Rig(hands_off()) as rig:
        hook = {"type": "command", "command": "sleep 11"}
        person_settings(rig, permissions={"defaultMode": "acceptEdits"}, hooks={"SessionStart": [{"hooks": [hook]}]})
        session = await rig.new("please hand off")
        await rig.wait_phase(session, "done")
        await rig.wait_event(session, "TurnEnded", 2)
        await rig.wait_status(session, "idle")
        await asyncio.sleep(1)
        prompts = [request.user_text.strip() for request in rig.model.main_requests if request.user_text.strip()]
        assert (prompts[0], [AWOKE in text for text in prompts]) == ("please hand off", [False, True])
