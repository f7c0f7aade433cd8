import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sm.core.model.capacity import NO_LIMITS, ClientLimits
from sm.core.model.context import ContextReading, Source
from sm.providers.codex.transcript import TranscriptReader, compacts_at

CASES = Path(__file__).parent.parent / "cases"
WINDOW = 258400


def fresh_reading(path, *, full):
    reader = TranscriptReader(path)
    return reader.read_whole() if full else reader.read()


def line(kind, **payload):
    return json.dumps({"type": kind, "payload": payload}).encode() + b"\n"


def usage(tokens, total, **members):
    return {"input_tokens": tokens, "cached_input_tokens": tokens // 2, "total_tokens": total, **members}


def used(tokens, total, key="resp_1", output=0):
    return line("token_usage_record", response_id=key, usage=usage(tokens, total, output_tokens=output))


def counted(tokens, total, spent=0, output=0):
    last = usage(tokens, total, output_tokens=output)
    info = {"last_token_usage": last, "total_token_usage": usage(spent, spent), "model_context_window": WINDOW}
    return line("event_msg", type="token_count", info=info)


NO_COUNT = line("event_msg", type="token_count", info=None)
STARTED = line("event_msg", type="task_started", model_context_window=WINDOW)
TURN = line("turn_context", model="gpt-x")
COMPACTED = line("compacted", message="summary", replacement_history=[])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rollout.jsonl"


def readings_of(path, data):
    path.write_bytes(data)
    return [fresh_reading(path, full=full) for full in (False, True)]


def sizes_of(path, data):
    return [(reading.tokens, reading.projected) for reading in readings_of(path, data)]


def test_the_case_from_the_field_reads_as_it_should():
    expected = json.loads((CASES / "expected.json").read_text())["a16_codex_cumulative.jsonl"]
    for full in (False, True):
        reading = fresh_reading(CASES / "a16_codex_cumulative.jsonl", full=full)
        assert {name: getattr(reading, name) for name in expected if full or name != "compactions"} == {
            name: value for name, value in expected.items() if full or name != "compactions"
        }
    assert (reading.messages, reading.output_tokens, reading.exact) == (2, 602, True)


def test_the_record_is_ahead_of_the_event_while_tools_run(path):
    assert sizes_of(path, TURN + counted(100, 110) + used(200, 230)) == [(200, 230)] * 2


def test_the_first_reply_is_known_before_any_event(path):
    (cold, _) = readings_of(path, STARTED + TURN + NO_COUNT + used(200, 230))
    assert (cold.tokens, cold.window, cold.model) == (200, WINDOW, "gpt-x")


def test_after_a_compaction_only_an_event_counts(path):
    assert sizes_of(path, used(900, 990) + COMPACTED) == [(None, None)] * 2
    assert sizes_of(path, used(900, 990) + COMPACTED + used(950, 960)) == [(None, None)] * 2


def test_a_size_without_input_is_what_the_compaction_left(path):
    _, reading = readings_of(path, TURN + used(900, 990) + COMPACTED + counted(0, 64))
    assert (reading.tokens, reading.source, reading.lower_bound, reading.exact) == (64, Source.BOUNDARY, True, False)
    assert (reading.boundary, reading.compactions) == ((990, 64), 1)


def test_the_turn_after_a_compaction_is_exact_again(path):
    assert sizes_of(path, COMPACTED + counted(0, 64) + used(70, 75)) == [(70, 75)] * 2


def test_model_and_window_are_found_before_a_compaction(path):
    cold, full = readings_of(path, STARTED + TURN + used(900, 990) + COMPACTED)
    assert (cold.model, cold.window) == (full.model, full.window) == ("gpt-x", WINDOW)


def test_an_event_that_comes_again_is_one_reply(path):
    _, reading = readings_of(path, counted(10, 12, 12, output=2) * 3 + counted(20, 25, 37, output=5))
    assert (reading.messages, reading.output_tokens) == (2, 7)


def test_records_and_events_of_one_reply_are_counted_once(path):
    _, reading = readings_of(path, used(10, 12, "a", 2) + counted(10, 12, 12, 2) + used(20, 25, "b", 5))
    assert (reading.messages, reading.output_tokens) == (2, 7)


@pytest.mark.parametrize(
    "odd",
    [
        b'{"type":"token_count","payload":7}\n',
        line("event_msg", type="token_count", info={"last_token_usage": "none"}),
        line("token_usage_record", usage=[1]),
        line("token_usage_record", usage={"input_tokens": None, "total_tokens": "9"}),
        line("turn_context", model=5),
        b'"token_usage_record"\n',
    ],
)
def test_an_odd_record_leaves_the_reading_alone(path, odd):
    assert sizes_of(path, TURN + used(200, 230) + odd) == [(200, 230)] * 2


def test_a_file_that_is_not_there_is_unknown_and_says_why(path):
    reader = TranscriptReader(path)
    assert (reader.read(), bool(reader.problem)) == (ContextReading(), True)


PARTS = st.lists(
    st.one_of(
        st.sampled_from([NO_COUNT, STARTED, TURN, COMPACTED, b"broken\n"]),
        st.builds(used, st.integers(0, 99), st.integers(100, 999), st.sampled_from("abc")),
        st.builds(counted, st.integers(0, 99), st.integers(100, 999), st.integers(1, 9)),
    ),
    min_size=1,
)


@given(PARTS, st.booleans())
def test_a_rollout_that_grows_reads_like_the_whole_file(tmp_path_factory, parts, whole):
    path = tmp_path_factory.getbasetemp() / "growing.jsonl"
    path.write_bytes(b"")
    reader = TranscriptReader(path)
    _ = reader.read_whole() if whole else reader.read()
    for part in parts:
        with path.open("ab") as file:
            file.write(part)
        fresh = fresh_reading(path, full=whole)
        assert replace(reader.read(), boundary=None) == replace(fresh, boundary=None)


@pytest.mark.parametrize("full", [False, True])
def test_a_newer_reply_without_counters_makes_the_reading_stale(path, full):  # C15
    blank = line("token_usage_record", response_id="resp_2", usage={"input_tokens": None})
    path.write_bytes(counted(500, 600) + blank)
    assert (fresh_reading(path, full=full).tokens, fresh_reading(path, full=full).stale) == (500, True)
    path.write_bytes(counted(500, 600) + blank + counted(700, 800) + NO_COUNT)
    assert fresh_reading(path, full=full).stale is False


def dated(stamp, data):
    return json.dumps({"timestamp": f"2026-05-04T08:00:{stamp}Z", **json.loads(data)}).encode() + b"\n"


def test_only_rows_of_the_thread_itself_are_counted(path):  # C16
    meta = dated("00.000", line("session_meta", id="own", forked_from_id="parent"))
    copied = dated("00.010", COMPACTED) + dated("00.020", used(80_000, 80_700, output=700))
    path.write_bytes(meta + copied)
    before = fresh_reading(path, full=True)
    assert (before.messages, before.output_tokens, before.compactions) == (0, 0, 0)
    path.write_bytes(meta + copied + dated("20.000", used(6_000, 6_090, "resp_2", output=90)))
    after = fresh_reading(path, full=True)
    assert (after.tokens, after.messages, after.output_tokens) == (None, 1, 90)


def test_a_thread_that_is_no_fork_counts_from_its_start(path):  # C16
    path.write_bytes(dated("00.000", line("session_meta", id="own")) + dated("00.001", used(500, 600, output=7)))
    assert fresh_reading(path, full=True).output_tokens == 7


def test_a_fork_that_names_what_it_continues_has_copied_nothing(path):
    meta = line("session_meta", id="own", forked_from_id="parent", history_base={"thread_id": "parent"})
    path.write_bytes(dated("00.000", meta) + dated("00.500", used(500, 600, output=7)))
    assert fresh_reading(path, full=True).output_tokens == 7


@pytest.mark.parametrize("full", [False, True])
def test_the_size_that_a_refused_request_is_given_is_no_compaction(path, full):
    """The client counts its whole window where the model has refused a request as too long (0.171.0)."""
    path.write_bytes(STARTED + TURN + used(900, 990) + counted(900, 990) + counted(0, 248_200))
    reading = fresh_reading(path, full=full)
    assert (reading.projected, reading.boundary) == (248_200, None)


@pytest.mark.parametrize("full", [False, True])
def test_the_size_after_a_compaction_may_be_told_again(path, full):
    """As where the limits of the account change."""
    path.write_bytes(used(900, 990) + COMPACTED + counted(0, 64) + counted(0, 64))
    reading = fresh_reading(path, full=full)
    assert (reading.projected, reading.boundary[1]) == (64, 64)


@pytest.mark.parametrize(
    ("window", "configured", "expected"),
    [
        (258_400, None, 244_800),
        (47_500, None, 45_000),
        (47_500, 47_000, 45_000),
        (47_500, 20_000, 20_000),
        (31_666, None, 29_999),
        (None, None, None),
        (None, 20_000, 20_000),
    ],
)
def test_the_client_compacts_at_nine_tenths_of_the_models_window_or_where_it_is_told_to(window, configured, expected):
    """As observed with the client (0.171.0): it tells 95 % of the window."""
    limits = NO_LIMITS if configured is None else ClientLimits(auto_compact=configured)
    assert compacts_at(window, limits) == expected
