"""What a running Codex says of itself, by files as 0.171.0 has them; this process plays the client that holds them."""

import fcntl
import json
import os
import subprocess
import sys
from contextlib import ExitStack

import pytest

from sm.clock import SystemClock
from sm.core.events import Activity
from sm.providers.codex.hooks import parse
from sm.providers.codex.tui import state as module
from sm.providers.codex.tui import threads
from sm.providers.codex.tui.state import TuiStates

OLD = "01a22a2f-62cb-72e2-a26c-2bb34f471d3f"
NEW = "01a22a33-5067-7ec1-b05d-18a77282fcd7"
CHILD = "01a22a33-5ba7-7aa1-82b2-8782c8e17f08"
LONG_AGO = "2026-01-01T00:00:00.000Z"


class Client:
    """Locks and rollouts, held open."""

    def __init__(self, home, stack):
        self.home, self.stack, self.held = home, stack, {}
        self.states = TuiStates()
        (home / "thread-writer-locks").mkdir()
        self.day = home / "sessions/2026/11/30"
        self.day.mkdir(parents=True)
        self.opened = 1_000.0

    def open(self, thread, *records, session=None, at=None):
        """Open a thread, a second after the one before; without records it has no rollout yet."""
        lock = self.home / "thread-writer-locks" / f"{thread}.lock"
        self.held[thread] = self.stack.enter_context(lock.open("w"))
        fcntl.flock(self.held[thread], fcntl.LOCK_EX)
        self.opened = at or self.opened + 1
        os.utime(lock, (self.opened, self.opened))
        if records:
            self.begin(thread, *records, session=session)

    def leave(self, thread):
        self.held.pop(thread).close()
        (self.home / "thread-writer-locks" / f"{thread}.lock").unlink()

    def rollout(self, thread):
        return self.day / f"rollout-2026-11-30T02-01-18-{thread}.jsonl"

    def begin(self, thread, *records, session=None):
        self.stack.enter_context(self.rollout(thread).open("a"))
        self.add(thread, {"type": "session_meta", "payload": {"session_id": session or thread, "id": thread}}, *records)

    def add(self, thread, *records):
        with self.rollout(thread).open("a") as file:
            for record in records:
                file.write(json.dumps({"timestamp": "2026-11-30T02:01:27.478Z", **record}) + "\n")

    def hook(self, name, thread=NEW, **rest):
        payload = {"hook_event_name": name, "session_id": thread, **rest}
        self.states.hear(parse(json.dumps(payload).encode()), SystemClock().now())

    @property
    def state(self):
        return self.states.client_state(str(self.home), os.getpid())

    @property
    def told(self):
        return (self.state.activity, self.state.detail)


def event(kind, **rest):
    return {"type": "event_msg", "payload": {"type": kind, **rest}}


STARTED, COMPLETE, ABORTED = event("task_started"), event("task_complete"), event("turn_aborted")
ASKS = {"type": "response_item", "payload": {"type": "function_call", "name": "request_user_input", "call_id": "c1"}}
ANSWERED = {"type": "response_item", "payload": {"type": "function_call_output", "call_id": "c1", "output": "A"}}
OUTPUT = {"type": "response_item", "payload": {"type": "function_call_output", "call_id": "c0", "output": "x"}}


@pytest.fixture
def client(tmp_path):
    with ExitStack() as stack:
        yield Client(tmp_path, stack)


def test_a_client_without_a_thread_says_nothing(client):
    assert client.state is None


def test_a_thread_is_idle_before_its_first_prompt(client):
    client.open(NEW)
    assert (client.told, client.state.conversation) == ((Activity.IDLE, ""), NEW)


def test_a_turn_shows_from_its_beginning_to_its_end(client):
    client.open(NEW)
    assert client.state.activity is Activity.IDLE
    client.begin(NEW, STARTED)
    assert client.state.activity is Activity.BUSY
    client.add(NEW, OUTPUT, {"type": "token_usage_record", "payload": {}})
    assert client.state.activity is Activity.BUSY
    client.add(NEW, COMPLETE)
    assert client.told == (Activity.IDLE, "")
    assert client.state.since == pytest.approx(1_796_004_087.478)
    client.add(NEW, STARTED)
    assert client.state.activity is Activity.BUSY
    client.add(NEW, ABORTED)
    assert client.state.activity is Activity.IDLE


