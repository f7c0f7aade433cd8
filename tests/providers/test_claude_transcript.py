import json
import os
import runpy
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sm.core.model.context import ContextReading, Source
from sm.providers import jsonl
from sm.providers.claude.transcript import TranscriptReader, last_reply_text

CASES = Path(__file__).parent.parent / "cases"
EXPECTED = {
    name: members for name, members in json.loads((CASES / "expected.json").read_text()).items() if "codex" not in name
}
COUNTS = ("compactions", "messages", "output_tokens", "malformed")


def fresh_reading(path, *, full):
    reader = TranscriptReader(path)
    return reader.read_whole() if full else reader.read()


def line(kind="assistant", **members):
    return json.dumps({"type": kind, "isSidechain": False, **members}).encode() + b"\n"


def reply(tokens=1000, output=10, key="m1", model="claude-x", content=(), **members):
    usage = {"input_tokens": tokens, "output_tokens": output}
    return line(message={"id": key, "model": model, "usage": usage, "content": content}, **members)


def said(text, key="m1", **members):
    return reply(key=key, content=[{"type": "text", "text": text}], **members)


def user(content, **members):
    return line("user", message={"role": "user", "content": content}, **members)


def boundary(**metadata):
    return line("system", subtype="compact_boundary", compactMetadata=metadata)


TOOL_RESULT = user([{"type": "tool_result", "tool_use_id": "t", "content": "x"}])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "transcript.jsonl"


def append(path, data):
    with path.open("ab") as file:
        file.write(data)


def reading_of(path, data, *, full=False):
    path.write_bytes(data)
    return fresh_reading(path, full=full)


# The cases from the field


@pytest.mark.parametrize("name", EXPECTED)
def test_a_case_from_the_field_reads_as_it_should(name):
    reading = fresh_reading(CASES / name, full=True)
    assert {member: getattr(reading, member) for member in EXPECTED[name]} == EXPECTED[name]


@pytest.mark.parametrize("name", EXPECTED)
def test_a_cold_reading_tells_the_same_without_the_counts(name):
    cold, full = (fresh_reading(CASES / name, full=full) for full in (False, True))
    unseen = {"boundary": None, "automatic": False}
    assert replace(cold, **unseen) == replace(full, **unseen, **dict.fromkeys(COUNTS))


def test_what_the_next_request_weighs_includes_the_last_reply():
    reading = fresh_reading(CASES / "a08_one_line_per_block.jsonl", full=False)
    assert (reading.projected - reading.tokens, reading.exact) == (700, True)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize(("reason", "follows"), [("tool_use", True), ("end_turn", False), (None, False), (7, False)])
def test_a_reply_that_calls_a_tool_is_followed_by_a_request(path, reason, follows, full):
    usage = {"input_tokens": 1000, "output_tokens": 10}
    found = line(message={"id": "m1", "model": "claude-x", "usage": usage, "stop_reason": reason})
    assert reading_of(path, found, full=full).continues is follows


def test_half_an_emoji_can_be_written_down():
    text = last_reply_text(CASES / "a18_lone_surrogate.jsonl")
    assert "plan \ufffd…".encode() in text.encode()


def test_a_long_transcript_is_read_whatever_its_last_line(path):
    make_big = runpy.run_path(str(CASES / "make_big.py"))
    make_big["write"](path, megabytes=4, last_line=3)
    assert fresh_reading(path, full=False).tokens == 123456
    reading = fresh_reading(path, full=True)
    assert (reading.tokens, reading.compactions, reading.malformed) == (123456, 3, 0)


# C14: a turn of several requests


def iterated(*iterations, key="m1", **totals):
    usage = {"input_tokens": 900_000, "output_tokens": 900, **totals, "iterations": list(iterations)}
    return line(message={"id": key, "model": "claude-x", "usage": usage})


def request(tokens, output, kind="message"):
    return {"type": kind, "input_tokens": tokens, "output_tokens": output}


