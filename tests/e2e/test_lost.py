"""`sm restore --all` after tmux and the server are gone, as at a reboot, on the real client."""

import asyncio
import json
import os
import signal

import pytest

from sm.providers.claude.keys.driver import APPEARS_TIMEOUT_S
from sm.testing.scenario import Say, scenario
from tests.cli import warm
from tests.e2e.people import box_text
from tests.e2e.rig import Rig

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

SCRIPT = scenario(otherwise=Say("ok"))
QUESTION = "Which word was it?"


def sm(rig, *arguments):
    """A command in the shell that the clients' environment is from."""
    done = warm.shared().completed(warm.request_for(arguments, {**rig.env, **rig.server_env()}, rig.project), "")
    return done.returncode, json.loads(done.stdout)["data"]


async def ready(rig, prompt, name):
    """A session that has answered: one after the other, as a person starts them."""
    session = await rig.new(prompt, name=name)
    await rig.wait_event(session, "TurnEnded")
    return session


@pytest.mark.soak
async def test_many_that_start_at_once_get_their_first_prompt_once_each():
    """Clients that share a machine are slow to read, to show and to report what they are given."""
    async with Rig(SCRIPT) as rig:
        prompts = {f"s{number}": f"remember word-{number}." for number in range(11)}
        sessions = await asyncio.gather(*(rig.new(prompt, name=name) for name, prompt in prompts.items()))
        for session, prompt in zip(sessions, prompts.values(), strict=True):
            asked = lambda prompt=prompt: [found for found in rig.model.main_requests if prompt in found.user_text]
            await rig.until(lambda asked=asked: bool(asked()), prompt, patience=300)
            await rig.until(
                lambda session=session: rig.call("GET", f"/sessions/{session}")["status"] == "idle", "idle", 60
            )
        await asyncio.sleep(APPEARS_TIMEOUT_S)
        for session, prompt in zip(sessions, prompts.values(), strict=True):
            assert len([found for found in rig.model.main_requests if prompt in found.user_text]) == 1
            assert len(await rig.events(session, "PromptSubmitted")) == 1
            assert box_text(rig, session) == ""


def asked_in(rig, conversation):
    found = [request for request in rig.model.main_requests if request.session == conversation]
    return [request for request in found if QUESTION in request.user_text]


async def kill_server_and_tmux(rig):
    tmux = int(rig.tmux("display-message", "-p", "#{pid}"))
    await rig.kill_server()
    os.kill(tmux, signal.SIGKILL)


@pytest.mark.parametrize("count", [2, pytest.param(10, marks=pytest.mark.soak)])
@pytest.mark.soak
async def test_all_that_was_lost_comes_back_each_with_its_conversation_and_nothing_else(count):
    async with Rig(SCRIPT) as rig:
        words = {await ready(rig, f"remember word-{number}.", f"s{number}"): number for number in range(count)}
        ended = await ready(rig, "hello", "ended")
        await rig.ask("DELETE", f"/sessions/{ended}")
        before = {session: (await rig.view(session))["conversation"] for session in words}
        await kill_server_and_tmux(rig)
        await rig.start_server()
        for session in words:
            await rig.wait_status(session, "exited")

        code, found = sm(rig, "restore", "--all", "--json")
        assert (code, found["refused"]) == (0, [])
        assert {view["id"] for view in found["restored"]} == set(words)
        for session, number in words.items():
            view = await rig.wait_status(session, "idle")
            assert view["conversation"] == before[session]
            await rig.ask("POST", f"/sessions/{session}/messages", {"text": QUESTION})
            await rig.until(lambda session=session: asked_in(rig, before[session]), "the question is asked")
            assert f"word-{number}." in asked_in(rig, before[session])[0].all_text
        assert (await rig.view(ended))["status"] == "exited"
        assert sm(rig, "restore", "--all", "--json") == (0, {"restored": [], "refused": []})
