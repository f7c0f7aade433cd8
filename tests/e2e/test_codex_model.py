"""The real Codex believes that the scripted model is the Responses API, and plays the scenarios of Claude Code."""

import asyncio
import json
import os
import tempfile
from pathlib import Path

import pytest

from sm.testing.model import ScriptedModel
from sm.testing.offline import offline_codex_env
from sm.testing.request import RequestKind
from sm.testing.scenario import Call, Fail, Say, Together, TooLong, Turn, Usage, scenario

CODEX = Path(__file__).parents[2] / "clients" / "codex" / "node_modules" / ".bin" / "codex"
FREELY = ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(90),
    pytest.mark.skipif(not CODEX.exists(), reason="the pinned client is not installed"),
]


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


async def codex(model, project, *arguments):
    """Run the client once and return the events that it prints."""
    process = await asyncio.create_subprocess_exec(
        *(str(CODEX), "exec", "--json", *FREELY, *arguments),
        cwd=project,
        env=offline_codex_env(project.parent / "home", model.url, project),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    return [json.loads(line) for line in output.splitlines()]


def completed(events, kind):
    items = [event["item"] for event in events if event["type"] == "item.completed"]
    return [item for item in items if item["type"] == kind]


def said(events):
    return [item["text"] for item in completed(events, "agent_message")]


def records(project, kind):
    [rollout] = (project.parent / "home" / ".codex" / "sessions").rglob("rollout-*.jsonl")
    found = [json.loads(line) for line in rollout.read_text().splitlines()]
    return [record["payload"] for record in found if record["type"] == kind]


async def test_a_turn_with_the_tools_of_claude_code_runs_to_its_end(project):
    path = str(project / "deep" / "it's out.txt")
    turn = Turn(
        "^do the (?P<what>.+)$",
        [
            Call("Bash", command="echo '{{what}}' | tee log"),
            Call("Write", file_path=path, content="{{result}}\nsecond\n"),
            Call("Write", file_path=str(project / "bare"), content="no 'last' newline"),
            Call("Read", file_path=path),
            Say("Read {{result}}"),
        ],
    )
    async with ScriptedModel(scenario(turn)) as model:
        events = await codex(model, project, "do the work")
    assert said(events) == ["Read work\nsecond"]
    assert (project / "log").read_text() == "work\n"
    assert Path(path).read_text() == "work\nsecond\n"
    assert (project / "bare").read_text() == "no 'last' newline"
    assert [change["kind"] for item in completed(events, "file_change") for change in item["changes"]] == ["add"]
    assert [request.kind for request in model.requests] == [RequestKind.MAIN] * 5
    assert model.requests[0].session == events[0]["thread_id"]
    assert model.requests[0].user_text == "do the work"


async def test_a_call_that_fails_is_seen_as_failed_and_parallel_calls_come_back_in_one_request(project):
    both = Together(Call("Bash", command="echo no; false"), Call("exec_command", cmd="true"))
    async with ScriptedModel(scenario(Turn("go", [both, Say("done")]))) as model:
        assert said(await codex(model, project, "go")) == ["done"]
    assert [(result.text, result.is_error) for result in model.requests[1].tool_results] == [
        ("no", True),
        ("", False),
    ]


async def test_the_client_counts_the_whole_prompt_once(project):
    first = Call("Bash", command="true").but(usage=Usage(input=3, cache_read=900, cache_creation=97, output=20))
    async with ScriptedModel(scenario(Turn("go", [first, Say("done", usage=Usage(5, 1000, 95, 30))]))) as model:
        events = await codex(model, project, "go")
    assert events[-1]["usage"] == {
        "input_tokens": 2100,
        "cached_input_tokens": 1900,
        "cache_write_input_tokens": 192,
        "output_tokens": 50,
        "reasoning_output_tokens": 0,
    }
    uses = [record["usage"] for record in records(project, "token_usage_record")]
    assert [(use["input_tokens"], use["cached_input_tokens"], use["total_tokens"]) for use in uses] == [
        (1000, 900, 1020),
        (1100, 1000, 1130),
    ]


async def test_a_full_context_is_compacted_and_the_turn_goes_on(project):
    work = Turn("do the work", [Call("Bash", command="true").but(context=60_000), Say("done")])
    async with ScriptedModel(scenario(work, context=20_000, compaction=Say("All is well."))) as model:
        events = await codex(model, project, "-c", "model_auto_compact_token_limit=50000", "do the work")
    assert said(events) == ["done"]
    kinds = [RequestKind.MAIN, RequestKind.COMPACTION, RequestKind.MAIN]
    assert [request.kind for request in model.requests] == kinds
    assert model.requests[2].user_text == ""
    [compacted] = records(project, "compacted")
    assert compacted["message"].endswith("\nAll is well.")


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (Fail(401, "bad key"), "unexpected status 401 Unauthorized: bad key"),
        (Fail(429), "exceeded retry limit, last status: 429 Too Many Requests"),
        (Fail(429, headers={"anthropic-ratelimit-unified-reset": "4102444800"}), "hit your usage limit"),
        (Fail(500), "high demand"),
        (Fail(529), "Selected model is at capacity"),
        (TooLong(), "ran out of room in the model's context window"),
    ],
    ids=["401", "429", "usage limit", "500", "529", "too long"],
)
@pytest.mark.often("usage limit", "too long")
async def test_an_error_ends_the_turn_in_the_words_of_the_client(project, step, message):
    async with ScriptedModel(scenario(Turn("go", [step]))) as model:
        events = await codex(model, project, "go")
    assert events[-1]["type"] == "turn.failed"
    assert message in events[-1]["error"]["message"]


