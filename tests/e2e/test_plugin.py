"""The plugin's skills in the real client: found, valid, and what they tell an agent to do works."""

import asyncio
import json
import os
import shutil
import subprocess

import pytest

from sm.core.model.context_warnings import PROMPT_FILE
from sm.testing.scenario import Call, Say, Turn, scenario
from tests.e2e.people import GOES_ON, person_settings, woken
from tests.e2e.rig import ROOT, Rig
from tests.e2e.terminal import Terminal, sm

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

PLUGIN = ROOT / "plugin"
PROMPT = "# Session Continuation: auth\n\n## Resume Point\n\n### Next Step\nAdd `/auth/refresh`.\n"
WRITES = Call("Write", file_path=PROMPT_FILE, content=PROMPT)
HANDS_OFF = Call("Bash", command=f"sm handoff {PROMPT_FILE}")
ERROR = (
    "Error: No continuation prompt found at .sm/continue-prompt.md\n"
    "Run /handoff to generate one, or specify a custom path:\n"
    "/sm:resume path/to/custom-prompt.md"
)


def copied(rig):
    """The plugin where the client may write: it does into the folder of `--plugin-dir` (2.1.328)."""
    place = rig.root / "plugin"
    if not place.exists():
        shutil.copytree(PLUGIN, place)
    return str(place)


