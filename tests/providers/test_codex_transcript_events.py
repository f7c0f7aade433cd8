"""What happened in a thread, by records as client 0.171.0 writes them."""

import pytest

from sm.digest import transcript_events as events
from sm.digest.transcript_events import Change, TodoState
from sm.providers.codex.transcript_events import transcript_events
from tests.fakes.rollout import THREAD, Rollout, ran_text
from tests.providers.test_codex_files import FORK, SEGMENT, file_of

PLACE = events.WorkingDirectory("/srv/app", "")


@pytest.fixture
def talk():
    rollout = Rollout()
    rollout.started()
    return rollout


@pytest.fixture
def happened(talk, tmp_path):
    def read():
        found = list(transcript_events(talk.save(tmp_path / "r.jsonl")))
        assert found[0] == PLACE
        return found[1:]

    return read


def test_only_the_text_that_ends_a_turn_closes_it(talk, happened):
    talk.prompt("Build it")
    talk.said("I look first.")
    talk.ran("ls")
    talk.said("One")
    talk.said("Two")
    talk.completed("Two")
    assert happened() == [
        events.UserSaid("Build it"),
        events.AgentReplied("I look first.", closing=False),
        events.CommandRan("ls", failed=False),
        events.AgentReplied("One", closing=False),
        events.AgentReplied("Two", closing=True),
    ]


@pytest.mark.parametrize("end", [lambda talk: talk.failed("x", "other"), Rollout.aborted, Rollout.lost])
def test_a_text_closes_no_turn_that_failed_or_was_interrupted_or_has_no_end(talk, happened, end):
    talk.prompt("Build it")
    talk.said("So far")
    end(talk)
    assert happened() == [events.UserSaid("Build it"), events.AgentReplied("So far", closing=False)]


def test_what_is_sent_while_a_turn_runs_is_said_in_between(talk, happened):
    talk.prompt("One")
    talk.prompt("Two")
    talk.completed()
    talk.started()
    talk.prompt("Three")
    assert [event.interrupting for event in happened()] == [False, True, False]


def test_the_clients_own_words_are_not_the_users(talk, happened):
    talk.message("user", "<environment_context>\n</environment_context>", "environments.environment_context")
    talk.hook("Deploy it.")
    talk.item("HookPrompt", fragments=[{"text": "Not yet.", "hookRunId": "stop:3"}])
    talk.compacted("The user wants all tests deleted.")
    assert happened() == [events.Compacted()]


def test_messages_of_others_come_by_hooks_and_as_prompts(talk, happened):
    sent = "[Input from: a via sm send] (message m1)\nUse the other table."
    talk.hook(sent)
    talk.prompt(sent)
    talk.item("HookPrompt", fragments=[{"text": sent, "hookRunId": "stop:3"}])
    talk.hook("[Input from: the user via sm send] (message m2)\nStop at noon.")
    assert happened() == [
        *[events.AgentMessaged("a", "Use the other table.")] * 3,
        events.UserSaid("Stop at noon.", interrupting=True),
    ]


def test_a_handoff_that_a_thread_began_from_is_read(talk, happened):
    talk.hook("=== HANDOFF LOADED (ID: h1) ===\nChannel: c\nType: auto\n# Work\n\n- all\n=== END HANDOFF ===\nmore")
    quoted = "=== HANDOFF LOADED (ID: h2) ===\n# Other, of hooks.additional_context"
    talk.prompt(quoted)
    assert happened() == [events.HandoffRead("h1", "# Work\n\n- all"), events.UserSaid(quoted)]


def test_what_the_app_server_was_given_for_the_thread_counts_as_what_a_hook_adds(talk, happened):
    talk.message("developer", "=== HANDOFF LOADED (ID: h1) ===\n# Work\n=== END HANDOFF ===")
    talk.message("developer", "[Input from: a via sm send] (message m1)\nUse the other table.")
    talk.message("developer", "You run inside a session of `sm`.")
    talk.message("assistant", "=== HANDOFF LOADED (ID: h2) ===\n# Made up\n=== END HANDOFF ===")
    assert happened() == [events.HandoffRead("h1", "# Work"), events.AgentMessaged("a", "Use the other table.")]


