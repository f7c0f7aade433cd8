"""A client that waits for the end of its account's usage limit is left alone, on the real client."""

import asyncio
import itertools
import json
import time
from datetime import UTC, datetime

import pytest

from sm.testing.scenario import Call, Fail, Say, Turn, scenario
from tests.e2e.people import HANDED_OFF, WROTE, box_shows, submit
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
    rig.env.pop("ANTHROPIC_API_KEY", None)
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
        if rig.codex:
            await box_shows(rig, session, "")
        await submit(rig, session, "Continue the task")
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


NAMES = ("ada", "bob", "cyd")
SOON = "[limits]\npatience = 2\nstagger = 3\n"
AGAIN = "Continue the task that a usage limit has interrupted"
SECONDS = 20
"""From when the three are refused until their limit resets."""
WAITS = Call("Bash", command="until [ -e go ]; do sleep 0.1; done; echo went")
FLEET = scenario(*(Turn(f"the task of {name}$", steps=[WAITS]) for name in NAMES), otherwise=Say("Done."))


def soon(driver):
    """When a limit resets that the test waits for: without the plugin its end is known to the minute."""
    at = time.time() + SECONDS
    return at if driver == "mod" else whole_minute(at) + 60


async def at_work(rig):
    """Start three agents who wait for a file; their ids by name."""
    subscriber(rig)
    sessions = {name: await rig.new(f"the task of {name}", "--allowedTools", "Bash", name=name) for name in NAMES}
    for name in NAMES:
        await rig.model.wait_for(lambda request: request.user_text.strip().endswith(f"the task of {name}"), within=90)  # noqa: B023
    return sessions


async def meet_together(rig, driver, *, later=0):
    """Let three agents meet a limit in their turns; return their ids by name, and when it resets."""
    sessions = await at_work(rig)
    resets_at = soon(driver) + later
    rig.model.play(Turn(result="went", steps=[met(resets_at)], times=len(NAMES)))
    (rig.project / "go").touch()
    for session in sessions.values():
        await rig.wait_event(session, "TurnFailed")
        view = await rig.wait_status(session, "limited")
        assert view["limit"]["interrupted"]
        # The hook names the minute alone, its plugin the second; keys have whole minutes here.
        exact = int(resets_at)
        await rig.wait_view(session, lambda view: view["limit"]["resets_at"] == exact, "exactly told")  # noqa: B023
    assert time.time() < resets_at, "this machine is too slow for the test"
    return sessions, resets_at


def continued(rig):
    """The first requests of the turns with which the three continue."""
    requests = [request for request in rig.model.main_requests if AGAIN in request.user_text]
    return {name: [r for r in requests if f"the task of {name}" in r.user_text] for name in NAMES}


def asked_before(rig, known, moment):
    """What was asked of the model before a moment, apart from its first requests."""
    return [request.user_text for request in rig.model.main_requests[known:] if request.epoch < moment]


def refused(rig, name, code):
    """Return the error with which `--resume` is refused."""
    error = json.loads(rig.sm("limits", "--resume", name, "--json").stdout)["error"]
    assert error["code"] == code, error
    return error


async def all_continue_once(rig, sessions, after):
    await rig.until(lambda: all(continued(rig).values()), "all continue", 60)
    for session in sessions.values():
        await rig.wait_view(session, lambda view: (view["status"], view["limit"]) == ("idle", None), "done")
    await asyncio.sleep(4)  # long enough for a second one
    found = continued(rig)
    assert {name: len(requests) for name, requests in found.items()} == dict.fromkeys(NAMES, 1)
    times = sorted(requests[0].epoch for requests in found.values())
    assert times[0] >= after
    assert min(later - earlier for earlier, later in itertools.pairwise(times)) > 2, "not one after the other"


