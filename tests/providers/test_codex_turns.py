"""How a turn has ended, by records as client 0.171.0 writes them."""

from datetime import datetime, timedelta

import pytest

from sm.providers.codex.turns import answered, failure, finished, refusal, usage_limit
from tests.fakes.rollout import START, Rollout

LIMIT = "You’ve hit your usage limit. Try again at 3:40 AM."
FIVE_HOURS = {"used_percent": 100.0, "window_minutes": 300, "resets_at": int(START) + 6_000}
WEEK = {"used_percent": 40.0, "window_minutes": 10_080, "resets_at": int(START) + 400_000}


@pytest.fixture
def talk():
    rollout = Rollout()
    rollout.asked("First", "Done")
    return rollout


@pytest.fixture
def path(tmp_path):
    return tmp_path / "r.jsonl"


def limited(talk, words=LIMIT, primary=None, secondary=None):
    talk.started()
    talk.prompt("Second")
    talk.counted(1_000, limits={"limit_id": "codex", "primary": primary, "secondary": secondary})
    talk.failed(words, "usage_limit_exceeded")


def test_a_turn_that_ended_by_itself_is_finished_and_answered(talk, path):
    talk.save(path)
    assert (finished(path), answered(path), refusal(path), usage_limit(path, START)) == (True, True, None, None)


@pytest.mark.parametrize(
    ("info", "error"),
    [
        ("unauthorized", "unauthorized"),
        ("rate_limit_exceeded", "rate_limit"),
        ({"response_too_many_failed_attempts": {"http_status_code": 429}}, "rate_limit"),
        ({"response_too_many_failed_attempts": {"http_status_code": 500}}, "It broke."),
        ("other", "It broke."),
        (None, "It broke."),
    ],
)
def test_a_turn_that_failed_says_why_until_the_model_replies_again(talk, path, info, error):
    talk.started()
    talk.prompt("Second")
    talk.failed("It broke.", info)
    assert failure(talk.save(path)) == error
    talk.asked("Third", "Done")
    assert failure(talk.save(path)) == ""


def test_a_turn_that_runs_or_was_interrupted_is_not_finished(talk, path):
    talk.started()
    talk.prompt("Second")
    assert not finished(talk.save(path))
    talk.said("In the middle")
    talk.aborted()
    assert not finished(talk.save(path))
    assert answered(path)


def test_a_turn_that_failed_is_neither_finished_nor_answered(talk, path):
    talk.started()
    talk.prompt("Second")
    talk.failed("unexpected status 401", {"http_connection_failed": {"http_status_code": 401}})
    talk.save(path)
    assert (finished(path), answered(path), refusal(path), usage_limit(path, START)) == (False, False, None, None)


@pytest.mark.parametrize("end", ["finished", "aborted"])
def test_a_turn_without_a_reply_leaves_the_one_before_as_it_was(path, end):
    """A compaction on request, and a command that the user ran."""
    talk = Rollout()
    talk.started()
    talk.prompt("First")
    if end == "finished":
        talk.said("Done")
        talk.completed("Done")
    else:
        talk.aborted()
    talk.started()
    talk.command("x", "make", "", 0, source="user_shell")
    talk.completed()
    talk.started()
    talk.compacted()
    talk.completed()
    assert finished(talk.save(path)) == (end == "finished")


def test_a_proposed_plan_ends_its_turn(path):
    talk = Rollout()
    talk.started()
    talk.prompt("Plan it")
    talk.item("Plan", text="# Plan\n- do it\n")
    talk.completed()
    assert finished(talk.save(path))


@pytest.mark.parametrize(
    "data", [b"", b"\n[]\n", b'{"type":"event_msg","payload":{"type":"task_complete","error":7}}\n']
)
def test_odd_files_have_no_end(path, data):
    path.write_bytes(data)
    assert (answered(path), refusal(path), usage_limit(path, START)) == (False, None, None)


