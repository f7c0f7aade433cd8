"""Where a project's issues are, from any directory of it."""

import pytest

from sm.archive.redaction.redact import redacted
from sm.core.errors import SmError
from sm.runner.issues.files import FilesSource
from sm.runner.issues.github import GithubSource
from sm.runner.issues.issue import IssueStatus
from sm.runner.issues.sources import SourceChoice, project_issues
from sm.runner.issues.todo import TodoSource


def project(cwd, name="auto"):
    return project_issues(cwd, SourceChoice(name, "sm", ""), {"PATH": "/nowhere"}, redacted)


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "TODO.md").write_text("- [ ] above the repository\n")
    top = tmp_path / "repository"
    (top / ".git").mkdir(parents=True)
    (top / ".git" / "HEAD").touch()
    (top / "src/deep").mkdir(parents=True)
    return top


def test_it_is_found_upwards_as_far_as_the_top_of_the_repository(tree):
    with pytest.raises(SmError, match=r"No \.issues/ or TODO\.md in"):
        project(tree / "src/deep")
    (tree / "TODO.md").touch()
    found = project(tree / "src/deep")
    assert (found.directory, type(found.source.inner)) == (tree, TodoSource)
    (tree / ".issues").mkdir()
    assert type(project(tree / "src/deep").source.inner) is FilesSource
    assert type(project(tree, "todo").source.inner) is TodoSource
    (tree / "src/TODO.md").touch()
    assert project(tree / "src/deep").directory == tree
    assert project(tree / "src/deep", "todo").directory == tree / "src"


@pytest.mark.parametrize("name", ["files", "todo"])
def test_a_source_that_is_named_and_missing_is_an_error(tree, name):
    with pytest.raises(SmError) as refused:
        project(tree, name)
    assert refused.value.refused.code == "no_source"


def test_github_is_used_only_where_it_is_named(tree):
    assert type(project(tree / "src", "github").source.inner) is GithubSource
    assert project(tree / "src", "github").directory == tree


def test_a_directory_in_no_repository_is_searched_upwards_no_further(tmp_path):
    (tmp_path / "TODO.md").touch()
    (tmp_path / "inner").mkdir()
    with pytest.raises(SmError):
        project(tmp_path / "inner")
    assert project(tmp_path).directory == tmp_path


def test_an_empty_git_directory_is_no_repository(tmp_path):
    """As the sandbox of Codex leaves one wherever its agent may write."""
    (tmp_path / "TODO.md").touch()
    (tmp_path / "inner" / ".git").mkdir(parents=True)
    with pytest.raises(SmError):
        project(tmp_path / "inner")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").touch()
    assert project(tmp_path / "inner").directory == tmp_path


def test_a_reason_is_written_without_secrets_and_an_answer_as_it_is(tree):
    (tree / "TODO.md").write_text("- [ ] one\n")
    token = "ghp_" + "a1B2" * 9
    source = project(tree).source
    known = source.list().issues[0].id
    source.set_status(known, IssueStatus.NEEDS_YOU, f"push with {token} failed")
    assert token not in (tree / "TODO.md").read_text()
    assert "push with [REDACTED" in source.read(known).text
    source.answer(known, f"use {token}")
    assert token in source.read(known).text
