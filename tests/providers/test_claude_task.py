"""What the agent was last told to do, by its transcript."""

import json

import pytest

from sm.core.model.usage_limit import resume_prompt
from sm.providers.claude.limit_notices import CONTINUATIONS, WAIT_CANCELLED
from sm.providers.claude.state import answered, awaits_tool, wait_cancelled
from sm.providers.claude.task import newest_task


def user(content, **members):
    return {"type": "user", "message": {"role": "user", "content": content}, **members}


RESULT = user([{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}])
TASK = user("Build the parser.")
REPLY = {"type": "assistant", "message": {"content": [{"type": "text", "text": "Building."}]}}


def transcript(path, *records):
    file = path / "t.jsonl"
    file.write_text("".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records))
    return file


@pytest.mark.parametrize(
    "later",
    [
        [],
        [REPLY, *[RESULT] * 500],
        *([user(f"{words} Continue the task you were working on.")] for words in CONTINUATIONS),
        [user(resume_prompt("Build the parser."))],
        [user("<task-notification>done</task-notification>")],
        [user("a skill's text", isMeta=True)],
        [user("a summary", isCompactSummary=True)],
        [user("a subagent's task", isSidechain=True)],
        [user([{"type": "text", "text": "<system-reminder>Stop hook feedback</system-reminder>"}])],
        [{"type": "user"}],
    ],
)
def test_it_is_the_newest_prompt_that_says_what_to_do(tmp_path, later):
    assert newest_task(transcript(tmp_path, user("Hello."), TASK, *later)) == "Build the parser."


def test_a_transcript_without_a_prompt_has_none(tmp_path):
    assert newest_task(transcript(tmp_path, REPLY)) == ""
    assert newest_task(tmp_path / "gone.jsonl") == ""


def note(content):
    return {"type": "system", "subtype": "informational", "content": content}


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([note("Usage limit reached · continuing automatically at 4:58pm · esc to cancel")], False),
        ([note("Usage limit reached"), note(f"{WAIT_CANCELLED} to re-arm"), TASK], True),
        ([note(f"{WAIT_CANCELLED} to re-arm"), note("Usage limit reached")], False),
        ([user('they wrote "informational"'), TASK], False),
        ([], False),
    ],
)
def test_a_wait_that_the_user_has_ended_is_known_by_the_clients_newest_note(tmp_path, records, expected):
    assert wait_cancelled(transcript(tmp_path, *records)) is expected
    assert not wait_cancelled(tmp_path / "gone.jsonl")


def reply(model="claude-x", **members):
    return {"type": "assistant", "message": {"role": "assistant", "model": model, "content": []}, **members}


REFUSED = reply("<synthetic>", isApiErrorMessage=True)


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([reply(), REFUSED, note("Usage limit reached")], False),
        ([REFUSED, user("Your claude.ai usage limit has reset.", isMeta=True)], False),
        ([REFUSED, user("Your claude.ai usage limit has reset.", isMeta=True), reply()], True),
        ([REFUSED, reply(), REFUSED], False),
        ([REFUSED, reply("<synthetic>")], False),  # "No response requested", as of a client that is resumed
        ([REFUSED, reply(isSidechain=True)], False),
        ([], False),
    ],
)
def test_what_a_limit_has_refused_is_known_to_be_continued_by_the_models_reply(tmp_path, records, expected):
    assert answered(transcript(tmp_path, *records)) is expected
    assert not answered(tmp_path / "gone.jsonl")


def calls(*ids, message="m1", **members):
    content = [{"type": "tool_use", "id": known, "name": "Bash", "input": {}} for known in ids]
    return {"type": "assistant", "message": {"id": message, "role": "assistant", "content": content}, **members}


def results(*ids):
    content = [{"type": "tool_result", "tool_use_id": known, "content": "ok"} for known in ids]
    return {"type": "user", "message": {"role": "user", "content": content}}


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([TASK, calls("a")], True),
        ([TASK, calls("a"), results("a")], False),
        ([TASK, calls("a"), calls("b"), results("a")], True),  # one reply in two records
        ([TASK, calls("a"), calls("b"), results("b"), results("a")], False),
        ([calls("a"), calls("b", message="m2"), results("b")], False),  # a call that an older client died in
        ([calls("a"), results("a"), calls("b", isSidechain=True)], False),
        ([TASK, REPLY], False),
        ([user('they wrote "tool_use"')], False),
        ([], False),
    ],
)
def test_a_command_runs_while_a_call_of_the_newest_reply_has_no_result(tmp_path, records, expected):
    assert awaits_tool(transcript(tmp_path, *records)) is expected
    assert not awaits_tool(tmp_path / "gone.jsonl")
