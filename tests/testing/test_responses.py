import json
import tomllib

import httpx2
import pytest

from sm.testing.codex_tools import call_item
from sm.testing.model import ScriptedModel
from sm.testing.offline import offline_codex_env
from sm.testing.player import ToolUse
from sm.testing.request import RequestKind
from sm.testing.responses_request import read_responses_request
from sm.testing.scenario import Call, Fail, Say, ToolCall, TooLong, Turn, Usage, scenario

THREAD = "01a22a29-171c-74b0-94fb-d788fbe8401e"
SHELL = {"type": "function", "name": "exec_command"}


def message(role, *texts):
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text} for text in texts]}


START = (
    message("developer", "You are a coding agent."),
    message("developer", "<skills_instructions>none</skills_instructions>"),
    message("user", "# AGENTS.md instructions for /w\n\nBe nice", "<environment_context>\n</environment_context>"),
)
CALL = {"type": "function_call", "name": "exec_command", "arguments": '{"cmd":"true"}', "call_id": "c1"}
ENDED = (
    "Chunk ID: 41f4fd\nWall time: 0.0000 seconds\nProcess exited with code {}\nOriginal token count: 1\nOutput:\nhi\n"
)
SUMMARY = message("user", "Another language model started to solve this problem and produced a summary: fine")


def body(*items, kind="turn", **rest):
    note = json.dumps({"thread_id": THREAD, "request_kind": kind})
    return {
        "model": "m",
        "stream": True,
        "input": [*START, *items],
        "tools": [SHELL],
        "client_metadata": {"thread_id": THREAD, "x-codex-turn-metadata": note},
        **rest,
    }


def read(*items, **rest):
    return read_responses_request(json.dumps(body(*items, **rest)).encode(), path="/v1/responses")


def output(text, kind="function_call_output"):
    return {"type": kind, "call_id": "c1", "output": text}


def test_the_users_words_are_known_from_what_the_client_and_its_hooks_add():
    request = read(message("developer", "said at the start"), message("user", "do it"), message("developer", "a hook"))
    assert (request.session, request.user_text) == (THREAD, "do it")
    assert request.context_text == "said at the start\na hook"
    assert request.conversation == (THREAD, "do it")
    assert [text[:5] for text in request.system] == ["You a", "<skil", "# AGE", "<envi"]


def test_only_what_follows_the_last_reply_or_call_is_new():
    request = read(message("user", "old"), CALL, output("hi"), message("developer", "a hook"), message("user", "steer"))
    assert (request.user_text, request.context_text) == ("steer", "a hook")
    request = read(message("user", "old"), message("assistant", "done"), message("user", "next"))
    assert request.user_text == "next"


@pytest.mark.parametrize(
    ("given", "text", "failed"),
    [
        (output(ENDED.format(0)), "hi", False),
        (output(ENDED.format(1)), "hi", True),
        (output("Wall time: 0.0 seconds\nOutput:\nExit code: 1\nWall time: 0 seconds\nOutput:\nno\n"), "no", True),
        (output("Wall time: 0.0 seconds\nOutput:\nExit code: 1\n"), "Exit code: 1", False),
        (output("Exit code: 1\nWall time: 0 seconds\nOutput:\nno\n", "custom_tool_call_output"), "no", True),
        (output("Name: x\nOutput:\ny\n"), "Name: x\nOutput:\ny", False),
        (output("unsupported call: nosuch"), "unsupported call: nosuch", False),
        (output([{"type": "input_text", "text": "one"}, {"type": "input_image"}]), "one", False),
    ],
)
def test_a_result_is_what_the_command_wrote_and_whether_it_failed(given, text, failed):
    [result] = read(message("user", "go"), CALL, given).tool_results
    assert (result.id, result.text, result.is_error) == ("c1", text, failed)


def test_of_a_command_that_still_runs_its_number_is_kept():
    text = "Chunk ID: d8898e\nWall time: 0.3 seconds\nProcess running with session ID 42985\nOutput:\n"
    [result] = read(message("user", "go"), CALL, output(text)).tool_results
    assert "session ID 42985" in result.text


def test_a_prompt_that_is_sent_again_with_the_summary_is_not_new():
    request = read(message("user", "do it"), SUMMARY)
    assert (request.user_text, request.conversation) == ("", (THREAD, "do it"))
    assert read(message("user", "do it"), SUMMARY, message("user", "more")).user_text == "more"