def test_a_line_that_is_being_written_tells_nothing_yet(client):
    client.open(NEW, STARTED)
    with client.rollout(NEW).open("a") as file:
        file.write('{"timestamp": "2026-11-30T02:01:28.000Z", "type": "event_msg", "payload": ')
        file.flush()
        assert client.state.activity is Activity.BUSY
        file.write('{"type": "task_complete"}}\n')
    assert client.state.activity is Activity.IDLE


def test_a_turn_from_before_the_thread_was_opened_is_over(client):
    client.open(NEW, {**STARTED, "timestamp": "1970-01-01T00:16:40.000Z"})  # a second before
    assert client.state.activity is Activity.IDLE


def test_a_file_that_was_replaced_is_read_again(client):
    client.open(NEW, STARTED)
    assert client.state.activity is Activity.BUSY
    other = client.rollout(NEW).with_suffix(".new")
    other.write_text(client.rollout(NEW).read_text() + json.dumps({"timestamp": LONG_AGO, **COMPLETE}) + "\n")
    other.replace(client.rollout(NEW))
    assert client.state.activity is Activity.IDLE


# --- which thread ----------------------------------------------------------------------------------------------------


def test_the_newest_thread_is_shown_before_it_has_a_rollout(client):
    client.open(OLD, STARTED, COMPLETE)
    assert client.state.conversation == OLD
    client.open(NEW)
    assert client.state.conversation == NEW
    client.leave(OLD)
    assert client.state.conversation == NEW


def test_an_old_thread_that_is_resumed_is_the_newest(client):
    client.open(NEW, STARTED, COMPLETE)
    client.open(OLD, STARTED, COMPLETE)
    assert client.state.conversation == OLD


def test_a_thread_whose_user_came_back_to_it_is_shown(client):
    client.open(OLD, STARTED, COMPLETE)
    client.open(NEW)
    client.hook("UserPromptSubmit", OLD, prompt="hi")
    assert client.state.conversation == OLD


def test_what_a_thread_says_at_its_unloading_is_no_sign_of_its_user(client):
    client.open(OLD, STARTED, COMPLETE)
    client.open(NEW)
    client.hook("SessionEnd", OLD, reason="other")
    assert client.state.conversation == NEW


def test_a_subagents_thread_is_none_of_the_users(client):
    client.open(NEW, STARTED, COMPLETE)
    client.open(CHILD, STARTED, session=NEW)
    assert (client.state.conversation, client.state.activity) == (NEW, Activity.IDLE)


def test_threads_are_looked_for_only_where_one_was_opened_or_left(client, monkeypatch):
    monkeypatch.setattr(module, "TICK_S", 0.0)
    client.open(OLD, STARTED, COMPLETE)
    assert client.state.conversation == OLD
    looked = []
    monkeypatch.setattr(threads, "_opened", lambda pid: looked.append(pid) or iter(()))
    assert client.state.conversation == OLD
    assert looked == []
    monkeypatch.undo()
    client.open(NEW)
    assert client.state.conversation == NEW


def test_a_thread_that_was_opened_in_the_same_tick_is_not_missed(client):
    folder = client.home / "thread-writer-locks"
    client.open(OLD, STARTED, COMPLETE)
    os.utime(folder, (2_000, 2_000))
    assert client.state.conversation == OLD
    client.open(NEW)
    os.utime(folder, (2_000, 2_000))
    assert client.state.conversation == NEW


# --- dialogs ---------------------------------------------------------------------------------------------------------


def test_a_question_of_the_agent_is_open_until_it_is_answered(client):
    client.open(NEW, STARTED, ASKS)
    assert client.told == (Activity.WAITING, "a question of the agent")
    client.add(NEW, OUTPUT)
    assert client.state.activity is Activity.WAITING
    client.add(NEW, ANSWERED)
    assert client.state.activity is Activity.BUSY


def test_a_question_that_was_answered_before_it_was_looked_at_is_none(client):
    client.open(NEW, STARTED, ASKS, ANSWERED)
    assert client.state.activity is Activity.BUSY


def asked(client, thread=NEW, **rest):
    client.hook(
        "PermissionRequest", thread, tool_name="Bash", tool_input={"command": "make", "description": "d"}, **rest
    )


