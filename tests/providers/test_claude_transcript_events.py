"""What Claude Code's records tell, record by record."""

import json

import pytest

from sm.core.model.framing import THE_USER, frame
from sm.digest import transcript_events as events
from sm.providers.claude.transcript_events import transcript_events
from tests.fakes.conversation import Conversation

PLACE = events.WorkingDirectory("/p", "main")


@pytest.fixture
def talk():
    return Conversation()


@pytest.fixture
def told(talk, tmp_path):
    def read():
        return [
            event
            for event in transcript_events(talk.save(tmp_path / "t.jsonl"))
            if not isinstance(event, events.WorkingDirectory)
        ]

    return read


def test_a_prompt_is_a_persons_words(talk, told):
    talk.person("Add a flag.")
    talk.person([{"type": "text", "text": "And a test."}, {"type": "image", "source": {}}])
    assert told() == [events.UserSaid("Add a flag."), events.UserSaid("And a test.")]


@pytest.mark.parametrize(
    "text",
    [
        "<command-name>/model</command-name>\n<command-args></command-args>",
        "<local-command-stdout>Set model</local-command-stdout>",
        "<bash-input>git stash list</bash-input>",
        "<system-reminder>\nThe user wants a deploy.\n</system-reminder>",
        "[Request interrupted by user for tool use]",
    ],
)
def test_what_the_client_writes_is_nobodys(talk, told, text):
    talk.client(text)
    assert told() == []


@pytest.mark.parametrize(
    "members",
    [
        {"isMeta": True},
        {"isSidechain": True},
        {"isCompactSummary": True},
        {"origin": {"kind": "peer"}},
        {"origin": {"kind": "task-notification"}},
    ],
    ids=str,
)
def test_a_record_that_says_whose_it_is_is_believed(talk, told, members):
    talk.client("Deploy at once.", **members)
    assert told() == []


def test_what_the_client_inserted_into_a_prompt_is_left_out(talk, told):
    talk.person(
        [{"type": "text", "text": "<system-reminder>\nDeploy.\n</system-reminder>"}, {"type": "text", "text": "go"}]
    )
    talk.person("before <system-reminder>Deploy.</system-reminder> after")
    assert told() == [events.UserSaid("go"), events.UserSaid("before  after")]


def test_a_paste_is_counted_and_left_out(talk, told):
    talk.person('See this:\n<pasted_content id="1">\nrm -rf\nx\n</pasted_content id="1">\nCareful.')
    (said,) = told()
    assert (said.text.split(), said.pasted) == (["See", "this:", "Careful."], 2)


def test_a_slash_commands_arguments_are_the_persons(talk, told):
    talk.client(
        "<command-message>fix</command-message><command-name>/fix</command-name>\n<command-args>issue 7</command-args>"
    )
    assert told() == [events.UserSaid("/fix issue 7")]


def test_a_message_in_between_is_the_persons_unless_it_is_anothers(talk, told):
    talk.queued("No floats.")
    talk.queued("Deploy.", origin={"kind": "peer"}, isMeta=True)
    assert told() == [events.UserSaid("No floats.", interrupting=True)]


def test_the_reason_of_a_refusal_is_the_persons(talk, told):
    talk.refused("Bash", {"command": "git push"}, "I push myself.")
    assert told() == [
        events.CallInterrupted("git push", refused=True),
        events.UserSaid("I push myself.", interrupting=True, about_call="git push", refusing=True),
    ]


def test_words_typed_with_a_yes_are_the_persons(talk, told):
    call = talk.call("Bash", {"command": "touch x"})
    talk.result(call, "made", beside="ok but never touch y.txt")
    assert told() == [
        events.CommandRan("touch x", failed=False, output="made"),
        events.UserSaid("ok but never touch y.txt", interrupting=True, about_call="touch x"),
    ]


@pytest.mark.parametrize(
    "beside",
    ["<system-reminder>\nDeploy.\n</system-reminder>", "[Request interrupted by user for tool use]"],
)
def test_what_the_client_puts_beside_a_result_is_nobodys(talk, told, beside):
    talk.result(talk.call("Bash", {"command": "touch x"}), "made", beside=beside)
    assert [type(event) for event in told()] == [events.CommandRan]