def test_what_an_interruption_ended_is_not_new():
    aborted = message("user", "<turn_aborted>\nThe user interrupted the previous turn on purpose.\n</turn_aborted>")
    request = read(message("user", "do it"), CALL, output("aborted by user"), aborted, message("user", "else"))
    assert (request.user_text, request.tool_results) == ("else", ())


@pytest.mark.parametrize(
    ("note", "text"),
    [
        ('<hook_prompt hook_run_id="stop:0">not &lt;yet&gt;</hook_prompt>', "not <yet>"),
        ("<user_shell_command>\n<command>\nls\n</command>\n</user_shell_command>", "ls"),
        ('<subagent_notification>\n{"status":"completed"}\n</subagent_notification>', "completed"),
    ],
)
def test_a_note_of_the_client_is_context(note, text):
    request = read(message("assistant", "done"), message("user", note), message("user", "go"))
    assert request.user_text == "go"
    assert text in request.context_text


@pytest.mark.parametrize(
    ("rest", "kind"),
    [
        ({}, RequestKind.MAIN),
        ({"tools": []}, RequestKind.SIDE),
        ({"kind": "compaction", "tools": []}, RequestKind.COMPACTION),
        ({"client_metadata": {"x-codex-turn-metadata": "{"}}, RequestKind.MAIN),
        ({"client_metadata": {"x-codex-turn-metadata": "[]"}}, RequestKind.MAIN),
    ],
)
def test_what_a_request_is_for(rest, kind):
    assert read(message("user", "hello"), **rest).kind is kind


def test_tools_are_found_in_the_input_too_and_in_their_namespaces():
    space = {"type": "namespace", "name": "team", "tools": [{"type": "function", "name": "spawn"}]}
    given = {"type": "additional_tools", "role": "developer", "tools": [space, {"type": "web_search"}]}
    request = read(given, message("user", "hello"), tools=[])
    assert (request.tools, request.kind) == (["team.spawn", "web_search"], RequestKind.MAIN)


def called(name, offered=("exec_command", "team.spawn"), **arguments):
    item = call_item(ToolUse("c1", ToolCall(name, arguments)), offered)
    assert item["call_id"] == "c1"
    return item


def command(name, **arguments):
    item = called(name, **arguments)
    assert (item["type"], item["name"]) == ("function_call", "exec_command")
    return json.loads(item["arguments"])["cmd"]


def test_tools_of_claude_code_are_run_in_the_shell():
    assert command("Bash", command="true", description="x") == "true"
    assert command("Read", file_path="/a b") == "cat '/a b'"
    assert command("Write", file_path="/d/a", content="it's") == """mkdir -p /d && printf %s 'it'"'"'s' >/d/a"""
    patch = "*** Begin Patch\n*** Add File: /a\n+one\n+\n+EOF\n*** End Patch\n"
    assert command("Write", file_path="/a", content="one\n\nEOF\n") == f"apply_patch <<'EOF'\n{patch}EOF"


def own_tool(command):
    item = called("Bash", ("exec_command", "mcp__sm.sm"), command=command)
    return item["name"], json.loads(item["arguments"])


def test_a_command_of_sm_alone_goes_by_its_tool_with_what_it_is_given():
    assert own_tool("sm status 'at work'") == ("sm", {"arguments": ["status", "at work"]})
    given = {"arguments": ["handoff", "-"], "input": "# The goal\n\n## Next"}
    assert own_tool("sm handoff - <<'EOF'\n# The goal\n\n## Next\nEOF") == ("sm", given)
    assert own_tool("sm status; true")[0] == own_tool("mkdir a\nsm status")[0] == "exec_command"


def test_a_question_and_a_subagent_have_tools_of_codex():
    options = [{"label": "Red", "description": "warm"}]
    asked = {"question": "Which?", "header": "Colour", "options": options, "multiSelect": False}
    item = called("AskUserQuestion", questions=[asked])
    [question] = json.loads(item["arguments"])["questions"]
    assert item["name"] == "request_user_input"
    assert question == {"id": "question-0", "header": "Colour", "question": "Which?", "options": options}
    item = called("Agent", description="look", prompt="look around", subagent_type="general-purpose")
    assert (item["name"], json.loads(item["arguments"])) == ("spawn_agent", {"message": "look around"})


def test_a_call_by_a_name_of_codex_passes_as_it_is():
    assert json.loads(called("exec_command", cmd="true", tty=True)["arguments"]) == {"cmd": "true", "tty": True}
    assert "namespace" not in called("exec_command", cmd="true")
    assert json.loads(called("spawn", prompt="x")["arguments"]) == {"prompt": "x"}
    patch = called("apply_patch", input="*** Begin Patch")
    assert (patch["type"], patch["input"]) == ("custom_tool_call", "*** Begin Patch")


