import json
from itertools import count

import pytest

from sm.testing.player import Answer, Player
from sm.testing.request import RequestKind, RequestMessage, read_request
from sm.testing.scenario import Call, Fail, Say, Scenario, Together, Turn, parse_scenario, scenario

SESSION = json.dumps({"session_id": "s1"})


class Chat:
    """A client that keeps the history, as the real one does."""

    def __init__(self, script: Scenario, session: str = "s1", player: Player | None = None) -> None:
        self.player = player or Player(script)
        self.session = session
        self.history: list[dict] = []
        self.numbers = count(1)

    def send(self, *content, context="", **body) -> Answer:
        new = [{"role": "user", "content": list(content)}]
        if context:
            new.append({"role": "system", "content": context})
        answer = self.player.answer(request(self.history + new, session=self.session, **body))
        if not answer.step.error:
            self.history += [*new, {"role": "assistant", "content": _content(answer)}]
        return answer

    def say(self, words, **rest) -> Answer:
        return self.send({"type": "text", "text": words}, **rest)

    def result(self, answer, output="ok", **rest) -> Answer:
        blocks = [{"type": "tool_result", "tool_use_id": use.id, "content": output} for use in answer.tool_uses]
        return self.send(*blocks, **rest)


def _content(answer):
    uses = [{"type": "tool_use", "id": use.id, "name": use.call.name, "input": {}} for use in answer.tool_uses]
    return [{"type": "text", "text": answer.step.say}, *uses]


def request(messages, session="s1", **body):
    metadata = {"user_id": json.dumps({"session_id": session})}
    payload = {"model": "m", "messages": messages, "tools": [{"name": "Bash"}], "metadata": metadata, **body}
    return read_request(json.dumps(payload).encode())


def names(answer):
    return [use.call.name for use in answer.tool_uses]


WORK = Turn("do the work", [Call("Bash", command="true"), Call("Read", file_path="a"), Say("done")])


def test_a_turn_is_played_step_by_step_as_its_results_come_in():
    chat = Chat(scenario(WORK))
    first = chat.say("please do the work")
    second = chat.result(first)
    last = chat.result(second)
    assert (names(first), names(second), last.step.say) == (["Bash"], ["Read"], "done")
    assert [answer.stop_reason for answer in (first, second, last)] == ["tool_use", "tool_use", "end_turn"]


def test_a_turn_starts_again_when_its_prompt_comes_again():
    chat = Chat(scenario(Turn("hello", [Say("hi")])))
    assert [chat.say("hello").step.say for _ in range(2)] == ["hi", "hi"]


def test_the_first_matching_turn_wins_and_a_turn_fires_no_more_than_its_times():
    chat = Chat(scenario(Turn("hello", [Say("first")], times=1), Turn("hello", [Say("later")])))
    assert [chat.say("hello").step.say for _ in range(3)] == ["first", "later", "later"]


def test_a_turn_may_let_matches_pass_by():
    chat = Chat(scenario(Turn("hello", [Say("third")], skip=2)))
    assert [chat.say("hello").step.say for _ in range(3)] == ["Understood.", "Understood.", "third"]


def test_what_nothing_matches_gets_the_answer_for_it():
    assert Chat(scenario(WORK, otherwise=Say("what?"))).say("something else").step.say == "what?"


def test_groups_of_the_prompt_and_results_fill_the_placeholders():
    turn = Turn(r"fix (?P<what>\w+) in (\S+)", [Call("Edit", args=["{{2}}", "{{other}}"]), Say("{{what}}: {{result}}")])
    chat = Chat(scenario(turn))
    call = chat.say("fix bugs in a.py")
    assert call.tool_uses[0].call.input == {"args": ["a.py", "{{other}}"]}
    assert chat.result(call, "edited").step.say == "bugs: edited"


def test_a_condition_may_be_literal_text_that_is_no_regular_expression_for_it():
    assert Chat(scenario(Turn("really? (yes)", [Say("ok")]))).say("really? (yes)").matched == "really? (yes)"


@pytest.mark.parametrize(
    "noise",
    [
        "<system-reminder>do the work</system-reminder>",
        "<command-name>/do the work</command-name>",
        "<local-command-stdout>do the work</local-command-stdout>",
        "This session is being continued from a previous conversation: do the work",
    ],
)
def test_what_the_client_adds_to_a_prompt_is_not_what_the_user_said(noise):
    said = {"type": "text", "text": "hello"}
    assert request([{"role": "user", "content": [{"type": "text", "text": noise}, said]}]).user_text == "hello"


def test_the_prompt_is_found_although_a_system_message_follows_it():
    assert Chat(scenario(WORK)).say("do the work", context="# Environment").matched == "do the work"


def test_hook_context_interrupts_a_turn_which_goes_on_afterwards():
    chat = Chat(scenario(WORK, Turn(context="context is at (.+)%", steps=[Call("Handoff", at="{{1}}")])))
    warned = chat.result(chat.say("do the work"), context="PostToolUse:Bash hook: context is at 80%")
    assert warned.tool_uses[0].call.input == {"at": "80"}
    assert names(chat.result(warned)) == ["Read"]