@pytest.mark.parametrize(
    ("iterations", "tokens", "projected"),
    [
        ([request(500, 50), request(9_000, 1, "advisor_message"), request(600, 60)], 600, 660),
        ([request(500, 50), request(9_000, 1, "advisor_message")], 500, 550),
        ([request(500, 50), request(0, 60)], 500, 550),
        ([request(500, 50), "x", None, {"type": "message", "input_tokens": None}], 500, 550),
        ([request(9_000, 1, "advisor_message")], 900_000, 900_900),
        ([], 900_000, 900_900),
    ],
)
@pytest.mark.parametrize("full", [False, True])
def test_of_a_turn_of_several_requests_the_last_one_counts(path, iterations, tokens, projected, full):  # C14
    reading = reading_of(path, iterated(*iterations), full=full)
    assert (reading.tokens, reading.projected) == (tokens, projected)
    assert reading.output_tokens == (900 if full else None)


@pytest.mark.parametrize("odd", ["x", 7, {"type": "message"}])
def test_iterations_that_are_no_list_count_as_none(path, odd):  # C14
    usage = {"input_tokens": 500, "output_tokens": 50, "iterations": odd}
    assert reading_of(path, line(message={"id": "m", "usage": usage})).projected == 550


# C15: replies without usable counters


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        "none",
        {"input_tokens": 0, "output_tokens": 0},
        {"input_tokens": None, "cache_read_input_tokens": None},
        {"input_tokens": "61000"},
        {"input_tokens": -5},
    ],
)
def test_a_newer_reply_without_counters_makes_the_reading_stale(path, usage, full):  # C15
    blank = line(message={"id": "m2", "model": "claude-x", "usage": usage})
    stale = reading_of(path, reply(700) + blank, full=full)
    assert (stale.tokens, stale.stale) == (700, True)
    assert reading_of(path, blank + reply(700, key="m3"), full=full).stale is False
    assert reading_of(path, boundary(postTokens=50) + blank, full=full).stale is True
    assert reading_of(path, blank, full=full).stale is True


@pytest.mark.parametrize("full", [False, True])
def test_what_is_no_further_request_makes_nothing_stale(path, full):  # C15
    copy = line(message={"id": "m1", "model": "claude-x", "usage": None})
    fault = line(message={"id": "m2", "model": "<synthetic>", "usage": None})
    aside = line(isSidechain=True, message={"id": "m3", "model": "claude-x", "usage": None})
    assert reading_of(path, reply(700) + copy + fault + aside, full=full).stale is False
    compacted = line(message={"id": "m2", "usage": None}) + boundary(postTokens=50)
    assert reading_of(path, reply(700) + compacted, full=full).stale is False


def test_a_reading_that_follows_the_file_turns_stale_and_back(path):  # C15
    path.write_bytes(reply(700))
    reader = TranscriptReader(path)
    found = [reader.read().stale]
    for more in (line(message={"id": "m2", "usage": None}), reply(900, key="m2")):
        append(path, more)
        found.append(reader.read().stale)
    assert found == [False, True, False]


# C16: what a fork has copied


def test_only_rows_of_the_conversation_itself_are_counted(path):  # C16
    compacted = line("system", subtype="compact_boundary", sessionId="parent", compactMetadata={"postTokens": 5})
    copied = compacted + reply(500, 70, "p1", sessionId="parent") + user("do it", sessionId="parent")
    forked = user("own words", sessionId="own")
    assert reading_of(path, copied, full=True).output_tokens == 70
    before = reading_of(path, copied + forked, full=True)
    assert (before.tokens, before.messages, before.output_tokens, before.compactions) == (500, 0, 0, 0)
    after = reading_of(path, copied + forked + reply(600, 9, "o1", sessionId="own"), full=True)
    assert (after.tokens, after.messages, after.output_tokens) == (600, 1, 9)


# C17: copies of one reply


@pytest.mark.parametrize("full", [False, True])
def test_of_copies_of_a_reply_the_most_complete_one_counts(path, full):  # C17
    reading = reading_of(path, reply(700, 900) + TOOL_RESULT + reply(700, 1), full=full)
    assert (reading.tokens, reading.projected) == (700, 1_600)
    assert reading.output_tokens == (900 if full else None)


# Odd records


@pytest.mark.parametrize("odd", [None, "12", True, [], {}, -5, float("nan"), float("inf"), 10**30, 10**400])
def test_a_member_that_is_no_number_counts_as_nothing(path, odd):
    usage = {"input_tokens": odd, "cache_read_input_tokens": 7.0, "output_tokens": odd}
    reading = reading_of(path, line(message={"usage": usage}))
    assert (reading.tokens, reading.projected, reading.model) == (7, 7, None)


