"""On the real Codex: its agent's shell cannot reach sm, and its tools can, as the session's own client."""

import asyncio
import json
import shlex
import sys
from pathlib import Path

import pytest

from sm.testing.offline import offline_codex_env
from sm.testing.scenario import Call, Say, Together, Turn, scenario
from tests.e2e.rig import Rig
from tests.e2e.test_codex_model import CODEX

PASSED = ["SM_SESSION_TOKEN", "SM_URL", "SM_SOCKET", "SM_HOME", "CLAUDE_SESSION_MANAGER_ID"]
SERVER = (
    f"mcp_servers.sm={{command={json.dumps(sys.executable)}, args=['-I', '-m', 'sm.agent_tools'], "
    f"env_vars={json.dumps(PASSED)}, default_tools_approval_mode='approve'}}"
)
SM = f"{sys.executable} -I -m sm"
SCHEDULED = "Handoff scheduled — will execute after current turn completes. End your turn now."

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(150),
    pytest.mark.skipif(not CODEX.exists(), reason="the pinned client is not installed"),
]


def codex(rig, prompt, *options):
    """Return the command that runs one turn of the client, and prints its events into a file."""
    command = [str(CODEX), "exec", "--json", "--skip-git-repo-check", "-c", SERVER, *options, prompt]
    return f"{shlex.join(command)} </dev/null >{rig.root}/events 2>{rig.root}/events.err"


async def started(rig, command):
    """Start a session whose client is a shell that runs the command, and then waits."""
    client = rig.root / "client"
    client.write_text(f"#!/bin/sh\n{command}\nexec sleep 600\n")
    client.chmod(0o700)
    rig.client = str(client)
    return await rig.new(**offline_codex_env(rig.root / "home", rig.model.url, rig.project))


async def calls_of_turn(rig):
    """Return what its shell commands and its tools have answered, once the client's turn has ended."""
    events = rig.root / "events"
    await rig.until(lambda: events.exists() and '"turn.completed"' in events.read_text(), "the turn has ended", 90)
    items = [json.loads(line).get("item", {}) for line in events.read_text().splitlines() if "item.completed" in line]
    shells = [item["aggregated_output"] for item in items if item["type"] == "command_execution"]
    tools = [item["result"]["content"][0]["text"] for item in items if item["type"] == "mcp_tool_call"]
    return shells, tools


async def test_a_sandboxed_agent_hands_off_by_its_tool_and_is_sent_there_by_the_command():
    steps = [
        Call("exec_command", cmd=f"{SM} status; echo code $?; env"),
        Call("sm", arguments=["status", "at it"]),
        Call("handoff", document="# The goal"),
        Say("Handed off."),
    ]
    async with Rig(scenario(Turn("do the work", steps))) as rig:
        session = await started(rig, codex(rig, "do the work", "--sandbox", "workspace-write"))
        [shell], tools = await calls_of_turn(rig)
        assert "code 2\n" in shell
        assert "use the tool sm of the MCP server sm (mcp__sm)" in shell
        assert "CODEX_SANDBOX_NETWORK_DISABLED=1" in shell.splitlines()
        assert tools == ["Reported", SCHEDULED]
        view = await rig.view(session)
        assert view["report"]["text"] == "at it"
        assert view["handoff"]["phase"] == "pending"
        assert Path(view["handoff"]["copy"]).read_text().endswith("# The goal")


async def test_the_document_that_a_sandboxed_agent_has_written_is_handed_off_and_a_link_is_not():
    linked = "mkdir -p .sm; echo goal >.sm/own.md; echo secret >secret; ln -s ../secret .sm/link.md"
    steps = [
        Call("exec_command", cmd=linked),
        Together(*(Call("sm", arguments=["handoff", name]) for name in (".sm/link.md", "secret", ".sm/own.md"))),
        Say("Handed off."),
    ]
    async with Rig(scenario(Turn("do the work", steps))) as rig:
        session = await started(rig, codex(rig, "do the work", "--sandbox", "workspace-write"))
        _, tools = await calls_of_turn(rig)
        assert [text.split(":")[0] for text in sorted(tools)] == ["Error", "Error", SCHEDULED]
        view = await rig.view(session)
        assert Path(view["handoff"]["copy"]).read_text().endswith("goal\n")


@pytest.mark.soak
async def test_a_helper_of_the_agent_hands_nothing_off():
    helper = Turn("help me", [Call("handoff", document="# A part"), Say("Helped.")])
    steps = [Call("spawn_agent", message="help me"), Call("exec_command", cmd="sleep 3"), Say("Done.")]
    async with Rig(scenario(helper, Turn("do the work", steps), otherwise=Say("ok"))) as rig:
        session = await started(rig, codex(rig, "do the work", "--sandbox", "workspace-write"))
        await calls_of_turn(rig)
        results = [result.text for request in rig.model.requests for result in request.tool_results]
        assert sum("Only the main agent hands off" in text for text in results) == 1
        assert (await rig.view(session))["handoff"]["phase"] is None


async def test_the_tools_of_a_client_that_is_not_the_sessions_change_nothing():
    """Its agent has the token: it was started in another terminal, with the environment of the session."""
    steps = [Call("handoff", document="# The goal"), Call("sm", arguments=["done"]), Say("Done.")]
    async with Rig(scenario(Turn("do the work", steps))) as rig:
        session = await started(rig, "true")
        variables = Path(f"/proc/{(await rig.view(session))['pid']}/environ").read_text().split("\0")
        env = dict(variable.split("=", 1) for variable in variables if variable)
        other = await asyncio.create_subprocess_shell(codex(rig, "do the work"), env=env, cwd=rig.project)
        _, tools = await calls_of_turn(rig)
        await other.wait()
        assert ["was not started by the client of session a" in text for text in tools] == [True, True]
        assert (await rig.view(session))["handoff"]["phase"] is None
