"""The permission mode of a client that starts: its argument, or what its conversation has noted."""

import json

import pytest

from sm.providers.claude.permission_mode import at_start

NOTED = [
    {"type": "permission-mode", "permissionMode": "acceptEdits", "sessionId": "c"},
    {"type": "user", "permissionMode": "default", "message": {"content": 'say "permission-mode"'}},
    {"type": "mode", "mode": "normal", "sessionId": "c"},
]


def transcript(tmp_path, *records):
    path = tmp_path / "t.jsonl"
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return str(path)


@pytest.mark.parametrize(
    ("arguments", "mode"),
    [
        ((), "acceptEdits"),
        (("--model", "x"), "acceptEdits"),
        (("--permission-mode", "plan"), "plan"),
        (("--permission-mode=plan", "go"), "plan"),
        (("--permission-mode", "plan", "--dangerously-skip-permissions"), "bypassPermissions"),
        (("--allow-dangerously-skip-permissions",), "acceptEdits"),
    ],
)
def test_an_argument_outranks_the_conversation(tmp_path, arguments, mode):
    assert at_start(arguments, transcript(tmp_path, *NOTED)) == mode


def test_the_newest_mode_of_a_conversation_counts_and_without_one_nothing_is_said(tmp_path):
    newer = {**NOTED[0], "permissionMode": "plan"}
    assert at_start((), transcript(tmp_path, *NOTED, newer, "permission-mode")) == "plan"
    assert at_start((), transcript(tmp_path, *NOTED[1:])) == ""
    assert at_start((), str(tmp_path / "none")) == ""
    assert at_start((), None) == ""