@pytest.mark.parametrize(
    "odd",
    [
        line(message="text"),
        line(message=None),
        line(message={"usage": [1, 2]}),
        line(message={"usage": {}}),
        reply(tokens=0),
        reply(isSidechain=True),
        reply(model="<synthetic>"),
        line("system", subtype="compact_boundary", compactMetadata={"postTokens": 5}, isSidechain=True),
        line("attachment", data={"type": "assistant", "message": {"usage": {"input_tokens": 5}}}),
        b'[{"type":"assistant"}]\n',
        b'{"type":"assistant","message":\n',
        b"\0\0\0\n",
        b'{"type":"assistant","x":' + b"[" * 100_000 + b"\n",
        b"\n \n",
    ],
)
def test_a_record_that_is_no_reply_leaves_the_reading_alone(path, odd):
    assert reading_of(path, reply(tokens=300) + odd).tokens == 300


@pytest.mark.parametrize(
    "odd",
    [
        b"\0\0\0\0" + reply(tokens=400),
        b"\xef\xbb\xbf" + reply(tokens=400),
        reply(tokens=400, model="a\ud800b"),
        reply(tokens=400, note="\u2028\u2029\x85\x1c"),
        reply(tokens=400, note="RAW").replace(b"RAW", b"a\0b\x1f"),
        reply(tokens=400, note="RAW").replace(b"RAW", b"\xff\xed\xa0\xbd\xc3"),
        reply(tokens=400, key="RAW").replace(b"RAW", b"\xff"),
        reply(tokens=400, compactMetadata=5),
        reply(tokens=400).replace(b"\n", b"\r\n"),
    ],
)
def test_a_damaged_record_still_tells_its_usage(path, odd):
    reading = reading_of(path, reply(tokens=300) + odd, full=True)
    assert (reading.tokens, reading.malformed) == (400, 0)


def test_complete_lines_that_are_no_object_are_counted(path):
    assert reading_of(path, b"{\n" + reply() + b"[1]\n\n\0\n" + b"{torn", full=True).malformed == 3


def test_a_long_line_is_judged_by_its_ends(path):
    filler = b"x" * jsonl.CHUNK
    reading = reading_of(path, b'{"a":"%b"}\n{"b":"%b\n' % (filler, filler) + reply(), full=True)
    assert (reading.malformed, reading.tokens) == (1, 1000)


def test_a_reply_of_several_megabytes_is_read(path):
    long = said("x" * 3_000_000, tokens=500)
    assert [reading_of(path, reply() + long + TOOL_RESULT, full=full).tokens for full in (False, True)] == [500, 500]


def test_a_long_line_with_half_an_emoji_is_stepped_over(path):
    odd = user([], toolUseResult={"type": "assistant", "text": "x" * jsonl.MAX_REPLY_BYTES + "\ud83d"})
    reading = reading_of(path, reply() + odd, full=True)
    assert (reading.tokens, reading.malformed) == (1000, 0)


def test_a_line_too_long_for_a_reply_is_none(path, monkeypatch):
    monkeypatch.setattr(jsonl, "MAX_RECORD_BYTES", jsonl.CHUNK)
    odd = user([], toolUseResult={"type": "assistant", "text": "x" * jsonl.CHUNK})
    assert [reading_of(path, reply() + odd, full=full).tokens for full in (False, True)] == [1000, 1000]


def test_the_size_after_a_compaction_is_a_lower_bound(path):
    reading = reading_of(path, reply(tokens=900) + boundary(preTokens=910, postTokens=80))
    assert (reading.tokens, reading.projected, reading.source) == (80, 80, Source.BOUNDARY)
    assert (reading.exact, reading.lower_bound, reading.boundary) == (False, True, (910, 80))


@pytest.mark.parametrize("metadata", [{}, {"postTokens": None}, {"postTokens": 0}, {"postTokens": "many"}])
def test_a_compaction_without_a_size_leaves_nothing_known(path, metadata):
    reading = reading_of(path, reply() + boundary(**metadata))
    assert (reading.tokens, reading.source, reading.exact, reading.model) == (None, Source.UNKNOWN, False, "claude-x")


