"""The scripted agent in a real tmux pane; where it can, the same check runs on the real client too."""

import json
import os
import shutil
import signal
import stat
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest
from agent_rig import CLAUDE, HookServer, Rig, until

from sm.testing.agent.transcript import project_name
from sm.testing.scenario import Call, Fail, Say, Together, TooLong, Turn, scenario

ON_THE_CLIENT = (
    pytest.mark.e2e,
    pytest.mark.skipif(not CLAUDE.exists(), reason="the pinned client is not installed"),
)
REAL = pytest.param("claude", marks=[*ON_THE_CLIENT, pytest.mark.soak])
OFTEN = pytest.mark.parametrize("client", ["scripted", pytest.param("claude", marks=ON_THE_CLIENT)], indirect=True)
"""What everything else rests on: on both clients each time."""
pytestmark = pytest.mark.timeout(90)

HELLO = Turn("hello", [Say("Hi there.")])
RUN = Turn("run it", [Call("Bash", command="touch ran.txt"), Say("It ran.")])
SLOW = Turn("slow", [Call("Bash", command="sleep 1; touch slow.txt"), Say("Slow done.")])
LONG = Turn("long", [Say("Long done.", delay=1.5)])
ALLOW = ("Bash(touch:*)", "Bash(sleep:*)", "Write")


def rig_of(kind):
    home = Path(tempfile.mkdtemp(prefix="ag-"))  # short: a socket's path holds 107 characters
    rig = Rig(kind, home, HookServer())
    try:
        yield rig
    finally:
        rig.close()
        for _ in range(20):  # a client that was just killed may still have a file open
            with suppress(OSError):
                shutil.rmtree(home)
                break
            time.sleep(0.05)


@pytest.fixture(params=["scripted", REAL])
def client(request):
    """Either client: what is checked here holds for both."""
    yield from rig_of(request.param)


@pytest.fixture
def agent():
    """The scripted client alone."""
    yield from rig_of("scripted")


# Both clients.


def test_a_prompt_is_answered_and_the_turn_ends_with_stop(client):
    client.start(scenario(HELLO))
    client.submit("hello")
    stop = client.event("Stop")
    assert client.names()[:2] == ["UserPromptSubmit", "Stop"]
    assert client.events("UserPromptSubmit")[0]["prompt"] == "hello"
    assert stop["session_id"] == client.session
    assert (stop["last_assistant_message"], stop["background_tasks"], stop["stop_hook_active"]) == (
        "Hi there.",
        [],
        False,
    )
    assert stop["cwd"] == str(client.project)
    client.shows("Hi there.")
    assert client.request().user_text == "hello"


def test_session_start_tells_its_source_and_its_transcript(client):
    client.start(scenario())
    (start,) = client.started()
    assert (start["source"], start["session_id"]) == ("startup", client.session)
    assert Path(start["transcript_path"]).name == f"{client.session}.jsonl"
    assert Path(start["transcript_path"]).parent.parent == client.config / "projects"
    assert "prompt_id" not in start


def test_http_headers_get_only_the_variables_that_are_allowed(client):
    client.start(scenario(HELLO))
    client.submit("hello")
    client.event("Stop")
    headers = {name.lower(): value for name, value in client.hooks.headers[-1].items()}
    assert (headers["authorization"], headers["x-other"]) == ("Bearer the-token", "<>")


def test_the_state_file_is_busy_in_a_turn_and_idle_after_it(client):
    client.start(scenario(LONG))
    state = client.state()
    assert (state["pid"], state["sessionId"], state["cwd"]) == (client.pid(), client.session, str(client.project))
    client.submit("long")
    until(lambda: client.status() == "busy")
    client.event("Stop")
    client.idle()
    assert client.state()["updatedAt"] > state["updatedAt"]


@OFTEN
def test_clear_ends_one_conversation_and_starts_another_without_stop(client):
    client.start(scenario(HELLO))
    client.submit("hello")
    client.event("Stop")
    client.idle()
    client.submit("/clear")
    end = client.event("SessionEnd")
    start = until(lambda: len(client.started()) == 2 and client.started()[1])
    assert (end["reason"], end["session_id"]) == ("clear", client.session)
    assert start["source"] == "clear"
    assert start["session_id"] != client.session
    until(lambda: client.state()["sessionId"] == start["session_id"])
    assert client.names().count("Stop") == 1
    until(lambda: client.box() == "")
    until(lambda: "Hi there." not in client.screen())


