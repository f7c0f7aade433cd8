"""Hooks that are not the session's own, and a conversation whose start no hook told, on the real client."""

import asyncio
import contextlib
import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from sm import hook as hook_client
from sm.client import Client
from sm.core.errors import SmError
from sm.lock import running_server
from sm.testing.scenario import Call, Say, Turn, scenario
from tests.e2e.people import hands_off, person_settings, wake_request
from tests.e2e.rig import REAL_CLIENT, Rig

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

SCRIPT = scenario(
    Turn("print your token", steps=[Call("Bash", command="sm status --json > /dev/null; env > env.txt"), Say("done")]),
    otherwise=Say("ok"),
)


async def environment(rig, session):
    """What the session's own processes have in their environment."""
    pid = (await rig.view(session))["pid"]
    pairs = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


async def idle(rig):
    session = await rig.new("hello")
    await rig.wait_event(session, "TurnEnded")
    return session, await rig.wait_status(session, "idle")


async def hook(rig, session, payload):
    env = await environment(rig, session)
    client = Client(running_server(rig.home).url, env["SM_SESSION_TOKEN"])
    return await asyncio.to_thread(client.call, "POST", "/hooks/claude", payload)


async def test_a_nested_client_that_inherited_our_environment_changes_nothing():
    async with Rig(SCRIPT) as rig:
        session, before = await idle(rig)
        env = await environment(rig, session)
        settings = str(rig.home.launch_settings(session))
        command = [str(REAL_CLIENT), "--settings", settings, "-p", "a nested question", "--model", rig.model_name]
        kept = {name: value for name, value in env.items() if name not in {"TMUX", "TMUX_PANE"}}
        await asyncio.to_thread(subprocess.run, command, env=kept, cwd=rig.project, check=True, capture_output=True)

        after = await rig.view(session)
        assert (after["conversation"], after["transcript"]) == (before["conversation"], before["transcript"])
        assert after["status"] == "idle"
        assert len(await rig.events(session, "ConversationStarted")) == 1


@pytest.mark.soak
async def test_a_client_that_the_agent_itself_starts_with_our_settings_changes_nothing():
    async with Rig(SCRIPT) as rig:
        session = await rig.new("hello", "--allowedTools", "Bash")
        await rig.wait_event(session, "TurnEnded")  # what is sent before rides along with the first prompt
        before = await rig.wait_status(session, "idle")
        settings = rig.home.launch_settings(session)
        nested = f"{REAL_CLIENT} --settings {settings} -p nested --model {rig.model_name} > nested.txt"
        rig.model.play(Turn("start another", steps=[Call("Bash", command=nested), Say("done")]))
        await rig.ask("POST", f"/sessions/{session}/messages", {"text": "start another"})
        await rig.wait_event(session, "TurnEnded", 2)

        after = await rig.view(session)
        assert (rig.project / "nested.txt").read_text() == "ok\n"
        assert after["conversation"] == before["conversation"]
        assert after["past_conversations"] == []
        assert after["pid"] == before["pid"]


@pytest.mark.soak
async def test_a_second_start_hook_of_the_persons_own_settings_loads_the_document_no_second_time():
    async with Rig(hands_off()) as rig:
        again = {"type": "command", "command": f"{sys.executable} -I -S {hook_client.__file__} claude"}
        person_settings(rig, hooks={"SessionStart": [{"hooks": [again]}]})
        session = await rig.new("please hand off")
        request = await wake_request(rig)
        await rig.wait_phase(session, "done")
        assert request.all_text.count("=== HANDOFF LOADED") == 1
        assert len(await rig.events(session, "ConversationStarted")) == 4


@pytest.mark.soak
async def test_hooks_of_a_conversation_that_is_not_ours_are_ignored():
    async with Rig(SCRIPT) as rig:
        session, before = await idle(rig)
        foreign = {
            "session_id": "11111111-2222-4333-8444-555555555555",
            "hook_event_name": "UserPromptSubmit",
            "prompt": "x",
        }
        assert await hook(rig, session, foreign) == {}
        assert (await rig.view(session))["conversation"] == before["conversation"]
        assert len(await rig.events(session, "PromptSubmitted")) == 1


@pytest.mark.soak
async def test_a_clear_whose_start_no_hook_told_is_followed():
    async with Rig(SCRIPT) as rig:
        session, before = await idle(rig)
        settings = json.loads(rig.home.launch_settings(session).read_text())
        assert settings["hooks"]["SessionStart"][0]["hooks"][0]["type"] == "command"
        await rig.kill_server()
        rig.type(session, "/clear")
        await rig.wait_screen(session, "❯\N{NO-BREAK SPACE}/clear")
        rig.press(session, "Enter")
        await rig.until(lambda: "hello" not in rig.screen(session), "cleared")
        await rig.start_server()
        after = await rig.wait_view(session, lambda v: v["conversation"] != before["conversation"], "moved on")
        assert after["past_conversations"] == [before["conversation"]]
        await rig.ask("POST", f"/sessions/{session}/messages", {"text": "hello again"})
        await rig.model.wait_for(lambda r: "hello again" in r.user_text, within=20)


@pytest.mark.soak
async def test_a_late_hook_of_a_conversation_that_was_left_changes_nothing():
    async with Rig(SCRIPT) as rig:
        session, before = await idle(rig)
        rig.type(session, "/clear")
        await rig.wait_screen(session, "❯\N{NO-BREAK SPACE}/clear")
        rig.press(session, "Enter")
        await rig.wait_event(session, "ConversationStarted", origin="clear")
        late = {"session_id": before["conversation"], "hook_event_name": "UserPromptSubmit", "prompt": "late"}
        assert await hook(rig, session, late) == {}
        assert len(await rig.events(session, "PromptSubmitted")) == 1


@pytest.mark.soak
async def test_no_body_of_prompt_tool_or_message_is_kept_in_events_or_log():
    secret = "sk-ant-api03-" + "TEST" * 6
    async with Rig(scenario(Turn("leak", steps=[Call("Bash", command=f"echo {secret}"), Say(secret)]))) as rig:
        session = await rig.new(f"leak {secret}")
        await rig.wait_event(session, "TurnEnded")
        with contextlib.closing(sqlite3.connect(rig.home.database)) as connection:
            rows = connection.execute("SELECT data FROM events").fetchall()
        assert rows
        assert not [row for row in rows if secret in row[0]]
        assert secret not in rig.home.server_log.read_text()


async def test_a_session_cannot_act_as_another():
    async with Rig(SCRIPT) as rig:
        session, _ = await idle(rig)
        other = await rig.new("hello", name="b")
        env = await environment(rig, session)
        client = Client(running_server(rig.home).url, env["SM_SESSION_TOKEN"])
        body = {"requester_session_id": other, "file_path": "/etc/hostname"}
        with pytest.raises(SmError, match="self-directed only"):
            await asyncio.to_thread(client.call, "POST", f"/sessions/{other}/handoff", body)
