import asyncio
import json
import sys
import time

import httpx2
import msgspec
import pytest

from sm.testing.model import ScriptedModel, read_log
from sm.testing.offline import API_KEY, offline_client_env
from sm.testing.request import RequestKind
from sm.testing.scenario import Call, Fail, Say, Turn, Usage, scenario


def body(words="hello", **rest):
    return {
        "model": "m",
        "max_tokens": 100,
        "tools": [{"name": "Bash"}],
        "messages": [{"role": "user", "content": words}],
        **rest,
    }


@pytest.fixture
async def http():
    async with httpx2.AsyncClient(trust_env=False) as client:
        yield client


async def ask(http, model, words="hello", **rest):
    return await http.post(f"{model.url}/v1/messages?beta=true", json=body(words, **rest))


async def streamed(http, model, words="hello"):
    reply = await ask(http, model, words, stream=True)
    assert reply.headers["content-type"].startswith("text/event-stream")
    frames = [frame.split("\n") for frame in reply.text.split("\n\n") if frame]
    events = [json.loads(data.removeprefix("data: ")) for _, data in frames]
    assert [name.removeprefix("event: ") for name, _ in frames] == [event["type"] for event in events]
    return events


async def test_a_text_is_streamed_in_the_order_of_the_api(http):
    async with ScriptedModel(scenario(Turn("hello", [Say("Hi.", usage=Usage(1, 20, 3, 4))]))) as model:
        events = await streamed(http, model)
    assert [event["type"] for event in events] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert events[2]["delta"] == {"type": "text_delta", "text": "Hi."}
    prompt = {"input_tokens": 1, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 3}
    assert events[0]["message"]["usage"] == {**prompt, "output_tokens": 1}
    assert events[4]["usage"] == {**prompt, "output_tokens": 4}
    assert events[4]["delta"]["stop_reason"] == "end_turn"


async def test_thinking_text_and_calls_are_blocks_in_that_order(http):
    step = Call("Bash", command="true").but(say="Running.", think="Let me see.")
    async with ScriptedModel(scenario(Turn("hello", [step]))) as model:
        events = await streamed(http, model)
    opened = [event["content_block"] for event in events if event["type"] == "content_block_start"]
    assert [block["type"] for block in opened] == ["thinking", "text", "tool_use"]
    assert opened[2]["input"] == {}
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    assert json.loads(deltas[-1]["partial_json"]) == {"command": "true"}
    assert events[-2]["delta"]["stop_reason"] == "tool_use"


async def test_a_slow_text_comes_in_pieces(http):
    text = "a text of more than one piece, as it seems"
    async with ScriptedModel(scenario(Turn("hello", [Say(text, chunk_delay=0.05)]))) as model:
        began = time.monotonic()
        events = await streamed(http, model)
    pieces = [event["delta"]["text"] for event in events if event["type"] == "content_block_delta"]
    assert (len(pieces), "".join(pieces)) == (3, text)
    assert time.monotonic() - began > 0.15


async def test_a_reply_may_come_in_one_piece_without_a_stream(http):
    async with ScriptedModel(scenario(Turn("hello", [Call("Bash", command="true")]))) as model:
        reply = (await ask(http, model)).json()
    assert reply["content"][0]["input"] == {"command": "true"}
    assert (reply["stop_reason"], reply["type"]) == ("tool_use", "message")


@pytest.mark.parametrize(
    ("step", "kind", "headers"),
    [
        (Fail(400, "bad"), "invalid_request_error", {}),
        (Fail(429, retry_after=1.5), "rate_limit_error", {"retry-after": "1.5"}),
        (Fail(500, should_retry=False), "api_error", {"x-should-retry": "false"}),
        (Fail(529), "overloaded_error", {}),
    ],
)
async def test_errors_have_the_status_type_and_headers_of_the_api(http, step, kind, headers):
    async with ScriptedModel(scenario(Turn("hello", [step]))) as model:
        reply = await ask(http, model, stream=True)
    assert (reply.status_code, reply.json()["error"]["type"]) == (step.error.status, kind)
    assert headers.items() <= dict(reply.headers).items()