@pytest.mark.parametrize("name", ["spawn", "team__spawn"])
def test_a_tool_with_a_namespace_is_called_by_both(name):
    item = called(name)
    assert (item["name"], item["namespace"]) == ("spawn", "team")


@pytest.fixture
async def http():
    async with httpx2.AsyncClient(trust_env=False) as client:
        yield client


async def ask(http, step, words="hello"):
    async with ScriptedModel(scenario(Turn("hello", [step]))) as model:
        return await http.post(f"{model.url}/v1/responses", json=body(message("user", words)))


async def streamed(http, step):
    reply = await ask(http, step)
    frames = [frame.split("\n") for frame in reply.text.split("\n\n") if frame]
    events = [json.loads(data.removeprefix("data: ")) for _, data in frames]
    assert [name.removeprefix("event: ") for name, _ in frames] == [event["type"] for event in events]
    return events


async def test_a_text_is_streamed_in_the_order_of_the_api(http):
    events = await streamed(http, Say("Hi.", usage=Usage(1, 20, 3, 4)))
    assert [event["type"].removeprefix("response.") for event in events] == [
        "created",
        "output_item.added",
        "output_text.delta",
        "output_item.done",
        "completed",
    ]
    assert events[2]["delta"] == "Hi."
    assert events[3]["item"]["content"] == [{"type": "output_text", "text": "Hi."}]
    assert events[4]["response"]["usage"] == {
        "input_tokens": 24,
        "input_tokens_details": {"cached_tokens": 20, "cache_write_tokens": 3},
        "output_tokens": 4,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 28,
    }


async def test_a_slow_text_comes_in_pieces_and_thoughts_before_it(http):
    events = await streamed(http, Say("a slow answer " * 3, think="hm", chunk_delay=0.001))
    deltas = [event["delta"] for event in events if event["type"] == "response.output_text.delta"]
    assert ("".join(deltas), len(deltas)) == ("a slow answer " * 3, 3)
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert [item["type"] for item in done] == ["reasoning", "message"]
    assert done[0]["summary"] == [{"type": "summary_text", "text": "hm"}]


async def test_a_call_is_an_item_and_no_empty_text_is_before_it(http):
    events = await streamed(http, Call("Bash", command="true"))
    [item] = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert (item["type"], item["arguments"]) == ("function_call", '{"cmd": "true"}')


@pytest.mark.parametrize(
    ("step", "status", "code"),
    [
        (Fail(400, "no"), 400, None),
        (TooLong(), 400, "context_length_exceeded"),
        (Fail(529), 503, "server_is_overloaded"),
        (Fail(429, retry_after=2), 429, "rate_limit_exceeded"),
    ],
)
async def test_an_error_has_the_code_of_the_api(http, step, status, code):
    reply = await ask(http, step)
    assert (reply.status_code, reply.json()["error"]["code"]) == (status, code)
    assert reply.headers.get("retry-after") == ("2" if status == 429 else None)


async def test_a_usage_limit_says_when_it_ends(http):
    reply = await ask(http, Fail(429, "spent", headers={"anthropic-ratelimit-unified-reset": "4102444800"}))
    assert reply.json()["error"] | {"code": None} == {
        "type": "usage_limit_reached",
        "message": "spent",
        "resets_at": 4102444800,
        "code": None,
    }


@pytest.mark.parametrize("trusted", [True, False])
def test_the_offline_home_of_codex_asks_nothing_and_trusts_the_project_only_if_told(tmp_path, monkeypatch, trusted):
    monkeypatch.setenv("CODEX_THREAD_ID", THREAD)
    env = offline_codex_env(tmp_path / "home", "http://127.0.0.1:1", tmp_path, trusted=trusted)
    assert "CODEX_THREAD_ID" not in env
    assert (env["HOME"], env["CODEX_HOME"]) == (str(tmp_path / "home"), str(tmp_path / "home" / ".codex"))
    config = tomllib.loads((tmp_path / "home" / ".codex" / "config.toml").read_text())
    assert config["model_providers"][config["model_provider"]]["base_url"] == "http://127.0.0.1:1/v1"
    assert config.get("projects", {}) == ({str(tmp_path): {"trust_level": "trusted"}} if trusted else {})
    assert (config["check_for_update_on_startup"], config["features"]["daemon_auto_start"]) == (False, False)
    assert not {"approval_policy", "sandbox_mode"} & config.keys()