@pytest.mark.soak
async def test_three_sessions_wait_for_the_reset_and_continue_one_after_the_other_with_their_tasks(driver):
    async with Rig(FLEET, config=SOON) as rig:
        subscriber(rig)
        idle = await rig.new("hello", name="idle")
        await rig.wait_event(idle, "TurnEnded")
        sessions, resets_at = await meet_together(rig, driver)
        requests = len(rig.model.main_requests)
        await rig.wait_status(idle, "limited")
        sent = await rig.ask("POST", f"/sessions/{idle}/messages", {"text": "are you there?"})
        found = (await rig.ask("GET", "/limits"))["accounts"]
        assert [account["limit"]["kind"] for account in found] == ["five_hour"]
        assert len(found[0]["sessions"]) == len(NAMES) + 1
        await asyncio.sleep(resets_at - time.time())
        assert asked_before(rig, requests, resets_at) == []
        assert (await rig.ask("GET", f"/messages/{sent['id']}"))["state"] == "queued"
        await all_continue_once(rig, sessions, resets_at)
        await rig.model.wait_for(lambda request: "are you there?" in request.user_text, within=30)


@pytest.mark.soak
@pytest.mark.timeout(300)
async def test_they_continue_once_though_server_and_tmux_are_restarted_in_between(driver):
    async with Rig(FLEET, config=SOON) as rig:
        sessions, resets_at = await meet_together(rig, driver, later=60)
        requests = len(rig.model.main_requests)
        await rig.kill_server()
        rig.tmux("kill-server")
        await rig.start_server()
        for session in sessions.values():
            await rig.wait_view(session, lambda view: view["status"] in {"exited", "crashed"}, "ended")
            await rig.ask("POST", f"/sessions/{session}/restore", {"env": rig.env})
        for session in sessions.values():
            await rig.wait_status(session, "limited")
        assert time.time() < resets_at, "this machine is too slow for the test"
        await asyncio.sleep(resets_at - time.time())
        assert asked_before(rig, requests, resets_at) == []
        await all_continue_once(rig, sessions, resets_at)


@pytest.mark.soak
async def test_a_server_that_was_down_all_the_while_lets_them_continue_all_the_same(driver):
    async with Rig(FLEET, config=SOON) as rig:
        subscriber(rig)
        session = await rig.new("the task of ada", "--allowedTools", "Bash", name="ada")
        await rig.model.wait_for(lambda request: request.user_text.strip().endswith("the task of ada"), within=90)
        await rig.kill_server()
        resets_at = soon(driver)
        rig.model.play(Turn(result="went", steps=[met(resets_at)], times=1))
        (rig.project / "go").touch()
        await rig.until(lambda: "limit" in rig.screen(session), "the client waits")
        await asyncio.sleep(max(0.0, resets_at - time.time()))
        await rig.start_server()
        await rig.until(lambda: continued(rig)["ada"], "continues", 60)


WAITS_FOR_ITS_USER = "at a usage limit it waits for its user: it continues nothing by itself"


@pytest.mark.claude_only(WAITS_FOR_ITS_USER)
@pytest.mark.soak
@pytest.mark.timeout(400)
@pytest.mark.parametrize("resume", ["auto", "ask"])
async def test_whether_the_client_or_its_user_continues_it_is_done_once(driver, resume):
    """By itself the client does so 40 to 101 s after the reset (2.1.328), but not once Escape has ended its wait."""
    async with Rig(FLEET, config=f'[limits]\npatience = 150\nstagger = 3\nresume = "{resume}"\n') as rig:
        sessions, resets_at = await meet_together(rig, driver)
        rig.press(sessions["cyd"], "Escape")
        for name in NAMES:
            assert "resets at" in refused(rig, name, "not_reset")["message"]
        await asyncio.sleep(resets_at + 1 - time.time())
        for name in ("ada", "bob"):
            assert "may continue by itself until" in refused(rig, name, "client_continues")["message"]
        assert rig.sm("limits", "--resume", "cyd").returncode == 0
        await rig.until(lambda: continued(rig)["cyd"], "continues", 30)
        await asyncio.sleep(resets_at + 170 - time.time())
        for session in sessions.values():
            assert len(await rig.events(session, "PromptSubmitted")) == 2, rig.screen(session)
        assert {name: len(requests) for name, requests in continued(rig).items()} == {"ada": 0, "bob": 0, "cyd": 1}
        assert len(by_client(rig)) == 2
        assert not await rig.events(sessions["ada"], "LimitEnded")