def test_hook_context_inside_a_tool_result_counts_as_context_and_not_as_output():
    reminder = "fine\n<system-reminder>hook says stop</system-reminder>"
    seen = request([{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": reminder}]}])
    assert ("hook says stop" in seen.context_text, seen.tool_results[0].text) == (True, "fine")


def test_context_of_earlier_requests_does_not_match_again():
    chat = Chat(scenario(WORK, Turn(context="warning", steps=[Call("Handoff")])))
    warned = chat.result(chat.say("do the work"), context="warning")
    assert names(chat.result(warned)) != ["Handoff"]


def test_a_message_typed_in_the_middle_of_a_turn_may_interrupt_it():
    chat = Chat(scenario(WORK, Turn("urgent", [Say("at once")])))
    result = {"type": "tool_result", "tool_use_id": chat.say("do the work").tool_uses[0].id, "content": "ok"}
    typed = {"type": "text", "text": "The user sent a new message while you were working:\nurgent"}
    assert chat.send(result, typed).step.say == "at once"


def test_a_turn_without_conditions_answers_prompts_but_never_interrupts():
    chat = Chat(scenario(Turn(steps=[Say("mine")], skip=1), WORK))
    assert chat.say("do the work").matched == "do the work"
    chat = Chat(scenario(Turn(steps=[Call("Bash")])))
    assert chat.result(chat.say("anything")).matched is None


def test_steps_behind_a_text_answer_what_makes_the_agent_go_on():
    chat = Chat(scenario(Turn("do the work", [Say("done"), Say("now really")])))
    chat.say("do the work")
    assert chat.say("Stop hook feedback: not yet").step.say == "now really"


def test_an_interrupted_turn_is_left_alone_when_the_person_says_something_else():
    chat = Chat(scenario(WORK))
    chat.say("do the work")
    assert chat.say("hello").matched is None


def test_an_error_is_a_step_and_the_retry_gets_the_next_one():
    chat = Chat(scenario(Turn("do the work", [Fail(529), Fail(529), Call("Bash"), Say("done")])))
    errors = [chat.say("do the work").step.error.status for _ in range(2)]
    assert (errors, names(chat.say("do the work"))) == ([529, 529], ["Bash"])


def test_parallel_calls_have_ids_of_their_own_and_one_continuation():
    chat = Chat(scenario(Turn("go", [Together(Say("both:"), Call("Bash"), Call("Read")), Say("done")])))
    both = chat.say("go")
    assert (both.step.say, names(both), len({use.id for use in both.tool_uses})) == ("both:", ["Bash", "Read"], 2)
    assert chat.result(both).step.say == "done"


def test_sessions_and_subagents_play_their_turns_independently():
    one = Chat(scenario(WORK))
    other = Chat(one.player.scenario, "s2", one.player)
    first, second = one.say("do the work"), other.say("do the work")
    assert names(one.result(first)) == names(other.result(second)) == ["Read"]


def test_a_conversation_grows_from_request_to_request_and_from_a_given_size():
    turn = Turn("go", [Call("Bash"), Call("Bash").but(context=90_000), Say("done")])
    chat = Chat(scenario(turn, context=10_000, growth=1_000))
    answers = [chat.say("go")]
    answers += [chat.result(answers[0])]
    answers += [chat.result(answers[1]), chat.say("more")]
    assert [_total(answer) for answer in answers] == [10_000, 90_000, 91_000, 92_000]
    assert answers[3].usage.cache_read == 91_000


def _total(answer):
    return answer.usage.input + answer.usage.cache_read + answer.usage.cache_creation


def test_subagents_do_not_make_the_main_conversation_grow():
    main = Chat(scenario(context=10_000, growth=1_000))
    sub = Chat(main.player.scenario, player=main.player)
    main.say("main"), sub.say("sub")
    assert _total(main.say("more")) == 11_000


COMPACT = "Your task is to create a detailed summary of the conversation so far"


def test_a_compaction_gets_the_summary_and_the_turn_goes_on_in_a_small_conversation():
    chat = Chat(scenario(WORK, compaction=Say("all is well"), context=5_000))
    chat.player.scenario.turns[0].steps[0] = Call("Bash").but(context=90_000)
    chat.say("do the work")
    assert "<summary>\nall is well\n</summary>" in chat.say(COMPACT).step.say
    chat.history = []
    after = chat.say("This session is being continued from a previous conversation that ran out of context.")
    assert (names(after), _total(after)) == (["Read"], 5_000)


@pytest.mark.parametrize(
    ("words", "body", "kind"),
    [
        ("hello", {}, RequestKind.MAIN),
        ("hello", {"tools": []}, RequestKind.SIDE),
        ("quota", {"max_tokens": 1}, RequestKind.SIDE),
        ("[SUGGESTION MODE: what next?]", {}, RequestKind.SIDE),
        ("<system-reminder>This is a side question from the user.</system-reminder>", {}, RequestKind.SIDE),
        (COMPACT, {}, RequestKind.COMPACTION),
    ],
)
def test_requests_on_the_clients_own_account_are_told_from_the_agents(words, body, kind):
    assert request([{"role": "user", "content": words}], **body).kind is kind


def test_side_requests_consume_nothing():
    chat = Chat(scenario(Turn("hello", [Say("hi")], times=1)))
    chat.say("hello", tools=[])
    assert chat.say("hello").step.say == "hi"


TOML = """
context = 30_000

[[turns]]
when = "do the (\\\\w+)"
steps = [{ calls = [{ name = "Bash", input = { command = "true" } }] }, { say = "done {{1}}", delay = 0.5 }]

[[turns]]
when = "break"
steps = [{ error = { status = 429, retry_after = 1 } }]
"""


def test_a_scenario_may_be_written_as_toml():
    assert parse_scenario(TOML, toml=True) == scenario(
        Turn(r"do the (\w+)", [Call("Bash", command="true"), Say("done {{1}}", delay=0.5)]),
        Turn("break", [Fail(429, retry_after=1)]),
        context=30_000,
    )


def test_a_misspelt_key_is_refused():
    with pytest.raises(ValueError, match="wen"):
        parse_scenario('{"turns": [{"wen": "x"}]}')


def test_a_message_reads_the_same_as_text_and_as_blocks():
    assert RequestMessage("user", "hi").text == RequestMessage("user", [{"type": "text", "text": "hi"}]).text
