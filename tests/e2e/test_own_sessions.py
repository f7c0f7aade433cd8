"""Clients that a person starts by hand, with the plugin installed from the repository as a marketplace."""

import asyncio
import os
import shutil
import subprocess

import pytest

from sm.testing.scenario import Call, Say, Turn, scenario
from tests.e2e.rig import ROOT, Rig
from tests.e2e.terminal import Terminal, sm

pytestmark = [pytest.mark.e2e, pytest.mark.matrix, pytest.mark.timeout(120)]

DOCUMENT = "# Handoff\n\n" + "A fact that the next context needs.\n" * 400 + "\nNext step: run the tests.\n"
HANDS_OFF = Call("mcp__sm__handoff", document=DOCUMENT)
AWOKE = "continue from where you left off"
QUESTION = "May sm clear this context"
LOOKS = Call("Bash", command="sleep 1")
FILLS = [LOOKS.but(context=size) for size in (50_000, 110_000, 111_000, 140_000, 141_000)]
SCRIPT = scenario(
    Turn("hand off", steps=[HANDS_OFF, Say("Handed off.")]),
    Turn("work", steps=[*FILLS, HANDS_OFF, Say("Handed off.")]),
    Turn(AWOKE, steps=[Say("Going on.")]),
    otherwise=Say("ok"),
)


