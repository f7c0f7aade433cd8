"""What was submitted, by records as client 0.171.0 writes them."""

import pytest

from sm.core.model.message import digest
from sm.core.model.usage_limit import RESUME_WORDS
from sm.providers.codex.prompts import newest_task, submitted
from tests.fakes.rollout import Rollout


@pytest.fixture
def path(tmp_path):
    return tmp_path / "r.jsonl"


@pytest.fixture
def talk():
    rollout = Rollout()
    rollout.asked("Build it\nwith care", "Done")
    return rollout


def test_a_prompt_is_found_by_its_digest(talk, path):
    talk.save(path)
    assert submitted(path, digest("  Build it  \r\nwith care \n")) == "Build it\nwith care"
    assert submitted(path, digest("Build it")) is None


def test_a_prompt_in_a_turn_that_runs_is_one(talk, path):
    talk.started()
    talk.prompt("One")
    talk.prompt("And two")
    assert submitted(talk.save(path), digest("And two")) == "And two"


def test_a_prompt_in_parts_is_their_lines(talk, path):
    talk.started()
    talk.prompt("part one", "part two")
    assert submitted(talk.save(path), digest("part one\npart two")) == "part one\npart two"


def test_what_is_older_than_the_position_is_another_prompt(talk, path):
    size = talk.save(path).stat().st_size
    assert submitted(path, digest("Build it\nwith care"), size) is None
    talk.asked("Build it\nwith care", "Done again")
    assert submitted(talk.save(path), digest("Build it\nwith care"), size) is not None


def test_other_records_are_no_prompts(talk, path):
    for kind in ("a hook", "the client", "the agent", "a summary"):
        {
            "a hook": lambda: talk.hook("Ship it"),
            "the client": lambda: talk.message("user", "Ship it", "unknown"),
            "the agent": lambda: talk.said("Ship it"),
            "a summary": lambda: talk.compacted("Ship it"),
        }[kind]()
    talk.item("HookPrompt", fragments=[{"text": "Ship it", "hookRunId": "stop:3"}])
    assert submitted(talk.save(path), digest("Ship it")) is None
    assert newest_task(path) == "Build it\nwith care"


def test_a_file_that_is_not_there_has_none(path):
    assert (submitted(path, digest("x")), newest_task(path)) == (None, "")


def test_the_task_is_the_newest_prompt_that_says_more_than_to_continue(talk, path):
    talk.asked("Test it", "Done")
    talk.asked(f"{RESUME_WORDS}, and do not repeat what is done already.", "Done")
    talk.started()
    talk.prompt("")
    assert newest_task(talk.save(path)) == "Test it"