async def client(rig, *arguments):
    """Run the client to its end, beside the scripted model that answers it."""
    return await asyncio.to_thread(
        subprocess.run,
        [rig.client, *arguments],
        env=rig.env,
        cwd=rig.project,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


async def headless(rig, prompt, *arguments):
    done = await client(rig, "-p", prompt, "--model", rig.model_name, *(arguments or ("--plugin-dir", copied(rig))))
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def asked(rig, words):
    return next(request for request in rig.model.requests if words in request.user_text)


async def test_the_client_finds_nothing_to_object_to():
    async with Rig(scenario()) as rig:
        market = ".claude-plugin/marketplace.json"
        for path in (PLUGIN, PLUGIN / ".claude-plugin/plugin.json", PLUGIN / market, ROOT / market):
            done = await client(rig, "plugin", "validate", str(path), "--strict")
            assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.soak
async def test_a_local_marketplace_offers_it():
    async with Rig(scenario(otherwise=Say("ok"))) as rig:
        for arguments in (("marketplace", "add", str(PLUGIN)), ("install", "sm@sm", "--scope", "user")):
            done = await client(rig, "plugin", *arguments)
            assert done.returncode == 0, done.stdout + done.stderr
        await headless(rig, "/sm:resume", "--verbose")
        assert ERROR in asked(rig, "Continue an earlier session").user_text


async def test_handoff_under_sm_writes_the_prompt_and_goes_on_in_a_fresh_context():
    """In the client's asking mode: neither the file nor the command may open a dialog."""
    script = scenario(
        Turn("Hand this session off", steps=[WRITES, HANDS_OFF, Say("Handed off.")]), GOES_ON, otherwise=Say("ok")
    )
    async with Rig(script) as rig:
        session = await rig.new("hello", "--plugin-dir", copied(rig))
        await rig.wait_event(session, "TurnEnded")
        rig.type(session, "/sm:handoff auth --deep")
        await rig.wait_screen(session, "/sm:handoff auth --deep")
        rig.press(session, "Enter")
        told = await rig.model.wait_for(lambda r: "Hand this session off" in r.user_text)
        assert "Arguments: auth --deep" in told.user_text
        assert f"Runs under sm: yes (session {session})" in told.user_text
        assert "does not exist yet" in told.user_text
        request = await rig.model.wait_for(woken)
        assert f"{PROMPT_FILE} and continue" in request.user_text
        assert PROMPT.strip() in request.all_text
        await rig.wait_phase(session, "done")
        assert not list(await rig.events(session, "PermissionAsked"))


@pytest.mark.soak
async def test_handoff_without_sm_writes_the_prompt_and_keeps_it_out_of_git():
    script = scenario(Turn("Hand this session off", steps=[WRITES, Say("Written.")]), otherwise=Say("ok"))
    async with Rig(script) as rig:
        subprocess.run(["git", "init", "-q"], cwd=rig.project, check=True)
        done = await headless(rig, "/sm:handoff")
        assert done.stdout == "Written.\n"
        assert "Runs under sm: no" in asked(rig, "Hand this session off").user_text
        assert (rig.project / PROMPT_FILE).read_text() == PROMPT
        status = subprocess.run(["git", "status", "--short"], cwd=rig.project, capture_output=True, check=True)
        assert status.stdout == b""


@pytest.mark.soak
async def test_resume_gives_the_prompt_to_the_agent_and_runs_nothing_that_it_holds():
    async with Rig(scenario(otherwise=Say("ok"))) as rig:
        (rig.project / ".sm").mkdir()
        (rig.project / PROMPT_FILE).write_text(PROMPT + "!`touch ran` $(touch ran) $ARGUMENTS\n")
        await headless(rig, "/sm:resume")
        told = asked(rig, "Continue an earlier session").user_text
        assert PROMPT in told
        assert f"Continuation prompt: {PROMPT_FILE}" in told
        assert "stale" not in told.partition("1. If the arguments")[0]
        assert not (rig.project / "ran").exists()


@pytest.mark.soak
async def test_resume_without_a_prompt_says_so_word_for_word():
    async with Rig(scenario(otherwise=Say("ok"))) as rig:
        await headless(rig, "/sm:resume")
        assert f"\n{ERROR}\n" in asked(rig, "Continue an earlier session").user_text


@pytest.mark.soak
async def test_resume_takes_a_path_and_warns_of_an_old_prompt():
    async with Rig(scenario(otherwise=Say("ok"))) as rig:
        find = f"sh \"{copied(rig)}/skills/resume/find.sh\" 'docs/my prompt.md'"
        rig.model.play(Turn("Continue an earlier session", steps=[Call("Bash", command=find), Say("Going on.")]))
        old = rig.project / "docs" / "my prompt.md"
        old.parent.mkdir()
        old.write_text(PROMPT)
        os.utime(old, (0, 0))
        assert (await headless(rig, "/sm:resume docs/my prompt.md")).stdout == "Going on.\n"
        assert "Arguments: docs/my prompt.md" in asked(rig, "Continue an earlier session").user_text
        [result] = next(r for r in rig.model.requests if r.tool_results).tool_results
        assert PROMPT.strip() in result.text
        assert "stale: it is older than 24 hours" in result.text


async def test_sm_setup_brings_the_plugin_into_the_persons_own_client():
    script = scenario(Turn("Hand this session off", steps=[WRITES, Say("Written.")]), otherwise=Say("ok"))
    async with Rig(script) as rig:
        person_settings(rig, permissions={"defaultMode": "default"})
        assert sm(rig, "setup", "--yes").returncode == 0
        async with Terminal(rig) as person:
            await person.submit("/sm:handoff ")
            await rig.model.wait_for(lambda r: "Hand this session off" in r.user_text)
            await rig.until((rig.project / PROMPT_FILE).exists, "written")
        settings = json.loads((rig.root / "home/.claude/settings.json").read_text())
        assert settings["enabledPlugins"] == {"sm@sm": True}
        sm(rig, "setup", "--remove", "--yes")
        async with Terminal(rig) as person:
            await person.submit("/sm:handoff ")
            await person.shows("Unknown command")


@pytest.mark.soak
async def test_the_plugin_alone_announces_a_fresh_prompt_at_the_start():  # C37
    """No set-up was done: a server, if one runs, hears nothing of this client."""
    async with Rig(scenario(otherwise=Say("ok"))) as rig:
        (rig.project / ".sm").mkdir()
        (rig.project / PROMPT_FILE).write_text(PROMPT)
        async with Terminal(rig, ("--plugin-dir", copied(rig))) as person:
            await person.shows("A continuation prompt of an earlier session is open")
            await person.submit("hello there")
            told = await rig.model.wait_for(lambda request: "hello there" in request.all_text)
            assert f"continuation prompt of an earlier session: {PROMPT_FILE}, written 2" in told.all_text
            assert "/auth/refresh" not in told.all_text
