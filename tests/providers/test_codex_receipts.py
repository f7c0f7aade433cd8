"""What the agent has read, by records as client 0.171.0 writes them."""

import pytest

from sm.providers.codex.receipts import kept, shown
from tests.fakes.rollout import Rollout, ran_text

MARK = "(message m1)"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "r.jsonl"


@pytest.fixture
def talk():
    rollout = Rollout()
    rollout.started()
    return rollout


@pytest.mark.parametrize(
    "tell",
    [
        lambda talk: talk.hook(f"[Input from: a via sm send] {MARK}\nhello"),
        lambda talk: talk.prompt(f"x {MARK}"),
        lambda talk: talk.message("user", f'<hook_prompt hook_run_id="stop:3">{MARK}</hook_prompt>', "unknown"),
    ],
    ids=["a hook's context", "a prompt", "a reply to the hook at a turn's end"],
)
def test_what_the_agent_reads_is_shown(talk, path, tell):
    tell(talk)
    assert shown(talk.save(path), {MARK: 0, "(message m2)": 0}) == {MARK}


def test_what_the_thread_was_given_is_kept_for_the_next_request_until_a_reply_is_behind_it(talk, path):
    talk.used(1_000)
    talk.message("developer", f"[Input from: a via sm send] {MARK}\nhello")
    marks = {MARK: 0, "(message m2)": 0}
    assert (shown(talk.save(path), marks), kept(path, marks)) == (frozenset(), {MARK})
    talk.used(2_000)
    assert (shown(talk.save(path), marks), kept(path, marks)) == ({MARK}, frozenset())


def test_nothing_is_kept_in_a_file_that_is_not_there(path):
    assert kept(path, {MARK: 0}) == frozenset()


@pytest.mark.parametrize(
    "hold",
    [
        lambda talk: talk.ran("sm inbox", MARK),
        lambda talk: talk.result("call_1", ran_text(MARK, 0)),
        lambda talk: talk.said(MARK),
        lambda talk: talk.record("compacted", message=MARK, replacement_history=[{"role": "user", "content": MARK}]),
        lambda talk: talk.message("assistant", MARK, "user"),
        lambda talk: talk.event("other", role="user", content=[{"text": MARK}]),
    ],
    ids=["a command", "a result", "a reply", "a compaction", "the model's words", "an event"],
)
def test_what_only_holds_its_name_is_no_proof(talk, path, hold):
    hold(talk)
    assert shown(talk.save(path), {MARK: 0}) == frozenset()


def test_what_is_older_than_the_mark_is_another_message(talk, path):
    talk.hook(MARK)
    size = talk.save(path).stat().st_size
    assert shown(path, {MARK: size}) == frozenset()
    talk.hook(MARK)
    assert shown(talk.save(path), {MARK: size}) == {MARK}


def test_no_file_shows_nothing_and_an_unreadable_one_does_not_tell(tmp_path, path):
    assert shown(path, {MARK: 0}) == frozenset()
    assert shown(tmp_path, {MARK: 0}) is None
