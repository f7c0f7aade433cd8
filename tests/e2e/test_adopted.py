"""Clients that a person starts themselves, after `sm setup`: measured and told, on the real client."""

import asyncio
import json
import subprocess

import pytest

from sm.core.model.context_warnings import PROMPT_FILE, advice_for_user
from sm.providers.claude.traits import CLAUDE
from sm.testing.scenario import Call, Say, Turn, scenario
from tests.e2e.people import SLOW, hands_off, person_settings
from tests.e2e.rig import REAL_CLIENT, Rig
from tests.e2e.terminal import Terminal, sm

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

FULL = 140_000
"""Tokens past critical of a window of 200,000."""
SCRIPT = scenario(
    Turn(
        "fill up",
        steps=[
            Call(
                "Bash",
                command="true",
            ).but(context=FULL),
            Call("Bash", command="true"),
            Say("told"),
        ],
    ),
    Turn("write it", steps=[Call("Write", file_path=PROMPT_FILE, content="# Prompt\n"), Say("written")]),
    otherwise=Say("ok"),
)


def allow(rig):
    person_settings(rig, permissions={"allow": ["Bash(true)", f"Edit({PROMPT_FILE})"]})


def wrote(request):
    return any(PROMPT_FILE in result.text for result in request.tool_results)


async def sessions(rig):
    return await rig.ask("GET", "/sessions")


async def adopted(rig, count=1):
    """The newest adopted session, once there are that many."""
    found = []

    def enough():
        found[:] = [view for view in rig.call("GET", "/sessions") if view["adopted"]]
        return len(found) == count

    await rig.until(enough, f"{count} adopted")
    return max(found, key=lambda view: view["created"])


async def test_a_client_that_the_person_starts_is_measured_and_its_agent_told():
    async with Rig(SCRIPT) as rig:
        allow(rig)
        assert sm(rig, "setup", "--yes").returncode == 0
        async with Terminal(rig) as person:
            session = await adopted(rig)
            assert (session["name"], session["pid"]) == ("project", person.process.pid)
            await person.submit("fill up")
            await rig.wait_event(session["id"], "TurnEnded")
            await rig.wait_status(session["id"], "idle")
            view = await rig.wait_view(session["id"], lambda view: view["context"]["tokens"] > FULL, "measured")
            assert view["context"]["level"] == "critical"
            told = await rig.model.wait_for(lambda r: advice_for_user(CLAUDE).now in r.all_text)
            assert "sm handoff" not in told.context_text
            prompts = [request for request in rig.model.requests if "You run inside a session of" in request.all_text]
            assert not prompts, "it does not run inside a session"
        await rig.wait_status(session["id"], "exited")


@pytest.mark.soak
async def test_clear_stays_in_the_session_and_warns_anew():
    async with Rig(SCRIPT) as rig:
        allow(rig)
        sm(rig, "setup", "--yes")
        async with Terminal(rig) as person:
            session = await adopted(rig)
            await person.submit("fill up")
            await rig.wait_event(session["id"], "TurnEnded")
            await person.submit("/clear")
            await rig.wait_event(session["id"], "ConversationStarted", origin="clear")
            view = await rig.view(session["id"])
            assert view["past_conversations"] == [session["conversation"]]
            assert view["context"]["tokens"] is None
            await person.idle()
            await person.submit("hello")
            await rig.wait_event(session["id"], "TurnEnded", 2)
            assert len(await sessions(rig)) == 1


@pytest.mark.soak
async def test_a_written_prompt_ends_the_reminders():
    async with Rig(SCRIPT, config="[context_monitor]\nremind_every = 1\n") as rig:
        allow(rig)
        sm(rig, "setup", "--yes")
        rig.model.play(
            Turn(
                "on and on",
                steps=[
                    Call("Bash", command="true").but(context=FULL),
                    *(Call("Bash", command="true").but(delay=0.7) for _ in range(2)),  # told by then, however slow
                    Call("Write", file_path=PROMPT_FILE, content="# Prompt\n"),
                    *(Call("Bash", command="true").but(delay=0.7) for _ in range(4)),
                    Say("done"),
                ],
            )
        )
        async with Terminal(rig) as person:
            session = await adopted(rig)
            await person.submit("on and on")
            await rig.wait_event(session["id"], "TurnEnded")
            used = await rig.events(session["id"], "ToolUsed")
            assert len([event for event in used if event["data"]["document"].endswith(PROMPT_FILE)]) == 1
            written = next(i for i, request in enumerate(rig.model.requests) if wrote(request))
            assert [r for r in rig.model.requests[:written] if advice_for_user(CLAUDE).now in r.context_text]
            assert not [r for r in rig.model.requests[written + 2 :] if advice_for_user(CLAUDE).now in r.context_text]


@pytest.mark.soak
async def test_without_a_server_nothing_is_said_and_the_next_hook_after_its_start_adopts():
    async with Rig(SCRIPT) as rig:
        allow(rig)
        sm(rig, "setup", "--yes")
        await rig.kill_server()
        async with Terminal(rig) as person:
            await person.submit("fill up")
            await rig.model.wait_for(lambda r: r.tool_results)
            await person.idle()
            assert "hook failed" not in person.text
            assert "hook error" not in person.text
            await rig.start_server()
            await person.submit("hello")
            session = await adopted(rig)
            await rig.wait_event(session["id"], "TurnEnded")
            assert (await rig.view(session["id"]))["context"]["tokens"] > FULL