@pytest.mark.soak
async def test_with_ask_it_waits_for_its_user(driver):
    async with Rig(FLEET, config=SOON + 'resume = "ask"\n') as rig:
        sessions, resets_at = await meet_together(rig, driver)
        await asyncio.sleep(resets_at - time.time())
        for session in sessions.values():
            await rig.wait_event(session, "ResumeAsked")
        requests = len(rig.model.main_requests)
        await asyncio.sleep(5)
        assert len(rig.model.main_requests) == requests
        assert "waits for you" in rig.sm("limits").stderr
        for name in NAMES:
            assert rig.sm("limits", "--resume", name).returncode == 0
        await rig.until(lambda: all(continued(rig).values()), "all continue", 60)
        assert all(len(requests) == 1 for requests in continued(rig).values())


@pytest.mark.claude_only(WAITS_FOR_ITS_USER)
@pytest.mark.soak
async def test_a_user_who_has_ended_the_clients_wait_is_asked(driver):
    async with Rig(FLEET, config=SOON) as rig:
        sessions, resets_at = await meet_together(rig, driver)
        rig.press(sessions["ada"], "Escape")
        await asyncio.sleep(resets_at - time.time())
        await rig.wait_event(sessions["ada"], "ResumeAsked")
        await rig.until(lambda: continued(rig)["bob"] and continued(rig)["cyd"], "the others continue", 60)
        assert not continued(rig)["ada"]
        assert rig.sm("limits", "--resume", "ada").returncode == 0
        await rig.until(lambda: continued(rig)["ada"], "continues", 60)


CONTINUES_WITHIN = 135
"""Seconds after the reset in which a client that waits continues by itself: 30 to 90, and a look every 30 (2.1.328)."""


def by_client(rig):
    return [request for request in rig.model.main_requests if "usage limit has reset" in request.user_text]


@pytest.mark.claude_only(WAITS_FOR_ITS_USER)
@pytest.mark.soak
@pytest.mark.timeout(400)
async def test_a_limit_that_is_lifted_before_its_reset_continues_once(driver):
    """A prompt of the plugin does not end the client's own wait: what comes of it at the reset is blocked."""
    async with Rig(FLEET, config=SOON) as rig:
        sessions, resets_at = await meet_together(rig, driver, later=60)
        rig.type(sessions["ada"], "I have bought more")
        rig.press(sessions["ada"], "Enter")
        await rig.until(lambda: continued(rig)["bob"] and continued(rig)["cyd"], "the others continue", 60)
        assert time.time() < resets_at, "this machine is too slow for the test"
        await asyncio.sleep(resets_at + CONTINUES_WITHIN - time.time())
        assert {name: len(requests) for name, requests in continued(rig).items()} == {"ada": 0, "bob": 1, "cyd": 1}
        assert by_client(rig) == []
        for name in ("bob", "cyd"):
            if driver == "mod":
                assert "continued already" in rig.screen(sessions[name])
            await rig.wait_view(sessions[name], lambda view: (view["status"], view["limit"]) == ("idle", None), "idle")
            rig.sm("send", name, f"and now, {name}?")
            await rig.model.wait_for(lambda request: f"and now, {name}?" in request.user_text, within=30)  # noqa: B023


@pytest.mark.claude_only(WAITS_FOR_ITS_USER)
@pytest.mark.soak
@pytest.mark.timeout(400)
async def test_what_the_clients_have_continued_while_no_server_ran_is_not_continued_again(driver):
    async with Rig(FLEET, config=SOON) as rig:
        sessions, _ = await meet_together(rig, driver)
        await rig.kill_server()
        within = SECONDS + 60 + CONTINUES_WITHIN
        await rig.until(lambda: len(by_client(rig)) == len(NAMES), "the clients continue", within)
        for session in sessions.values():
            await rig.wait_screen(session, "Done.")
        await rig.start_server()
        for session in sessions.values():
            await rig.wait_view(session, lambda view: (view["status"], view["limit"]) == ("idle", None), "idle")
        await asyncio.sleep(4)  # long enough for a prompt
        assert not any(continued(rig).values())