def test_a_permission_is_asked_for_until_its_call_is_back(client):
    client.open(NEW, STARTED)
    asked(client)
    assert client.told == (Activity.WAITING, "permission for Bash")
    client.hook("PostToolUse", tool_name="Bash", tool_input={"command": "other"})  # ran beside it
    client.hook("PreToolUse", tool_name="Bash", tool_input={"command": "third"})
    assert client.state.activity is Activity.WAITING
    client.hook("PostToolUse", tool_name="Bash", tool_input={"command": "make"})
    assert client.state.activity is Activity.BUSY


@pytest.mark.parametrize("name", ["Stop", "UserPromptSubmit", "Interrupt", "PreCompact"])
def test_no_hook_of_a_turn_comes_while_its_dialog_is_open(client, name):
    client.open(NEW, STARTED)
    asked(client)
    assert client.state.activity is Activity.WAITING
    client.hook(name)
    assert client.state.activity is Activity.BUSY


def test_a_dialog_ends_with_its_turn(client):
    client.open(NEW, STARTED)
    asked(client)
    assert client.state.activity is Activity.WAITING
    client.add(NEW, ABORTED)
    assert client.state.activity is Activity.IDLE


def test_the_dialog_of_a_subagent_is_open_while_the_main_agent_rests(client):
    client.open(NEW, STARTED, COMPLETE)
    client.open(CHILD, STARTED, session=NEW)
    asked(client, agent_id=CHILD)
    assert client.told == (Activity.WAITING, "permission for Bash")
    client.add(CHILD, COMPLETE)
    assert client.state.activity is Activity.IDLE


def test_the_dialog_of_another_thread_is_none_of_this_one(client):
    client.open(OLD, STARTED)
    client.open(NEW)
    asked(client, OLD)
    client.hook("UserPromptSubmit", NEW)
    assert client.state.activity is Activity.IDLE


def test_a_command_that_was_allowed_and_runs_is_work(client, monkeypatch):
    client.open(NEW, STARTED)
    asked(client)
    assert client.state.activity is Activity.WAITING
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert client.state.activity is Activity.WAITING  # it may be another hook
        monkeypatch.setattr(module, "COMMAND_RUNS_S", 0.0)
        assert client.state.activity is Activity.BUSY
        process.communicate(b"\n")
    assert client.state.activity is Activity.BUSY


# --- who has a thread open -------------------------------------------------------------------------------------------


def test_the_process_that_holds_a_thread_is_found(client):
    client.open(NEW)
    assert threads.running(client.home, NEW).pid == os.getpid()
    assert threads.running(client.home, OLD) is None
    client.leave(NEW)
    assert threads.running(client.home, NEW) is None


@pytest.mark.parametrize("odd", ["", "../x", "*", "\0"])
def test_what_is_no_thread_runs_nowhere(client, odd):
    assert threads.running(client.home, odd) is None


def test_a_lock_that_its_process_left_behind_holds_nothing(client):
    (client.home / "thread-writer-locks" / f"{NEW}.lock").touch()
    assert threads.running(client.home, NEW) is None
    assert client.state is None


SERVERS = [(("app-server",), "a Codex app-server"), (("app-server", "--managed-daemon"), "daemon stop ends it")]


@pytest.mark.parametrize(("arguments", "words"), SERVERS, ids=["one of its own", "the shared one"])
def test_a_server_that_serves_other_clients_is_named_as_such(client, arguments, words):
    lock = client.home / "thread-writer-locks" / f"{NEW}.lock"
    program = f"import fcntl; f = open({str(lock)!r}, 'w'); fcntl.flock(f, fcntl.LOCK_EX); print(flush=True); input()"
    command = [sys.executable, "-c", program, *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        found = threads.running(client.home, NEW)
        process.communicate(b"\n")
    assert found.pid == process.pid
    assert found.terminal.endswith(words)


def test_the_client_below_the_program_that_starts_it_is_found(client):
    lock = client.home / "thread-writer-locks" / f"{NEW}.lock"
    program = f"f = open({str(lock)!r}, 'w'); print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        assert threads.client_process(client.home, os.getpid()) == process.pid
        assert client.state.conversation == NEW
        process.communicate(b"\n")
    assert client.state is None
