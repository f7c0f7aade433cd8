"""What records say in words, as client 0.171.0 writes them."""

import pytest

from sm.providers.codex.utterances import MAX_CHARS, utterance
from tests.fakes.rollout import START, Rollout, ran_text


def said(talk):
    return [found.text for found in map(utterance, talk.lines) if found is not None]


def test_a_turn_is_each_text_once():
    talk = Rollout()
    talk.started()
    talk.hook("Of a hook")
    talk.prompt("Build it", "with care")
    talk.said("I look first.")
    talk.ran("make test", "1 failed\n", 2)
    talk.patched({"/srv/app/a.py": {"type": "add", "content": "x = 1\n"}})
    talk.said("Done")
    talk.completed("Done")
    assert said(talk) == [
        "Build it\nwith care",
        "I look first.",
        "exec_command\nmake test",
        ran_text("1 failed\n", 2),
        "apply_patch\n*** Begin Patch\n*** End Patch",
        "Success.",
        "Done",
    ]


def test_a_command_of_the_user_and_a_plan_are_words():
    talk = Rollout()
    talk.command("x", "make deploy", "deployed\n", 0, source="user_shell")
    talk.item("Plan", text="# Plan\n- do it\n")
    assert said(talk) == ["make deploy\ndeployed\n", "# Plan\n- do it\n"]


def test_it_was_said_when_the_record_was_written():
    talk = Rollout()
    talk.at += 60
    talk.said("Done")
    assert utterance(talk.lines[1]).at == START + 60


def test_a_result_in_parts_is_their_text():
    talk = Rollout()
    talk.result("c", [{"type": "input_text", "text": "one"}, {"type": "input_image", "image_url": "data:x"}])
    assert said(talk) == ["one"]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[1]\n",
        b'{"type":"event_msg","payload":{"type":"item_completed","item":7}}',
        b'{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"UserMessage","content":7}}}',
        b'{"type":"response_item","payload":{"type":"function_call","name":5,"arguments":{"cmd":1}}}',
        b'{"type":"response_item","payload":{"type":"function_call_output","output":null}}',
    ],
)
def test_odd_records_say_nothing(line):
    assert utterance(line) is None


def test_arguments_that_are_no_object_are_kept_as_they_are_and_a_long_text_is_cut():
    talk = Rollout()
    talk.record("response_item", type="function_call", name="odd", arguments="not json", call_id="c")
    talk.said("x" * (MAX_CHARS + 9))
    assert [len(text) for text in said(talk)] == [len("odd\nnot json"), MAX_CHARS]
