"""What a conversation has used, from its transcript: each reply once, its subagents too, nothing that a fork copied."""

import json
from datetime import UTC, datetime

import pytest

from sm.core.model.cost import TokenCount
from sm.providers.claude import usage
from sm.providers.claude.usage import ClaudeUsage

NOW = 1_770_000_000.0


def line(number, at=NOW, model="claude-x", session=None, **used):
    counters = {"input_tokens": 1, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 10}
    message = {"id": f"m{number}", "model": model, "usage": {**counters, **used}}
    record = {"type": "assistant", "message": message, "timestamp": f"{datetime.fromtimestamp(at, UTC).isoformat()}"}
    return json.dumps({**record, **({} if session is None else {"sessionId": session})}) + "\n"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "c0.jsonl"


def test_a_reply_with_several_records_counts_once_with_its_last_usage(path):
    path.write_text(line(1, output_tokens=3) + line(1, output_tokens=80) + line(1, output_tokens=80) + line(2))
    assert ClaudeUsage(path).read() == {"claude-x": TokenCount(input=2, output=90, requests=2)}


def test_an_earlier_state_of_a_reply_does_not_replace_it(path):
    path.write_text(line(1, output_tokens=80) + line(1, output_tokens=3))
    assert ClaudeUsage(path).read()["claude-x"].output == 80


def test_tokens_written_to_the_cache_are_told_apart_by_their_lifetime(path):
    written = {"cache_creation_input_tokens": 100, "cache_creation": {"ephemeral_1h_input_tokens": 40}}
    path.write_text(line(1, **written, cache_read_input_tokens=7))
    assert ClaudeUsage(path).read()["claude-x"] == TokenCount(1, 60, 40, 7, 10, 1)


def test_it_reads_on_where_it_ended_and_again_where_the_file_is_another(path):
    path.write_text(line(1) + line(2)[:-20])
    found = ClaudeUsage(path)
    assert found.read()["claude-x"].requests == 1
    path.write_text(line(1) + line(2))
    assert found.read()["claude-x"].requests == 2
    path.write_text(line(3, model="claude-y"))
    assert found.read() == {"claude-y": TokenCount(input=1, output=10, requests=1)}
    path.unlink()
    assert found.read() == {"claude-y": TokenCount(input=1, output=10, requests=1)}


def test_what_is_older_is_left_out_by_the_minute(path):
    path.write_text(line(1, NOW - 3_600) + line(2, NOW) + line(3, NOW + 60))
    found = ClaudeUsage(path)
    assert [found.read(since)["claude-x"].requests for since in (0.0, NOW, NOW + 60)] == [3, 2, 1]
    assert found.read(NOW + 600) == {}


def test_subagents_count_and_copied_records_do_not(path):
    path.write_text(line(1, session="c0") + line(2, session="another"))
    folder = path.with_suffix("") / "subagents"
    folder.mkdir(parents=True)
    (folder / "agent-1.jsonl").write_text(line(3, model="claude-small", session="c0"))
    found = ClaudeUsage(path).read()
    assert {model: used.requests for model, used in found.items()} == {"claude-x": 1, "claude-small": 1}


@pytest.mark.parametrize(
    "odd",
    [
        '{"type": "assistant", "message": {"usage": null}}\n',
        '{"type": "user", "message": {"usage": {"output_tokens": 5}}}\n',
        '{"usage": \n',
        "[]\n",
        '{"type": "assistant", "message": {"model": "<synthetic>", "usage": {"output_tokens": 5}}}\n',
    ],
)
def test_what_is_no_reply_counts_nothing(path, odd):
    path.write_text(odd + line(1))
    assert ClaudeUsage(path).read() == {"claude-x": TokenCount(input=1, output=10, requests=1)}


def test_replies_without_id_model_or_time_count_each(path):
    record = {"type": "assistant", "message": {"usage": {"output_tokens": 5}}, "timestamp": "yesterday"}
    path.write_text(2 * (json.dumps(record) + "\n"))
    assert ClaudeUsage(path).read() == {"unknown": TokenCount(output=10, requests=2)}


def test_memory_does_not_grow_with_the_number_of_replies(path, monkeypatch):
    monkeypatch.setattr(usage, "MAX_RECENT", 4)
    path.write_text("".join(line(number) for number in range(100)))
    found = ClaudeUsage(path)
    assert found.read()["claude-x"].requests == 100
    [known] = found.files.values()
    assert (len(known.recent), len(known.buckets)) == (4, 1)


def test_a_transcript_that_is_not_there_has_used_nothing(path):
    assert ClaudeUsage(path).read() == {}
