"""Payloads of Codex's hooks as events, and answers in its form. Payloads as seen on Codex 0.171.0."""

import json

import pytest

from sm.core import events as ev
from sm.core.model.ask import AskAnswer, AskKind, AskRequest, Decision
from sm.core.model.context import ToolWork, ToolWorkKind
from sm.core.ports.provider import HookReply
from sm.providers.codex.hooks import CONTEXT_HOOKS, MAKERS, REPLY_BYTES, answered, decode, encode, parse

C = "01a22a2f-62cb-72e2-a26c-2bb34f471d3f"
CHILD = "01a22a33-5ba7-7aa1-82b2-8782c8e17f08"
BASE = {"session_id": C, "transcript_path": "/r.jsonl", "cwd": "/w", "model": "m", "permission_mode": "default"}
PATCH = "*** Begin Patch\n*** Add File: {}\n+hi\n*** End Patch\n"


def payload(name, **rest):
    return json.dumps({**BASE, "hook_event_name": name, **rest}).encode()


def hook(name, **rest):
    return decode(payload(name, **rest), 5.0, 42, holds=True)


def event(name, **rest):
    return hook(name, **rest).event


EVENTS = {
    "UserPromptSubmit": ({"prompt": "hi"}, ev.PromptSubmitted(at=5.0, conversation=C, text="hi", mode="default")),
    "Stop": (
        {"stop_hook_active": True, "last_assistant_message": "done\nall of it\n"},
        ev.TurnEnded(at=5.0, conversation=C, continued=True, text="all of it"),
    ),
    "PermissionRequest": (
        {"tool_name": "Bash", "tool_input": {"command": "ls"}},
        ev.PermissionAsked(at=5.0, conversation=C, tool="Bash"),
    ),
    "PreCompact": ({"trigger": "manual"}, ev.CompactionStarted(at=5.0, conversation=C, automatic=False)),
    "PostCompact": ({"trigger": "auto"}, ev.CompactionEnded(at=5.0, conversation=C)),
    "SessionEnd": ({"reason": "other"}, ev.ConversationEnded(at=5.0, conversation=C, reason="other")),
    "Interrupt": ({"turn_id": "t"}, None),
    "SubagentStart": ({"agent_id": CHILD, "agent_type": "default"}, None),
    "AnEventOfTomorrow": ({}, None),
}


@pytest.mark.parametrize(("name", "case"), EVENTS.items(), ids=EVENTS.keys())
def test_a_payload_becomes_an_event(name, case):
    rest, expected = case
    found = hook(name, **rest)
    assert (found.name, found.conversation, found.event, found.pid) == (name, C, expected, 42)


@pytest.mark.parametrize("source", ["startup", "resume", "clear", "compact", "fork"])
def test_a_start_tells_its_origin(source):
    expected = {"conversation": C, "transcript": "/r.jsonl", "origin": ev.Origin(source), "pid": 42, "model": "m"}
    assert event("SessionStart", source=source) == ev.ConversationStarted(at=5.0, **expected)


@pytest.mark.parametrize("rest", [{"source": "teleport"}, {"source": None}, {}])
def test_a_start_for_a_reason_not_known_is_a_start_all_the_same(rest):
    assert event("SessionStart", **rest).origin is ev.Origin.STARTUP


@pytest.mark.parametrize("name", sorted(set(MAKERS) - {"PermissionRequest"}))
def test_what_a_subagent_does_changes_nothing(name):
    assert event(name, agent_id=CHILD, tool_name="Bash") is None


def test_the_dialog_of_a_subagent_is_one_of_the_session_and_its_rollout_is_not():
    found = hook("PermissionRequest", agent_id=CHILD, tool_name="Bash", tool_input={"command": "ls"})
    assert isinstance(found.event, ev.PermissionAsked)
    assert found.ask.agent == CHILD
    assert found.transcript is None


# --- tools -----------------------------------------------------------------------------------------------------------


def test_a_command_is_weighed_by_its_output():
    used = event("PostToolUse", tool_name="Bash", tool_input={"command": "seq 2"}, tool_response="1\n2\n")
    assert used.work == ToolWork(ToolWorkKind.BASH, len(r'"1\n2\n"'))
    assert (used.tool, used.mode, used.written, used.document, used.failed) == ("Bash", "default", "", "", False)


def patched(patch, response="Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess."):
    return event("PostToolUse", tool_name="apply_patch", tool_input={"command": patch}, tool_response=response)


def test_a_patch_names_the_file_that_it_has_written():
    used = patched(PATCH.format("src/a b.py"))
    assert (used.written, used.document, used.work) == ("/w/src/a b.py", "", ToolWork(ToolWorkKind.EDIT))


def test_of_several_files_the_document_counts():
    used = patched(
        "*** Begin Patch\n*** Update File: a.py\n@@\n-1\n+2\n*** Add File: .sm/handoff.md\n+x\n*** End Patch"
    )
    assert (used.written, used.document) == ("/w/.sm/handoff.md", "/w/.sm/handoff.md")


def test_a_patch_that_did_not_apply_has_failed():
    assert patched(PATCH.format("a"), "Exit code: 1\nOutput:\nno such file").failed
    assert not patched(PATCH.format("a")).failed


