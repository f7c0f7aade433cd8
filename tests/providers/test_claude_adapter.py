"""Claude Code as a provider: a launch as a whole, its state file, windows, and what the transcript's end tells."""

import json
import os
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from sm.archive.handoffs.auto_handoff import auto_handoff
from sm.core.errors import SmError
from sm.core.events import Activity
from sm.core.model.capacity import ClientLimits
from sm.core.model.context import ContextReading
from sm.core.model.message import digest
from sm.core.ports.provider import ClientState, LaunchRequest
from sm.processes import start_time
from sm.providers.claude import state, windows
from sm.providers.claude.adapter import Claude, ClientCommand
from sm.providers.claude.launch import Installation

URL = "http://127.0.0.1:8000"
TOKEN = "secret-of-the-session"


@pytest.fixture
def claude(tmp_path):
    def write(session, text):
        path = tmp_path / f"{session}.json"
        path.write_text(text)
        return path

    place = Installation("/py", "/hook.py", URL, "/s.sock", ("/state/token",))
    return Claude(place, lambda: ClientCommand(("claude",), "http"), "/state/bin", write, auto_handoff)


def request(tmp_path, *arguments, **rest):
    env = {"HOME": str(tmp_path), "PATH": "/usr/bin", **rest.pop("env", {})}
    return LaunchRequest("0" * 8, "a", str(tmp_path), env, arguments=arguments, **rest)


def test_a_new_session_gets_a_conversation_of_its_own(claude, tmp_path):
    first, second = (claude.launch(request(tmp_path, model="m"), TOKEN) for _ in range(2))
    assert first.conversation != second.conversation
    settings = str(tmp_path / "00000000.json")
    assert first.argv == ("claude", "--settings", settings, "--session-id", first.conversation, "--model", "m")


def test_no_token_is_in_the_arguments_or_the_settings(claude, tmp_path):
    launch = claude.launch(request(tmp_path), TOKEN)
    assert launch.env["SM_SESSION_TOKEN"] == TOKEN
    assert TOKEN not in " ".join(launch.argv)
    assert TOKEN not in (tmp_path / "00000000.json").read_text()


def test_a_session_is_known_by_our_own_variable(claude, tmp_path):
    env = claude.launch(request(tmp_path, env={"CLAUDE_SESSION_MANAGER_ID": "another"}), TOKEN).env
    assert (env["CLAUDE_SESSION_MANAGER_ID"], env["SM_URL"]) == ("0" * 8, URL)
    assert "SM_SOCKET" not in env


def test_a_restored_session_resumes_its_conversation(claude, tmp_path):
    launch = claude.launch(request(tmp_path, resume="old-one"), TOKEN)
    assert (launch.argv[3:5], launch.conversation) == (("--resume", "old-one"), "old-one")


def test_the_persons_own_client_and_arguments_are_used(claude, tmp_path):
    argv = claude.launch(request(tmp_path, "--permission-mode", "plan", command="/opt/claude"), TOKEN).argv
    assert (argv[0], argv[-2:]) == ("/opt/claude", ("--permission-mode", "plan"))


@pytest.mark.parametrize(
    ("arguments", "mode"),
    [((), "bypassPermissions"), (("--permission-mode", "plan"), "plan"), (("--verbose",), "bypassPermissions")],
)
def test_the_mode_that_is_shown_is_that_of_the_arguments_it_starts_with(claude, tmp_path, arguments, mode):
    configured = ClientCommand(("claude", "--dangerously-skip-permissions"), "http")
    launch = replace(claude, configured=lambda: configured).launch(request(tmp_path, *arguments), TOKEN)
    assert (launch.mode, "--dangerously-skip-permissions" in launch.argv) == (mode, mode == "bypassPermissions")


def test_hooks_go_through_the_socket_where_the_person_refuses_http(claude, tmp_path):
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_text('{"allowedHttpHookUrls": []}')
    env = claude.launch(request(tmp_path), TOKEN).env
    assert env["SM_SOCKET"] == "unix:/s.sock"
    assert '"http"' not in (tmp_path / "00000000.json").read_text()


def test_a_session_without_hooks_is_refused(claude, tmp_path):
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_text('{"disableAllHooks": true}')
    with pytest.raises(SmError, match="switched off"):
        claude.launch(request(tmp_path), TOKEN)


