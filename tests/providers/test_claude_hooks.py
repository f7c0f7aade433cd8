"""Payloads of the client's hooks as events, and answers in its form. Payloads as seen on 2.1.328."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sm.core import events as ev
from sm.core.model.context import ToolWork, ToolWorkKind
from sm.core.ports.provider import HookReply
from sm.providers.claude.hooks import CONTEXT_HOOKS, MAKERS, decode, encode

C = "f2bdcf02-0000-4000-8000-000000000001"


def hook(name, **rest):
    return decode(json.dumps({"session_id": C, "hook_event_name": name, **rest}).encode(), 5.0, 42)


def event(name, **rest):
    return hook(name, **rest).event


TASK = {"id": "b1", "type": "shell", "status": "running", "description": "a build", "command": "make"}
EVENTS = {
    "SessionEnd": ({"reason": "clear"}, ev.ConversationEnded(at=5.0, conversation=C, reason="clear")),
    "UserPromptSubmit": ({"prompt": "hi"}, ev.PromptSubmitted(at=5.0, conversation=C, text="hi")),
    "PermissionRequest": ({"tool_name": "Bash"}, ev.PermissionAsked(at=5.0, conversation=C, tool="Bash")),
    "Stop": (
        {"stop_hook_active": True, "background_tasks": [TASK, {**TASK, "status": "completed"}]},
        ev.TurnEnded(at=5.0, conversation=C, background=(ev.BackgroundTask("b1", "shell", "a build"),), continued=True),
    ),
    "StopFailure": ({"error": "rate_limit"}, ev.TurnFailed(at=5.0, conversation=C, error="rate_limit")),
    "PreCompact": ({"trigger": "manual"}, ev.CompactionStarted(at=5.0, conversation=C, automatic=False)),
    "PostCompact": ({"trigger": "auto"}, ev.CompactionEnded(at=5.0, conversation=C)),
    "Notification": ({"message": "x", "notification_type": "idle_prompt"}, None),
    "SubagentStop": ({"agent_id": "a", "agent_type": ""}, None),
    "AnEventOfTomorrow": ({}, None),
}


@pytest.mark.parametrize(("name", "case"), EVENTS.items(), ids=EVENTS.keys())
def test_a_payload_becomes_an_event(name, case):
    rest, expected = case
    found = hook(name, **rest)
    assert (found.name, found.conversation, found.event, found.pid) == (name, C, expected, 42)


@pytest.mark.parametrize("source", ["startup", "resume", "clear", "compact", "fork"])
def test_a_start_tells_its_origin(source):
    started = event("SessionStart", source=source, transcript_path="/t.jsonl", model="m")
    expected = {"conversation": C, "transcript": "/t.jsonl", "origin": ev.Origin(source), "pid": 42, "model": "m"}
    assert started == ev.ConversationStarted(at=5.0, **expected)


@pytest.mark.parametrize("rest", [{"source": "teleport"}, {"source": None}, {}])
def test_a_start_for_a_reason_not_known_is_a_start_all_the_same(rest):  # case A28
    assert event("SessionStart", **rest).origin is ev.Origin.STARTUP


def test_a_prompt_arrives_byte_for_byte():  # case A23
    payload = rb'{"session_id":"s1","hook_event_name":"UserPromptSubmit","prompt":"a\nb ' + (
        r"""'q' \"d\" \\ 檔 $(x) `y`"}""".encode()
    )
    assert decode(payload, 0.0, None).event.text == "a\nb 'q' \"d\" \\ 檔 $(x) `y`"


@pytest.mark.parametrize("name", sorted(MAKERS.keys() - {"PermissionRequest"}))
def test_a_subagents_call_changes_nothing(name):
    assert event(name, agent_id="a1", agent_type="general-purpose", tool_name="Bash") is None


def test_a_subagents_question_is_a_dialog_all_the_same():
    assert event("PermissionRequest", agent_id="a1", tool_name="Bash").tool == "Bash"


def test_the_agent_of_the_whole_session_is_no_subagent():
    assert event("Stop", agent_type="reviewer") is not None


ANSWER = {"stdout": "hi", "stderr": "", "interrupted": False}
TOOLS = {
    "Bash": (ANSWER, ToolWork(ToolWorkKind.BASH, len(json.dumps(ANSWER)))),
    "Read": ({"type": "text", "file": {"content": "one\ntwo\nthree"}}, ToolWork(ToolWorkKind.READ, 3)),
    "Grep": ("a\nb", ToolWork(ToolWorkKind.GREP, 2)),
    "Glob": ("a", ToolWork(ToolWorkKind.GLOB, 1)),
    "Write": ({"x": "y" * 900}, ToolWork(ToolWorkKind.EDIT)),
    "Agent": ({}, ToolWork(ToolWorkKind.AGENT)),
    "WebFetch": ({}, ToolWork(ToolWorkKind.FETCH)),
    "mcp__some__tool": ({}, ToolWork(ToolWorkKind.OTHER)),
}


@pytest.mark.parametrize(("tool", "case"), TOOLS.items(), ids=TOOLS.keys())
def test_a_tools_answer_is_weighed_and_not_kept(tool, case):
    answer, work = case
    used = event("PostToolUse", tool_name=tool, tool_response=answer, tool_input={"command": "x"}, duration_ms=3)
    assert used == ev.ToolUsed(at=5.0, conversation=C, tool=tool, work=work)


def test_a_tool_that_failed_was_used():
    assert event("PostToolUseFailure", tool_name="Bash", error="no").failed


@pytest.mark.parametrize(("error", "told"), [("x" * 200, "x" * 80), ({"type": "odd"}, "unknown"), (None, "unknown")])
def test_a_failed_turn_tells_a_short_reason(error, told):
    assert event("StopFailure", error=error).error == told


@pytest.mark.parametrize(
    ("words", "refusal"),
    [("Prompt is too long", "Prompt is too long"), ("API Error: 529 Overloaded", ""), (None, "")],
)
def test_a_turn_that_failed_at_the_end_of_its_context_tells_that_its_client_will_not_continue(words, refusal):
    failed = event("StopFailure", error="invalid_request", last_assistant_message=words)
    assert (failed.error, failed.refusal) == ("invalid_request", refusal)


LIMIT_REACHED = "You've hit your session limit · resets 3:20am (Europe/Brussels)"


def test_a_limit_in_the_agents_own_work_is_none():  # A70
    own = f"The diff has `raise QuotaError(429, 'quota exceeded')`.\n{LIMIT_REACHED}"
    ended = event("Stop", last_assistant_message=own)
    assert type(ended) is ev.TurnEnded
    failed = event("StopFailure", error="server_error", last_assistant_message=own)
    assert (failed.limit, failed.refusal) == (None, "")
    met = event("StopFailure", error="rate_limit", last_assistant_message=LIMIT_REACHED)
    assert (met.limit.kind, met.limit.resets_at % 3_600) == ("five_hour", 20 * 60)


BAD = {
    "nothing": b"",
    "cut": b"{",
    "a list": b"[]",
    "null": b"null",
    "no text": b"\xff\xfe",
    "no event": b'{"session_id":"s"}',
    "an odd event": b'{"session_id":"s","hook_event_name":3}',
    "deep": b"[" * 90_000,
    "deep inside": b'{"session_id":"s","hook_event_name":"Stop","x":' + b"[" * 90_000 + b"]" * 90_000 + b"}",
}


@pytest.mark.parametrize("payload", BAD.values(), ids=BAD.keys())
def test_what_is_no_payload_is_refused(payload):
    with pytest.raises(ValueError, match="not a hook payload"):
        decode(payload, 0.0, None)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4),
    max_leaves=8,
)


@given(st.sampled_from(sorted(MAKERS)), st.dictionaries(st.text(), JSON, max_size=6))
def test_members_not_known_are_no_obstacle(name, rest):
    known = {"session_id": C, "hook_event_name": name}
    mine = {f"x_{key}": value for key, value in rest.items()}
    assert decode(json.dumps({**mine, **known}).encode(), 0.0, None).name == name


# --- odd members (C27) -------------------------------------------------------------------------------------------

WHOLE = {
    "SessionStart": {"source": "clear", "model": "claude-opus-5-5"},
    "UserPromptSubmit": {"prompt": "hello", "permission_mode": "default"},
    "PreToolUse": {"tool_name": "Bash", "tool_input": {"command": "make"}, "permission_mode": "default"},
    "PostToolUse": {"tool_name": "Write", "tool_input": {"file_path": "/p/.sm/handoff.md"}, "tool_response": {}},
    "PostToolUseFailure": {"tool_name": "Bash", "tool_input": {"command": "make"}, "error": "exit 2"},
    "PermissionRequest": {"tool_name": "Bash", "tool_input": {"command": "make"}},
    "Stop": {"stop_hook_active": False, "last_assistant_message": "done", "background_tasks": [TASK]},
    "StopFailure": {"error": "rate_limit"},
    "PreCompact": {"trigger": "auto"},
    "PostCompact": {"trigger": "auto"},
    "SessionEnd": {"reason": "clear"},
}
"""One payload of each kind, as the client sends it beside what every payload has."""
COMMON = {"session_id": C, "transcript_path": "/t.jsonl", "cwd": "/p", "permission_mode": "default"}
ODD = (
    b"null", b"true", b"-1", b"0.5", b"1e999", b"9" * 5000, b'"yes"', b'""', b"[]", b"{}", b'{"id":{"id":[]}}',
    rb'"\ud83d"', b'"\x01"', b"NaN", b"[[{}],null,3]", b"[" * 3000 + b"]" * 3000, b'[{"id":5,"status":null}]',
)  # fmt: skip


def test_the_known_odd_members_do_not_hide_the_event():
    """The small inputs of the fault that was reported."""
    assert event("SessionStart", source="clear", model={"id": "x"}).origin is ev.Origin.CLEAR
    assert event("Stop", stop_hook_active="yes").continued is False
    assert event("Stop", background_tasks=[{"id": 5, "status": None}]).background == (ev.BackgroundTask("", "", ""),)
    assert event("PostToolUse", tool_name=None, permission_mode=3).tool == ""
    assert event("UserPromptSubmit", prompt=[{"type": "text", "text": "hello"}]).text == ""


@given(st.sampled_from(sorted(WHOLE)), st.data())
def test_an_odd_member_counts_as_missing_and_the_event_arrives(name, data):
    members = COMMON | WHOLE[name]
    changed = data.draw(st.sets(st.sampled_from(sorted(members.keys() - {"session_id"})), min_size=1))
    values = {key: data.draw(st.sampled_from(ODD) | JSON.map(lambda value: json.dumps(value).encode()))
              for key in sorted(changed)}  # fmt: skip
    whole = {key: json.dumps(value).encode() for key, value in members.items()} | values
    text = b",".join(b'"%s":%s' % (key.encode(), value) for key, value in whole.items())
    found = decode(b'{"hook_event_name":"%s",%s}' % (name.encode(), text), 5.0, 42)
    assert (found.name, found.conversation, type(found.event)) == (name, C, type(event(name, **members)))


def test_what_is_sound_beside_an_odd_member_is_kept():
    found = event("Stop", background_tasks=[TASK, 3, {**TASK, "id": "b2", "description": []}], stop_hook_active=[])
    assert found.background == (ev.BackgroundTask("b1", "shell", "a build"), ev.BackgroundTask("b2", "shell", ""))
    started = event("SessionStart", source="clear", transcript_path="/t.jsonl", model={"id": "x"})
    assert (started.origin, started.transcript, started.model) == (ev.Origin.CLEAR, "/t.jsonl", None)


@pytest.mark.parametrize("session", [b"null", b"5", b'""', b"[]"])
def test_an_event_of_no_conversation_changes_nothing(session):
    found = decode(b'{"hook_event_name":"Stop","session_id":%s}' % session, 0.0, None)
    assert (found.name, found.event) == ("Stop", None)


def test_a_lone_half_of_an_emoji_does_not_lose_the_event():
    payload = rb'{"session_id":"s","hook_event_name":"PostToolUse","tool_name":"Bash","tool_response":"\ud83d"}'
    assert decode(payload, 0.0, None).event.tool == "Bash"


@pytest.mark.parametrize("name", sorted(CONTEXT_HOOKS))
def test_what_an_agent_is_to_read_goes_out_in_the_hooks_own_form(name):
    expected = {"hookSpecificOutput": {"hookEventName": name, "additionalContext": "read this"}}
    assert encode(name, HookReply("read this")) == expected


@pytest.mark.parametrize("name", [*MAKERS, "Notification"])
def test_nothing_to_say_is_an_empty_object(name):
    assert encode(name, HookReply()) == {}


@pytest.mark.parametrize("name", sorted(MAKERS.keys() - CONTEXT_HOOKS - {"PreToolUse"}))
def test_a_hook_that_reaches_no_agent_says_nothing(name):
    assert encode(name, HookReply("lost")) == {}


def test_what_a_person_is_shown_reaches_no_agent():
    assert encode("Stop", HookReply(shown="stays")) == {"systemMessage": "stays"}


def test_a_compaction_can_be_put_off():
    assert encode("PreCompact", HookReply(block="wait")) == {"decision": "block", "reason": "wait"}


def test_a_prompt_is_blocked_with_its_reason():
    assert encode("UserPromptSubmit", HookReply("x", "why")) == {"decision": "block", "reason": "why"}
    assert encode("Stop", HookReply(block="why")) == {}


def test_a_tool_is_denied_with_its_reason():
    denied = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "why"}
    assert encode("PreToolUse", HookReply(block="why")) == {"hookSpecificOutput": denied}
    assert encode("PreToolUse", HookReply("x")) == {}


def test_a_reply_stays_within_what_the_client_takes():
    assert len(encode("SessionStart", HookReply("x" * 20_000))["hookSpecificOutput"]["additionalContext"]) == 10_000


@pytest.mark.parametrize("name", ["UserPromptSubmit", "PostToolUse", "PostToolUseFailure"])
def test_the_permission_mode_comes_with_each_step_of_a_turn(name):
    assert event(name, permission_mode="plan", tool_name="Bash").mode == "plan"
    assert event(name, tool_name="Bash").mode == ""


@pytest.mark.parametrize(
    ("said", "kept"),
    [("First.\nLast.\n\n", "Last."), ("Only.", "Only."), ("x" * 1000, "x" * 300), ("", ""), (None, "")],
)
def test_a_stop_tells_the_last_line_the_agent_said(said, kept):
    assert event("Stop", last_assistant_message=said).text == kept


def test_a_stop_tells_the_run_that_the_agent_signals():
    assert event("Stop", last_assistant_message="Done.\nCONTEXT_HANDOFF: R-1").signal == "R-1"


@pytest.mark.parametrize(
    ("tool", "tool_input", "allowed"),
    [
        ("Write", {"file_path": "/p/.sm/handoff.md", "content": "x"}, True),
        ("Edit", {"file_path": "/p/src/a.py"}, False),
        ("Read", {"file_path": "/p/.sm/handoff.md"}, True),
        ("Read", {"file_path": "/p/README.md"}, False),
        ("Bash", {"command": "sm handoff .sm/handoff.md"}, True),
        ("Bash", {}, False),
        ("Skill", {"skill": "sm:handoff"}, True),
        ("Skill", {"skill": "review"}, False),
        ("Agent", {"prompt": "go on"}, False),
        ("TodoWrite", {}, False),
        ("mcp__files__write", {"file_path": "/p/.sm/handoff.md"}, False),
        ("", {}, False),
    ],
)
def test_only_tools_that_serve_the_handoff_pass_a_gate(tool, tool_input, allowed):
    assert event("PreToolUse", tool_name=tool, tool_input=tool_input).permitted is allowed


def test_a_call_is_judged_by_what_it_is_to_do():
    allowed = event("PreToolUse", tool_name="Bash", tool_input={"command": "sm handoff .sm/handoff.md"})
    assert allowed == ev.ToolAsked(at=5.0, conversation=C, tool="Bash", permitted=True)
    assert event("PreToolUse", tool_name="Bash", tool_input={"command": "make"}).permitted is False
    assert event("PreToolUse", tool_name="Agent", tool_input={}, agent_id="a1") is None


@pytest.mark.parametrize(
    ("tool", "path", "expected"),
    [
        ("Write", "/p/.sm/continue-prompt.md", "/p/.sm/continue-prompt.md"),
        ("Edit", "/p/.sm/handoff.md", "/p/.sm/handoff.md"),
        ("Write", "/p/notes.md", ""),
        ("Read", "/p/.sm/handoff.md", ""),
    ],
)
def test_a_document_that_is_written_is_noticed(tool, path, expected):
    tool_input = {"file_path": path, "content": "see .sm/handoff.md"}
    assert event("PostToolUse", tool_name=tool, tool_input=tool_input, tool_response={}).document == expected
