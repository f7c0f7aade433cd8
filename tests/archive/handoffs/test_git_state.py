"""What git tells of a project, and that it never holds anybody up."""

import os
import subprocess

import pytest

from sm.archive.handoffs import git_state as module
from sm.archive.handoffs.git_state import TIMED_OUT, repository
from sm.digest.document import Repository, code
from tests.archive.handoffs.test_project_directory import git

ENV = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    **{f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


@pytest.fixture
def project(tmp_path):
    def git(*arguments):
        subprocess.run(["git", *arguments], cwd=tmp_path / "p", env=ENV, check=True, capture_output=True)

    (tmp_path / "p").mkdir()
    git("init", "-q", "-b", "trunk")
    (tmp_path / "p/a.py").write_text("1")
    git("add", "a.py")
    git("commit", "-q", "-m", "base é")
    git("checkout", "-q", "-b", "feat/x")
    return tmp_path / "p"


def test_branch_status_and_commits(project):
    (project / "a.py").write_text("2")
    (project / "b é.py").write_text("1")
    found = repository(str(project))
    assert (found.branch, found.status) == ("feat/x", (" M a.py", "?? b é.py"))
    assert [line.split(" ", 1)[1] for line in found.commits] == ["base é"]
    assert found.problem == ""


@pytest.mark.parametrize("directory", ["nowhere", "a\0b", "."])
def test_no_work_tree_is_nothing_to_tell(tmp_path, directory):
    assert repository(str(tmp_path / directory)) == Repository()


def test_without_git_there_is_nothing_to_tell(project, monkeypatch):
    monkeypatch.setenv("PATH", str(project))
    assert repository(str(project)) == Repository()


def test_a_repository_without_a_commit_has_a_branch(tmp_path):
    subprocess.run(["git", "init", "-q", "-b", "trunk", "."], cwd=tmp_path, env=ENV, check=True)
    assert repository(str(tmp_path)) == Repository(branch="trunk")


def test_a_detached_head_has_commits_and_no_branch(project):
    subprocess.run(["git", "checkout", "-q", "--detach"], cwd=project, env=ENV, check=True)
    found = repository(str(project))
    assert (found.branch, len(found.commits)) == ("", 1)


def test_what_the_repository_configures_is_not_run(project):
    mark = project.parent / "ran"
    script = project.parent / "script"
    script.write_text(f"#!/bin/sh\ntouch {mark}\n")
    script.chmod(0o700)
    for name in ("core.fsmonitor", "core.pager", "gpg.program", "diff.external"):
        subprocess.run(["git", "config", name, str(script)], cwd=project, env=ENV, check=True)
    subprocess.run(["git", "config", "log.showSignature", "true"], cwd=project, env=ENV, check=True)
    assert repository(str(project)).branch == "feat/x"
    assert not mark.exists()


def test_a_status_that_takes_too_long_is_given_up_and_said(project, tmp_path, monkeypatch):
    slow = tmp_path / "bin"
    slow.mkdir()
    real = subprocess.run(["sh", "-c", "command -v git"], capture_output=True, text=True, check=True).stdout.strip()
    (slow / "git").write_text(f'#!/bin/sh\nfor a; do [ "$a" = status ] && exec sleep 30; done\nexec {real} "$@"\n')
    (slow / "git").chmod(0o700)
    monkeypatch.setenv("PATH", f"{slow}:{os.environ['PATH']}")
    monkeypatch.setattr(module, "GIT_TIMEOUT_S", 0.5)
    found = repository(str(project))
    assert (found.branch, found.status, found.problem) == ("feat/x", (), TIMED_OUT)
    assert len(found.commits) == 1


def test_the_index_is_left_alone(project):
    before = (project / ".git/index").stat().st_mtime_ns
    os.utime(project / "a.py")  # a status with locks would refresh the index now
    repository(str(project))
    assert (project / ".git/index").stat().st_mtime_ns == before
    assert not (project / ".git/index.lock").exists()


def test_names_that_git_quotes_come_as_they_are_and_a_moved_file_is_one_entry(project):
    """C34"""
    (project / "release notes.md").write_text("a\nb\nc\n")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "start")
    git(project, "mv", "release notes.md", "notes -> final.md")
    names = ["ñandú list.txt", "back`tick.txt", 'semi"colon.txt', "tab\there.txt"]
    for name in names:
        (project / name).write_text("x")
    status = repository(str(project)).status
    assert "R  release notes.md -> notes -> final.md" in status
    assert {line for line in status if line.startswith("??")} >= {
        "?? ñandú list.txt",
        "?? back`tick.txt",
        '?? semi"colon.txt',
        "?? tab?here.txt",
    }
    assert len(status) == len(set(status)) == len(names) + 1


@pytest.mark.parametrize(
    ("text", "span"), [("a b", "`a b`"), ("a`b", "`` a`b ``"), ("`", "`` ` ``"), ("``x`", "``` ``x` ```")]
)
def test_a_code_span_holds_any_backtick(text, span):
    """C34"""
    assert code(text) == span