def test_the_first_request_after_clear_holds_nothing_of_before(client):
    client.start(scenario(HELLO))
    client.submit("hello")
    client.event("Stop")
    client.idle()
    client.submit("/clear")
    until(lambda: len(client.started()) == 2)
    client.submit("hello")
    request = client.request(2)
    assert request.user_text == "hello"
    assert "Hi there." not in request.all_text
    assert "<command-name>/clear" in request.all_text
    assert request.session == client.started()[1]["session_id"]


def test_a_draft_is_stashed_and_comes_back_after_the_next_prompt(client):
    client.start(scenario(HELLO))
    client.type("a draft of mine")
    until(lambda: client.box() == "a draft of mine")
    client.press("C-s")
    until(lambda: client.box() == "")
    client.shows("draft stashed")
    client.submit("hello")
    client.event("Stop")
    until(lambda: client.box() == "a draft of mine")
    assert "draft stashed" not in client.screen()
    assert client.request().user_text == "hello"


def test_a_stashed_draft_comes_back_after_clear(client):
    client.start(scenario(HELLO))
    client.type("a draft of mine")
    until(lambda: client.box() == "a draft of mine")
    client.press("C-s")
    until(lambda: client.box() == "")
    client.submit("/clear")
    until(lambda: len(client.started()) == 2)
    until(lambda: client.box() == "a draft of mine")


def test_ctrl_s_on_an_empty_box_gives_the_draft_back(client):
    client.start(scenario())
    client.type("a draft")
    until(lambda: client.box() == "a draft")
    client.press("C-s")
    until(lambda: client.box() == "")
    client.press("C-s")
    until(lambda: client.box() == "a draft")


def test_a_second_stash_destroys_the_first(client):
    client.start(scenario())
    for text in ("first", "second"):
        client.type(text)
        until(lambda text=text: client.box() == text)
        client.press("C-s")
        until(lambda: client.box() == "")
    client.press("C-s")
    until(lambda: client.box() == "second")
    client.press("-N", "6", "BSpace")
    until(lambda: client.box() == "")
    client.press("C-s")
    client.type("x")
    until(lambda: client.box() == "x")


def test_a_blocked_prompt_goes_back_into_the_box_and_not_to_the_model(client):
    client.hooks.answers["UserPromptSubmit"] = [{"decision": "block", "reason": "not ours"}]
    client.start(scenario(HELLO))
    client.submit("hello")
    client.event("UserPromptSubmit")
    client.shows("operation blocked by hook")
    until(lambda: client.box() == "hello")
    client.idle()
    assert client.requests() == []
    assert client.names() == ["UserPromptSubmit"]


@OFTEN
def test_a_permission_dialog_waits_and_enter_allows(client):
    client.start(scenario(RUN))
    client.submit("run it")
    asked = client.event("PermissionRequest")
    assert (asked["tool_name"], asked["tool_input"]) == ("Bash", {"command": "touch ran.txt"})
    until(lambda: client.state().get("waitingFor") == "permission prompt")
    assert client.status() == "waiting"
    client.shows("Do you want to proceed?")
    assert client.box() is None
    assert not (client.project / "ran.txt").exists()
    client.confirm("Do you want to proceed?")
    client.event("Stop")
    client.idle()
    assert (client.project / "ran.txt").exists()
    assert "waitingFor" not in client.state()


def test_text_and_enter_in_a_permission_dialog_allow_and_are_lost(client):
    client.start(scenario(RUN))
    client.submit("run it")
    client.shows("Do you want to proceed?")
    client.paste("a wake prompt")
    client.confirm("Do you want to proceed?")
    client.event("Stop")
    assert (client.project / "ran.txt").exists()
    assert len(client.events("UserPromptSubmit")) == 1