async def test_tokens_are_counted_without_playing_a_step(http):
    async with ScriptedModel() as model:
        reply = await http.post(f"{model.url}/v1/messages/count_tokens", json=body("a" * 400))
        assert reply.json() == {"input_tokens": 100}
        assert model.requests[0].kind is RequestKind.COUNT


async def test_probes_are_answered_and_unknown_paths_are_refused_and_both_are_seen(http):
    async with ScriptedModel() as model:
        statuses = [(await http.head(model.url)).status_code, (await http.get(f"{model.url}/api/x")).status_code]
        assert statuses == [200, 404]
        assert [(seen.method, seen.path) for seen in model.requests] == [("HEAD", "/"), ("GET", "/api/x")]
        assert model.main_requests == []


async def test_a_body_that_is_no_request_is_refused(http):
    async with ScriptedModel() as model:
        assert (await http.post(f"{model.url}/v1/messages", json={"messages": 1})).status_code == 400
        assert (await http.post(f"{model.url}/v1/messages", content=b"{")).status_code == 400


async def test_a_test_can_wait_for_a_request_still_to_come(http):
    async with (
        ScriptedModel(scenario(Turn("hello", [Say("hi")], name="greeting"))) as model,
        asyncio.TaskGroup() as group,
    ):
        waiting = group.create_task(model.wait_for(lambda seen: seen.user_text == "hello"))
        await ask(http, model, "other")
        await ask(http, model)
        seen = await waiting
    assert (seen.number, seen.matched, seen.tools) == (2, "greeting", ["Bash"])


async def test_waiting_ends_with_an_error_when_nothing_comes():
    async with ScriptedModel() as model:
        with pytest.raises(TimeoutError):
            await model.wait_for(bool, within=0.05)


async def test_turns_added_while_it_runs_come_first(http):
    async with ScriptedModel(scenario(Turn("hello", [Say("old")]))) as model:
        model.play(Turn("hello", [Say("new")], times=1))
        texts = [(await ask(http, model)).json()["content"][0]["text"] for _ in range(2)]
    assert texts == ["new", "old"]


async def test_a_reply_that_would_take_for_ever_does_not_keep_the_model_from_ending(http):
    async with asyncio.TaskGroup() as group:
        async with ScriptedModel(scenario(Turn("hello", [Say("late", delay=3600)]))) as model:
            group.create_task(ask(http, model, stream=True))
            await model.wait_for(bool)
        began = time.monotonic()
    assert time.monotonic() - began < 5


async def test_another_process_can_run_it_and_read_what_it_was_asked(http, tmp_path):
    script, log = tmp_path / "scenario.json", tmp_path / "requests.jsonl"
    script.write_bytes(msgspec.json.encode(scenario(Turn("hello", [Say("hi")]))))
    command = ["-m", "sm.testing", "--port", "0", "--scenario", str(script), "--log", str(log)]
    process = await asyncio.create_subprocess_exec(sys.executable, *command, stdout=asyncio.subprocess.PIPE)
    try:
        started = json.loads(await process.stdout.readline())
        await http.post(f"{started['url']}/v1/messages", json=body())
    finally:
        process.terminate()
        assert await process.wait() == 0
    assert [(seen.user_text, seen.matched) for seen in read_log(log)] == [("hello", "hello")]


def test_the_offline_home_brings_nothing_of_the_callers_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("CLAUDE_CODE_CHILD_SESSION", "1")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    env = offline_client_env(tmp_path / "home", "http://127.0.0.1:1", tmp_path)
    assert not {"CLAUDE_CODE_CHILD_SESSION", "HTTP_PROXY"} & env.keys()
    assert env["HOME"] == str(tmp_path / "home")


@pytest.mark.parametrize("trusted", [True, False])
def test_the_offline_home_knows_the_key_and_trusts_the_project_only_if_told(tmp_path, trusted):
    env = offline_client_env(tmp_path / "home", "http://127.0.0.1:1", tmp_path, trusted=trusted)
    state = json.loads((tmp_path / "home" / ".claude" / ".claude.json").read_text())
    assert state["projects"][str(tmp_path)]["hasTrustDialogAccepted"] is trusted
    assert env["ANTHROPIC_API_KEY"] == API_KEY
    assert state["customApiKeyResponses"]["approved"] == [API_KEY[-20:]]
