"""What `sm` needs of a client, on the real one and on its stand-in alike: what passes on one alone proves nothing."""

import contextlib
from pathlib import Path

import pytest

from sm.testing.agent.transcript import project_name
from sm.testing.scenario import Call, Say, Turn, scenario
from tests.e2e.foreground import Terminal
from tests.e2e.people import person_settings, submit
from tests.e2e.rig import Rig

pytestmark = pytest.mark.timeout(120)

DOCUMENT = "# Handoff\nThe goal is G.\n"
SCRIPT = scenario(
    Turn(
        "hand off",
        steps=[
            Call("Write", file_path=".sm/handoff.md", content=DOCUMENT),
            Call("Bash", command="sm handoff .sm/handoff.md"),
            Say("Handed off.", delay=0.5),
        ],
    ),
    Turn("continue from where you left off", steps=[Say("Going on.")]),
    Turn("climb", steps=[Call("Bash", command="sm status").but(context=140_000) for _ in range(3)] + [Say("Done.")]),
    Turn("speak long", steps=[Say("Never said.", delay=25)], times=1),
    Turn("ask me", steps=[Call("Bash", command="rm -f nothing"), Say("Done.")]),
    otherwise=Say("ok"),
)
BY_KEYS = '[claude]\ndriver = "keys"\n'
CLIENTS = ["scripted", pytest.param("claude", marks=[pytest.mark.e2e, pytest.mark.soak])]
"""The same of the real client is in `tests/e2e`; that both are alike here, `make soak` shows."""
BOTH = ["scripted", pytest.param("claude", marks=pytest.mark.e2e)]


@contextlib.asynccontextmanager
async def rig_with(client):
    async with Rig(SCRIPT, config=BY_KEYS if client == "scripted" else "") as rig:  # it runs no plugin
        if client == "scripted":
            rig.use_scripted_agent()
        yield rig


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_rotation_wakes_the_agent_with_its_document(client):
    async with rig_with(client) as rig:
        session = await rig.new("please hand off")
        await rig.wait_phase(session, "done")
        request = await rig.model.wait_for(lambda r: "continue from where you left off" in r.user_text, within=10)
        assert DOCUMENT.strip() in request.all_text
        assert len((await rig.view(session))["past_conversations"]) == 1


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_client_in_the_foreground_is_ended_and_started_again_with_its_prompt(client):
    async with rig_with(client) as rig:
        with Terminal(rig, ("--model", rig.model_name, "please hand off")) as terminal:
            session = await terminal.session()
            first = await rig.view(session)
            await rig.wait_phase(session, "done")
            request = await rig.model.wait_for(lambda r: "continue from where you left off" in r.user_text, within=10)
            assert DOCUMENT.strip() in request.all_text
            after = await rig.view(session)
            assert after["past_conversations"] == [first["conversation"]]
            assert await terminal.quit() == 0
            assert terminal.modes == terminal.before


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_draft_survives_a_rotation(client):
    async with rig_with(client) as rig:
        session = await rig.new("please hand off")
        await rig.wait_event(session, "HandoffRequested")
        rig.type(session, "half a thought")
        await rig.wait_phase(session, "done")
        await rig.wait_status(session, "idle")
        await rig.wait_screen(session, "❯\N{NO-BREAK SPACE}half a thought")
        assert not [request for request in rig.model.main_requests if "half a thought" in request.user_text]


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_warning_reaches_the_agent_inside_its_turn(client):
    async with rig_with(client) as rig:
        await rig.new("please climb")
        request = await rig.model.wait_for(lambda r: "[sm context] Context" in r.context_text, within=20)
        assert request.tool_results


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_message_to_an_idle_agent_is_its_next_prompt(client):
    async with rig_with(client) as rig:
        session = await rig.new("hello")
        await rig.wait_event(session, "TurnEnded")
        await rig.ask("POST", f"/sessions/{session}/messages", {"text": "look at the tests"})
        await rig.model.wait_for(lambda r: r.user_text.strip() == "look at the tests", within=20)


@pytest.mark.parametrize("client", CLIENTS)
async def test_no_key_goes_out_while_a_permission_dialog_stands(client):
    async with rig_with(client) as rig:
        session = await rig.new("please ask me")
        await rig.wait_status(session, "waiting")
        await rig.ask("POST", f"/sessions/{session}/messages", {"text": "not into the dialog"})
        await rig.wait_screen(session, "1. Yes")
        assert "not into the dialog" not in rig.screen(session)
        rig.press(session, "Escape")
        await rig.model.wait_for(lambda r: "not into the dialog" in r.user_text, within=20)


@pytest.mark.parametrize("client", CLIENTS)
async def test_what_is_to_be_read_now_is_read_as_soon_as_the_hooks_have_judged_it(client):
    async with rig_with(client) as rig:
        judges = 'case "$(cat)" in *"look here"*) sleep 1.5;; esac'
        hook = {"type": "command", "command": judges}
        person_settings(rig, permissions={"defaultMode": "default"}, hooks={"UserPromptSubmit": [{"hooks": [hook]}]})
        session = await rig.new("speak long")
        await rig.model.wait_for(lambda r: "speak long" in r.user_text)
        await rig.wait_status(session, "working")
        await submit(rig, session, "look here")
        rig.press(session, "C-x")
        rig.press(session, "C-s")
        await rig.model.wait_for(lambda r: "look here" in r.all_text, within=15)


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_client_that_is_killed_is_seen_and_restored(client):
    async with rig_with(client) as rig:
        session = await rig.new("hello")
        before = await rig.wait_view(session, lambda v: v["status"] == "idle" and v["context"]["tokens"], "measured")
        await rig.kill_client(session)
        await rig.wait_status(session, "crashed")
        await rig.ask("POST", f"/sessions/{session}/restore", {"env": rig.env})
        after = await rig.wait_status(session, "idle")
        assert after["conversation"] == before["conversation"]


@pytest.mark.parametrize("client", BOTH)
@pytest.mark.parametrize("name", ["\N{MATHEMATICAL SANS-SERIF BOLD SMALL X} notes", "a" * 240])
async def test_a_transcript_is_where_the_client_names_its_project(client, name):
    """C34: by UTF-16 units, and a long name cut, with a hash of the whole."""

    class Elsewhere(Rig):
        @property
        def project(self):
            return self.root / name

    async with Elsewhere(SCRIPT) as rig:
        if client == "scripted":
            rig.use_scripted_agent()
        session = await rig.new("hello")
        await rig.wait_event(session, "TurnEnded")
        found = Path((await rig.view(session))["transcript"])
        await rig.until(found.exists, f"{found} exists")
        assert found.parent.name == project_name(str(rig.project))
