"""The port `TranscriptSource`, for each provider that implements it: how full a context is, by its client's file."""

from dataclasses import dataclass
from typing import Any

import pytest

from sm.core.model.capacity import NO_LIMITS
from sm.core.model.context import ContextReading, Source
from sm.providers.claude.evidence import ClaudeTranscripts
from sm.providers.codex.evidence import CodexTranscripts
from tests.providers import test_claude_transcript as claude
from tests.providers import test_codex_transcript as codex


@dataclass
class Written:
    source: Any
    reply: Any
    """Tokens and number of a reply → what its client writes of it."""
    compacted: bytes


SOURCES = {
    "claude": Written(
        ClaudeTranscripts(),
        lambda tokens, number: claude.reply(tokens, 10, f"m{number}"),
        claude.boundary(trigger="auto", preTokens=9_000, postTokens=500),
    ),
    "codex": Written(
        CodexTranscripts(),
        lambda tokens, number: codex.used(tokens, tokens + 10, f"r{number}", 10) + codex.counted(tokens, tokens + 10),
        codex.COMPACTED + codex.counted(0, 500),
    ),
}


@pytest.fixture(params=SOURCES)
def written(request):
    return SOURCES[request.param]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "transcript.jsonl"


def test_a_file_that_is_not_there_tells_nothing_and_says_why(written, path):
    transcript = written.source.transcript(str(path))
    assert transcript.read() == ContextReading()
    assert "No such file" in transcript.problem


def test_the_newest_reply_tells_how_full_the_context_is(written, path):
    path.write_bytes(written.reply(1_000, 1) + written.reply(2_000, 2))
    transcript = written.source.transcript(str(path))
    reading = transcript.read()
    assert (reading.tokens, reading.projected, reading.source, reading.exact) == (2_000, 2_010, Source.USAGE, True)
    assert transcript.problem is None


def test_what_is_appended_is_read_and_what_is_not_finished_waits(written, path):
    path.write_bytes(written.reply(1_000, 1))
    transcript = written.source.transcript(str(path))
    transcript.read()
    newer = written.reply(3_000, 2)
    with path.open("ab") as file:
        file.write(newer[:40])
        file.flush()
        assert transcript.read().tokens == 1_000
        file.write(newer[40:])
    assert transcript.read().tokens == 3_000


def test_a_file_that_was_replaced_is_read_from_its_start(written, path):
    path.write_bytes(written.reply(1_000, 1) + written.reply(2_000, 2))
    transcript = written.source.transcript(str(path))
    transcript.read()
    path.unlink()
    path.write_bytes(written.reply(700, 1))
    assert transcript.read().tokens == 700


def test_a_compaction_leaves_its_own_size(written, path):
    path.write_bytes(written.reply(9_000, 1) + written.compacted)
    reading = written.source.transcript(str(path)).read_whole()
    assert (reading.projected, reading.source, reading.compactions) == (500, Source.BOUNDARY, 1)


def test_counts_are_of_the_whole_file_once_it_is_scanned(written, path):
    path.write_bytes(b"".join(written.reply(1_000 * number, number) for number in range(1, 4)) + b"no json\n")
    transcript = written.source.transcript(str(path))
    assert transcript.read().messages is None
    while not transcript.scan():
        pass
    counted = transcript.read()
    assert (counted.messages, counted.output_tokens, counted.malformed) == (3, 30, 1)
    assert counted == written.source.transcript(str(path)).read_whole()


@pytest.mark.parametrize("data", [b"", b"\n\n", b"[1]\n", b"\xff\xfe\n", b"[" * 100_000 + b"\n", b'{"type": '])
def test_whatever_stands_there_it_tells_nothing_and_raises_nothing(written, path, data):
    path.write_bytes(data)
    assert written.source.transcript(str(path)).read_whole().tokens is None


def test_a_window_is_assumed_only_where_none_is_known(written):
    told = ContextReading(tokens=1_000, projected=1_010, window=150_000)
    reading, usable = written.source.sized(told, NO_LIMITS, 200_000)
    assert (reading.window, reading.assumed) == (150_000, False)
    assert 0 < usable <= 150_000
    reading, _ = written.source.sized(ContextReading(tokens=1_000), NO_LIMITS, 200_000)
    assert (reading.window, reading.assumed) == (200_000, True)


def test_a_window_that_the_reading_proves_wrong_is_none(written):
    """A15: more was accepted than it holds."""
    proved = ContextReading(tokens=210_000, projected=210_000, window=200_000)
    assert written.source.sized(proved, NO_LIMITS, 200_000) == (ContextReading(tokens=210_000, projected=210_000), None)
    assert written.source.sized(ContextReading(tokens=1), NO_LIMITS, None) == (ContextReading(tokens=1), None)
