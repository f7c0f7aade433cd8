"""`sm run` as a job of a person's shell, on the real client: keys, job control and resizing as if it ran alone."""

import asyncio
import os
import signal
import termios

import pytest

from sm.processes import alive, parent
from sm.testing.scenario import Say, Turn, scenario
from tests.e2e.foreground import BY_KEYS, Shell, answered
from tests.e2e.people import AWOKE, HANDED_OFF, WROTE
from tests.e2e.rig import Rig

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

SCRIPT = scenario(
    Turn("hand off", steps=[WROTE, HANDED_OFF, Say("Handed off.")]),
    Turn(AWOKE, steps=[Say("Going on.")]),
    otherwise=Say("ok"),
)
MODEL = ("--model", "claude-sonnet-4-5")


async def says(rig, shell, text):
    """Type a prompt into the client, again if it was not ready for keys yet."""
    shell.type(text)
    await asyncio.sleep(0.3)
    shell.type("\r")
    return await rig.model.wait_for(lambda r: text in r.user_text, within=20)


@pytest.mark.soak
async def test_it_stops_and_goes_on_with_the_shells_own_job_control():
    async with Rig(SCRIPT, config=BY_KEYS) as rig:
        with Shell(rig, (*MODEL, "hello there")) as shell:
            session = await shell.session()
            view = await answered(rig, session)
            shell.type("\x1a")
            await rig.until(lambda: "Stopped" in shell.plain, "the shell says that its job has stopped")
            shell.type("echo still a shell\r")
            await rig.until(lambda: shell.plain.count("still a shell") >= 2, "the shell answers")
            shell.type("fg; echo code=$?\r")
            await asyncio.sleep(0.5)
            await says(rig, shell, "back again")
            assert (await rig.view(session))["pid"] == view["pid"]
            await shell.leave()
            assert "code=0" in shell.plain


async def test_a_restart_keeps_the_job_and_what_is_typed_reaches_the_new_client():
    async with Rig(SCRIPT, config=BY_KEYS) as rig:
        with Shell(rig, (*MODEL, "please hand off")) as shell:
            session = await shell.session()
            first = await rig.view(session)
            await rig.wait_phase(session, "done")
            after = await rig.wait_status(session, "idle")
            assert os.getpgid(after["pid"]) == os.getpgid(parent(after["pid"]))
            await says(rig, shell, "and now this")
            shell.type("\x1a")
            await rig.until(lambda: "Stopped" in shell.plain, "the shell says that its job has stopped")
            shell.type("fg; echo code=$?\r")
            await asyncio.sleep(0.5)
            await shell.leave()
            assert "code=0" in shell.plain
            assert first["pid"] != after["pid"]


@pytest.mark.soak
async def test_a_new_size_of_the_terminal_reaches_the_client():
    async with Rig(SCRIPT, config=BY_KEYS) as rig:
        with Shell(rig, (*MODEL, "hello there")) as shell:
            await answered(rig, await shell.session())
            before = len(shell.got)
            shell.resize(60)
            await rig.until(lambda: "─" * 60 in shell.plain_since(before), "the client draws for the new width")
            assert "─" * 61 not in shell.plain_since(before)


@pytest.mark.soak
async def test_a_closed_terminal_ends_the_client():
    async with Rig(SCRIPT, config=BY_KEYS) as rig:
        with Shell(rig, (*MODEL, "hello there")) as shell:
            session = await shell.session()
            view = await answered(rig, session)
            os.kill(shell.process.pid, signal.SIGHUP)
            await rig.until(lambda: not alive(view["pid"]), "the client has ended")
            await rig.wait_status(session, "exited")


@pytest.mark.soak
async def test_sm_run_killed_under_a_shell_leaves_the_session_to_be_restored():
    async with Rig(SCRIPT, config=BY_KEYS) as rig:
        with Shell(rig, (*MODEL, "hello there")) as shell:
            session = await shell.session()
            view = await answered(rig, session)
            os.kill(parent(view["pid"]), signal.SIGKILL)
            await rig.until(lambda: not alive(view["pid"]), "the client has lost its terminal and ends")
            await rig.wait_view(session, lambda v: v["status"] in {"exited", "crashed"}, "ended")
            assert (await rig.ask("POST", f"/sessions/{session}/restore", {"env": rig.env}))["pane"]


@pytest.mark.soak
async def test_lines_and_echo_are_the_shells_again_afterwards():
    async with Rig(SCRIPT, config=BY_KEYS) as rig:
        with Shell(rig, (*MODEL, "hello there")) as shell:
            view = await answered(rig, await shell.session())
            os.kill(view["pid"], signal.SIGKILL)
            await rig.until(lambda: "code=137" in shell.plain, "the shell goes on")
            shell.type("stty -a | grep -o ' echo '\r")
            await rig.until(lambda: shell.plain.rstrip().count("echo") >= 2, "echo is on")
            assert termios.tcgetattr(shell.slave)[3] & termios.ISIG