def test_escape_in_a_permission_dialog_refuses_and_no_hook_comes(client):
    client.start(scenario(RUN))
    client.submit("run it")
    client.shows("Do you want to proceed?")
    client.press("Escape")
    client.idle()
    until(lambda: client.box() == "")
    assert not (client.project / "ran.txt").exists()
    assert client.names() == ["UserPromptSubmit", "PermissionRequest"]


def test_escape_interrupts_a_turn_without_any_hook(client):
    client.start(scenario(Turn("wait", [Call("Bash", command="sleep 20"), Say("no")])), allow=ALLOW)
    client.submit("wait")
    client.request()
    until(lambda: client.status() == "busy" and "sleep 20" in client.screen())
    client.press("Escape")
    client.shows("Interrupted")
    client.idle()
    assert client.names() == ["UserPromptSubmit"]


def test_the_transcript_is_private_and_has_one_record_per_block(client):
    both = Together(Call("Bash", command="touch one"), Call("Bash", command="touch two")).but(say="Two things.")
    client.start(scenario(Turn("go", [both, Say("Both done.")]), context=40_000), allow=ALLOW)
    client.submit("go")
    path = Path(client.event("Stop")["transcript_path"])
    spoken = until(lambda: len(found := [r for r in client.records() if r["type"] == "assistant"]) == 4 and found)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert {record["message"]["id"] for record in spoken[:3]} != {spoken[3]["message"]["id"]}
    assert len({record["message"]["id"] for record in spoken[:3]}) == 1
    assert len({json.dumps(record["message"]["usage"], sort_keys=True) for record in spoken[:3]}) == 1
    kinds = [[block["type"] for block in record["message"]["content"]] for record in spoken]
    assert kinds == [["text"], ["tool_use"], ["tool_use"], ["text"]]
    usage = spoken[0]["message"]["usage"]
    assert usage["input_tokens"] + usage["cache_creation_input_tokens"] + usage["cache_read_input_tokens"] == 40_000


def test_records_of_prompts_and_results_have_the_clients_shape(client):
    client.start(scenario(RUN), allow=ALLOW)
    client.submit("run it")
    client.event("Stop")
    said, result = until(lambda: len(found := [r for r in client.records() if r["type"] == "user"]) == 2 and found)
    assert said["message"] == {"role": "user", "content": "run it"}
    (block,) = result["message"]["content"]
    assert (block["type"], block["is_error"]) == ("tool_result", False)
    assert result["toolUseResult"]["stdout"] == ""
    for record in (said, result):
        assert (record["sessionId"], record["cwd"], record["isSidechain"]) == (
            client.session,
            str(client.project),
            False,
        )
        assert record["uuid"]
        assert record["timestamp"].endswith("Z")


def test_the_new_conversations_transcript_begins_with_the_command(client):
    client.start(scenario())
    client.submit("/clear")
    new = until(lambda: len(client.started()) == 2 and client.started()[1]["session_id"])
    spoken = until(lambda: [r for r in client.records(new) if r["type"] == "user"][1:])
    assert "<command-name>/clear" in spoken[0]["message"]["content"]


def test_tool_hooks_tell_what_was_called_and_what_came_of_it(client):
    calls = [Call("Bash", command="touch x"), Call("Bash", command="false"), Say("ok")]
    client.start(scenario(Turn("go", calls)), allow=("Bash",))
    client.submit("go")
    good, bad = client.event("PostToolUse"), client.event("PostToolUseFailure")
    assert (good["tool_name"], good["tool_input"]) == ("Bash", {"command": "touch x"})
    assert good["tool_response"]["stdout"] == ""
    assert bad["error"].startswith("Exit code 1")
    assert {"tool_use_id", "duration_ms", "prompt_id", "permission_mode"} <= good.keys() & bad.keys()