def test_a_last_line_that_lacks_only_its_end_counts_once(path):
    path.write_bytes(reply() + reply(tokens=2000, key="m2").rstrip())
    reader = TranscriptReader(path)
    assert (reader.read_whole().tokens, reader.read().messages) == (2000, 2)
    append(path, b"\n")
    assert (reader.read().tokens, reader.read().messages) == (2000, 2)


def test_only_the_newest_reply_ids_are_kept():
    replies = jsonl.Replies()
    for number in range(jsonl.MAX_REMEMBERED_REPLIES + 10):
        replies.note(f"m{number}", 1)
    assert (replies.messages, len(replies.recent)) == (jsonl.MAX_REMEMBERED_REPLIES + 10, jsonl.MAX_REMEMBERED_REPLIES)


def test_replies_without_an_id_stand_for_themselves(path):
    assert reading_of(path, reply(key=None) * 2, full=True).messages == 2


# What cannot be read


def test_a_file_that_is_not_there_is_unknown_and_says_why(path):
    reader = TranscriptReader(path)
    assert (reader.read_whole(), reader.problem) == (
        ContextReading(),
        "transcript unreadable: No such file or directory",
    )
    path.write_bytes(reply())
    assert (reader.read().tokens, reader.problem) == (1000, None)


def test_what_is_no_file_is_unknown_and_does_not_block(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path, tmp_path / "fifo"):
        reader = TranscriptReader(path)
        assert (reader.read(), reader.problem) == (ContextReading(), "transcript unreadable: Not a regular file")


def test_a_path_that_cannot_exist_is_unknown():
    reader = TranscriptReader(Path("a\0b"))
    assert (reader.read_whole(), bool(reader.problem)) == (ContextReading(), True)
    assert last_reply_text(reader.path) is None


def test_an_empty_file_is_unknown_without_a_problem(path):
    path.touch()
    reader = TranscriptReader(path)
    assert (reader.read().source, reader.problem) == (Source.UNKNOWN, None)


# Reading while the client writes


LINES = (
    lambda n: reply(tokens=n, output=n % 7, key=f"m{n // 2}", uuid=n),
    lambda n: reply(tokens=n, isSidechain=True),
    lambda n: boundary(postTokens=n),
    lambda n: boundary(at=n),
    lambda n: said("\u2028é" * n, tokens=n, uuid=n),
    lambda n: user("assistant " * n, uuid=n),
    lambda n: b"\xff\0%d\n" % n,
    lambda n: reply(tokens=n, model="<synthetic>"),
    lambda n: line("system", note="x" * 50 * n, uuid=n),
)


def pieces(first=100):
    """Transcripts whose lines carry numbers from `first` on, as real ones carry uuids."""
    kinds = st.lists(st.sampled_from(LINES), min_size=1, max_size=12)
    return kinds.map(lambda makers: b"".join(make(number) for number, make in enumerate(makers, first)))


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("scratch") / "transcript.jsonl"


def same(reader, *, counted):
    """A reader that followed the file tells what a fresh one tells."""
    fresh = fresh_reading(reader.path, full=counted)
    return replace(reader.read(), boundary=None) == replace(fresh, boundary=None)


@given(pieces(), st.lists(st.integers(0, 3000)), st.booleans())
def test_any_way_of_appending_reads_like_the_whole_file(scratch, data, cuts, counted):
    scratch.write_bytes(b"")
    reader = TranscriptReader(scratch)
    _ = reader.read_whole() if counted else reader.read()
    cuts = sorted(cut % len(data) for cut in cuts)
    for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        append(scratch, data[start:end])
        assert same(reader, counted=counted)


@given(pieces(), st.integers(0), pieces(500), st.booleans())
def test_a_file_cut_and_continued_is_read_anew(scratch, data, cut, more, look_between):
    scratch.write_bytes(data)
    reader = TranscriptReader(scratch)
    reader.read()
    os.truncate(scratch, cut % len(data))
    assert not look_between or same(reader, counted=False)
    append(scratch, more)
    assert same(reader, counted=False)


