"""What a record of a transcript is to a reader, of both clients."""

import json

import pytest

from sm.core.ports.provider import PartKind
from sm.providers.claude.transcript_parts import parts as of_claude
from sm.providers.codex.transcript_parts import parts as of_codex


def claude(kind, content, **members):
    record = {"type": kind, "message": {"content": content}, "timestamp": "2026-02-02T06:45:30Z", **members}
    return [(part.kind.value, part.tool, part.text) for part in of_claude(json.dumps(record).encode())]


def test_words_of_the_user_and_the_agent():
    assert claude("user", "do it") == [("user", "", "do it")]
    assert claude("assistant", [{"type": "text", "text": "done"}]) == [("agent", "", "done")]


def test_a_call_has_its_name_and_what_it_was_given_and_a_result_belongs_to_it():
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "make", "timeout": 5}}
    assert claude("assistant", [call]) == [("call", "Bash", "command: make\ntimeout: 5")]
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "no"}], "is_error": True}
    [part] = of_claude(json.dumps({"type": "user", "message": {"content": [result]}}).encode())
    assert (part.kind, part.call, part.text, part.failed) == (PartKind.RESULT, "t1", "no", True)


@pytest.mark.parametrize(
    ("content", "members"),
    [
        ("recap", {"isCompactSummary": True}),
        ("caveat", {"isMeta": True}),
        ("<system-reminder>x</system-reminder>", {}),
        ("<local-command-stdout>x</local-command-stdout>", {}),
    ],
)
def test_what_the_client_adds_is_not_the_users(content, members):
    assert [kind for kind, _, _ in claude("user", content, **members)] == ["client"]


def test_what_says_nothing_has_no_part():
    assert claude("assistant", [{"type": "thinking", "thinking": "hm"}]) == []
    assert claude("assistant", [{"type": "text", "text": "x"}], isSidechain=True) == []
    assert of_claude(b'{"type": "user", "message": "x"}') == ()
    assert of_claude(b'{"type": "user"') == ()


def test_parts_of_a_rollout():
    call = {"type": "function_call", "name": "shell", "arguments": '{"command": "make"}', "call_id": "c1"}
    lines = [
        {
            "type": "event_msg",
            "payload": {"type": "item_completed", "item": {"type": kind, "content": [{"text": text}]}},
        }
        for kind, text in (("UserMessage", "do it"), ("AgentMessage", "done"))
    ]
    lines += [{"type": "response_item", "payload": call}]
    lines += [{"type": "response_item", "payload": {"type": "function_call_output", "output": "ok", "call_id": "c1"}}]
    found = [part for line in lines for part in of_codex(json.dumps(line).encode())]
    assert [(part.kind.value, part.text, part.call) for part in found] == [
        ("user", "do it", ""),
        ("agent", "done", ""),
        ("call", "command: make", "c1"),
        ("result", "ok", "c1"),
    ]