def test_hook_context_reaches_the_next_request(client):
    told = {"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "context is at 80 %"}}
    client.hooks.answers["PostToolUse"] = told
    client.start(scenario(RUN), allow=ALLOW)
    client.submit("run it")
    assert "context is at 80 %" in client.request(2).context_text


@OFTEN
def test_a_stop_hook_makes_the_turn_go_on(client):
    told = {"hookSpecificOutput": {"hookEventName": "Stop", "additionalContext": "one more thing"}}
    client.hooks.answers["Stop"] = [told, {"decision": "block", "reason": "and another"}]
    client.start(scenario(HELLO))
    client.submit("hello")
    assert client.event("Stop", 3)["stop_hook_active"] is True
    assert "one more thing" in client.request(2).context_text
    assert "Stop hook feedback:\nand another" in client.request(3).user_text
    assert len(client.events("UserPromptSubmit")) == 1


def test_a_text_sent_in_a_turn_is_told_to_hooks_at_once_and_read_at_the_next_tool(client):
    client.start(scenario(SLOW), allow=ALLOW)
    client.submit("slow")
    until(lambda: "sleep 1" in client.screen())
    client.submit("and this too")
    client.event("UserPromptSubmit", 2)
    assert not (client.project / "slow.txt").exists()
    client.event("Stop")
    assert "and this too" in client.request(2).all_text
    assert client.names() == ["UserPromptSubmit", "UserPromptSubmit", "PostToolUse", "Stop"]


def test_a_text_sent_while_the_model_speaks_starts_a_turn_of_its_own(client):
    client.start(scenario(LONG, HELLO))
    client.submit("long")
    client.request()
    client.submit("hello")
    client.event("Stop", 2)
    assert client.request(2).user_text == "hello"
    assert client.names().count("UserPromptSubmit") == 2


def test_clear_sent_in_a_turn_waits_for_its_end(client):
    client.start(scenario(LONG))
    client.submit("long")
    client.request()
    client.submit("/clear")
    client.event("SessionEnd")
    assert client.names() == ["UserPromptSubmit", "Stop", "SessionEnd"]
    until(lambda: len(client.started()) == 2)


@OFTEN
def test_a_long_paste_collapses_and_reaches_the_model_wrapped(client):
    client.start(scenario(Turn("pasted", [Say("ok")])))
    client.paste("pasted\nline\nline\nline\nline")
    until(lambda: client.box().startswith("[Pasted text #1"))
    client.press("Enter")
    prompt = client.event("UserPromptSubmit")["prompt"]
    assert "pasted\nline\nline\nline\nline" in prompt
    assert '<pasted_content id="' in prompt
    assert '</pasted_content id="' in prompt


@pytest.mark.parametrize(
    ("text", "collapses"), [("x" * 800, False), ("x" * 801, True), ("a\nb\nc", False), ("a\nb\nc\nd", True)]
)
def test_what_collapses(client, text, collapses):
    client.start(scenario())
    client.paste(text)
    until(client.box)
    assert client.box().startswith("[Pasted text #1") is collapses


def test_the_box_wraps_between_words_and_anywhere_in_long_ones(client):
    client.start(scenario(), width=60)
    client.type("word " * 14 + "w" * 70)
    shown = until(lambda: (box := client.box()) and box.endswith("ww") and box.count("\n") >= 2 and box)
    assert shown.replace("\n", " ").split()[:14] == ["word"] * 14
    assert "".join(shown.split()) == "word" * 14 + "w" * 70
    assert [len(line) for line in shown.split("\n")] == WRAPPED


WRAPPED = [54, 56, 29]


def test_backspaces_in_one_go_remove_a_text(client):
    client.start(scenario())
    client.paste("a text of mine\nin two lines")
    until(lambda: "two lines" in client.box())
    client.press("-N", "27", "BSpace")
    until(lambda: client.box() == "")


def test_a_backslash_before_enter_is_a_new_line(client):
    client.start(scenario(HELLO))
    client.type("hello\\")
    until(lambda: client.box() == "hello\\")
    client.press("Enter")
    client.type("you")
    until(lambda: client.box() == "hello\nyou")
    assert client.events() == []


def test_text_and_enter_in_one_burst_are_not_submitted(client):
    client.start(scenario(HELLO))
    client.tmux("send-keys", "-l", "hello " * 100, ";", "send-keys", "Enter", ";", "send-keys", "-l", "x")
    until(lambda: (client.box() or "").endswith("x"))
    assert client.events() == []
    assert "\n" in client.box().rstrip("x")


def test_shell_mode_shows_and_is_left_by_backspace(client):
    client.start(scenario())
    client.type("!")
    client.shows("! for shell mode")
    client.press("BSpace")
    until(lambda: "! for shell mode" not in client.screen())


def test_a_shell_command_runs_without_a_prompt_hook(client):
    client.start(scenario())
    client.type("!")
    client.shows("! for shell mode")
    client.type("touch shelled.txt")
    until(lambda: "shelled.txt" in client.screen())
    client.press("Enter")
    client.event("Stop")
    assert (client.project / "shelled.txt").exists()
    assert client.events("UserPromptSubmit") == []


def test_an_unknown_command_is_swallowed(client):
    client.start(scenario())
    client.submit("/nosuchthing now")
    client.shows("Unknown command")
    until(lambda: client.box() == "")
    assert client.events() == []


@pytest.mark.parametrize(("status", "error"), [(400, "unknown"), (429, "rate_limit"), (500, "server_error")])
def test_an_api_error_ends_the_turn_with_stop_failure(client, status, error):
    client.start(scenario(Turn("go", [Fail(status, "bad thing", should_retry=False)])), CLAUDE_CODE_MAX_RETRIES="0")
    client.submit("go")
    failure = client.event("StopFailure")
    assert failure["error"] == error
    record = until(lambda: [r for r in client.records() if r.get("isApiErrorMessage")])[0]
    assert record["message"]["model"] == "<synthetic>"
    assert record["message"]["usage"]["input_tokens"] == 0
    client.idle()
    assert client.events("Stop") == []


def test_a_prompt_over_the_window_is_compacted_and_tried_again(client):
    client.start(scenario(HELLO, Turn("more", [TooLong()], times=1)))
    client.submit("hello")
    client.event("Stop")
    client.idle()
    client.submit("more")
    client.event("PostCompact")
    client.event("Stop", 2)
    assert client.events("PreCompact")[0]["trigger"] == "auto"
    assert client.started()[-1]["source"] == "compact"
    assert client.started()[-1]["session_id"] == client.session
    boundary = until(lambda: [r for r in client.records() if r.get("subtype") == "compact_boundary"])[0]
    assert boundary["parentUuid"] is None
    assert boundary["compactMetadata"]["trigger"] == "auto"
    until(lambda: any(record.get("isCompactSummary") for record in client.records()))


def test_a_background_shell_leaves_the_state_shell_and_is_in_stop(client):
    call = Call("Bash", command="sleep 20", run_in_background=True)
    client.start(scenario(Turn("go", [call, Say("Started.")])), allow=ALLOW)
    client.submit("go")
    (task,) = client.event("Stop")["background_tasks"]
    assert (task["type"], task["status"]) == ("shell", "running")
    until(lambda: client.status() == "shell")


def test_two_ctrl_c_on_an_empty_box_end_the_client(client):
    client.start(scenario())
    state = client.state_path()
    client.press("C-c", "C-c")
    until(client.dead)
    assert client.event("SessionEnd")["reason"] == "prompt_input_exit"
    assert not state.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_the_client_and_takes_its_state_file_away(client, number):
    client.start(scenario())
    state = client.state_path()
    os.kill(client.pid(), number)
    until(client.dead)
    assert client.event("SessionEnd")["reason"] == "other"
    assert not state.exists()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 0)])
