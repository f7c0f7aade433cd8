"""Work that one checkout has begun and another continues, as when a machine has died: with real git and two clones."""

import dataclasses

import pytest

from sm.runner.issues.files import FilesSource
from sm.runner.outcome import Result
from sm.runner.relocation import LocalSteps, MovedError, worked_anywhere
from sm.runner.workflow import IssueWork
from tests.runner.conftest import Repository
from tests.runner.test_workflow import ISSUE, RUN, KeptSteps, KilledError

HERE, THERE = "one:/project", "two:/project"


def worked(steps, here, tools):
    return worked_anywhere(steps, here, lambda own: IssueWork(own, tools, RUN, ISSUE))


@pytest.fixture
def clone(repository, tmp_path):
    root = tmp_path / "clone"
    repository.git("clone", "-q", str(repository.root), str(root))
    return Repository(root)


def moved_to(clone, tools_of):
    """Tools in the clone, with a server of its own."""

    def logs_in(prepared):
        clone.commit("login.txt", "in\n", at=prepared.place.worktree)

    source = FilesSource(clone.root / ".issues")
    return dataclasses.replace(tools_of(logs_in), project=clone.root, top=clone.root, source=source)


@pytest.mark.parametrize("number", [2, 3, 5, 7])
def test_what_is_not_delivered_yet_begins_again_in_the_other_checkout(repository, clone, tools_of, logs_in, number):
    kept = []
    with pytest.raises(KilledError):
        worked(KeptSteps(kept, number), HERE, tools_of(logs_in))
    tools = moved_to(clone, tools_of)
    outcome = worked(KeptSteps(kept), THERE, tools)
    assert (outcome.result, outcome.reason, outcome.commits) == (Result.DELIVERED, "", 1)
    assert clone.log[:2] == ["FEAT-012: done", "Merge sm/FEAT-012: Log in"]
    assert len(tools.sessions.sessions) == 1
    assert not any(line.startswith("Merge") for line in repository.log)


def test_what_was_delivered_there_is_not_worked_again(repository, clone, tools_of, logs_in):
    kept = []
    with pytest.raises(KilledError):
        worked(KeptSteps(kept, at("record")), HERE, tools_of(logs_in))
    tools = moved_to(clone, tools_of)
    outcome = worked(KeptSteps(kept), THERE, tools)
    assert (outcome.result, outcome.merge) == (Result.DELIVERED, repository.git("log", "--merges", "-1", "--format=%H"))
    assert "was delivered in one:/project" in outcome.notes[0]
    assert tools.sessions.sessions == {}


def at(name):
    """Return the number of a step of an issue that is delivered, with the one that says where."""
    begun = ("where", "survey", "prepare", "set_up", "ensure_session", "await_outcome", "await_outcome")
    return (*begun, "inspect", "update", "check", "deliver", "leaks", "record").index(name)


def test_it_stays_moved_and_may_move_back():
    kept = []
    steps = KeptSteps(kept)
    local = LocalSteps(steps, HERE)
    assert local.step("a", lambda: "{}") == "{}"
    for _ in range(2):
        again = LocalSteps(KeptSteps(kept), THERE)
        assert again.begun_in == HERE
        assert again.step("a", lambda: "never") == "{}"
        with pytest.raises(MovedError):
            again.step("b", lambda: "never")
