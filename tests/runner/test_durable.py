"""The real engine: what it has kept outlives a SIGKILL, and only one process has it."""

import json
import os
import random
import signal
import stat
import subprocess
import sys

import pytest

from tests.runner import engine_process

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def two_issues(repository):
    repository.commit(".issues/P1-FEAT-012-log-in.md", "---\ncheck: test -f FEAT-012.txt\n---\n# Log in\n")
    repository.commit(".issues/P2-FEAT-013-log-out.md", "---\ncheck: test -f FEAT-013.txt\n---\n# Log out\n")
    return repository


def ran(repository, *arguments):
    command = [sys.executable, engine_process.__file__, str(repository.root.parent), *arguments]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env)


STEPS = ["FEAT-012:ensure_session", "FEAT-012:deliver"]
MORE = [f"FEAT-013:{s}" for s in ("survey", "prepare", "await_outcome", "inspect", "update", "check", "record", "tidy")]


CASES = [
    ("FEAT-012:deliver",),
    *(pytest.param((step,), marks=pytest.mark.soak) for step in (*STEPS, *MORE) if step != "FEAT-012:deliver"),
    *(pytest.param(("--beside", step), marks=pytest.mark.soak) for step in (*STEPS, *MORE)),
]


@pytest.mark.parametrize("arguments", CASES, ids=":".join)
@pytest.mark.often("FEAT-012:deliver")
def test_a_run_that_is_killed_in_a_step_is_continued_by_the_same_command(two_issues, arguments):
    killed = ran(two_issues, *arguments)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    again = ran(two_issues)
    assert again.returncode == 0, again.stderr
    found = json.loads(again.stdout)
    assert found["continued"]
    assert [(each["issue"], each["result"], each["commits"]) for each in found["outcome"]["outcomes"]] == [
        ("FEAT-012", "delivered", 1),
        ("FEAT-013", "delivered", 1),
    ]
    log = two_issues.log
    assert len([line for line in log if line.startswith("Merge sm/")]) == 2
    assert len([line for line in log if line.startswith("Do ")]) == 2
    assert sorted(path.name for path in (two_issues.root.parent / "sessions").iterdir()) == [
        "R-1-FEAT-012-1",
        "R-1-FEAT-013-1",
    ]
    assert two_issues.dirty == ""
    assert (two_issues.root.parent / "runs/R-1.md").read_text().count("- Merged as ") == 2
    assert (two_issues.root.parent / "told").read_text() == "R-1 in pro ject: run R-1: 2 delivered\n"


ISSUES = 10


@pytest.mark.soak
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize(("kills", "seed"), [(20, 2)])
def test_killed_at_moments_of_chance_every_issue_is_delivered_once(repository, kills, seed):
    moments = random.Random(seed)  # noqa: S311  # the same ones again
    names = [f"FEAT-{number:03}" for number in range(20, 20 + ISSUES)]
    for name in names:
        text = f"---\ncheck: test -f {name}.txt\n---\n# Write {name}\n"
        repository.commit(f".issues/P2-{name}-x.md", text)
    repository.commit(".issues/P1-FEAT-012-log-in.md", "---\nstatus: done\n---\n# Log in\n")
    for _ in range(kills):
        killed = ran(repository, f"--dies-after={moments.randrange(60)}")
        assert killed.returncode == -signal.SIGKILL, killed.stderr
    ended = ran(repository)
    found = json.loads(ended.stdout)
    assert found["continued"]
    assert [(each["issue"], each["result"], each["reason"]) for each in found["outcome"]["outcomes"]] == [
        ("FEAT-012", "skipped", "is done"),
        *((name, "delivered", "") for name in names),
    ]
    log = repository.log
    for name in names:
        assert log.count(f"Merge sm/{name}: Write {name}") == log.count(f"Do {name}") == log.count(f"{name}: done") == 1
        assert (repository.root / f"{name}.txt").read_text() == "done\n"
    assert (repository.dirty, repository.git("branch", "--format=%(refname:short)")) == ("", "trunk")


def test_the_database_is_its_users_alone_and_a_run_that_has_ended_is_over(two_issues):
    assert not json.loads(ran(two_issues).stdout)["continued"]
    database = two_issues.root.parent / "runs/a.sqlite"
    assert stat.S_IMODE(database.stat().st_mode) == 0o600
    second = json.loads(ran(two_issues).stdout)
    assert not second["continued"]


@pytest.mark.parametrize(("arguments", "second"), [((), "delivered"), (("--stop",), "skipped")])
@pytest.mark.soak
def test_an_issue_that_is_not_delivered_ends_a_run_that_stops_there(two_issues, arguments, second):
    two_issues.commit(".issues/P1-FEAT-012-log-in.md", "---\ncheck: test -f nothing.txt\n---\n# Log in\n")
    found = json.loads(ran(two_issues, *arguments).stdout)["outcome"]["outcomes"]
    assert [outcome["result"] for outcome in found] == ["needs_you", second]


def test_a_second_process_is_refused_with_the_firsts_pid(two_issues, tmp_path):
    from sm.core.errors import SmError
    from sm.runner.database import local_database

    database = local_database(tmp_path / "runs/a.sqlite")
    database.made()
    first = database.executor()
    first.acquire()
    try:
        refused = ran(two_issues)
        assert f"Another sm (pid {os.getpid()}) works on this project's issues" in refused.stderr
        with pytest.raises(SmError, match="Another sm"):
            database.executor().acquire()
    finally:
        first.release()


EVERY_COMMAND = """
import sys
from importlib import import_module
from sm.cli.app import GROUPS
for commands in GROUPS.values():
    for place, _ in commands.values():
        import_module(place.partition(":")[0])
import sm.bootstrap, sm.runner.workflow, sm.runner.durable
sys.exit("dbos" in sys.modules)
"""


def test_nothing_but_a_run_loads_the_engine():
    assert subprocess.run([sys.executable, "-c", EVERY_COMMAND], check=False).returncode == 0


def test_without_the_engine_it_says_what_to_install(monkeypatch, tools_of, tmp_path):
    from sm.core.errors import SmError
    from sm.runner.database import local_database
    from sm.runner.durable import DurableRuns

    monkeypatch.setitem(sys.modules, "dbos", None)
    database = local_database(tmp_path / "runs/a.sqlite")
    with pytest.raises(SmError) as refused, DurableRuns(database, tools_of(None)):
        pass
    assert refused.value.refused.code == "no_engine"
    assert "agent-sm[run]" in refused.value.refused.hint
    assert not (tmp_path / "runs").exists()
