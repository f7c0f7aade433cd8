"""What a dialog of the client asks, and the answer in the client's own form."""

import json

import pytest

from sm.core.model.ask import AskAnswer, AskKind, AskOption, Decision, Question
from sm.providers.claude.asks import answered, details, request_of
from sm.providers.claude.hooks import decode

COMMAND = {"command": "make"}
QUESTION = {
    "question": "Which colour?",
    "header": "Colour",
    "options": [{"label": "Red", "description": "warm"}, {"label": "Blue"}],
    "multiSelect": True,
}
RULE = {
    "type": "addRules",
    "rules": [{"toolName": "Bash", "ruleContent": "make:*"}, {"toolName": "Read"}],
    "behavior": "allow",
    "destination": "localSettings",
}


def request(tool, given, suggestions=()):
    return request_of(tool, json.dumps(given).encode(), json.dumps(list(suggestions)).encode(), "")


def decision(request, answer):
    reply = answered(request, answer)["hookSpecificOutput"]
    assert reply["hookEventName"] == "PermissionRequest"
    return reply["decision"]


def test_a_hook_carries_what_is_asked_with_the_subagent_that_asks():
    members = {"session_id": "c", "tool_name": "Bash", "tool_input": COMMAND, "permission_suggestions": [RULE]}
    payload = {"hook_event_name": "PermissionRequest", "agent_id": "sub1", **members}
    ask = decode(json.dumps(payload).encode(), 5.0, None).ask
    assert (ask.kind, ask.tool, json.loads(ask.input), ask.agent) == (AskKind.PERMISSION, "Bash", COMMAND, "sub1")
    assert json.loads(ask.suggestions) == [RULE]
    stop = {**payload, "hook_event_name": "Stop"}
    assert decode(json.dumps(stop).encode(), 5.0, None).ask is None


@pytest.mark.parametrize(
    "given", [b"", b"[]", b'"x"', b"7", b'{"a":"\\ud800"}', b'{"a":' + b"[" * 2000 + b"]" * 2000 + b"}"]
)
def test_what_cannot_be_read_whole_is_answered_in_the_terminal_alone(given):
    assert request_of("Bash", given, b"[]", "") is None


def test_a_permission_is_allowed_denied_and_allowed_for_always():
    asked = request("Bash", COMMAND, [RULE])
    assert decision(asked, AskAnswer(Decision.ALLOW)) == {"behavior": "allow"}
    assert decision(asked, AskAnswer(Decision.ALLOW, always=True)) == {
        "behavior": "allow",
        "updatedPermissions": [RULE],
    }
    assert decision(asked, AskAnswer(Decision.DENY, "use make")) == {"behavior": "deny", "message": "use make"}
    assert decision(asked, AskAnswer(Decision.DENY))["message"]


def test_a_question_is_answered_with_its_input_and_the_answers():
    asked = request("AskUserQuestion", {"questions": [QUESTION], "metadata": {"x": 1}})
    assert asked.kind is AskKind.QUESTION
    options = (AskOption("Red", "warm"), AskOption("Blue"))
    assert details(asked).questions == (Question("Which colour?", options, several=True),)
    given = decision(asked, AskAnswer(Decision.ANSWER, answers=("Red, Blue",)))["updatedInput"]
    assert given == {"questions": [QUESTION], "metadata": {"x": 1}, "answers": {"Which colour?": "Red, Blue"}}


def test_a_plan_is_approved_with_its_input_and_sent_back_with_a_reason():
    asked = request("ExitPlanMode", {"plan": "# Plan"})
    assert asked.kind is AskKind.PLAN
    assert decision(asked, AskAnswer(Decision.ALLOW)) == {"behavior": "allow", "updatedInput": {"plan": "# Plan"}}
    assert decision(asked, AskAnswer(Decision.DENY, "shorter")) == {"behavior": "deny", "message": "shorter"}


@pytest.mark.parametrize(
    ("suggestion", "words"),
    [
        (RULE, "uses Bash(make:*), Read without asking, for good, in this project"),
        (
            {"type": "setMode", "mode": "acceptEdits", "destination": "session"},
            "edits files without asking, in this session",
        ),
        (
            {"type": "addDirectories", "directories": ["/a", "/b"], "destination": "session"},
            "works in /a, /b too, in this session",
        ),
        ({"type": "new"}, '{"type":"new"}'),
        (
            {"type": "addRules", "rules": [7], "behavior": "allow", "destination": "elsewhere"},
            "uses 7 without asking, elsewhere",
        ),
    ],
)
def test_a_lasting_permission_is_said_in_words(suggestion, words):
    assert details(request("Bash", COMMAND, [suggestion])).always == (words,)