def test_only_what_failed_or_made_a_commit_has_its_output(talk, happened):
    talk.ran("make", "fine\n")
    talk.ran("make test", "1 failed\n", 2)
    talk.ran("git commit -m x", "[main 0123abc] x\n")
    assert happened() == [
        events.CommandRan("make", failed=False),
        events.CommandRan("make test", failed=True, output="1 failed\n"),
        events.CommandRan("git commit -m x", failed=False, output="[main 0123abc] x\n"),
    ]


def test_a_command_that_the_sandbox_made_fail_has_its_result_alone(talk, happened):
    talk.result(talk.call("exec_command", {"cmd": "touch x"}), ran_text("Read-only file system\n", 1))
    assert happened() == [events.CommandRan("touch x", failed=True, output="Read-only file system\n")]


def test_output_that_looks_like_the_clients_words_is_output(talk, happened):
    output = "Process running with session ID 5\nProcess exited with code 0\naborted by user\n"
    talk.result(talk.call("exec_command", {"cmd": "cat log"}), ran_text(output, 1))
    assert happened() == [events.CommandRan("cat log", failed=True, output=output)]


def test_a_command_that_runs_on_is_a_task_until_it_ends(talk, happened):
    soak = talk.call("exec_command", {"cmd": "make soak"})
    running = "Chunk ID: 2f\nWall time: 0.3 seconds\nProcess running with session ID 5\nOutput:\n"
    talk.result(soak, running)
    talk.ran("ls")
    assert happened() == [events.TaskStarted(soak, "", "make soak"), events.CommandRan("ls", failed=False)]
    talk.command(soak, "make soak", "bad\n", 4)
    assert happened()[2:] == [events.TaskEnded(soak), events.CommandRan("make soak", failed=True, output="bad\n")]


def test_a_command_that_ended_with_the_client_has_not_failed(talk, happened):
    soak = talk.call("exec_command", {"cmd": "make soak"})
    talk.result(soak, "Process running with session ID 5\nOutput:\n")
    talk.command(soak, "make soak", "", -1)
    assert happened()[1:] == [events.TaskEnded(soak)]


def test_a_call_that_was_interrupted_or_refused_or_has_no_result_was_cut_short(talk, happened):
    talk.result(talk.call("exec_command", {"cmd": "make a"}), "Wall time: 0.8 seconds\naborted by user")
    refused = 'exec_command failed: CreateProcess { message: "Rejected(\\"rejected by user\\")" }'
    talk.result(talk.call("exec_command", {"cmd": "make b"}), refused)
    talk.patched({"/srv/app/a.py": {"type": "add", "content": "x"}}, status="declined")
    talk.call("exec_command", {"cmd": "make c"})
    assert happened() == [
        events.CallInterrupted("make a"),
        events.CallInterrupted("make b", refused=True),
        events.CallInterrupted("apply_patch", "/srv/app/a.py", refused=True),
        events.CallInterrupted("make c"),
    ]


def test_a_patch_says_what_became_of_each_file(talk, happened):
    changes = {
        "/srv/app/new.py": {"type": "add", "content": "x"},
        "/srv/app/old.py": {"type": "delete", "content": "x"},
        "/srv/app/a.py": {"type": "update", "unified_diff": "@@", "move_path": None},
        "/srv/app/b.py": {"type": "update", "unified_diff": "@@", "move_path": "/srv/app/c.py"},
    }
    talk.patched(changes)
    talk.patched({"/srv/app/z.py": {"type": "add"}}, status="failed")
    assert happened() == [
        events.FileChanged("/srv/app/new.py", Change.CREATED),
        events.FileChanged("/srv/app/old.py", Change.DELETED),
        events.FileChanged("/srv/app/a.py", Change.EDITED),
        events.FileChanged("/srv/app/c.py", Change.RENAMED, source="/srv/app/b.py"),
    ]


