"""Where the real client compacts, and that `sm` has known it before."""

import asyncio
import json
import sys

import pytest

from sm.testing.scenario import Call, Say, Turn, scenario
from tests.e2e.conftest import BY_KEYS
from tests.e2e.rig import Rig

pytestmark = [
    pytest.mark.claude_only("the models, settings and variables are those of Claude Code"),
    pytest.mark.e2e,
    pytest.mark.timeout(120),
]

CALL = Call("Bash", command="sleep 0.6; true")
"""Longer than a warning takes from the answer that crosses a threshold."""
STEP = 2_000
WINDOW = "CLAUDE_CODE_AUTO_COMPACT_WINDOW"
PERCENT = "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE"
SHORT = "CLAUDE_CODE_DISABLE_1M_CONTEXT"
LONG_MODEL = "claude-opus-5-5"


def approaches(limit):
    """A turn whose requests weigh less than the limit, and in the end a little more."""
    sizes = (limit // 2, limit - STEP, limit + STEP)
    steps = [CALL.but(context=size) for size in sizes]
    return scenario(Turn("work", steps=[*steps, CALL, Say("Done.")]), otherwise=Say("ok"))


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    known = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**known, **content}))


def settings_of(rig, where):
    own = rig.project / ".claude"
    user = next(rig.root.joinpath("home").rglob("settings.json"))
    return {"local": own / "settings.local.json", "project": own / "settings.json", "user": user}[where]


async def compacted_at(rig, session):
    """The size of the context that the client compacted first, by itself."""
    await rig.wait_event(session, "CompactionEnded")
    transcript = (await rig.view(session))["transcript"]
    found = []
    while not found:
        with open(transcript, "rb") as file:  # noqa: PTH123  # a small one
            records = [json.loads(line) for line in file if b"compact_boundary" in line]
        found = [record["compactMetadata"] for record in records if record.get("subtype") == "compact_boundary"]
        await asyncio.sleep(0.05)
    assert found[0]["trigger"] == "auto"
    return found[0]["preTokens"]