@given(pieces(), pieces(500), st.booleans())
def test_a_file_replaced_or_rewritten_is_read_anew(scratch, data, other, in_place):
    scratch.write_bytes(data)
    reader = TranscriptReader(scratch)
    reader.read_whole()
    successor = scratch if in_place else scratch.with_suffix(".new")
    successor.write_bytes(b'{"other":1}\n' + other)
    successor.replace(scratch)
    assert replace(reader.read(), boundary=None, **dict.fromkeys(COUNTS)) == replace(
        fresh_reading(scratch, full=False), boundary=None
    )
    assert reader.read_whole() == fresh_reading(scratch, full=True)


@given(pieces(), st.integers(1, 500), pieces(500))
def test_a_count_in_steps_equals_a_count_at_once(scratch, data, budget, more):
    scratch.write_bytes(data)
    reader = TranscriptReader(scratch)
    assert reader.read().messages is None
    reader.scan(budget)
    append(scratch, more)
    while not reader.scan(budget):
        pass
    assert replace(reader.read(), boundary=None) == replace(fresh_reading(scratch, full=True), boundary=None)


def test_a_compaction_from_before_the_first_look_is_counted_and_one_since_is_told(path):
    path.write_bytes(reply() + boundary(preTokens=168_000, postTokens=3_000) + reply(key="m2"))
    reader = TranscriptReader(path)
    assert reader.read().boundary is None
    while not reader.scan():
        pass
    assert (reader.read().boundary, reader.read().compactions, reader.read().messages) == (None, 1, 2)
    append(path, boundary(preTokens=150_000, postTokens=2_000) + reply(key="m3"))
    assert (reader.read().boundary, reader.read().compactions) == ((150_000, 2_000), 2)


def test_a_compaction_while_the_file_is_counted_is_told(path):
    path.write_bytes(reply())
    reader = TranscriptReader(path)
    reader.read()
    append(path, boundary(preTokens=150_000, postTokens=2_000) + reply(key="m2"))
    while not reader.scan():
        pass
    assert (reader.read().boundary, reader.read().compactions) == ((150_000, 2_000), 1)


def test_counts_go_on_with_the_file_and_end_with_it(path):
    path.write_bytes(reply())
    reader = TranscriptReader(path)
    assert reader.read_whole().messages == 1
    append(path, reply(key="m2") + boundary(postTokens=5))
    assert (reader.read().messages, reader.read().compactions) == (2, 1)
    path.unlink()
    path.write_bytes(b"\n" + reply(tokens=50))
    assert (reader.read().tokens, reader.read().messages, reader.read_whole().messages) == (50, None, 1)


def test_lines_wider_than_every_window_are_stepped_over(path, monkeypatch):
    monkeypatch.setattr(jsonl, "FIRST_LOOK", 32)
    monkeypatch.setattr(jsonl, "CHUNK", 64)
    data = reply(tokens=700) + user("y" * 1000) + b"torn" * 100
    assert [reading_of(path, data, full=full).tokens for full in (False, True)] == [700, 700]


# What was said


def test_the_closing_text_is_all_of_the_last_reply(path):
    path.write_bytes(user("go") + said("ALPHA") + TOOL_RESULT + said("one", key="m2") + said("two", key="m2"))
    append(
        path,
        reply(key="m2", content=[{"type": "tool_use"}]) + line("system", note='"user"') + said("x", isSidechain=True),
    )
    assert last_reply_text(path) == "one\ntwo"


def test_the_closing_text_is_of_one_reply_only(path):
    path.write_bytes(said("ALPHA") + said("BETA", key="m2"))
    assert last_reply_text(path) == "BETA"


@pytest.mark.parametrize("newer", [user("go on"), TOOL_RESULT, b'{"type":"user"\n', user("x" * 2_100_000)])
def test_a_text_before_an_open_question_is_not_the_answer(path, newer):
    path.write_bytes(said("ALPHA") + newer)
    assert last_reply_text(path) is None


def test_a_text_older_than_the_turn_is_not_its_answer(path):
    path.write_bytes(said("ALPHA"))
    began = path.stat().st_size
    assert last_reply_text(path, since=began) is None
    append(path, said("BETA", key="m2"))
    assert last_reply_text(path, since=began) == "BETA"


def test_an_error_of_the_client_is_not_the_answer(path):
    path.write_bytes(user("go") + said("API Error", model="<synthetic>"))
    assert last_reply_text(path) is None


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_can_be_made_well_formed(text):
    safe = jsonl.well_formed(text)
    assert safe.encode().decode() == safe
    assert jsonl.well_formed(safe) == safe