def test_a_full_context_is_refused_until_the_model_replies_again(talk, path):
    talk.started()
    talk.prompt("Second")
    talk.counted(0, 248_200)
    talk.failed("Codex ran out of room in the model's context window.", "context_window_exceeded")
    assert refusal(talk.save(path)) == "Codex ran out of room in the model's context window."
    talk.started()
    talk.prompt("Third")
    assert refusal(talk.save(path)) is not None
    talk.used(5_000)  # the client's own compaction
    assert refusal(talk.save(path)) is None


def test_a_limit_resets_when_the_headers_of_the_refusal_said(talk, path):
    limited(talk, primary=FIVE_HOURS, secondary=WEEK)
    found = usage_limit(talk.save(path), START + 5)
    assert (found.kind, found.resets_at, found.since) == ("five_hour", START + 6_000, START)


def test_of_two_limits_that_are_used_up_the_later_one_counts(talk, path):
    limited(talk, primary=FIVE_HOURS, secondary={**WEEK, "used_percent": 100.0})
    found = usage_limit(talk.save(path), START)
    assert (found.kind, found.resets_at) == ("seven_day", START + 400_000)


@pytest.mark.parametrize(("later", "words"), [(0, "{time}"), (2, "{month} {day}nd, {year} {time}")])
def test_a_limit_that_no_header_tells_of_resets_at_the_time_of_its_words(talk, path, later, words):
    moment = datetime.fromtimestamp(START).astimezone().replace(hour=23, minute=59, second=0) + timedelta(days=later)
    parts = {"time": "11:59 PM", "month": f"{moment:%b}", "day": moment.day, "year": moment.year}
    limited(talk, f"You’ve hit your usage limit. Upgrade or try again at {words.format(**parts)}.")
    found = usage_limit(talk.save(path), START)
    assert (found.kind, found.resets_at) == ("usage", moment.timestamp() + 60)


@pytest.mark.parametrize("words", ["Try again later.", "Try again at 99:99 AM."])
def test_a_limit_without_a_time_has_an_unknown_end(talk, path, words):
    limited(talk, f"You’ve hit your usage limit. {words}")
    found = usage_limit(talk.save(path), START)
    assert (found.kind, found.resets_at) == ("usage", None)


def test_a_limit_of_one_model_is_one(talk, path):
    limited(talk, "You’ve hit your usage limit for gpt-x. Try again later.")
    assert usage_limit(talk.save(path), START).kind == "model"


@pytest.mark.parametrize(
    "words",
    [
        "Quota exceeded. Check your plan and billing details.",
        "To use Codex with your ChatGPT plan, upgrade to Plus: https://chatgpt.com/explore/plus.",
    ],
)
def test_what_no_time_ends_is_no_limit(talk, path, words):
    limited(talk, words)
    assert usage_limit(talk.save(path), START) is None
    assert not answered(path)


def test_the_agents_own_words_of_a_limit_are_none(talk, path):
    talk.asked("Second", LIMIT)
    assert usage_limit(talk.save(path), START) is None


def test_a_limit_holds_through_a_prompt_until_the_model_replies(talk, path):
    limited(talk, primary=FIVE_HOURS)
    talk.started()
    talk.prompt("Third")
    talk.counted(1_000)
    assert usage_limit(talk.save(path), START).resets_at == START + 6_000
    talk.said("Again")
    talk.used(1_000)
    assert (usage_limit(talk.save(path), START), answered(path)) == (None, True)


def test_the_counts_of_an_earlier_turn_say_nothing_of_a_limit(talk, path):
    talk.started()
    talk.prompt("Second")
    talk.counted(1_000, limits={"primary": FIVE_HOURS})
    talk.completed("Done")
    talk.started()
    talk.failed("You’ve hit your usage limit. Try again later.", "usage_limit_exceeded")
    assert usage_limit(talk.save(path), START).resets_at is None


def test_a_limit_that_ended_over_a_day_ago_is_left_alone(talk, path):
    limited(talk, primary=FIVE_HOURS)
    talk.save(path)
    assert usage_limit(path, START + 6_000 + 86_000) is not None
    assert usage_limit(path, START + 6_000 + 87_000) is None
