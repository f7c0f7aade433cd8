"""What the records of Claude's transcript say in words."""

import json

import pytest

from sm.core.ports.provider import Utterance
from sm.providers.claude.utterances import utterance


def said(content, kind="user", **members):
    found = utterance(json.dumps({"type": kind, "message": {"content": content}, **members}).encode())
    return None if found is None else found.text


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("a prompt", "a prompt"),
        ([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}], "one\ntwo"),
        ([{"type": "tool_use", "name": "Bash", "input": {"command": "ls", "timeout": 5}}], "Bash\nls"),
        ([{"type": "tool_result", "content": "output"}], "output"),
        ([{"type": "tool_result", "content": [{"type": "text", "text": "output"}]}], "output"),
        ([{"type": "thinking", "thinking": "hm", "signature": "c2ln"}], None),
        ([{"type": "image", "source": {"data": "aGVsbG8="}}], None),
        ("half \ud800 a pair", "half \ufffd a pair"),
        ([7, None, {"type": "text"}], None),
        ({}, None),
    ],
)
def test_what_a_message_says(content, text):
    assert said(content) == text


def test_notes_of_the_client_are_nobodys_words():
    assert said("caveat", isMeta=True) is None
    assert said("x", kind="attachment") is None
    assert utterance(b'{"type": "user"') is None
    assert utterance(b'{"type": "user", "message": "x"}') is None


@pytest.mark.parametrize(
    ("stamp", "at"), [("2026-11-28T08:18:40.386Z", 1795853920.386), ("never", None), (5, None), (None, None)]
)
def test_when_it_was_said(stamp, at):
    line = json.dumps({"type": "user", "message": {"content": "x"}, "timestamp": stamp}).encode()
    assert utterance(line) == Utterance("x", at)
