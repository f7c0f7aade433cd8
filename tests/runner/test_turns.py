"""Turns in one repository: taken by threads and processes alike, and free once their process is dead."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from sm.runner.turns import turn

HOLDS = """
import sys, time
from pathlib import Path
from sm.runner.turns import turn
with turn(Path(sys.argv[1]), "delivery"):
    print("has it", flush=True)
    time.sleep(60)
"""


def taken(root, kind="delivery"):
    """A thread that takes a turn, and says when it has it."""
    has = threading.Event()

    def take():
        with turn(root, kind):
            has.set()

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    return has, thread


def test_a_turn_is_taken_by_one_thread_at_a_time_and_the_other_kind_is_free(repository):
    with turn(repository.root, "delivery"):
        has, thread = taken(repository.root)
        assert not has.wait(0.3)
        with turn(repository.root, "git"):
            pass
    assert has.wait(10)
    thread.join(10)


def test_a_worktree_has_the_same_turns_as_its_repository(repository, tmp_path):
    repository.git("worktree", "add", "-q", str(tmp_path / "other"))
    with turn(repository.root, "git"):
        has, thread = taken(tmp_path / "other", "git")
        assert not has.wait(0.3)
    assert has.wait(10)
    thread.join(10)


def test_a_process_that_is_killed_keeps_no_turn(repository):
    command = [sys.executable, "-c", HOLDS, str(repository.root)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=env) as holder:
        assert holder.stdout.readline() == b"has it\n"
        has, thread = taken(repository.root)
        assert not has.wait(0.3)
        holder.send_signal(signal.SIGKILL)
        assert has.wait(10)
        thread.join(10)


def test_outside_of_a_repository_there_are_none(tmp_path):
    from sm.core.errors import SmError

    with pytest.raises(SmError, match="is in no git repository"), turn(tmp_path, "git"):
        pass
