"""What a thread has used: each request once, its subagents too, nothing that was copied."""

import json
from pathlib import Path

import pytest

from sm.core.model.cost import Spending, TokenCount, spending
from sm.providers.codex.usage import CodexUsage
from tests.fakes.rollout import START, THREAD, Rollout
from tests.providers.test_codex_files import CHILD, FORK, SEGMENT, file_of

CASES = Path(__file__).parent.parent / "cases"


@pytest.fixture
def talk():
    rollout = Rollout()
    rollout.started("gpt-x")
    return rollout


@pytest.fixture
def path(tmp_path):
    return file_of(tmp_path, THREAD)


def test_cached_tokens_are_a_part_of_the_input(talk, path):
    talk.used(10_000, 20, cached_input_tokens=4_000, cache_write_input_tokens=500, reasoning_output_tokens=15)
    talk.counted(10_000)
    assert CodexUsage(talk.save(path)).read() == {"gpt-x": TokenCount(5_500, 500, 0, 4_000, 20, 1)}


def test_each_request_counts_with_the_model_of_its_turn(talk, path):
    talk.used(100, 1)
    talk.used(200, 2, key="same")
    talk.used(200, 2, key="same")
    talk.started("gpt-y")
    talk.used(300, 3)
    found = CodexUsage(talk.save(path)).read()
    assert found == {"gpt-x": TokenCount(300, 0, 0, 0, 3, 2), "gpt-y": TokenCount(300, 0, 0, 0, 3, 1)}


def test_a_model_without_a_price_is_named(talk, path):
    talk.used(100, 1)
    found = spending(CodexUsage(talk.save(path)).read(), {})
    assert found == Spending(TokenCount(100, 0, 0, 0, 1, 1), 0.0, ("gpt-x",))


def test_it_reads_on_where_it_ended_and_again_where_the_file_is_another(talk, path):
    talk.used(100, 1)
    usage = CodexUsage(talk.save(path))
    assert usage.read()["gpt-x"].requests == 1
    talk.used(100, 1)
    talk.save(path)
    assert usage.read()["gpt-x"].requests == 2
    other = Rollout()
    other.started("gpt-z")
    other.used(7, 1)
    path.unlink()
    other.save(path)
    assert usage.read() == {"gpt-z": TokenCount(7, 0, 0, 0, 1, 1)}
    path.unlink()
    assert usage.read()["gpt-z"].requests == 1


def test_what_is_older_is_left_out_by_the_minute(talk, path):
    for later in (0, 3_600, 3_660):
        talk.at = START + later
        talk.used(100, 1)
    usage = CodexUsage(talk.save(path))
    assert [usage.read(since)["gpt-x"].requests for since in (0.0, START + 3_600, START + 3_660)] == [3, 2, 1]
    assert usage.read(START + 9_000) == {}


def test_subagents_and_what_the_user_went_back_from_count_and_a_fork_does_not(talk, path, tmp_path):
    talk.used(100, 1)
    talk.save(path)
    for thread, name, members in (
        (THREAD, file_of(tmp_path, f"{THREAD}_{SEGMENT}"), {"history_base": {"thread_id": THREAD}}),
        (CHILD, file_of(tmp_path, CHILD), {"session_id": THREAD, "parent_thread_id": THREAD}),
        (FORK, file_of(tmp_path, FORK), {"forked_from_id": THREAD, "history_base": {"thread_id": THREAD}}),
    ):
        other = Rollout(thread, **members)
        other.started("gpt-x")
        other.used(10, 1)
        other.save(name)
    assert CodexUsage(path).read()["gpt-x"].requests == 3
    assert CodexUsage(file_of(tmp_path, f"{THREAD}_{SEGMENT}")).read()["gpt-x"].requests == 3
    assert CodexUsage(file_of(tmp_path, FORK)).read()["gpt-x"].requests == 1


def test_a_client_that_writes_counts_alone_is_counted_by_the_sum_over_the_thread():
    found = CodexUsage(CASES / "a16_codex_cumulative.jsonl").read()
    assert found == {"gpt-5-codex": TokenCount(38_235 - 30_000 + 41_870 - 39_040, 0, 0, 69_040, 602, 2)}


def test_what_an_older_client_copied_into_a_fork_does_not_count():
    found = CodexUsage(CASES / "n12_codex_side_conversation.jsonl").read()
    assert found["gpt-5-codex"].output == 90 + 110


def test_a_record_of_another_thread_does_not_count(talk, path):
    talk.used(100, 1)
    record = json.loads(talk.lines[-1])
    record["payload"] |= {"thread_id": FORK, "response_id": "other"}
    talk.lines.append(json.dumps(record).encode() + b"\n")
    assert CodexUsage(talk.save(path)).read()["gpt-x"].requests == 1


def test_a_subagent_that_has_its_parents_context_counts_from_its_start(path, tmp_path):
    """Its records name it; those of its parent's that it has copied tell of no usage (0.171.0)."""
    Rollout().save(path)
    child = Rollout(CHILD, session_id=THREAD, forked_from_id=THREAD)
    child.started("gpt-x")
    child.used(10, 1)
    child.save(file_of(tmp_path, CHILD))
    assert CodexUsage(path).read() == {"gpt-x": TokenCount(10, 0, 0, 0, 1, 1)}