@pytest.mark.parametrize(
    ("tool", "given", "permitted"),
    [
        ("Bash", {"command": "sm handoff .sm/handoff.md"}, True),
        ("Bash", {"command": "make"}, False),
        ("apply_patch", {"command": PATCH.format(".sm/handoff.md")}, True),
        ("apply_patch", {"command": PATCH.format(".sm/handoff.md") + PATCH.format("a.py")}, False),
        ("apply_patch", {"command": "*** Begin Patch\n*** End Patch"}, False),
        ("mcp__sm__handoff", {"document": "x"}, True),
        ("mcp__other__handoff", {}, False),
        ("update_plan", {}, False),
    ],
)
def test_the_gate_lets_through_what_serves_the_handoff(tool, given, permitted):
    asked = event("PreToolUse", tool_name=tool, tool_input=given)
    assert asked == ev.ToolAsked(at=5.0, conversation=C, tool=tool, permitted=permitted)


# --- what is asked ---------------------------------------------------------------------------------------------------


def test_a_permission_carries_what_the_tool_was_given():
    found = hook("PermissionRequest", tool_name="Bash", tool_input={"command": "rm x", "description": "need it"})
    assert found.ask == AskRequest(
        AskKind.PERMISSION, "Bash", '{"command":"rm x","description":"need it"}', hidden=True
    )


def test_where_nothing_holds_it_the_dialog_opens_at_once():
    given = payload("PermissionRequest", tool_name="Bash", tool_input={"command": "ls"})
    found = decode(given, 5.0, 42)
    assert isinstance(found.event, ev.PermissionAsked)
    assert found.ask is None


@pytest.mark.parametrize("rest", [{"tool_name": "Bash", "tool_input": 3}, {"tool_input": {"command": "ls"}}])
def test_a_request_that_cannot_be_read_is_answered_in_the_terminal_alone(rest):
    found = hook("PermissionRequest", **rest)
    assert isinstance(found.event, ev.PermissionAsked)
    assert found.ask is None


@pytest.mark.parametrize(
    ("answer", "decision"),
    [
        (AskAnswer(Decision.ALLOW), {"behavior": "allow"}),
        (AskAnswer(Decision.ALLOW, always=True), {"behavior": "allow"}),
        (AskAnswer(Decision.DENY, "not now"), {"behavior": "deny", "message": "not now"}),
        (AskAnswer(Decision.DENY), {"behavior": "deny", "message": "The user does not want this."}),
    ],
)
def test_an_answer_is_a_decision(answer, decision):
    expected = {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}}
    assert answered(answer) == expected


def test_the_command_of_a_call_is_the_same_before_and_after_it():
    asked = parse(payload("PermissionRequest", tool_name="apply_patch", tool_input={"command": PATCH.rstrip()}))
    used = parse(payload("PostToolUse", tool_name="apply_patch", tool_input={"command": PATCH}))
    assert asked.command == used.command


# --- replies ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(CONTEXT_HOOKS))
def test_context_goes_with_the_hooks_that_take_it(name):
    reply = encode(name, HookReply(context="c", shown="s"))
    assert reply == {"systemMessage": "s", "hookSpecificOutput": {"hookEventName": name, "additionalContext": "c"}}


def test_what_the_end_of_a_turn_is_told_continues_it():
    assert encode("Stop", HookReply(context="c")) == {"decision": "block", "reason": "c"}


@pytest.mark.parametrize("name", ["PreCompact", "PostCompact", "PermissionRequest", "PreToolUse", "SessionEnd"])
def test_no_other_hook_takes_context(name):
    assert encode(name, HookReply(context="c")) == {}


def test_a_prompt_and_a_call_can_be_refused():
    assert encode("UserPromptSubmit", HookReply(block="no")) == {"decision": "block", "reason": "no"}
    denied = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "no"}
    assert encode("PreToolUse", HookReply(block="no")) == {"hookSpecificOutput": denied}


@pytest.mark.parametrize("name", ["PreCompact", "PostToolUse", "Stop", "SessionStart"])
def test_nothing_else_is_blocked(name):
    assert encode(name, HookReply(block="no")) == {}


@pytest.mark.parametrize("text", ["x" * (REPLY_BYTES + 1), "\N{EURO SIGN}" * 5_000])
def test_of_a_long_context_goes_what_the_agent_reads_whole(text):
    given = encode("PostToolUse", HookReply(context=text))["hookSpecificOutput"]["additionalContext"]
    assert REPLY_BYTES - 3 < len(given.encode()) <= REPLY_BYTES
    assert text.startswith(given)


# --- odd payloads ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("junk", [b"", b"[]", b"null", b"{", b"\xff"])
def test_what_is_no_payload_is_refused(junk):
    with pytest.raises(ValueError, match="not a hook payload"):
        decode(junk, 5.0, None)


def test_a_payload_without_an_event_is_refused():
    with pytest.raises(ValueError, match="hook_event_name is missing"):
        decode(b'{"session_id": "x"}', 5.0, None)


def test_an_odd_member_counts_as_missing():
    told = event("UserPromptSubmit", prompt=3, permission_mode=["x"])
    assert told == ev.PromptSubmitted(at=5.0, conversation=C, text="")
    assert event("Stop", last_assistant_message={"a": 1}) == ev.TurnEnded(at=5.0, conversation=C)


def test_an_event_without_its_conversation_belongs_to_nothing():
    assert decode(b'{"hook_event_name": "Stop"}', 5.0, 1).event is None