def test_the_plan_counts_once_the_client_has_taken_it(talk, happened):
    steps = [("Read", "completed"), ("Write", "in_progress"), ("Test", "pending"), ("Odd", 7)]
    plan = {"plan": [{"step": step, "status": status} for step, status in steps] + ["odd"]}
    talk.result(talk.call("update_plan", plan), "unsupported call: update_plan")
    talk.result(talk.call("update_plan", plan), "Plan updated")
    states = (TodoState.DONE, TodoState.STARTED, TodoState.OPEN, TodoState.OPEN)
    todos = tuple((step, state) for (step, _), state in zip(steps, states, strict=True))
    assert happened() == [events.TodosChanged(todos)]


def test_answers_and_their_notes_are_kept(talk, happened):
    asked = talk.call("request_user_input", {"questions": [{"id": "q", "question": "Which?"}, {"id": "r"}]})
    talk.result(asked, '{"answers":{"q":{"answers":["Blue","user_note: dark"]},"r":{"answers":[]}}}')
    talk.result(talk.call("request_user_input", {"questions": [{"id": "q"}]}), "cancelled")
    assert happened() == [events.QuestionAnswered("Which?", "Blue", "dark")]


def test_a_proposed_plan_is_a_reply(talk, happened):
    talk.prompt("Plan it")
    talk.item("Plan", text="# Plan\n- do it\n")
    talk.completed()
    assert happened()[1:] == [events.AgentReplied("# Plan\n- do it", closing=True)]


def test_a_subagent_is_a_task_until_it_has_ended(talk, happened):
    talk.item("CollabAgentToolCall", tool="spawn_agent", prompt="Look", agents_states={FORK: "pending_init"})
    talk.item("CollabAgentToolCall", tool="wait", agents_states={FORK: "running"})
    assert happened() == [events.TaskStarted(FORK, "Look")]
    note = f'<subagent_notification>\n{{"agent_path":"{FORK}","status":{{"completed":"x"}}}}\n</subagent_notification>'
    talk.message("user", note, "multi_agent.subagent_notification")
    talk.item("CollabAgentToolCall", tool="wait", agents_states={FORK: {"completed": "x"}})
    assert happened()[1:] == [events.TaskEnded(FORK)] * 2


def test_what_a_script_runs_has_items_of_its_own(talk, happened):
    call = talk.call("exec", 'text(await tools.exec_command({cmd:"make test"}))')
    talk.command("exec-3ea6545d", "make test", "1 failed\n", 2)
    talk.item("FileChange", id="exec-a728948c", changes={"/srv/app/a.py": {"type": "add"}}, status="completed")
    output = [{"type": "input_text", "text": "Script completed\nWall time 0.1 seconds\nOutput:\n"}]
    talk.result(call, output, "custom_tool_call_output")
    assert happened() == [
        events.CommandRan("make test", failed=True, output="1 failed\n"),
        events.FileChanged("/srv/app/a.py", Change.CREATED),
    ]


@pytest.mark.parametrize(
    ("written", "step"),
    [
        ('{step:"Read",status:"in_progress"}', "Read"),
        ("{ 'step': 'It\\'s \"so\"', 'status': 'in_progress' }", 'It\'s "so"'),
        ('{"step": "Two\\nlines \\"x\\"", "status": "in_progress"}', 'Two\nlines "x"'),
        ("{step:`Read`,\n status:`in_progress`}", "Read"),
    ],
)
def test_a_plan_that_a_script_makes_is_read_from_it(talk, happened, written, step):
    talk.script(f"await tools.update_plan({{plan:[{written},{{step:title,status:'pending'}}]}})", "{}")
    assert happened() == [events.TodosChanged(((step, TodoState.STARTED),))]


def test_a_script_that_failed_or_was_interrupted_has_made_no_plan(talk, happened):
    source = 'await tools.update_plan({plan:[{step:"Read",status:"pending"}]})'
    talk.result(talk.call("exec", source), [{"text": "Script failed\nOutput:\n"}], "custom_tool_call_output")
    talk.result(talk.call("exec", source), "aborted by user after 0.9s", "custom_tool_call_output")
    source = "const r = await tools.exec_command({cmd:'sleep 20'})"
    talk.result(talk.call("exec", source), "aborted by user after 0.9s", "custom_tool_call_output")
    assert happened() == [events.CallInterrupted("exec"), events.CallInterrupted("sleep 20")]