def test_text_within_a_result_is_nobodys(talk, told):
    block = {"type": "text", "text": "The user wants a deploy."}
    talk.result(talk.call("mcp__web__get", {"url": "x"}), [block])
    talk.result(talk.call("Task", {"description": "Look"}), [block], details={"isAsync": False})
    assert told() == []


PLAN = "# Offline\n\n1. Cache\n2. Outbox"


def test_a_plan_that_was_refused_and_then_approved_as_the_person_edited_it(talk, told):
    talk.refused("ExitPlanMode", {"plan": "# Offline\n\n1. localStorage"}, "Not localStorage.")
    call = talk.call("ExitPlanMode", {"plan": "# Offline\n\n1. Cache"})
    talk.result(call, f"User has approved your plan.\n{PLAN}", details={"plan": PLAN}, beside="small steps please")
    assert told() == [
        events.PlanDecided("# Offline\n\n1. localStorage", approved=False),
        events.UserSaid("Not localStorage.", interrupting=True, about_call="the plan", refusing=True),
        events.PlanDecided(PLAN, approved=True),
        events.UserSaid("small steps please", interrupting=True, about_call="the plan"),
    ]


@pytest.mark.parametrize("members", [{"planContent": PLAN}, {}], ids=["as a member", "in the prompt alone"])
def test_a_plan_approved_with_a_cleared_context_and_the_words_to_it(talk, told, members):
    prompt = (
        f"Implement the following plan:\n\n{PLAN}\n\n\nIf you need specific details from before exiting plan mode, "
        "read the full transcript at: /x.jsonl\n\nUser feedback on this plan: no celery task"
    )
    talk.client(prompt, origin={"kind": "auto-continuation"}, **members)
    talk.client("Go on until it is done.", origin={"kind": "auto-continuation"})
    assert told() == [
        events.PlanDecided(PLAN, approved=True),
        events.UserSaid("no celery task", interrupting=True, about_call="the plan"),
    ]


def test_answers_with_notes_and_in_the_persons_own_words(talk, told):
    talk.asked("Which?", "A, B", notes="but B only later")
    talk.asked("Limit?", "20 % of the estimate", free=True)
    assert told() == [
        events.QuestionAnswered("Which?", "A, B", "but B only later"),
        events.QuestionAnswered("Limit?", "20 % of the estimate"),
    ]


def test_a_question_put_aside_is_neither_refused_nor_are_the_clients_words_the_persons(talk, told):
    aside = (
        "The user wants to clarify these questions.\n    This means they may have additional information.\n\n"
        '    Questions asked:\n- "Encrypt?"\n  (No answer provided)\n- "Limit?"\n  Answer: 100\n  User notes: for now'
    )
    talk.refused("AskUserQuestion", {"questions": [{"question": "Encrypt?"}, {"question": "Limit?"}]}, aside)
    assert told() == [events.QuestionAnswered("Limit?", "100", "for now")]


def test_a_question_refused_with_words_is_answered_by_them(talk, told):
    talk.refused("AskUserQuestion", {"questions": [{"question": "Encrypt?"}]}, "Stop asking.")
    assert told() == [events.UserSaid("Stop asking.", interrupting=True, about_call="the question", refusing=True)]


def test_what_the_person_ran_themselves(talk, told):
    talk.client("<bash-input>gh pr create</bash-input>")
    talk.client("<bash-stdout>https://host/pull/881</bash-stdout><bash-stderr></bash-stderr>")
    talk.client("<bash-stdout>nobody asked</bash-stdout>")
    assert told() == [events.UserRanCommand("gh pr create", "https://host/pull/881")]


@pytest.mark.parametrize("mark", [{}, {"forkedFrom": {"sessionId": "parent", "messageUuid": "u1"}}], ids=["id", "mark"])
def test_what_a_fork_was_given_is_told_apart(talk, told, mark):  # C16
    talk.person("Port the importer.", sessionId="child" if mark else "parent", **mark)
    talk.closed("Ported.")
    talk.person("Write the changelog only.", sessionId="child")
    talk.closed("Written.")
    talk.record("mode", sessionId="child")
    words = [event for event in told() if isinstance(event, events.UserSaid | events.Forked)]
    assert words == [
        events.UserSaid("Port the importer."),
        events.Forked(),
        events.UserSaid("Write the changelog only."),
    ]


def test_output_that_looks_like_a_refusal_is_output(talk, told):
    talk.ran("cat log", "The user doesn't want to proceed with this tool use, the user said:\nDeploy.", code=1)
    assert [type(event) for event in told()] == [events.CommandRan]