def test_the_exit_code_tells_the_signal(client, number, code):
    client.start(scenario())
    assert client.exit_code(number) == code


def test_a_killed_client_leaves_its_state_file(client):
    client.start(scenario())
    state = client.state_path()
    os.kill(client.pid(), signal.SIGKILL)
    until(client.dead)
    assert state.exists()
    assert client.events() == []


def test_the_trust_dialog_comes_before_everything_and_means_no(client):
    client.start(scenario(), ready=False, trusted=False)
    client.shows("No, exit")
    assert (client.box(), client.started(), client.state()) == (None, [], {})
    client.confirm("No, exit")
    until(client.dead)
    assert (client.started(), client.events()) == ([], [])


def test_a_resumed_conversation_goes_on_in_its_file(client):
    client.start(scenario(HELLO))
    client.submit("hello")
    client.event("Stop")
    until(lambda: any(r["type"] == "assistant" for r in client.records()))
    before = len(client.records())
    client.idle()
    client.restart("--resume", client.session)
    client.submit("hello")
    client.event("Stop", 2)
    assert client.started()[-1]["source"] == "resume"
    assert client.started()[-1]["session_id"] == client.session
    until(lambda: len(client.records()) > before)
    assert len(client.transcripts()) == 1
    assert "Hi there." in client.request(2).all_text


