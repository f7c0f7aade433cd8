"""Git that is killed, or ends with its machine: what it leaves is found, and what another git holds is waited for."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from sm.clock import started_at
from sm.core.errors import SmError
from sm.runner import git as runner_git
from sm.runner.git import answer, git
from sm.runner.outcome import Refusal
from sm.runner.steps import PASSING
from sm.runner.worktrees import workplace

SLOW_FILTER = "touch ../../begun; sleep 30"
MAKES_WORKTREE = """
import pathlib, sys
from sm.runner.worktrees import workplace
workplace(pathlib.Path(sys.argv[1]), "FEAT-012")
"""


def index_lock(repository):
    return repository.root / ".git/index.lock"


def test_a_lock_that_another_git_holds_is_waited_for(repository):
    lock = index_lock(repository)
    lock.write_bytes(b"")
    threading.Timer(0.5, lock.unlink).start()
    (repository.root / "new.txt").write_text("new\n")
    git(repository.root, "add", "new.txt")
    assert repository.dirty == "A  new.txt"


def test_a_lock_from_before_the_machines_last_start_is_removed(repository):
    lock = index_lock(repository)
    lock.write_bytes(b"")
    os.utime(lock, (started_at() - 60, started_at() - 60))
    (repository.root / "new.txt").write_text("new\n")
    git(repository.root, "add", "new.txt")
    assert not lock.exists()


@pytest.mark.parametrize("ask", [git, answer])
def test_a_lock_that_stays_is_named_and_the_step_is_tried_again(repository, monkeypatch, ask):
    monkeypatch.setattr(runner_git, "LOCK_TIMEOUT_S", 0.4)
    index_lock(repository).write_bytes(b"")
    (repository.root / "new.txt").write_text("new\n")
    with pytest.raises(SmError, match=r"another git holds .*index\.lock") as refused:
        ask(repository.root, "add", "new.txt")
    assert refused.value.refused.code in PASSING
    assert refused.value.refused.hint.endswith(f"rm '{index_lock(repository)}'")
    assert index_lock(repository).exists()


def test_a_worktree_whose_checkout_was_killed_is_filled(repository):
    for number in range(3):
        repository.commit(f"{number}.big", f"{number}\n")
    repository.commit(".gitattributes", "*.big filter=slow\n")
    repository.git("config", "filter.slow.smudge", SLOW_FILTER)
    command = [sys.executable, "-c", MAKES_WORKTREE, str(repository.root)]
    with subprocess.Popen(command, start_new_session=True) as runner:
        until((repository.root / "begun").exists)
        os.killpg(runner.pid, signal.SIGKILL)
    repository.git("config", "filter.slow.smudge", "cat")
    for lock in repository.root.glob(".git/worktrees/FEAT-012/*.lock"):
        os.utime(lock, (started_at() - 60, started_at() - 60))  # the machine was started again
    place = workplace(repository.root, "FEAT-012")
    assert not isinstance(place, Refusal)
    assert [Path(place.worktree, f"{number}.big").read_text() for number in range(3)] == ["0\n", "1\n", "2\n"]
    assert repository.git("status", "--porcelain", at=place.worktree) == ""
    assert repository.git("symbolic-ref", "--short", "HEAD", at=place.worktree) == "sm/FEAT-012"


@pytest.mark.parametrize("left", ["nothing", "an empty directory", "a directory with its link"])
def test_a_worktree_whose_addition_was_killed_is_made_again(repository, left):
    tree = repository.root / ".worktrees/FEAT-012"
    repository.git("worktree", "add", "-q", "--no-checkout", "-b", "sm/FEAT-012", str(tree))
    (repository.root / ".git/worktrees/FEAT-012/locked").write_text("initializing")
    if left != "a directory with its link":
        (tree / ".git").unlink()
    if left == "nothing":
        tree.rmdir()
    place = workplace(repository.root, "FEAT-012")
    assert not isinstance(place, Refusal)
    assert Path(place.worktree, "README.md").read_text() == "read\n"
    assert not (repository.root / ".git/worktrees/FEAT-012/locked").exists()


def test_a_repository_in_its_place_is_left_alone(repository):
    tree = repository.root / ".worktrees/FEAT-012"
    tree.mkdir(parents=True)
    repository.git("init", "-q", at=tree)
    repository.git("commit", "-q", "--allow-empty", "-m", "Mine", at=tree)
    workplace(repository.root, "FEAT-012")
    assert repository.git("log", "-1", "--format=%s", at=tree) == "Mine"


def until(holds, seconds=20.0):
    for _ in range(int(seconds / 0.05)):
        if holds():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come to that")
