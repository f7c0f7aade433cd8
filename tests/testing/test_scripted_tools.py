"""The scripted client's tools by themselves: what they do, return and ask for."""

import os
from pathlib import Path

import pytest

from sm.testing.agent.loop import Cancellation
from sm.testing.agent.tools import Permissions, run


@pytest.fixture
def call(tmp_path):
    return lambda name, **given: run(name, given, str(tmp_path), {"PATH": os.defpath}, Cancellation())


def test_a_file_is_written_read_and_edited(call, tmp_path):
    created = call("Write", file_path="d/x.txt", content="one\none")
    assert created.text == f"File created successfully at: {tmp_path}/d/x.txt"
    again = call("Write", file_path="d/x.txt", content="two\ntwo")
    assert (again.text, again.response["originalFile"]) == (
        f"File updated successfully at: {tmp_path}/d/x.txt",
        "one\none",
    )
    assert call("Read", file_path="d/x.txt").text == "1\ttwo\n2\ttwo"
    edited = call("Edit", file_path="d/x.txt", old_string="two", new_string="three")
    assert (edited.failed, (tmp_path / "d/x.txt").read_text()) == (False, "three\ntwo")
    call("Edit", file_path="d/x.txt", old_string="t", new_string="T", replace_all=True)
    assert (tmp_path / "d/x.txt").read_text() == "Three\nTwo"


def test_what_cannot_be_done_to_a_file_is_said(call, tmp_path):
    missing = call("Read", file_path="x.txt")
    expected = f"File does not exist. Note: your current working directory is {tmp_path}."
    assert (missing.failed, missing.text) == (True, expected)
    (tmp_path / "x.txt").write_text("one")
    other = call("Edit", file_path="x.txt", old_string="two", new_string="three")
    assert (other.failed, other.text) == (True, "String to replace not found in file.\nString: two")
    assert (tmp_path / "x.txt").read_text() == "one"


def test_a_command_that_fails_returns_its_code_and_both_outputs(call):
    failed = call("Bash", command="echo out; echo err >&2; exit 3")
    assert (failed.failed, failed.text) == (True, "Exit code 3\nout\nerr")
    assert call("Bash", command="true").text == "(Bash completed with no output)"


def test_a_tool_without_an_effect_is_done(call):
    assert call("TodoWrite", todos=[]).text == "ok"


@pytest.mark.parametrize(
    ("rules", "name", "given", "asks"),
    [
        ((), "Read", {"file_path": "x"}, False),
        ((), "Read", {"file_path": "/elsewhere/x"}, True),
        (("Read(//elsewhere/*)",), "Read", {"file_path": "/elsewhere/x"}, False),
        (("Read(~/x)",), "Read", {"file_path": str(Path.home() / "x")}, False),
        (("Read(~/x)",), "Read", {"file_path": str(Path.home() / "y")}, True),
        (("Edit(src/*)",), "Write", {"file_path": "src/x"}, False),
        (("Edit(src/*)",), "Write", {"file_path": "docs/x"}, True),
        (("Write",), "Write", {"file_path": "x"}, False),
        (("not a rule",), "Write", {"file_path": "x"}, True),
        ((), "Bash", {"command": "ls | wc -l"}, False),
        (("Bash(make:*)",), "Bash", {"command": "make test && ls"}, False),
        (("Bash(make:*)",), "Bash", {"command": "makes"}, True),
        (("Bash(git *)",), "Bash", {"command": "git log"}, False),
        ((), "TodoWrite", {}, False),
    ],
)
def test_a_call_asks_unless_a_rule_covers_it(rules, name, given, asks):
    assert Permissions(allow=rules).asks(name, given, "/p") is asks


@pytest.mark.parametrize(("mode", "asks"), [("default", True), ("acceptEdits", False), ("bypassPermissions", False)])
def test_a_mode_that_accepts_edits_does_not_ask_for_one(mode, asks):
    assert Permissions(mode=mode).asks("Edit", {"file_path": "x"}, "/p") is asks


def test_a_rule_can_deny():
    assert Permissions(deny=("Bash(rm:*)",)).denied("Bash", {"command": "rm -r x"}, "/p")
    assert not Permissions(deny=("Bash(rm:*)",)).denied("Bash", {"command": "ls"}, "/p")