def test_hooks_and_tools_see_whose_they_are(client):
    show = 'echo "$CLAUDE_PID $CLAUDE_CODE_SESSION_ID $CLAUDE_PROJECT_DIR $CLAUDECODE" > seen.txt'
    client.start(scenario(Turn("go", [Call("Bash", command=show), Say("ok")])), allow=("Bash",))
    client.submit("go")
    client.event("Stop")
    pid, session, _, marker = (client.project / "seen.txt").read_text().rstrip("\n").split(" ")
    assert (pid, session, marker) == (str(client.pid()), client.session, "1")


def test_an_initial_prompt_is_submitted_by_itself(client):
    client.start(scenario(HELLO), arguments=("hello",), ready=False)
    assert client.event("UserPromptSubmit")["prompt"] == "hello"
    client.event("Stop")


# The scripted client alone: its switches, and what cannot be arranged on the real one.


def flags(**values):
    return {"SM_AGENT_FLAGS": json.dumps(values)}


def test_it_can_lose_the_first_enter_after_a_text(agent):
    agent.start(scenario(HELLO), **flags(drop_enter=0.4))
    agent.tmux("load-buffer", "-", data="hello")
    agent.tmux("paste-buffer", "-p", "-d", ";", "send-keys", "Enter")
    until(lambda: agent.box() == "hello")
    agent.press("Enter")
    agent.event("UserPromptSubmit")


def test_it_can_do_without_a_state_file(agent):
    agent.start(scenario(HELLO), ready=False, **flags(no_state_file=True))
    until(lambda: agent.started() and agent.box() == "")
    agent.submit("hello")
    agent.event("Stop")
    assert agent.state() == {}


def test_it_can_ignore_sigterm(agent):
    agent.start(scenario(HELLO), **flags(ignore_sigterm=True))
    os.kill(agent.pid(), signal.SIGTERM)
    agent.submit("hello")
    agent.event("Stop")


def test_it_can_die_before_a_hook(agent):
    agent.start(scenario(HELLO), **flags(crash_on="SessionEnd"))
    agent.submit("/clear")
    until(agent.dead)
    assert agent.events("SessionEnd") == []
    assert agent.state_path().exists()


def test_it_can_refuse_at_its_context_limit(agent):
    agent.start(scenario(HELLO, context=180_000), **flags(refuse_at=177_000))
    agent.submit("hello")
    agent.event("Stop")
    agent.idle()
    agent.submit("hello")
    agent.shows("Context limit reached")
    agent.idle()
    assert len(agent.requests()) == 1
    assert agent.names() == ["UserPromptSubmit", "Stop", "UserPromptSubmit"]


def test_it_can_compact_by_itself_unless_a_hook_forbids(agent):
    agent.hooks.answers["PreCompact"] = [{"decision": "block", "reason": "handoff first"}]
    agent.start(scenario(HELLO, context=70_000), **flags(compact_at=67_000))
    for number in (1, 2, 3):
        agent.submit("hello")
        agent.event("Stop", number)
        agent.idle()
    assert len(agent.events("PreCompact")) == 2
    assert len(agent.events("PostCompact")) == 1
    assert [start["source"] for start in agent.started()] == ["startup", "compact"]


def test_a_slow_session_end_hook_is_cut_off(agent):
    agent.hooks.delays["SessionEnd"] = 4.0
    agent.start(scenario())
    began = time.monotonic()
    agent.submit("/clear")
    until(lambda: len(agent.started()) == 2)
    assert time.monotonic() - began < 4.0