CASES = {
    "the model's own": (LONG_MODEL, {}, (), {}, 967_000),
    "no long window in the environment": (LONG_MODEL, {SHORT: "1"}, (), {}, 167_000),
    "no long window in the user's settings": (LONG_MODEL, {}, (), {"user": {"env": {SHORT: "1"}}}, 167_000),
    "window in the environment": (LONG_MODEL, {WINDOW: "300000"}, (), {}, 267_000),
    "settings before the environment": (
        LONG_MODEL, {WINDOW: "300000"}, (), {"user": {"env": {WINDOW: "200000"}}}, 167_000,
    ),
    "local before project settings": (
        LONG_MODEL, {}, (), {"local": {"env": {WINDOW: "150k"}}, "project": {"env": {WINDOW: "250k"}}}, 117_000,
    ),
    "environment before the argument": (LONG_MODEL, {WINDOW: "200000"}, ("--autocompact", "100k"), {}, 167_000),
    "argument before the settings": (
        LONG_MODEL, {}, ("--autocompact", "150"), {"user": {"autoCompactWindow": 300_000}}, 117_000,
    ),
    "setting for all": (LONG_MODEL, {}, (), {"project": {"autoCompactWindow": 200_000}}, 167_000),
    "setting for one model": (
        LONG_MODEL,
        {},
        (),
        {"user": {"autoCompactWindow": 400_000, "modelSettings": {LONG_MODEL: {"autoCompactWindow": 200_000}}}},
        167_000,
    ),
    "a share": (LONG_MODEL, {PERCENT: "50"}, ("--autocompact", "100k"), {}, 40_000),
    "a share in the project's settings": (
        LONG_MODEL, {WINDOW: "200000"}, (), {"project": {"env": {PERCENT: "40"}}}, 72_000,
    ),
    "fewer tokens for the reply": (
        LONG_MODEL, {"CLAUDE_CODE_MAX_OUTPUT_TOKENS": "8000", WINDOW: "200000"}, (), {}, 179_000,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
@pytest.mark.often("a share")
async def test_the_usable_context_is_what_the_client_compares_with(case):  # C13
    model, env, arguments, settings, limit = CASES[case]
    config = "[context_monitor]\nenabled = false\n[handoff]\nfork = false\n"  # a fork holds the client for a while
    async with Rig(approaches(limit), model_name=model, config=config) as rig:
        for where, content in settings.items():
            write(settings_of(rig, where), content)
        session = await rig.new("work", *arguments, **env)
        before = await rig.wait_view(session, lambda view: view["context"]["usable"] is not None, "measured")
        assert before["context"]["usable"] == limit
        assert limit <= await compacted_at(rig, session) <= limit + 2 * STEP


def told(rig, words):
    return [number for number, request in enumerate(rig.model.main_requests) if words in request.context_text]


def works(*sizes):
    looks = Call("Bash", command="sleep 0.3; sm status")
    return scenario(Turn("work", steps=[looks.but(context=size) for size in sizes]), otherwise=Say("ok"))


async def context_after_work(rig):
    session = await rig.begun("work")
    steps = len(rig.script.turns[0].steps)
    await rig.until(lambda: len(rig.model.main_requests) > steps, "all requests")
    await rig.wait_status(session, "idle")
    return await rig.ask("GET", f"/sessions/{session}/context")


@pytest.mark.parametrize(
    ("model", "window", "assumed"),
    [
        ("claude-opus-4-5", 200_000, False),
        ("claude-opus-4-6", 200_000, False),
        ("claude-sonnet-4-20250514", 200_000, False),
        ("claude-sonnet-4-6", 200_000, False),
        ("claude-opus-9-9", 200_000, True),
        ("gateway-model", 200_000, True),
    ],
)
@pytest.mark.often("gateway-model-200000-True")
async def test_the_agent_of_every_model_is_warned_in_time(model, window, assumed, driver):  # C12
    """The client takes a model that it does not know for one of a million tokens; by keys, 200,000 are assumed."""
    sizes = (110_000, 140_000) if driver == "keys" or not assumed else (151_000, 201_000)
    async with Rig(works(50_000, *sizes), model_name=model) as rig:
        context = await context_after_work(rig)
        assert (told(rig, "Consider writing a handoff doc"), told(rig, "Context critically high")) == ([2], [3])
        found = context["window"], context["window_assumed"], context["usable"]
        by_client = (1_000_000, False, 967_000)
        assert found == (by_client if driver == "mod" and assumed else (window, assumed, 167_000))


@BY_KEYS
@pytest.mark.soak
async def test_an_unknown_model_that_holds_more_than_assumed_is_judged_by_tokens():  # C12
    async with Rig(works(50_000, 230_000), model_name="gateway-model") as rig:
        context = await context_after_work(rig)
        assert (context["window"], context["percent"], context["level"]) == (None, None, "critical")
        assert told(rig, "Context critically high") == [2]


@pytest.mark.parametrize("model", ["claude-opus-4-7", "claude-sonnet-4-5[1m]"])
@pytest.mark.soak
async def test_in_a_large_window_the_numbers_come_first(model):  # C18
    async with Rig(works(140_000, 152_000, 180_000, 201_000), model_name=model) as rig:
        context = await context_after_work(rig)
        # The record of a short call may be on disk only after the call's own hook: then the next one tells.
        assert told(rig, "Consider writing a handoff doc") in ([2], [3])
        assert told(rig, "Context critically high") == [4]
        assert (context["window"], context["usable"]) == (1_000_000, 967_000)


def hidden_limit(rig, window):
    """A client that compacts earlier by a setting which nothing but the client itself knows."""
    wrapper = rig.root / "claude"
    wrapper.write_text(
        f"""#!{sys.executable}
import json, os, sys
at = sys.argv.index("--settings") + 1
settings = json.load(open(sys.argv[at]))
sys.argv[at] += ".lower"
json.dump({{**settings, "autoCompactWindow": {window}}}, open(sys.argv[at], "w"))
os.execv({rig.client!r}, [{rig.client!r}, *sys.argv[1:]])
"""
    )
    wrapper.chmod(0o700)
    return str(wrapper)


@pytest.mark.soak
async def test_the_first_compaction_teaches_the_rest_of_the_session():  # C13
    config = "context_monitor.enabled = false\nhandoff.fork = false\n"
    async with Rig(approaches(117_000), model_name=LONG_MODEL, config=config) as rig:
        rig.client = hidden_limit(rig, 150_000)
        session = await rig.new("work")
        before = await rig.wait_view(session, lambda view: view["context"]["usable"] is not None, "measured")
        assert before["context"]["usable"] == 967_000
        learned = await compacted_at(rig, session)
        await rig.wait_view(session, lambda view: view["context"]["usable"] == learned, "taught")
        await rig.wait_status(session, "idle")
        await rig.kill_server()
        await rig.start_server()
        rig.model.play(Turn("more", steps=[CALL.but(context=90_000), Say("Done.", context=91_000)]))
        await rig.ask("POST", f"/sessions/{session}/messages", {"text": "more"})
        after = await rig.wait_view(session, lambda view: (view["context"]["tokens"] or 0) >= 90_000, "measured again")
        assert after["context"]["usable"] == learned


@pytest.mark.soak
async def test_a_setting_that_changes_is_followed():  # C13
    async with Rig(scenario(otherwise=Say("ok")), model_name=LONG_MODEL) as rig:
        session = await rig.new("hello")
        await rig.wait_view(session, lambda view: view["context"]["usable"] == 967_000, "measured")
        write(settings_of(rig, "user"), {"autoCompactWindow": 200_000})
        await rig.wait_view(session, lambda view: view["context"]["usable"] == 167_000, "measured by the new setting")


@pytest.mark.soak
async def test_a_client_that_may_not_compact_refuses_to_go_on_at_the_limit():  # C13
    steps = [CALL.but(context=170_000), CALL.but(context=178_000), CALL, Say("Done.")]
    async with Rig(scenario(Turn("work", steps=steps), otherwise=Say("ok"))) as rig:
        session = await rig.new("work", DISABLE_AUTO_COMPACT="1")
        view = await rig.wait_status(session, "blocked")
        assert view["context"]["usable"] == 177_000
        assert view["context"]["tokens"] >= 177_000
