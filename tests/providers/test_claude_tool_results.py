"""Whether a call has come back, by the transcript."""

import json
from datetime import UTC, datetime

import pytest

from sm.core.model.ask import AskKind, AskRequest
from sm.providers.claude.tool_results import came_back

ASKED = 1_000.0
GIVEN = {"command": "make"}
REQUEST = AskRequest(AskKind.PERMISSION, "Bash", json.dumps(GIVEN))


def line(at, block):
    return json.dumps({"message": {"content": [block]}, "timestamp": datetime.fromtimestamp(at, UTC).isoformat()})


def call(at, identity="t1", **changes):
    return line(at, {"type": "tool_use", "id": identity, "name": "Bash", "input": GIVEN, **changes})


def result(at, identity="t1"):
    return line(at, {"type": "tool_result", "tool_use_id": identity, "content": "ok"})


@pytest.mark.parametrize(
    ("lines", "back"),
    [
        ([call(999), result(1_001)], True),
        ([call(999), call(999, "t2", input={"command": "x"}), result(1_001), "no JSON, and a tool_use"], True),
        ([call(999)], False),
        ([call(900), result(901), call(999, "t2")], False),
        ([call(999), result(1_001, "t2")], False),
        ([call(999, input={"command": "other"}), result(1_001)], False),
        ([call(999, name="Read"), result(1_001)], False),
        (["[" * 10_000 + '"tool_use"'], False),
        ([], False),
    ],
)
def test_a_call_is_back_once_its_own_result_came_after_it_was_asked_about(tmp_path, lines, back):
    path = tmp_path / "t.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines))
    assert came_back(path, REQUEST, ASKED) is back


def test_a_transcript_that_is_not_there_says_nothing(tmp_path):
    assert came_back(tmp_path / "none", REQUEST, ASKED) is False
