"""The real client believes that the scripted model is the Messages API."""

import asyncio
import json
import os
import shlex
import tempfile
from pathlib import Path

import pytest

from sm.testing.model import ScriptedModel
from sm.testing.offline import offline_client_env
from sm.testing.request import RequestKind
from sm.testing.scenario import Call, Fail, Say, Together, TooLong, Turn, scenario

CLAUDE = Path(__file__).parents[2] / "clients" / "node_modules" / ".bin" / "claude"
ALLOW = json.dumps({"permissions": {"allow": ["Bash(true)", "Bash(sleep:*)", "Write"]}})

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(90),
    pytest.mark.skipif(not CLAUDE.exists(), reason="the pinned client is not installed"),
]


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


async def claude(model, project, prompt, *options, **environment):
    """Run the client once and return its result object."""
    env = offline_client_env(project.parent / "home", model.url, project) | environment
    process = await asyncio.create_subprocess_exec(
        *(str(CLAUDE), "-p", prompt, "--output-format", "json", "--settings", ALLOW, *options),
        cwd=project,
        env=env,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    return json.loads(output)


async def test_a_turn_with_tools_runs_to_its_end(project):
    turn = Turn(
        "do the (?P<what>.+)",
        [
            Call("Bash", command="true"),
            Call("Write", file_path=str(project / "out.txt"), content="{{what}}").but(context=50_000),
            Say("Did the {{what}}.", context=60_000),
        ],
    )
    async with ScriptedModel(scenario(turn, context=40_000)) as model:
        result = await claude(model, project, "do the work")
    assert (result["result"], result["num_turns"], result["permission_denials"]) == ("Did the work.", 3, [])
    assert (project / "out.txt").read_text() == "work"
    kinds = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    assert sum(result["usage"][kind] for kind in kinds) == 150_000
    assert [request.kind for request in model.requests] == [RequestKind.MAIN] * 3
    assert "File created" in model.requests[2].tool_results[0].text


@pytest.mark.soak
async def test_parallel_calls_come_back_in_one_request(project):
    both = Together(Call("Bash", command="true"), Call("Bash", command="sleep 0.1"))
    async with ScriptedModel(scenario(Turn("go", [both, Say("done")]))) as model:
        assert (await claude(model, project, "go"))["result"] == "done"
    assert len(model.requests[1].tool_results) == 2


@pytest.mark.soak
async def test_a_tool_without_permission_is_denied_and_not_run(project):
    turn = Turn("go", [Call("Bash", command="touch not-allowed"), Say("done")])
    async with ScriptedModel(scenario(turn)) as model:
        result = await claude(model, project, "go")
    assert len(result["permission_denials"]) == 1
    assert not (project / "not-allowed").exists()


@pytest.mark.soak
async def test_thinking_and_a_slow_stream_are_understood(project):
    async with ScriptedModel(scenario(Turn("go", [Say("a slow answer " * 5, think="hm", chunk_delay=0.1)]))) as model:
        result = await claude(model, project, "go")
    assert result["result"].strip() == ("a slow answer " * 5).strip()
    assert result["duration_api_ms"] > 500


@pytest.mark.parametrize("status", [429, 500, 529])
@pytest.mark.soak
async def test_the_client_retries_an_error_and_goes_on(project, status):
    async with ScriptedModel(scenario(Turn("go", [Fail(status), Say("fine")]))) as model:
        assert (await claude(model, project, "go"))["result"] == "fine"
    assert len(model.requests) == 2


@pytest.mark.parametrize(
    ("step", "status"),
    [(Fail(429, should_retry=False), 429), (Fail(529), 529), (TooLong(), 400)],
    ids=["429", "529", "too long"],
)
@pytest.mark.soak
async def test_an_error_that_stays_ends_the_run(project, step, status):
    async with ScriptedModel(scenario(Turn("go", [step]))) as model:
        result = await claude(model, project, "go", CLAUDE_CODE_MAX_RETRIES="1")
    assert (result["is_error"], result["api_error_status"]) == (True, status)


@pytest.mark.parametrize("name", ["claude-opus-5-5", "claude-sonnet-4-5"])
@pytest.mark.soak
async def test_hook_context_is_found_in_the_next_request_and_may_be_answered(project, name):
    reply = {"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "context is at 80 %"}}
    command = f"echo {shlex.quote(json.dumps(reply))}"
    hooks = {"PostToolUse": [{"hooks": [{"type": "command", "command": command}]}]}
    script = scenario(
        Turn("go", [Call("Bash", command="true"), Say("not reached")]),
        Turn(context=r"context is at (\d+)", steps=[Say("noticed {{1}}")]),
    )
    async with ScriptedModel(script) as model:
        settings = json.dumps({**json.loads(ALLOW), "hooks": hooks})
        result = await claude(model, project, "go", "--model", name, "--settings", settings)
    assert result["result"] == "noticed 80"


async def test_the_terminal_shows_the_answer_and_compacts_in_one_request(project):
    script = scenario(Turn("hello", [Say("Hello from the script.")]))
    async with ScriptedModel(script) as model, Terminal(model, project) as terminal:
        await terminal.shows("manual mode")
        await terminal.enter("hello")
        await terminal.shows("Hello from the script.")
        await terminal.enter("/compact")
        await model.wait_for(lambda request: request.kind is RequestKind.COMPACTION)
        await terminal.shows("Compacted")
    assert [request.kind for request in model.requests] == [RequestKind.MAIN, RequestKind.COMPACTION]


class Terminal:
    """The client in a tmux server of its own."""

    def __init__(self, model, project):
        self.folder = tempfile.TemporaryDirectory(prefix="sm-")
        """Short, since a socket's path may have 107 characters; tmux leaves its socket behind, so we remove it."""
        self.env = offline_client_env(project.parent / "home", model.url, project) | {"TERM": "xterm-256color"}
        self.project = project

    async def __aenter__(self):
        start = ("new-session", "-d", "-x", "120", "-y", "40", "-c", str(self.project), str(CLAUDE))
        await self.tmux("-f", os.devnull, *start)
        return self

    async def __aexit__(self, *error):
        await self.tmux("kill-server")
        self.folder.cleanup()

    async def tmux(self, *words):
        process = await asyncio.create_subprocess_exec(
            *("tmux", "-S", f"{self.folder.name}/tmux", *words), env=self.env, stdout=asyncio.subprocess.PIPE
        )
        output, _ = await process.communicate()
        assert process.returncode == 0
        return output.decode()

    async def enter(self, text):
        await self.tmux("send-keys", "-l", text)
        await asyncio.sleep(0.3)
        await self.tmux("send-keys", "Enter")

    async def shows(self, text):
        async with asyncio.timeout(20):
            while text not in await self.tmux("capture-pane", "-p"):  # a screen has no event
                await asyncio.sleep(0.1)
