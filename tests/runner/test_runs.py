"""A run as it is looked at and steered from outside of the process that works on it."""

import threading

import pytest

from sm.core.errors import SmError
from sm.runner.database import local_database
from sm.runner.durable import DurableRuns
from sm.runner.run import OpenRun
from sm.runner.runs import opened
from sm.runner.steering import raised, raising, skipping, stopping, unwanted

pytestmark = pytest.mark.timeout(300)
ISSUES = ("FEAT-012", "FEAT-013", "FEAT-014")


def test_an_issue_is_wanted_unless_it_is_left_out_or_the_run_stopped():
    assert unwanted({}, "FEAT-012") == ""
    assert unwanted(skipping("FEAT-013"), "FEAT-012") == ""
    assert unwanted(skipping("FEAT-012"), "FEAT-012") == "you have left it out of the run"
    assert unwanted({**stopping(), **skipping("FEAT-013")}, "FEAT-012") == "you have stopped the run"


def test_the_issue_that_was_raised_last_is_the_first():
    asked = {**raising("FEAT-013", 9.5), **raising("FEAT-014", 1_770_000_000.25), **skipping("FEAT-012")}
    assert raised(asked) == ["FEAT-014", "FEAT-013"]
    assert raised({**asked, **raising("FEAT-013", 1_770_000_001.0)}) == ["FEAT-013", "FEAT-014"]


@pytest.fixture
def database(tmp_path):
    return local_database(tmp_path / "runs/a.sqlite")


@pytest.fixture
def held(repository, tools_of):
    """Tools whose first agent waits until the test lets it work; and what lets it."""
    for name in ISSUES:
        repository.commit(f".issues/P1-{name}-x.md", f"---\ncheck: test -f {name}.txt\n---\n# Write {name}\n")
    repository.git("rm", "-q", ".issues/P1-FEAT-012-log-in.md")
    repository.git("commit", "-qm", "Take the first one away")
    begun, go = threading.Event(), threading.Event()

    def agent(prepared):
        begun.set()
        assert go.wait(120)
        repository.commit(f"{prepared.id}.txt", "x\n", at=prepared.place.worktree)

    yield tools_of(agent), begun, go
    go.set()


def test_what_a_run_does_is_seen_and_what_is_asked_of_it_is_done(database, held):
    tools, begun, go = held
    with pytest.raises(SmError, match="This project has had no run"), opened(database):
        pass
    with DurableRuns(database, tools) as runs:
        runs.begin(OpenRun("R-1", ISSUES, stops=False))
        assert begun.wait(120)
        with opened(database) as seen:
            run = seen.find(None)
            assert (run.run, run.state, run.issues, run.outcome) == ("R-1", "works", ISSUES, None)
            assert [(issue.issue, issue.state) for issue in seen.issues(run)] == [
                ("FEAT-012", "works"),
                ("FEAT-013", "waits"),
                ("FEAT-014", "waits"),
            ]
            assert seen.issues(run)[0].worker == "local"
            seen.skip(run, "feat-013")
            assert seen.issues(run)[1].state == "left_out"
            with pytest.raises(SmError, match="FEAT-012 has begun already"):
                seen.skip(run, "FEAT-012")
            with pytest.raises(SmError, match="R-1 has no issue FEAT-099"):
                seen.skip(run, "FEAT-099")
            with pytest.raises(SmError, match="No such run: R-2"):
                seen.find("R-2")
        go.set()
        found = runs.outcome("R-1")
    assert [(each.result, each.reason) for each in found.outcomes] == [
        ("delivered", ""),
        ("skipped", "you have left it out of the run"),
        ("delivered", ""),
    ]
    with opened(database) as seen:
        run = seen.find("R-1")
        assert (run.state, run.outcome) == ("ended", found)
        assert [issue.state for issue in seen.issues(run)] == ["ended"] * 3
        with pytest.raises(SmError, match="R-1 has ended"):
            seen.stop(run)


def test_what_is_raised_is_worked_on_next(database, held, repository):
    tools, begun, go = held
    with DurableRuns(database, tools) as runs:
        runs.begin(OpenRun("R-1", ISSUES, stops=False))
        assert begun.wait(120)
        with opened(database) as seen:
            assert seen.put_first(seen.find(None), "feat-014", 5.0) == "FEAT-014"
            with pytest.raises(SmError, match="FEAT-012 has begun already"):
                seen.put_first(seen.find(None), "FEAT-012", 6.0)
        go.set()
        runs.outcome("R-1")
    merged = [line.split()[1] for line in repository.log if line.startswith("Merge ")]
    assert merged == ["sm/FEAT-013:", "sm/FEAT-014:", "sm/FEAT-012:"]


def test_a_run_that_is_stopped_finishes_what_it_works_on(database, held):
    tools, begun, go = held
    with DurableRuns(database, tools) as runs:
        runs.begin(OpenRun("R-1", ISSUES, stops=False))
        assert begun.wait(120)
        with opened(database) as seen:
            seen.stop(seen.find(None))
        go.set()
        found = runs.outcome("R-1")
    assert [(each.result, each.reason) for each in found.outcomes] == [
        ("delivered", ""),
        ("skipped", "you have stopped the run"),
        ("skipped", "you have stopped the run"),
    ]
