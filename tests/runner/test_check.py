"""The check command: its exit code, its output's end, and no process that outlives it."""

import os
import time
from contextlib import suppress

import pytest

from sm.runner import check
from sm.runner.check import checked


def alive(pid):
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


@pytest.mark.parametrize(
    ("command", "code"), [("true", 0), ("exit 3", 3), ("nothing-of-that-name", 127), ("kill -9 $$", -9)]
)
def test_its_exit_code_is_what_counts(repository, command, code):
    found = checked(str(repository.root), command, 30.0)
    assert (found.code, found.passed) == (code, code == 0)
    assert found.head == repository.git("rev-parse", "HEAD")


def test_it_runs_by_a_shell_in_the_directory_without_what_belongs_to_a_session(repository, monkeypatch):
    monkeypatch.setenv("SM_SESSION_TOKEN", "secret")
    monkeypatch.setenv("GIT_DIR", "/elsewhere")
    found = checked(str(repository.root), 'ls | grep READ && echo "[$SM_SESSION_TOKEN$GIT_DIR]"', 30.0)
    assert found.output == "README.md\n[]\n"


def test_the_end_of_a_long_output_is_kept(repository):
    found = checked(str(repository.root), "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; exit 1", 30.0)
    assert found.output.endswith("line 2999\n")
    assert len(found.output) == check.MAX_OUTPUT


def test_one_that_takes_too_long_is_ended_with_all_that_it_has_started(repository, tmp_path):
    started = tmp_path / "pid"
    found = checked(str(repository.root), f"sleep 300 & echo $! > '{started}'; wait", 0.5)
    assert (found.code, found.passed) == (None, False)
    assert not alive(int(started.read_text()))


def test_one_that_leaves_a_process_behind_with_its_output_open_ends_all_the_same(repository, tmp_path):
    started, begin = tmp_path / "pid", time.monotonic()
    found = checked(str(repository.root), f"sleep 300 & echo $! > '{started}'; echo done", 30.0)
    assert (found.code, found.output) == (0, "done\n")
    assert not alive(int(started.read_text()))
    assert time.monotonic() - begin < 20


def test_one_that_does_not_want_to_end_is_killed(repository, monkeypatch):
    monkeypatch.setattr(check, "GRACE_S", 0.3)
    found = checked(str(repository.root), "trap '' TERM; while :; do sleep 0.1; done", 0.5)
    assert found.code is None