@pytest.mark.soak
async def test_a_server_started_again_goes_on_with_it():
    async with Rig(SCRIPT) as rig:
        allow(rig)
        sm(rig, "setup", "--yes")
        async with Terminal(rig) as person:
            session = await adopted(rig)
            await rig.kill_server()
            await rig.start_server()
            await rig.wait_status(session["id"], "idle")
            await person.submit("hello")
            await rig.wait_event(session["id"], "TurnEnded")
            await rig.kill_server()
        await rig.start_server()
        await rig.wait_status(session["id"], "exited")


@pytest.mark.soak
async def test_a_session_of_ours_is_told_by_its_own_hooks_alone():
    async with Rig(SCRIPT) as rig:
        allow(rig)
        sm(rig, "setup", "--yes")
        session = await rig.new("fill up")
        await rig.wait_event(session, "TurnEnded")
        assert [view["id"] for view in await sessions(rig)] == [session]
        assert len(await rig.events(session, "PromptSubmitted")) == 1
        assert "hook failed" not in rig.screen(session)


@pytest.mark.soak
async def test_what_is_refused_for_a_terminal_of_its_own():
    async with Rig(SCRIPT) as rig:
        sm(rig, "setup", "--yes")
        async with Terminal(rig) as person:
            session = await adopted(rig)
            for command in ("kill", "output"):
                refused = sm(rig, command, session["id"])
                assert refused.returncode == 1
                assert "in a terminal of its own" in refused.stderr
            assert person.process.poll() is None


@pytest.mark.soak
async def test_after_its_end_restore_takes_it_into_a_pane():
    async with Rig(SCRIPT) as rig:
        sm(rig, "setup", "--yes")
        async with Terminal(rig) as person:
            session = await adopted(rig)
            await person.submit("hello")
            await rig.wait_event(session["id"], "TurnEnded")
        await rig.wait_status(session["id"], "exited")
        body = {"env": {**rig.env, "PATH": f"{REAL_CLIENT.parent}:{rig.env['PATH']}"}}
        view = await rig.ask("POST", f"/sessions/{session['id']}/restore", body)
        assert (view["adopted"], view["conversation"]) == (False, session["conversation"])
        await rig.ask("POST", f"/sessions/{session['id']}/messages", {"text": "hello again"})
        await rig.model.wait_for(lambda r: "hello again" in r.user_text, within=20)


async def test_a_client_without_a_terminal_is_left_alone():
    async with Rig(SCRIPT) as rig:
        sm(rig, "setup", "--yes")
        command = [rig.client, "-p", "hello", "--model", rig.model_name]
        done = await asyncio.to_thread(
            subprocess.run, command, env=rig.env, cwd=rig.project, capture_output=True, text=True, check=True
        )
        assert done.stdout == "ok\n"
        assert await sessions(rig) == []


async def test_the_settings_hold_no_secret():
    async with Rig(SCRIPT) as rig:
        sm(rig, "setup", "--yes")
        text = (rig.root / "home/.claude/settings.json").read_text()
        assert rig.home.token.read_text().strip() not in text
        assert json.loads(text)["hooks"]["Stop"][0]["hooks"][0]["args"][5] == str(rig.home.token)


@pytest.mark.soak
async def test_what_waits_in_the_project_is_offered_at_its_start():
    async with Rig(hands_off(SLOW.but(delay=5.0))) as rig:
        allow(rig)
        sm(rig, "setup", "--yes")
        session = await rig.new("hand off", "--allowedTools", "Bash", "Write")
        await rig.wait_phase(session, "pending")
        sm(rig, "kill", session)
        async with Terminal(rig) as person:
            await adopted(rig)
            await person.submit("hello")
            told = await rig.model.wait_for(lambda r: "hello" in r.user_text)
            assert "[sm handoff] This project has an open handoff: HO-" in told.context_text


@pytest.mark.soak
async def test_a_written_prompt_is_offered_to_the_next_session_and_is_not_foreign():
    async with Rig(SCRIPT) as rig:
        allow(rig)
        sm(rig, "setup", "--yes")
        async with Terminal(rig) as person:
            first = await adopted(rig)
            await person.submit("write it")
            await rig.wait_event(first["id"], "DocumentKept")
        await rig.wait_status(first["id"], "exited")
        async with Terminal(rig) as person:
            await adopted(rig, 2)
            await person.submit("hello")
            told = await rig.model.wait_for(lambda r: "hello" in r.user_text)
            assert "[sm handoff] This project has an open handoff: HO-" in told.context_text
            assert "was not written by a session of sm" not in told.context_text


async def test_before_a_compaction_a_document_is_kept_and_given_back_after_it():
    async with Rig(SCRIPT) as rig:
        sm(rig, "setup", "--yes")
        async with Terminal(rig) as person:
            session = await adopted(rig)
            for number in (1, 2, 3):
                await person.submit("hello")
                await rig.wait_event(session["id"], "TurnEnded", number)
                await person.idle()
            await person.submit("/compact")
            await rig.wait_event(session["id"], "DocumentKept")
            await rig.wait_event(session["id"], "ConversationStarted", origin="compact")
            await person.idle()
            await person.submit("and now?")
            told = await rig.model.wait_for(lambda r: "and now?" in r.user_text)
            assert "=== HANDOFF LOADED" in told.all_text