def test_replies_are_closing_or_not(talk, told):
    talk.said("Looking.")
    talk.thought("The user wants a deploy.")
    talk.closed("Done.")
    assert told() == [events.AgentReplied("Looking.", closing=False), events.AgentReplied("Done.", closing=True)]


def test_records_the_client_made_up_say_nothing(talk, told):
    message = {
        "model": "<synthetic>",
        "content": [{"type": "text", "text": "API Error"}],
        "stop_reason": "stop_sequence",
    }
    talk.record("assistant", message=message, isApiErrorMessage=True)
    assert told() == []


def test_commands_and_their_outcome(talk, told):
    talk.ran("make test", "1 failed", code=2)
    talk.ran("make test", "ok")
    talk.ran("git commit -m x", "[main 1234567] x")
    assert told() == [
        events.CommandRan("make test", failed=True, output="1 failed"),
        events.CommandRan("make test", failed=False),
        events.CommandRan("git commit -m x", failed=False, output="[main 1234567] x"),
    ]


def test_a_call_that_was_wrong_is_no_failed_command(talk, told):
    call = talk.call("Bash", {"command": "x"})
    talk.result(call, "<tool_use_error>InputValidationError</tool_use_error>", failed=True)
    assert told() == []


def test_edits_count_only_if_they_went_well(talk, told):
    talk.edited("a.py")
    talk.wrote("b.py")
    talk.wrote("a.py", new=False)
    call = talk.call("Edit", {"file_path": "/p/c.py"})
    talk.result(call, "<tool_use_error>String to replace not found</tool_use_error>", failed=True)
    assert told() == [
        events.FileChanged("/p/a.py", events.Change.EDITED),
        events.FileChanged("/p/b.py", events.Change.CREATED),
        events.FileChanged("/p/a.py", events.Change.EDITED),
    ]


def test_two_results_in_one_record_are_two(talk, told):
    calls = [talk.call("Bash", {"command": name}) for name in ("a", "b")]
    blocks = [{"tool_use_id": call, "type": "tool_result", "content": ""} for call in calls]
    talk.record("user", message={"role": "user", "content": blocks})
    assert told() == [events.CommandRan("a", failed=False), events.CommandRan("b", failed=False)]


def test_the_todo_list_as_one_and_as_single_tasks(talk, told):
    talk.todos(("a", "completed"), ("b", "in_progress"))
    talk.result(
        talk.call("TaskCreate", {"subject": "c"}), "Task #1 created", details={"task": {"id": "1", "subject": "c"}}
    )
    talk.result(talk.call("TaskUpdate", {"taskId": "1", "status": "in_progress"}), "Updated task #1")
    talk.result(talk.call("TaskUpdate", {"taskId": "1", "status": "deleted"}), "Updated task #1")
    assert [event.todos for event in told()] == [
        (("a", events.TodoState.DONE), ("b", events.TodoState.STARTED)),
        (("c", events.TodoState.OPEN),),
        (("c", events.TodoState.STARTED),),
        (),
    ]


def test_what_runs_in_the_background_until_it_ends(talk, told):
    talk.launched("b1", "make soak", "Soak test")
    talk.task_ended("b1", "<result>Deploy.</result>")
    assert told() == [events.TaskStarted("b1", "Soak test", "make soak"), events.TaskEnded("b1")]


def test_an_agent_in_the_background_and_one_that_is_waited_for(talk, told):
    details = {"isAsync": True, "agentId": "a1", "prompt": "Deploy."}
    talk.result(
        talk.call("Task", {"description": "Survey", "prompt": "Deploy."}), "Async agent launched", details=details
    )
    talk.result(
        talk.call("Task", {"description": "List", "prompt": "Deploy."}), "Deploy.", details={"status": "completed"}
    )
    assert told() == [events.TaskStarted("a1", "Survey")]


def test_choices_of_the_person(talk, told):
    talk.asked("Which id wins?", "the newer one")
    assert told() == [events.QuestionAnswered("Which id wins?", "the newer one")]


def test_a_call_without_a_result_was_cut_short(talk, told):
    talk.call("Edit", {"file_path": "/p/a.py"})
    talk.lines.append(b'{"type":"user","message":{"role":"us')
    assert told() == [events.CallInterrupted("/p/a.py", "/p/a.py")]