def test_the_configured_arguments_come_first_whichever_executable_runs(claude, tmp_path):
    configured = replace(claude, configured=lambda: ClientCommand(("claude", "--autocompact", "100k"), "http"))
    for command, first in (None, "claude"), ("/opt/claude", "/opt/claude"):
        found = configured.launch(request(tmp_path, "--verbose", command=command), TOKEN)
        assert found.argv[:3] == (first, "--autocompact", "100k")
        assert found.asked == (("--autocompact", "100k"),)


def test_a_configured_argument_that_would_break_the_session_is_refused_with_its_place(claude, tmp_path):
    configured = replace(claude, configured=lambda: ClientCommand(("claude", "--settings", "/dev/null"), "http"))
    with pytest.raises(SmError, match=r"claude\.arguments in the configuration: `sm` sets --settings itself"):
        configured.launch(request(tmp_path, command="/opt/claude"), TOKEN)


def installed(tmp_path, version):
    """A client as npm installs it; its program is never run."""
    package = tmp_path / "node_modules/@anthropic-ai/claude-code"
    (package / "bin").mkdir(parents=True)
    (package / "package.json").write_text(json.dumps({"name": "@anthropic-ai/claude-code", "version": version}))
    program = package / "bin/claude.exe"
    program.write_text("#!/bin/sh\ntouch ran\n")
    program.chmod(0o700)
    return str(program)


@pytest.mark.parametrize(
    ("driver", "version", "with_plugin"),
    [
        ("auto", "2.1.290", True),
        ("mod", "2.1.328", True),
        ("keys", "2.1.328", False),
        ("auto", "2.1.289", False),
        ("mod", "2.0.999", False),
    ],
)
def test_a_client_that_can_is_started_with_the_plugin(claude, tmp_path, driver, version, with_plugin):
    place = replace(claude.place, mod=str(tmp_path / "mod"))
    program = installed(tmp_path, version)
    claude = replace(claude, place=place, configured=lambda: ClientCommand((program,), "http", driver))
    launch = claude.launch(request(tmp_path), TOKEN)
    assert launch.plugin is with_plugin
    assert ("--plugin-dir" in launch.argv) is with_plugin
    assert ("SM_SOCKET" in launch.env, "SM_DRIVER" in launch.env) == (with_plugin, with_plugin)
    matchers = [entry.get("matcher") for entry in hooks_of(tmp_path)["PostToolUse"]]
    assert matchers == (["Edit|MultiEdit|Write"] if with_plugin else [None])
    too_old = f"Claude Code {version} is too old for the plugin in it, which needs 2.1.290"
    assert launch.no_plugin == ("" if with_plugin or driver == "keys" else too_old)