def test_a_client_that_takes_itself_for_a_child_keeps_no_files(agent):
    agent.start(scenario(HELLO), ready=False, CLAUDE_CODE_CHILD_SESSION="1")
    until(lambda: agent.started() and agent.box() == "")
    agent.submit("hello")
    agent.event("Stop")
    assert (agent.state(), agent.transcripts()) == ({}, [])


def test_a_subagent_in_the_background_keeps_the_state_busy_and_reports(agent):
    call = Call("Agent", description="look around", prompt="look")
    agent.start(scenario(Turn("go", [call, Say("Started.")])), **flags(subagent_seconds=1.0))
    agent.submit("go")
    (task,) = agent.event("Stop")["background_tasks"]
    assert (task["type"], agent.status()) == ("subagent", "busy")
    assert agent.event("UserPromptSubmit", 2)["prompt"].startswith("<task-notification>")
    agent.event("Stop", 2)
    agent.idle()


def test_an_async_rewake_hook_wakes_an_idle_agent(agent):
    fifo = agent.home / "fifo"
    os.mkfifo(fifo)
    script = f'read -r line < {fifo}; printf "%s\\n" "$line" >&2; exit 2'
    hook = {"type": "command", "command": "/bin/sh", "args": ["-c", script], "asyncRewake": True, "timeout": 60}
    agent.more_hooks = {"SessionStart": [{"hooks": [hook]}]}
    agent.start(scenario(Turn("read your handoff", [Say("Read it.")])))
    fifo.write_text("read your handoff\n")
    assert "read your handoff" in agent.event("UserPromptSubmit")["prompt"]
    assert agent.event("Stop")["last_assistant_message"] == "Read it."
    assert "read your handoff" in agent.request().all_text


def test_send_now_cuts_the_stream(agent):
    agent.start(scenario(Turn("long", [Say("Never said.", delay=60)], times=1), Turn("now", [Say("At once.")])))
    agent.submit("long")
    agent.request()
    agent.submit("now")
    agent.event("UserPromptSubmit", 2)
    agent.press("C-x", "C-s")
    assert agent.event("Stop")["last_assistant_message"] == "At once."


def test_arguments_replace_the_variables(agent):
    own = agent.home / "own.json"
    own.write_text('{"turns": [{"when": "hello", "steps": [{"say": "From the argument.", "context": 70000}]}]}')
    arguments = ("--scenario", str(own), "--flags", '{"dialog_delay": 0.2}', "--autocompact", "100k", "--unknown")
    agent.start(scenario(HELLO), arguments=arguments)
    agent.submit("hello")
    assert agent.event("Stop")["last_assistant_message"] == "From the argument."
    agent.idle()
    agent.submit("hello")
    assert agent.event("PreCompact")["trigger"] == "auto"


def test_the_model_may_be_asked_over_http(agent):
    agent.start(scenario(HELLO), over_http=True)
    agent.submit("hello")
    assert agent.event("Stop")["last_assistant_message"] == "Hi there."


def test_a_hook_server_that_is_gone_hurts_nothing(agent):
    agent.start(scenario(HELLO))
    agent.hooks.close()
    agent.submit("hello")
    agent.shows("Hi there.")
    agent.idle()


def test_it_starts_fast_and_is_small(agent):
    agent.start(scenario(HELLO))
    agent.submit("hello")
    agent.event("Stop")
    status = Path(f"/proc/{agent.pid()}/status")
    if not status.exists():
        pytest.skip(f"{sys.platform} has no /proc")
    (line,) = [line for line in status.read_text().splitlines() if line.startswith("VmRSS")]
    assert int(line.split()[1]) < 30_000


@pytest.mark.parametrize(
    ("directory", "name"),
    [
        ("/srv/a_b.c", "-srv-a-b-c"),
        ("/srv/\N{MATHEMATICAL SANS-SERIF BOLD SMALL X}/notes", "-srv----notes"),
        ("/srv/" + "a" * 240, "-srv-" + "a" * 195 + "-fq2989"),
    ],
)
def test_its_project_directory_is_named_as_the_clients(directory, name):
    """C34: tests/contracts tries the real client."""
    assert project_name(directory) == name
