"""C7: on the real client, a process that outlives the agent's shell has the token and may not change the session."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from sm.processes import parent
from sm.testing.scenario import Call, Say, Turn, scenario
from tests.e2e.people import AWOKE, DOCUMENT, hands_off, person_settings, wake_request
from tests.e2e.rig import Rig

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(150)]

STRANGER = """\
while [ ! -e go ]; do sleep 0.1; done
for command in "handoff other.md" "handoff --auto" "done" "status I am somebody" "remind 1m x" "spawn do it"; do
    sm $command >>said 2>&1; echo "$command: $?" >>codes
done
sm send "$CLAUDE_SESSION_MANAGER_ID" hello >>said 2>&1
sm status >status 2>&1; echo over >>codes
"""


async def test_a_stranger_with_the_agents_environment_rotates_nothing():
    start = Call("Bash", command="setsid nohup sh stranger.sh >/dev/null 2>&1 & echo started")
    script = scenario(Turn("start it", steps=[start, Say("Started.")]), otherwise=Say("ok"))
    async with Rig(script) as rig:
        person_settings(rig, permissions={"defaultMode": "default", "allow": ["Bash"]})
        session = await rig.new("warm up")
        await rig.wait_event(session, "TurnEnded")
        (rig.project / "stranger.sh").write_text(STRANGER)
        (rig.project / "other.md").write_text("# A stranger's document\n")
        await rig.ask("POST", f"/sessions/{session}/messages", {"text": "start it"})
        await rig.wait_event(session, "TurnEnded", 2)
        before = await rig.view(session)
        (rig.project / "go").touch()
        codes = rig.project / "codes"
        await rig.until(lambda: codes.exists() and "over" in codes.read_text(), "the stranger is through", 90)
        assert [line.rpartition(" ")[2] for line in codes.read_text().splitlines()] == ["1"] * 6 + ["over"]
        said = (rig.project / "said").read_text()
        assert said.count(f"was not started by the client of session a (pid {before['pid']})") == 6
        after = await rig.view(session)
        assert (after["conversation"], after["handoff"]["phase"], after["report"]) == (
            before["conversation"],
            None,
            None,
        )
        assert not await rig.events(session, "HandoffRequested")
        assert "caller is not below the session's client" in rig.home.server_log.read_text()


@pytest.mark.soak
async def test_the_agents_own_commands_work_in_every_kind_of_shell():
    """In the foreground, in a pipe, behind `sh -c`, with a shell in between, and in a task of the client."""
    said = "sm status one; sh -c 'sm status two'; echo x | xargs -I{} sm status three; (sm status four) | cat"
    steps = [Call("Bash", command=said), Call("Bash", command="sm status five", run_in_background=True), Say("Done.")]
    async with Rig(scenario(Turn("say it", steps=steps), otherwise=Say("ok"))) as rig:
        person_settings(rig, permissions={"defaultMode": "default", "allow": ["Bash"]})
        session = await rig.new("say it")
        await rig.wait_event(session, "StatusReported", 5)
        pid = (await rig.view(session))["pid"]
        assert parent(pid) != os.getpid()
        assert "caller not verified" not in rig.home.server_log.read_text()


async def test_an_inherited_token_in_another_shell_of_the_same_user_is_refused_and_a_rotation_goes_its_way():
    async with Rig(hands_off(Say("Handed off.", delay=3.0))) as rig:
        session = await rig.new("please hand off")
        await rig.wait_phase(session, "pending")
        pid = (await rig.view(session))["pid"]
        raw = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        env = dict(pair.decode().split("=", 1) for pair in raw if b"=" in pair)
        (rig.project / "other.md").write_text("# A stranger's document\n")
        for words in (["handoff", "other.md"], ["handoff", "--cancel"], ["done"]):
            command = [str(rig.home.bin / "sm"), *words]
            ran = await asyncio.to_thread(
                subprocess.run, command, env=env, cwd=rig.project, capture_output=True, text=True, check=False
            )
            assert (ran.returncode, "was not started by the client" in ran.stderr) == (1, True), ran
        request = await wake_request(rig)
        assert (DOCUMENT.strip() in request.all_text, AWOKE in request.user_text) == (True, True)