def test_a_client_without_a_screen_has_an_input_that_does_not_end(claude, tmp_path):
    place = replace(claude.place, mod=str(tmp_path / "mod"))
    program = tmp_path / "claude"
    program.write_text("#!/bin/sh\ntimeout 0.2 cat; [ $? = 124 ] && echo waits; echo $@\n")
    program.chmod(0o700)
    claude = replace(claude, place=place, configured=lambda: ClientCommand((str(program),), "http", "auto"))
    launch = claude.launch(request(tmp_path, "--model", "x y", headless=True), TOKEN)
    argv = launch.argv
    assert launch.program == str(program)
    ran = subprocess.run(["bash", *argv[1:]], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
    said, _, given = ran.stdout.partition("\n")
    assert said == "waits"
    assert given.strip().endswith(
        "--model x y --print --input-format stream-json --output-format stream-json --verbose"
    )
    assert [path.name for path in tmp_path.glob("*.stdin")] == []


@pytest.mark.parametrize(("driver", "version"), [("keys", "2.1.328"), ("auto", "2.1.289")])
def test_a_client_without_a_screen_is_refused_without_its_plugin(claude, tmp_path, driver, version):
    program = installed(tmp_path, version)
    claude = replace(claude, configured=lambda: ClientCommand((program,), "http", driver))
    with pytest.raises(SmError, match="without a screen is driven by its plugin alone"):
        claude.launch(request(tmp_path, headless=True), TOKEN)


def hooks_of(tmp_path):
    return json.loads((tmp_path / "00000000.json").read_text())["hooks"]


@pytest.mark.parametrize(
    ("model", "auto_compact", "window", "usable"),
    [
        ("claude-sonnet-4-5-20250929", None, 200_000, 167_000),
        ("claude-opus-5-5", None, 1_000_000, 967_000),
        ("claude-opus-5-5", 100_000, 1_000_000, 67_000),
        ("claude-opus-5-5", 2_000_000, 1_000_000, 967_000),
        ("a-model-of-tomorrow", None, None, None),
        (None, None, None, None),
    ],
)
def test_percentages_are_of_what_is_left_before_the_client_compacts(claude, model, auto_compact, window, usable):
    reading, found = claude.sized(
        ContextReading(tokens=50_000, model=model), ClientLimits(auto_compact=auto_compact), None
    )
    assert (reading.window, found) == (window, usable)
    assert windows.window_of(model) == window


def test_a_window_smaller_than_what_the_client_keeps_free_leaves_nothing_known(claude):
    reading = ContextReading(tokens=5_000, model="some-other")
    assert claude.sized(reading, ClientLimits(), 20_000) == (replace(reading, window=20_000, assumed=True), None)


def test_a_reading_that_exceeds_the_window_proves_it_wrong(claude):  # case A15
    assert claude.sized(ContextReading(tokens=265_118, model="claude-sonnet-4-5"), ClientLimits(), None)[1] is None


@pytest.mark.parametrize(
    ("told", "model", "window"),
    [(None, "some-other", 500_000), (None, "claude-sonnet-4-5", 200_000), (300_000, "some-other", 300_000)],
)
def test_an_assumed_window_is_for_what_nothing_else_tells(claude, told, model, window):
    reading = ContextReading(tokens=50_000, model=model, window=told)
    sized = replace(reading, window=window, assumed=window == 500_000)
    assert claude.sized(reading, ClientLimits(), 500_000) == (sized, window - 33_000)


STATES = {
    "idle": (Activity.IDLE, ""),
    "shell": (Activity.IDLE, ""),
    "busy": (Activity.BUSY, ""),
    "waiting": (Activity.WAITING, "permission prompt"),
    "a state of tomorrow": (Activity.UNKNOWN, ""),
}


@pytest.mark.parametrize(("status", "expected"), STATES.items(), ids=STATES.keys())
def test_the_client_tells_its_state(status, expected, claude, tmp_path):
    (tmp_path / "sessions").mkdir()
    content = {"pid": 7, "sessionId": "c", "status": status, "waitingFor": expected[1] or None, "new": []}
    (tmp_path / "sessions" / "7.json").write_text(json.dumps(content))
    assert claude.client_state(str(tmp_path), 7) == ClientState(*expected, "c")


@pytest.mark.parametrize(("status", "activity"), [("busy", Activity.UNKNOWN), ("idle", Activity.IDLE)])
def test_of_a_client_without_a_screen_only_its_rest_is_believed(status, activity, claude, tmp_path):
    (tmp_path / "sessions").mkdir()
    content = {"pid": 7, "sessionId": "c", "status": status, "entrypoint": "sdk-cli"}
    (tmp_path / "sessions" / "7.json").write_text(json.dumps(content))
    assert claude.client_state(str(tmp_path), 7) == ClientState(activity, "", "c", lags=status == "busy")


def test_an_odd_member_of_the_state_does_not_hide_the_rest(claude, tmp_path):  # C27
    (tmp_path / "sessions").mkdir()
    (tmp_path / "sessions" / "7.json").write_text('{"sessionId": "c", "status": "busy", "waitingFor": {"kind": 1}}')
    assert claude.client_state(str(tmp_path), 7) == ClientState(Activity.BUSY, "", "c")


def test_a_stopped_client_is_known_by_its_process_whatever_its_file_says(claude, tmp_path):  # C38
    (tmp_path / "sessions").mkdir()
    with subprocess.Popen(["sleep", "60"]) as process:
        try:
            file = tmp_path / "sessions" / f"{process.pid}.json"
            file.write_text(json.dumps({"sessionId": "c", "status": "idle"}))
            assert claude.client_state(str(tmp_path), process.pid).activity is Activity.IDLE
            process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
            found = claude.client_state(str(tmp_path), process.pid)
            assert (found.activity, found.conversation) == (Activity.STOPPED, "c")
            assert f"kill -CONT {process.pid}" in found.detail
        finally:
            process.kill()


@pytest.mark.parametrize("content", [None, "", "{", '{"status": 3}'])
def test_a_state_that_cannot_be_read_is_unknown(content, claude, tmp_path):
    (tmp_path / "sessions").mkdir()
    if content is not None:
        (tmp_path / "sessions" / "7.json").write_text(content)
    assert claude.client_state(str(tmp_path), 7) is None


def transcript(tmp_path, *records):
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


def said(kind, text, **rest):
    return {"type": kind, "message": {"role": kind, "content": [{"type": "text", "text": text}]}, **rest}


REFUSED = said("assistant", "Prompt is too long", isApiErrorMessage=True, error="invalid_request")


def test_a_client_that_refuses_to_go_on_says_so_at_the_end_of_its_transcript(claude, tmp_path):
    path = transcript(tmp_path, said("user", "go"), said("assistant", "ok"), REFUSED, {"type": "system"})
    assert claude.refusal(path) == "Prompt is too long"


@pytest.mark.parametrize(
    "records",
    [
        [said("assistant", "The words Prompt is too long are in my reply")],
        [REFUSED, said("assistant", "All is well again.")],
        [said("assistant", "API Error: 529", isApiErrorMessage=True)],
        [],
    ],
    ids=["quoted", "got over", "another error", "empty"],
)
def test_other_ends_are_no_refusal(records, claude, tmp_path):
    assert claude.refusal(transcript(tmp_path, *records)) is None


def test_a_prompt_of_ours_is_found_in_the_transcript(claude, tmp_path):
    plain = {"type": "user", "message": {"role": "user", "content": "Read it."}}
    path = transcript(tmp_path, plain, said("user", "more\n\nlines "), said("assistant", "Read me."))
    assert claude.submitted(path, digest("Read it."), 0) == "Read it."
    assert claude.submitted(path, digest("more\n\nlines"), 0) == "more\n\nlines "
    assert claude.submitted(path, digest("Read me."), 0) is None
    assert state.submitted(Path(path).with_name("none"), digest("Read it.")) is None


def test_an_earlier_prompt_of_the_same_words_is_another_one(claude, tmp_path):
    """C4: by its place in the file; the client's clock is not ours."""
    path = transcript(tmp_path, said("user", "go on", timestamp="2099-11-30T00:53:20.500Z"))
    size = Path(path).stat().st_size
    assert (claude.submitted(path, digest("go on"), 0), claude.submitted(path, digest("go on"), size)) == (
        "go on",
        None,
    )


def test_a_client_that_has_a_conversation_open_is_found_by_its_state_file(claude, tmp_path):  # C8
    folder = tmp_path / "sessions"
    folder.mkdir()
    state = {"sessionId": "c", "status": "idle", "procStart": start_time(os.getpid()), "tmux": "work:@0.%0"}
    mine = folder / f"{os.getpid()}.json"
    mine.write_text(json.dumps(state))
    (folder / "1.abc.key").write_text("{}")
    (folder / "2.json").write_text("{")
    found = claude.running(str(tmp_path), "c")
    assert found.pid == os.getpid()
    assert found.terminal.endswith("tmux pane work:@0.%0")
    assert claude.running(str(tmp_path), "another") is None
    assert claude.running(str(tmp_path / "nowhere"), "c") is None
    for changes in {"procStart": "1"}, {"procStart": 7, "sessionId": 3}:
        mine.write_text(json.dumps({**state, **changes}))
        assert claude.running(str(tmp_path), "c") is None, changes


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("claude-opus-4-5-20251101", 200_000),
        ("claude-opus-4-6", 200_000),
        ("claude-opus-4-7", 1_000_000),
        ("claude-sonnet-4-20250514", 200_000),
        ("claude-sonnet-4-6", 200_000),
        ("claude-sonnet-4-5[1m]", 1_000_000),
        ("claude-opus-5", 1_000_000),
        ("claude-3-5-haiku-20241022", 200_000),
        ("us.anthropic.claude-opus-4-6-v1", 200_000),
        ("claude-opus-4-1@20250805", 200_000),
        ("claude-opus-4-9", None),
        ("claude-sonnet-4-55", None),
        ("my-gateway-model", None),
        ("", None),
        (None, None),
    ],
)
def test_the_table_is_the_pinned_clients_own(model, window):  # C12
    assert windows.window_of(model) == window