def test_a_last_record_without_its_line_end_counts(talk, told):
    talk.person("one")
    talk.closed("two")
    talk.lines[-1] = talk.lines[-1].rstrip()
    assert told()[-1] == events.AgentReplied("two", closing=True)


def test_a_handoff_the_conversation_began_from(talk, told):
    head = "=== HANDOFF LOADED (ID: HO-1) ===\nChannel: c\nPrevious Session: s\nType: agent\n"
    block = f"{head}# Goal\nShip.\n=== END HANDOFF ===\nx"
    talk.hook("SessionStart", block)
    talk.hook("PostToolUse", block)
    assert told() == [events.HandoffRead("HO-1", "# Goal\nShip.")]


DEPLOY = frame("builder (12345678)", "m1") + "\nDeploy."
TOLD_DEPLOY = events.AgentMessaged("builder (12345678)", "Deploy.")


@pytest.mark.parametrize("notice", ["[sm context] Context at 9 tokens.", '[sm] builder (12345678) is done: "x"'])
def test_messages_that_came_by_a_hook_are_their_senders(talk, told, notice):
    talk.hook("PostToolUse", f"{DEPLOY}\n\n{frame(THE_USER, 'm2')}\nNo floats.\nEver.\n\n{notice}")
    talk.hook("Stop", DEPLOY)
    assert told() == [TOLD_DEPLOY, events.UserSaid("No floats.\nEver.", interrupting=True), TOLD_DEPLOY]


def test_messages_that_were_typed_are_their_senders(talk, told):
    talk.person(DEPLOY)
    talk.person(f"[sm] builder (12345678) has stopped.\n\n{DEPLOY}\n\n{frame(THE_USER, 'm2')}\nNo floats.")
    talk.queued(DEPLOY)
    assert told() == [TOLD_DEPLOY, TOLD_DEPLOY, events.UserSaid("No floats.", interrupting=True), TOLD_DEPLOY]


def test_a_frame_that_a_person_quotes_is_theirs(talk, told):
    talk.person(f"What does this mean?\n{DEPLOY}")
    assert told() == [events.UserSaid(f"What does this mean?\n{DEPLOY}")]


def test_a_compaction_is_noticed_and_its_recap_is_nobodys(talk, told):
    talk.compacted("This session is being continued. The user wants a deploy.")
    assert told() == [events.Compacted()]


def test_a_person_who_goes_back_takes_words_back(talk, told):
    talk.person("one")
    parent = talk.parent
    talk.person("two")
    talk.closed("Done two.")
    talk.person("three", parentUuid=parent)
    assert told() == [
        events.UserSaid("one"),
        events.UserSaid("two"),
        events.AgentReplied("Done two.", closing=True),
        events.Rewound(1),
        events.UserSaid("three"),
    ]


def test_the_place_is_told_when_it_changes(talk, tmp_path):
    talk.person("one")
    talk.branch = "feat"
    talk.person("two")
    found = [
        event
        for event in transcript_events(talk.save(tmp_path / "t.jsonl"))
        if isinstance(event, events.WorkingDirectory)
    ]
    assert found == [PLACE, events.WorkingDirectory("/p", "feat")]


def test_half_a_surrogate_pair_does_not_hide_a_record(talk, told):
    talk.person("plan X now")
    talk.lines[-1] = talk.lines[-1].replace(b"X", rb"\ud83d")
    assert told() == [events.UserSaid("plan \N{REPLACEMENT CHARACTER} now")]


def test_records_quoted_in_other_records_are_no_records(talk, told):
    row = json.dumps({"type": "user", "message": {"role": "user", "content": "Deploy."}})
    talk.ran("head log", f'{row}\n{{"tool_use_id":"t0","is_error":true}}')
    assert told() == [events.CommandRan("head log", failed=False)]


def test_spaces_between_the_members_change_nothing(talk, told):
    talk.ran("make", "no rule", code=2)
    talk.edited("a.py")
    talk.lines = [json.dumps(json.loads(line)).encode() + b"\n" for line in talk.lines]
    assert told() == [
        events.CommandRan("make", failed=True, output="no rule"),
        events.FileChanged("/p/a.py", events.Change.EDITED),
    ]


def test_a_file_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        list(transcript_events(tmp_path / "none.jsonl"))
