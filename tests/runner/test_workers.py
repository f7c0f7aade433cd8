"""Several processes on one PostgreSQL: each issue is worked on by exactly one of them, and a dead one's by another."""

import json
import os
import signal
import subprocess
import sys
import time

import psycopg
import pytest

from tests.runner import engine_process, postgres

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]
ISSUES = 9


@pytest.fixture(scope="module")
def server():
    with postgres.running() as found:
        yield found


@pytest.fixture
def url(server, tmp_path):
    """An empty database: runs of several tests have the same name."""
    name = f"test_{abs(hash(tmp_path))}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return server.removesuffix("postgres") + name


@pytest.fixture
def many(repository):
    for number in range(ISSUES):
        name = f"FEAT-{number:03}"
        repository.commit(f".issues/P2-{name}-x.md", f"---\ncheck: test -f {name}.txt\n---\n# Write {name}\n")
    (repository.root / ".issues/P1-FEAT-012-log-in.md").unlink()
    repository.git("commit", "-qam", "Leave the first out")
    return repository


def begun(repository, *arguments):
    command = [sys.executable, engine_process.__file__, str(repository.root.parent), *arguments]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)


def wait_for(condition, process):
    deadline = time.monotonic() + 300
    while not condition():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("victim", ["worker", "run"])
def test_three_workers_of_which_one_is_killed_deliver_every_issue_once(many, url, victim):
    sessions = many.root.parent / "sessions"
    arguments = ("--database", url, "--each=2")
    run = begun(many, *arguments)
    workers = [begun(many, "--database", url, "--worker") for _ in range(2)]
    wait_for(lambda: sum(1 for _ in sessions.glob("*")) >= 3, run)
    killed = run if victim == "run" else workers[0]
    killed.send_signal(signal.SIGKILL)
    if killed is run:
        run.communicate()
        run = begun(many, *arguments)
    out, err = run.communicate(timeout=400)
    assert run.returncode == 0, err
    found = json.loads(out)["outcome"]["outcomes"]
    assert [(each["result"], each["reason"], each["commits"]) for each in found] == [("delivered", "", 1)] * ISSUES
    log = many.log
    for number in range(ISSUES):
        name = f"FEAT-{number:03}"
        assert len([line for line in log if line.startswith(f"Merge sm/{name}")]) == 1
        assert (many.root / f"{name}.txt").read_text() == "done\n"
        assert log.count(f"Do {name}") == 1
        assert log.count(f"{name}: done") == 1
    assert many.dirty == ""
    assert many.git("branch", "--format=%(refname:short)") == "trunk"
    for worker in workers:
        worker.kill()
        worker.communicate()


def test_what_waits_in_the_queue_is_not_begun_once_the_run_stops(repository, url):
    (repository.root / ".issues/P1-FEAT-012-log-in.md").unlink()
    for number in range(4):
        name = f"FEAT-{number:03}"
        repository.commit(f".issues/P2-{name}-x.md", f"---\ncheck: 'false'\n---\n# Write {name}\n")
    run = begun(repository, "--database", url, "--each=1", "--stop")
    out, err = run.communicate(timeout=400)
    assert run.returncode == 0, err
    found = json.loads(out)["outcome"]["outcomes"]
    results = [each["result"] for each in found]
    assert results.count("needs_you") < 4
    assert "the sprint stops at the first issue that is not delivered" in {each["reason"] for each in found}