def test_a_subagent_that_is_known_by_a_path_is_a_task_until_it_has_ended(talk, happened):
    talk.item("SubAgentActivity", kind="started", agent_thread_id=FORK, agent_path="/root/look")
    talk.item("SubAgentActivity", kind="interacted", agent_thread_id=FORK, agent_path="/root/look")
    talk.item("SubAgentActivity", kind="completed", agent_thread_id=FORK, agent_path="/root/look")
    assert happened() == [events.TaskStarted(FORK, "/root/look"), events.TaskEnded(FORK)]


def test_a_command_of_the_user_is_theirs(talk, happened):
    talk.command("x", "make deploy", "deployed\n", 0, source="user_shell")
    assert happened() == [events.UserRanCommand("make deploy", "deployed")]


def test_the_place_is_told_where_it_changes(tmp_path):
    talk = Rollout(git={"branch": "main"})
    talk.started()
    talk.started(cwd="/srv/app/web")
    assert list(transcript_events(talk.save(tmp_path / "r.jsonl"))) == [
        events.WorkingDirectory("/srv/app", "main"),
        events.WorkingDirectory("/srv/app/web", ""),
    ]


def test_a_thread_whose_user_went_back_has_what_still_counts_of_its_earlier_file(tmp_path):
    first = Rollout()
    first.asked("One", "Done one")
    end = len(first.data)
    first.asked("Two", "Done two")
    first.save(file_of(tmp_path, THREAD))
    base = {"thread_id": THREAD, "end_byte_offset": end}
    second = Rollout(history_base=base)
    second.asked("Three", "Done three")
    happened = list(transcript_events(second.save(file_of(tmp_path, f"{THREAD}_{SEGMENT}"))))
    assert [event.text for event in happened if isinstance(event, events.UserSaid)] == ["One", "Three"]
    assert events.Forked() not in happened


def test_a_fork_begins_behind_what_it_continues_of_its_parent(tmp_path):
    first = Rollout()
    first.asked("One", "Done one")
    end = len(first.data)
    first.started()
    first.call("exec_command", {"cmd": "make later"})
    first.save(file_of(tmp_path, THREAD))
    fork = Rollout(FORK, forked_from_id=THREAD, history_base={"thread_id": THREAD, "end_byte_offset": end})
    fork.asked("Two", "Done two")
    assert list(transcript_events(fork.save(file_of(tmp_path, FORK)))) == [
        PLACE,
        events.UserSaid("One"),
        events.AgentReplied("Done one", closing=True),
        events.Forked(),
        events.UserSaid("Two"),
        events.AgentReplied("Done two", closing=True),
    ]


def test_a_last_record_without_its_line_end_counts_and_half_a_record_does_not(talk, tmp_path):
    talk.prompt("One")
    talk.prompt("Two")
    path = tmp_path / "r.jsonl"
    path.write_bytes(talk.data[:-1])
    assert len(list(transcript_events(path))) == 3
    path.write_bytes(talk.data[:-20])
    assert len(list(transcript_events(path))) == 2


@pytest.mark.parametrize(
    "odd",
    [
        b'{"type":"event_msg","payload":{"type":"item_completed","item":[1]}}\n',
        b'{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"CommandExecution","command":7}}}\n',
        b'{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"FileChange","changes":[]}}}\n',
        b'{"type":"response_item","payload":{"type":"function_call","call_id":[],"arguments":"{"}}\n',
        b'{"type":"turn_context","payload":7}\n',
        b'[{"item_completed":1}]\n',
        b"\xff\xfe\n",
    ],
)
def test_odd_records_break_nothing(talk, tmp_path, odd):
    talk.prompt("One")
    talk.lines.append(odd)
    talk.prompt("Two")
    happened = list(transcript_events(talk.save(tmp_path / "r.jsonl")))
    assert [event.text for event in happened if isinstance(event, events.UserSaid)] == ["One", "Two"]


def test_a_file_that_is_not_there_cannot_be_read(tmp_path):
    with pytest.raises(OSError, match="No such file"):
        list(transcript_events(tmp_path / "none.jsonl"))
