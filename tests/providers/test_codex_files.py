"""Where the rollouts of a thread are, as client 0.171.0 names them."""

from datetime import UTC, datetime

import pytest

from sm.providers.codex.files import archived, family, history, newest_file
from tests.fakes.rollout import START, THREAD, Rollout

SEGMENT = "019e0000-0000-7000-8000-0000000000a2"
SECOND = "019e0000-0000-7000-8000-0000000000a3"
CHILD = "019e0000-0000-7000-8000-0000000000c1"
FORK = "019e0000-0000-7000-8000-0000000000f1"


def file_of(home, name, day=None):
    day = day or f"{datetime.fromtimestamp(int(THREAD.replace('-', '')[:12], 16) / 1000, UTC):%Y/%m/%d}"
    return home / f"sessions/{day}/rollout-2026-05-28T20-26-40-{name}.jsonl"


def written(home, name, **meta):
    return Rollout(name[:36], **meta).save(file_of(home, name))


def test_a_thread_is_found_by_its_id(tmp_path):
    path = written(tmp_path, THREAD)
    written(tmp_path, FORK)
    assert newest_file(tmp_path, THREAD) == path


def test_a_thread_whose_user_went_back_continues_in_the_newest_of_its_files(tmp_path):
    for name in (THREAD, f"{THREAD}_{SECOND}", f"{THREAD}_{SEGMENT}"):
        written(tmp_path, name)
    assert newest_file(tmp_path, THREAD) == file_of(tmp_path, f"{THREAD}_{SECOND}")


def test_an_archived_thread_is_found_and_is_known_to_be_archived(tmp_path):
    path = Rollout().save(tmp_path / f"archived_sessions/rollout-2026-05-28T20-26-40-{THREAD}.jsonl")
    assert newest_file(tmp_path, THREAD) == path
    assert archived(path)
    again = written(tmp_path, THREAD)
    assert (newest_file(tmp_path, THREAD), archived(again)) == (again, False)


@pytest.mark.parametrize("name", ["", "*", "../x", "no-such-thread", THREAD[:-1] + "9"])
def test_what_is_no_id_of_a_thread_finds_nothing(tmp_path, name):
    written(tmp_path, THREAD)
    assert newest_file(tmp_path, name) is None


def test_a_thread_of_its_own_has_one_part(tmp_path):
    path = written(tmp_path, THREAD)
    assert [(part.path, part.end) for part in history(path)] == [(path, None)]


def test_the_parts_before_a_fork_and_before_going_back_come_first(tmp_path):
    first = written(tmp_path, THREAD)
    second = written(tmp_path, f"{THREAD}_{SEGMENT}", history_base={"thread_id": THREAD, "end_byte_offset": 70})
    third = written(tmp_path, FORK, history_base={"thread_id": SEGMENT, "end_byte_offset": 90})
    parts = history(third)
    assert [(part.path, part.thread, part.end) for part in parts] == [
        (first, THREAD, 70),
        (second, THREAD, 90),
        (third, FORK, None),
    ]


@pytest.mark.parametrize("base", [7, {"thread_id": 5}, {"thread_id": "*"}, {"thread_id": FORK}, {"thread_id": THREAD}])
def test_a_base_that_is_not_there_or_the_file_itself_is_no_part(tmp_path, base):
    path = written(tmp_path, THREAD, history_base=base)
    assert [part.path for part in history(path)] == [path]


def test_the_family_is_all_of_one_session(tmp_path):
    path = written(tmp_path, THREAD)
    segment = written(tmp_path, f"{THREAD}_{SEGMENT}")
    child = written(tmp_path, CHILD, session_id=THREAD)
    written(tmp_path, FORK, forked_from_id=THREAD)
    assert set(family(path)) == set(family(segment)) == {path, segment, child}
    assert family(path)[0] == path


def test_a_subagent_of_the_next_day_is_of_the_family(tmp_path):
    path = written(tmp_path, THREAD)
    child = Rollout(CHILD, session_id=THREAD).save(file_of(tmp_path, CHILD, "2026/05/29"))
    assert path.stat().st_mtime > START
    assert set(family(path)) == {path, child}


def test_a_file_with_a_name_of_its_own_is_alone(tmp_path):
    path = Rollout().save(tmp_path / "r.jsonl")
    written(tmp_path, THREAD)
    assert family(path) == [path]
