"""Codex through its app-server, on the real client: the program in its pane is killed, at rest and in a turn."""

import os
import signal
from pathlib import Path

import pytest

from sm.testing.scenario import Call, Say, Turn
from tests.e2e.test_codex import below, codex

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("steps", [[], [Call("Bash", command="sleep 60")]], ids=["idle", "working"])
async def test_nothing_of_a_client_outlives_the_program_in_its_pane(steps):
    async with codex(Turn("hello", steps=[*steps, Say("Here I am.")])) as rig:
        session = await rig.new("hello")
        if steps:
            await rig.wait_status(session, "working")
            await rig.until(lambda: any("sleep 60" in command for command in commands(rig, session)), "it sleeps", 20)
        else:
            await rig.wait_event(session, "TurnEnded")
            await rig.wait_screen(session, "Here I am.")
        pid = (await rig.view(session))["pid"]
        left = below(pid)
        os.kill(pid, signal.SIGKILL)
        await rig.wait_status(session, "crashed")
        await rig.until(lambda: not any(map(is_running, left)), "all of it has ended", 20)
        await rig.ask("POST", f"/sessions/{session}/restore", {"env": rig.env})
        await rig.wait_status(session, "idle")
        await rig.ask("POST", f"/sessions/{session}/messages", {"text": "are you there"})
        request = await rig.model.wait_for(lambda request: "are you there" in request.user_text)
        assert "hello" in request.all_text


def commands(rig, session):
    return below(rig.call("GET", f"/sessions/{session}")["pid"]).values()
