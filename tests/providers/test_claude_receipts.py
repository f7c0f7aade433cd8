"""What the transcript shows of messages (records as client 2.1.328 writes them)."""

import json

import pytest

from sm.providers.claude.receipts import shown

AT = "2026-11-28T08:13:01.273Z"


def attachment(kind, **members):
    return {"type": "attachment", "timestamp": AT, "attachment": {"type": kind, **members}}


TOLD = {
    "what the plugin adds": attachment("plugin_note", content=["<system-reminder>\nx (message m1)\n"], plugin="sm"),
    "a hook's reply": attachment("hook_additional_context", content=["x\n(message m1)\nhello"], hookEvent="Stop"),
    "a queued prompt": attachment("queued_command", prompt="(message m1)\nhello"),
    "a queued prompt in blocks": attachment("queued_command", prompt=[{"type": "text", "text": "(message m1)"}]),
    "a prompt": {"type": "user", "timestamp": AT, "message": {"content": "(message m1)\nhello"}},
    "a prompt in blocks": {"type": "user", "message": {"content": [{"type": "text", "text": "(message m1)"}]}},
}
NOT_TOLD = {
    "a tool's result": {
        "type": "user",
        "timestamp": AT,
        "message": {"content": [{"type": "tool_result", "content": "m1 queued"}]},
    },
    "a hook's success": attachment("hook_success", stdout='{"additionalContext": "m1"}'),
    "what the client has queued": {"type": "queue-operation", "operation": "enqueue", "content": "m1"},
    "the agent's own words": {"type": "assistant", "timestamp": AT, "message": {"content": "m1, user"}},
    "a copy of the request": {"type": "api-request-blob", "message": {"role": "user", "content": "m1"}},
}


def transcript(tmp_path, *records):
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.mark.parametrize("record", TOLD.values(), ids=TOLD)
def test_what_the_agent_was_told_is_shown(tmp_path, record):
    assert shown(transcript(tmp_path, record), {"m1": 0, "m2": 0}) == {"m1"}


@pytest.mark.parametrize("record", NOT_TOLD.values(), ids=NOT_TOLD)
def test_what_only_holds_its_name_is_no_proof(tmp_path, record):
    assert shown(transcript(tmp_path, record), {"m1": 0}) == frozenset()


def test_an_earlier_record_of_the_same_words_is_another_message(tmp_path):
    """C4: what comes after which is told by the place in the file, whatever any clock says."""
    path = transcript(tmp_path, TOLD["a prompt"])
    size = path.stat().st_size
    assert shown(path, {"hello": 0}) == {"hello"}
    assert shown(path, {"hello": size}) == frozenset()
    with path.open("a") as file:
        file.write(json.dumps(TOLD["a prompt"]) + "\n")
    assert shown(path, {"hello": size, "m1": 0}) == {"hello", "m1"}


@pytest.mark.parametrize("stamp", ["1999-01-01T00:00:00.000Z", "2099-01-01T00:00:00.000Z", "no time"])
def test_the_clients_clock_decides_nothing(tmp_path, stamp):
    """C4"""
    assert shown(transcript(tmp_path, {**TOLD["a prompt"], "timestamp": stamp}), {"m1": 0}) == {"m1"}


def test_a_transcript_that_is_not_begun_shows_nothing_and_one_that_cannot_be_read_says_so(tmp_path):
    assert shown(tmp_path / "none.jsonl", {"m1": 0}) == frozenset()
    assert shown(tmp_path, {"m1": 0}) is None


def test_a_broken_or_unfinished_record_hides_no_other(tmp_path):
    path = transcript(tmp_path, TOLD["a prompt"])
    path.write_text('{"type": "user" broken\n' + path.read_text() + '{"type": "user", "message": {"content": "m2')
    assert shown(path, {"m1": 0, "m2": 0}) == {"m1"}


NOTE = {
    "type": "user",
    "isMeta": True,
    "message": {"content": [{"type": "text", "text": "<system-reminder>\nx (message m1)\n</system-reminder>"}]},
}
"""What 2.1.290 writes as soon as the plugin adds it, whether a request follows or not."""
REPLY = {"type": "assistant", "message": {"content": [{"type": "text", "text": "Done."}]}}
RESULT = {"type": "user", "message": {"content": [{"type": "tool_result", "content": "ok"}]}}


@pytest.mark.parametrize(
    ("before", "after", "read"),
    [
        ([RESULT], [], False),
        ([RESULT], [REPLY], False),
        ([], [RESULT], True),
        ([RESULT], [REPLY, TOLD["what the plugin adds"] | {"attachment": {"type": "date"}}], False),
        ([RESULT], [REPLY, {"type": "user", "message": {"content": "Read it above."}}], True),
    ],
    ids=["just added", "the turn's last reply", "a tool ends", "an attachment", "woken"],
)
def test_what_an_older_client_notes_at_once_is_read_with_the_next_request(tmp_path, before, after, read):
    assert shown(transcript(tmp_path, *before, NOTE, *after), {"m1": 0}) == ({"m1"} if read else frozenset())
