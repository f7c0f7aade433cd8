"""`sm context --transcript`: the right value for every fragment of a transcript, without a server."""

import json
import os
import runpy
from pathlib import Path

import pytest

CASES = Path(__file__).parents[1] / "cases"
EXPECTED = json.loads((CASES / "expected.json").read_text())
KEYS = {
    "tokens", "projected", "source", "level", "exact", "stale", "lower_bound", "compactions", "malformed", "model",
    "window", "window_assumed", "usable", "percent", "messages", "output_tokens",
}  # fmt: skip


async def reading(desk, path, *arguments):
    return (await desk.run("context", "--transcript", str(path), "--json", *arguments)).data


def test_every_fragment_has_its_expectation():
    assert {path.name for path in CASES.glob("*.jsonl")} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize("named", [True, False], ids=["named", "detected"])
async def test_a_case_from_the_field_reads_as_it_should(bare, name, named):
    provider = ("--provider", "codex" if "codex" in name else "claude") if named else ()
    found = await reading(bare, CASES / name, *provider)
    assert found | EXPECTED[name] == found
    assert set(found) == KEYS


async def test_percent_is_of_the_usable_context_and_never_of_a_window_that_was_exceeded(bare):
    found = await reading(bare, CASES / "a01_synthetic_error_tail.jsonl")
    assert (found["window"], found["usable"]) == (200_000, 167_000)
    assert found["percent"] == round(100 * found["projected"] / 167_000, 1)
    beyond = await reading(bare, CASES / "a15_more_than_200k.jsonl")
    assert (beyond["window"], beyond["usable"], beyond["percent"], beyond["level"]) == (None, None, None, "critical")


async def test_a_big_file_reads_as_a_small_one(bare):
    path = bare.root / "big.jsonl"
    runpy.run_path(str(CASES / "make_big.py"))["write"](path, megabytes=5, last_line=3)
    found = await reading(bare, path)
    assert (found["tokens"], found["compactions"], found["malformed"]) == (123_456, 3, 0)


async def test_words_say_the_same(bare):
    ran = await bare.run("context", "--transcript", str(CASES / "a01_synthetic_error_tail.jsonl"))
    assert ran.out == "██████░░░░ 94,066 tokens (56.3% of usable 167k), ok\n"
    empty = await bare.run("context", "--transcript", str(CASES / "a17_no_assistant_yet.jsonl"))
    assert empty.out == "unknown\n"


async def test_it_touches_no_server(bare):
    ran = await bare.run("context", "--transcript", str(CASES / "a08_one_line_per_block.jsonl"), "--json")
    assert ran.data["tokens"] == 63205
    assert not (bare.root / "state").exists()


@pytest.mark.parametrize("make", [lambda _: None, Path.mkdir, os.mkfifo], ids=["missing", "directory", "fifo"])
async def test_what_is_no_file_is_refused(bare, make):
    make(bare.root / "x")
    ran = await bare.run("context", "--transcript", "x", "--json")
    assert (ran.code, ran.error["code"]) == (1, "unreadable")


@pytest.mark.parametrize("content", [b"", b"\0" * 100, b"\xff\xfe", b"not json\n", b"[]\n{}\n"])
async def test_what_is_no_transcript_is_refused(bare, content):  # C35
    (bare.root / "x").write_bytes(content)
    ran = await bare.run("context", "--transcript", "x", "--json")
    assert (ran.code, ran.error["code"]) == (1, "unreadable")
    assert "x is not a transcript" in ran.error["message"]


async def test_a_record_that_says_nothing_is_unknown(bare):
    (bare.root / "x").write_bytes(b'{"type": "x"}')
    found = await reading(bare, "x")
    assert (found["tokens"], found["source"], found["percent"]) == (None, "unknown", None)


async def test_a_session_and_a_transcript_are_not_asked_for_together(bare):
    assert (await bare.run("context", "a", "--transcript", "x")).code == 2


async def test_the_level_of_a_transcript_is_by_the_thresholds_configured_here(bare):
    case = str(CASES / "a08_one_line_per_block.jsonl")
    plain = (await bare.run("context", "--transcript", case, "--json")).data
    (bare.root / "config.toml").write_text(f"[context_monitor]\ncritical_threshold = {plain['projected']}\n")
    assert (plain["level"], (await bare.run("context", "--transcript", case, "--json")).data["level"]) == (
        "ok",
        "critical",
    )
    (bare.root / "config.toml").write_text("[context_monitor\n")
    assert (await bare.run("context", "--transcript", case, "--json")).data["level"] == "ok"
