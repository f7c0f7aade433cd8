"""A client that waits for the end of its account's usage limit is left alone, on the real client."""

import time
from datetime import UTC, datetime

import pytest

from sm.testing.scenario import Call, Fail, Say, Turn, scenario
from tests.e2e.people import HANDED_OFF, WROTE
from tests.e2e.rig import Rig

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

HOUR = 3_600


def met(resets_at):
    """The answer to a request past the 5-hour limit of a subscription."""
    headers = {
        "anthropic-ratelimit-unified-status": "rejected",
        "anthropic-ratelimit-unified-reset": str(int(resets_at)),
        "anthropic-ratelimit-unified-representative-claim": "five_hour",
        "anthropic-ratelimit-unified-5h-status": "rejected",
        "anthropic-ratelimit-unified-5h-reset": str(int(resets_at)),
        "anthropic-ratelimit-unified-5h-utilization": "1.0",
    }
    return Fail(429, should_retry=False, headers=headers)


def subscriber(rig):
    """The headers count only for an account that has signed in; a made-up token does here."""
    rig.env.pop("ANTHROPIC_API_KEY")
    rig.env["CLAUDE_CODE_OAUTH_TOKEN"] = "sk-ant-oat01-" + "a" * 80


def whole_minute(seconds):
    return seconds - seconds % 60


async def test_a_session_at_its_usage_limit_is_shown_as_such_and_left_alone():  # C20
    resets_at = whole_minute(time.time() + HOUR)
    refused = met(resets_at)
    script = scenario(Turn("work", steps=[Call("Bash", command="true"), WROTE, HANDED_OFF, refused]), otherwise=refused)
    async with Rig(script) as rig:
        subscriber(rig)
        session = await rig.new("work")
        view = await rig.wait_status(session, "limited")
        assert view["limit"]["kind"] == "five_hour"
        assert view["limit"]["resets_at"] == resets_at, datetime.fromtimestamp(view["limit"]["resets_at"], UTC)
        context = await rig.ask("GET", f"/sessions/{session}/context")
        assert context["limit"] == view["limit"]
        requests = len(rig.model.main_requests)
        sent = await rig.ask("POST", f"/sessions/{session}/messages", {"text": "are you there?"})
        await rig.ask("POST", f"/sessions/{session}/handoff/retry")
        await rig.kill_server()
        await rig.start_server()
        view = await rig.wait_view(session, lambda view: view["status"] == "limited", "limited after a restart")
        assert view["handoff"]["phase"] == "pending"
        assert view["rotations"] == 0
        assert (await rig.ask("GET", f"/messages/{sent['id']}"))["state"] == "queued"
        assert len(rig.model.main_requests) == requests
        rig.model.play(Turn("Continue", steps=[Say("Done.")]), Turn("", steps=[Say("Going on.")]))
        rig.type(session, "Continue the task")
        rig.press(session, "Enter")
        await rig.wait_view(session, lambda view: view["limit"] is None, "over")
        await rig.wait_phase(session, "done")


@pytest.mark.soak
async def test_a_limit_that_no_hook_told_of_is_found_in_the_transcript():  # C20
    refused = met(time.time() + HOUR)
    script = scenario(Turn("work", steps=[Call("Bash", command="sleep 3"), refused]), otherwise=Say("ok"))
    async with Rig(script) as rig:
        subscriber(rig)
        session = await rig.new("work", "--allowedTools", "Bash")
        await rig.wait_event(session, "PromptSubmitted")
        await rig.kill_server()
        await rig.until(lambda: len(rig.model.main_requests) >= 2, "the refused request")
        await rig.until(lambda: "limit" in rig.screen(session), "the client waits")
        await rig.start_server()
        view = await rig.wait_status(session, "limited")
        assert view["limit"]["kind"] == "five_hour"