async def install(rig):
    """Install the plugin as a person does; allow what the script runs."""
    market = rig.root / "market"
    for name in (".claude-plugin", "plugin"):
        shutil.copytree(ROOT / name, market / name)
    for arguments in (("marketplace", "add", str(market)), ("install", "sm@sm", "--scope", "user")):
        command = [rig.client, "plugin", *arguments]
        done = await asyncio.to_thread(
            subprocess.run, command, env=rig.env, cwd=rig.project, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


def own(rig, **env):
    return Terminal(rig, ("--allowedTools", "Bash"), {"SM_HOME": str(rig.home.root), **env})


def not_installed(rig, **env):
    """No `sm` on the PATH, and no SM_HOME."""
    path = [folder for folder in rig.env["PATH"].split(":") if not os.path.exists(f"{folder}/sm")]  # noqa: PTH110
    return Terminal(rig, ("--allowedTools", "Bash"), {"PATH": ":".join(path), **env})


async def agrees(person):
    await person.shows(QUESTION)
    await asyncio.sleep(0.5)
    os.write(person.master, b"\r")


async def woken(rig, count=1):
    def enough():
        return len([request for request in rig.model.requests if AWOKE in request.user_text.lower()]) >= count

    await rig.until(enough, f"{count} contexts that continue")
    found = [request for request in rig.model.requests if AWOKE in request.user_text.lower()][count - 1]
    assert DOCUMENT.strip() in found.all_text
    assert found.all_text.count("=== HANDOFF LOADED") == 1
    return found


def files(rig):
    """All but the client's own, in its home."""
    found = (path.relative_to(rig.root) for path in rig.root.rglob("*") if path.is_file())
    return {path for path in found if path.parts[0] != "home"}


async def test_without_sm_the_plugin_warns_asks_once_and_rotates():
    async with Rig(SCRIPT) as rig:
        await install(rig)
        await rig.kill_server()
        before = files(rig)
        async with not_installed(rig) as person:
            await person.submit("work")
            await agrees(person)
            request = await woken(rig)
            assert "> work" not in request.all_text
            said = [request.context_text for request in rig.model.main_requests]
            assert [number for number, text in enumerate(said) if "Consider handing off with" in text] == [2]
            assert [number for number, text in enumerate(said) if "Context critically high." in text] == [4]
            await person.idle()
            await person.submit("please hand off")
            await woken(rig, 2)
            assert person.text.count(QUESTION) == 1
        assert files(rig) == before


@pytest.mark.soak
async def test_with_the_server_stopped_it_is_the_same():
    async with Rig(SCRIPT) as rig:
        await install(rig)
        await rig.kill_server()
        async with own(rig) as person:
            await person.submit("please hand off")
            await agrees(person)
            await woken(rig)


async def the_session(rig):
    def there():
        return len(rig.call("GET", "/sessions")) == 1

    await rig.until(there, "a session of the person's client")
    [session] = await rig.ask("GET", "/sessions")
    return session["id"]


async def test_with_a_server_it_is_a_session_that_rotates_in_place():
    async with Rig(SCRIPT) as rig:
        await install(rig)
        async with own(rig) as person:
            session = await the_session(rig)
            await rig.wait_view(session, lambda view: view["driver"] == "mod", "driven by the plugin")
            await person.submit("work")
            await agrees(person)
            await rig.wait_phase(session, "done")
            request = await woken(rig)
            assert "=== HANDOFF LOADED (ID: HO-" in request.all_text
            assert str(rig.home.root) not in request.user_text, "a file that the agent would have to ask for"
            view = await rig.view(session)
            assert (view["adopted"], view["pid"]) == (True, person.process.pid)
            assert len(view["past_conversations"]) == 1
            said = [request.context_text for request in rig.model.main_requests]
            assert [number for number, text in enumerate(said) if "Consider handing off with" in text] == [2]
            await person.idle()
            await person.submit("please hand off")
            await rig.wait_view(session, lambda view: view["rotations"] == 2, "rotated twice")
            await woken(rig, 2)
            assert person.text.count(QUESTION) == 1
        await rig.wait_status(session, "exited")


@pytest.mark.soak
async def test_after_sm_setup_its_hooks_are_not_counted_beside_the_plugin():
    async with Rig(SCRIPT, config='[plugin]\nrotate = "auto"\n') as rig:
        assert sm(rig, "setup", "--yes").returncode == 0
        async with own(rig) as person:
            session = await the_session(rig)
            await rig.wait_view(session, lambda view: view["driver"] == "mod", "driven by the plugin")
            await person.submit("work")
            await rig.wait_phase(session, "done")
            await woken(rig)
            assert len(await rig.events(session, "PromptSubmitted")) == 2, "the user's, and the one that wakes"
            assert not await rig.events(session, "ToolUsed")
            assert len(await rig.ask("GET", "/sessions")) == 1


@pytest.mark.soak
async def test_nobody_is_asked_where_the_setting_says_so():
    async with Rig(SCRIPT, config='[plugin]\nrotate = "auto"\n') as rig:
        await install(rig)
        async with own(rig) as person:
            session = await the_session(rig)
            await person.submit("please hand off")
            await rig.wait_phase(session, "done")
            await woken(rig)
            assert QUESTION not in person.text


@pytest.mark.soak
async def test_a_person_who_declines_keeps_their_context():
    script = scenario(
        Turn("hand off", steps=[HANDS_OFF, HANDS_OFF, Say("Working on.")]),
        Turn(AWOKE, steps=[Say("Going on.")]),
        otherwise=Say("ok"),
    )
    async with Rig(script) as rig:
        await install(rig)
        async with own(rig) as person:
            session = await the_session(rig)
            await person.submit("please hand off")
            await person.shows(QUESTION)
            await asyncio.sleep(0.5)
            os.write(person.master, b"2")
            await rig.wait_event(session, "TurnEnded")
            results = [result.text for request in rig.model.requests for result in request.tool_results]
            assert any("The user does not want this context to be cleared" in text for text in results)
            assert person.text.count(QUESTION) == 1
            assert (await rig.view(session))["handoff"]["phase"] is None
            await person.idle()
            await person.submit("/sm:handoff ")
            await rig.model.wait_for(lambda request: "Hand this session off" in request.user_text)


@pytest.mark.soak
async def test_a_person_who_types_the_command_is_not_asked():
    script = scenario(
        Turn("Hand this session off", steps=[HANDS_OFF, Say("Handed off.")]),
        Turn(AWOKE, steps=[Say("Going on.")]),
        otherwise=Say("ok"),
    )
    async with Rig(script) as rig:
        await install(rig)
        await rig.kill_server()
        async with not_installed(rig) as person:
            await person.submit("/sm:handoff ")
            await woken(rig)
            assert QUESTION not in person.text


@pytest.mark.soak
async def test_a_server_that_comes_and_goes_takes_over_and_hands_back():
    async with Rig(SCRIPT, config='[plugin]\nrotate = "auto"\n') as rig:
        await install(rig)
        await rig.kill_server()
        async with own(rig, SM_PLUGIN_ROTATE="auto") as person:
            await person.submit("please hand off")
            await woken(rig)
            await person.idle()
            await rig.start_server()
            await person.submit("please hand off")
            session = await the_session(rig)
            await rig.wait_phase(session, "done")
            assert "=== HANDOFF LOADED (ID: HO-" in (await woken(rig, 2)).all_text
            await rig.kill_server()
            await person.idle()
            await person.submit("please hand off")
            assert "=== HANDOFF LOADED ===" in (await woken(rig, 3)).all_text


@pytest.mark.soak
async def test_a_session_that_is_driven_by_keys_is_left_to_them():
    async with Rig(SCRIPT, config='[claude]\ndriver = "keys"\n[hooks]\ntransport = "command"\n') as rig:
        await install(rig)
        session = await rig.new("hello")
        await rig.wait_event(session, "TurnEnded")
        view = await rig.view(session)
        assert (view["driver"], view["driver_note"]) == ("keys", "")
        assert "mcp__sm__handoff" not in rig.model.main_requests[0].tools


@pytest.mark.soak
async def test_a_session_of_sm_has_the_plugin_once():
    async with Rig(SCRIPT, config='[claude]\ndriver = "auto"\n') as rig:
        await install(rig)
        session = await rig.new("please hand off")
        await rig.wait_view(session, lambda view: view["driver"] == "mod", "driven by the plugin")
        await rig.wait_phase(session, "done")
        await woken(rig)
        for request in rig.model.main_requests:
            assert [tool for tool in request.tools if tool.endswith("__handoff")] == ["mcp__sm__handoff"]
        assert len(await rig.ask("GET", "/sessions")) == 1
        assert (await rig.view(session))["rotations"] == 1
        await rig.wait_status(session, "idle")
        rig.type(session, "/sm:handoff auth")
        await rig.wait_screen(session, "/sm:handoff auth")
        rig.press(session, "Enter")
        told = await rig.model.wait_for(lambda request: "Hand this session off" in request.user_text)
        assert f"Runs under sm: yes (session {session})" in told.user_text


@pytest.mark.soak
async def test_what_such_a_client_asks_is_answered_from_elsewhere():
    touch = Call("Bash", command="touch asked-for", description="make a file")
    async with Rig(scenario(Turn("go", steps=[touch, Say("Done.")]), otherwise=Say("ok"))) as rig:
        await install(rig)
        async with Terminal(rig, (), {"SM_HOME": str(rig.home.root)}) as person:
            await person.submit("go")
            found = []
            await rig.until(lambda: found.extend(rig.call("GET", "/asks")) or bool(found), "an ask")
            assert found[0]["input"]["command"] == "touch asked-for"
            assert rig.sm("approve", found[0]["id"]).returncode == 0
            await rig.until((rig.project / "asked-for").exists, "the file")