async def test_two_threads_at_once_play_their_own_turns(project):
    turn = Turn(r"the (\w+) task", [Call("Bash", command="sleep 0.2; echo {{1}}"), Say("{{1}}: {{result}}")])
    async with ScriptedModel(scenario(turn)) as model:
        both = await asyncio.gather(*(codex(model, project, f"the {name} task") for name in ("first", "second")))
    assert [said(events) for events in both] == [["first: first"], ["second: second"]]
    assert {request.session for request in model.requests} == {events[0]["thread_id"] for events in both}


async def test_a_resumed_thread_is_the_same_session_and_its_turn_continues(project):
    async with ScriptedModel(scenario(Turn("do the work", [Say("half"), Say("whole")]))) as model:
        events = await codex(model, project, "do the work")
        again = await codex(model, project, "resume", events[0]["thread_id"], "go on")
    assert (said(events), said(again)) == (["half"], ["whole"])
    assert [request.user_text for request in model.requests] == ["do the work", "go on"]
    assert len({request.session for request in model.requests}) == 1


async def test_hook_context_is_found_in_the_next_request_and_may_be_answered(project):
    reply = {"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "context is at 80 %"}}
    (project / "reply").write_text(json.dumps(reply))
    hooks = 'hooks={PostToolUse=[{hooks=[{type="command",command="cat reply"}]}]}'
    script = scenario(
        Turn("go", [Call("Bash", command="true"), Say("not reached")]),
        Turn(context=r"context is at (\d+)", steps=[Say("noticed {{1}}")]),
    )
    async with ScriptedModel(script) as model:
        events = await codex(model, project, "--dangerously-bypass-hook-trust", "-c", hooks, "go")
    assert said(events) == ["noticed 80"]


@pytest.mark.soak
async def test_thinking_and_a_slow_stream_are_understood(project):
    slow = Say("a slow answer " * 5, think="hm", chunk_delay=0.1)
    async with ScriptedModel(scenario(Turn("go", [slow, Say("more")]))) as model:
        events = await codex(model, project, "go")
        assert said(await codex(model, project, "resume", events[0]["thread_id"], "again")) == ["more"]
    assert said(events) == ["a slow answer " * 5]
    assert [item["text"] for item in completed(events, "reasoning")] == ["hm"]


async def test_a_subagent_plays_its_own_turn(project):
    script = scenario(
        Turn("do the work", [Call("spawn_agent", message="do the part"), Call("Bash", command="sleep 1"), Say("all")]),
        Turn("do the part", [Call("Bash", command="touch part"), Say("the part")]),
    )
    async with ScriptedModel(script) as model:
        assert said(await codex(model, project, "do the work")) == ["all"]
    assert (project / "part").exists()
    assert len({request.session for request in model.requests}) == 2


async def test_a_model_that_the_client_knows_is_played_too(project):
    turn = Turn("go", [Call("Bash", command="touch made"), Say("done")])
    async with ScriptedModel(scenario(turn)) as model:
        assert said(await codex(model, project, "--model", "gpt-6-astra", "go")) == ["done"]
    assert (project / "made").exists()
    assert [request.model for request in model.main_requests] == ["gpt-6-astra"] * 2


async def test_in_a_terminal_a_prompt_after_an_interruption_is_a_new_turn(project):
    begun = project / "begun"
    waits = "touch begun; while [ -e begun ]; do sleep 0.1; done"  # an interruption does not end it (0.171.0)
    script = scenario(Turn("slow", [Call("Bash", command=waits), Say("late")]))
    async with ScriptedModel(script) as model, Terminal(model, project) as terminal:
        await terminal.shows("Ask Codex to do anything")
        await terminal.enter("slow work")
        await until(begun.exists)
        await terminal.press("Escape")
        await terminal.shows("Conversation interrupted")
        await terminal.enter("something else")
        await terminal.shows("Understood.")
        begun.unlink()
    kinds = sorted(request.kind for request in model.requests)
    assert kinds == [RequestKind.MAIN, RequestKind.MAIN, RequestKind.SIDE]
    assert [request.user_text for request in model.main_requests] == ["slow work", "something else"]


async def until(holds):
    async with asyncio.timeout(30):
        while not holds():
            await asyncio.sleep(0.1)


class Terminal:
    """The client in a tmux server of its own."""

    def __init__(self, model, project):
        self.folder = tempfile.TemporaryDirectory(prefix="sm-")
        self.env = offline_codex_env(project.parent / "home", model.url, project) | {"TERM": "xterm-256color"}
        self.project = project

    async def __aenter__(self):
        size = ("-x", "120", "-y", "40", "-c", str(self.project))
        await self.tmux("-f", os.devnull, "new-session", "-d", *size, str(CODEX), FREELY[1])
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

    async def press(self, key):
        await self.tmux("send-keys", key)

    async def enter(self, text):
        await self.tmux("send-keys", "-l", text)
        await asyncio.sleep(0.3)  # sooner the client takes Enter for a part of what is pasted (0.171.0)
        await self.press("Enter")

    async def shows(self, text):
        async with asyncio.timeout(30):
            while text not in await self.tmux("capture-pane", "-p"):
                await asyncio.sleep(0.1)
