import contextlib
import os
import shutil
import subprocess

import pytest

from sm.archive.handoffs.project_directory import EXCLUDED_DOCUMENTS, is_tracked, keep_out_of_git

ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}


def git(directory, *arguments):
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid"]
    command = ["git", *identity, *arguments]
    return subprocess.run(command, cwd=directory, env=ENV, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(tmp_path):
    root = tmp_path / "repo"
    root.mkdir()
    git(root, "init", "-q")
    (root / "file").write_text("x")
    git(root, "add", "file")
    git(root, "commit", "-qm", "first")
    return root


def with_documents(directory):
    (directory / ".sm").mkdir(parents=True)
    (directory / ".sm" / "handoff.md").write_text("x")
    (directory / ".sm" / "continue-prompt.md").write_text("x")


@pytest.mark.parametrize("below", [".", "a/b"])
def test_git_does_not_see_the_documents_wherever_in_the_repository_they_are(repository, below):
    with_documents(repository / below)
    keep_out_of_git(repository / below)
    assert git(repository, "status", "--porcelain", "-uall") == ""


def test_the_project_file_itself_stays_visible(repository):
    keep_out_of_git(repository)
    (repository / ".sm").mkdir()
    (repository / ".sm" / "config.toml").write_text("")
    assert git(repository, "status", "--porcelain", "-uall") == "?? .sm/config.toml\n"


def test_a_worktree_writes_where_git_looks(repository, tmp_path):
    git(repository, "worktree", "add", "-q", str(tmp_path / "tree"))
    with_documents(tmp_path / "tree")
    keep_out_of_git(tmp_path / "tree")
    assert git(tmp_path / "tree", "status", "--porcelain", "-uall") == ""


def test_twice_is_once_and_what_stood_there_stays(repository):
    exclude = repository / ".git" / "info" / "exclude"
    exclude.write_text("mine")
    keep_out_of_git(repository)
    keep_out_of_git(repository)
    assert exclude.read_text().splitlines() == ["mine", *EXCLUDED_DOCUMENTS]


def test_outside_a_repository_nothing_happens(tmp_path):
    keep_out_of_git(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_submodule_writes_where_git_looks(repository, tmp_path):
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(repository), "inner")
    with_documents(outer / "inner")
    keep_out_of_git(outer / "inner")
    assert git(outer / "inner", "status", "--porcelain", "-uall") == ""


@pytest.mark.parametrize("made", [lambda path: path.mkdir(), lambda path: path.write_text("gitdir: nowhere\n")])
def test_what_only_looks_like_a_repository_is_left_alone(tmp_path, made):
    made(tmp_path / ".git")
    keep_out_of_git(tmp_path)
    assert not (tmp_path / ".git" / "info").exists()


def test_what_git_tracks_is_told_from_what_it_does_not(repository, tmp_path):
    with_documents(repository)
    for _ in range(2):
        assert not is_tracked(repository / ".sm" / "handoff.md")
        keep_out_of_git(repository)
    git(repository, "add", "-f", ".sm/handoff.md")
    assert is_tracked(repository / ".sm" / "handoff.md")
    assert not is_tracked(repository / ".sm" / "continue-prompt.md")
    assert not is_tracked(tmp_path / "elsewhere" / ".sm" / "handoff.md")


def test_a_program_that_the_repository_names_is_not_run(repository, tmp_path):
    with_documents(repository)
    git(repository, "config", "core.fsmonitor", f"touch {tmp_path}/ran; false")
    assert not is_tracked(repository / ".sm" / "handoff.md")
    assert not (tmp_path / "ran").exists()


def test_where_there_is_no_git_nothing_is_tracked(repository, monkeypatch):
    git(repository, "add", "-f", "file")
    monkeypatch.setenv("PATH", "/nowhere")
    assert not is_tracked(repository / "file")


@pytest.mark.parametrize("file", [".git/info/exclude", ".git"])
def test_a_fifo_in_place_of_gits_own_files_keeps_nobody_waiting(repository, file):
    path = repository / file
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    os.mkfifo(path)
    with contextlib.suppress(OSError):
        keep_out_of_git(repository)
