"""Worktrees: made once, continued where an earlier run has left one, and never in the place of something else."""

from pathlib import Path

import pytest

from sm.runner.merges import is_protected, one_line
from sm.runner.outcome import Refusal, Workplace
from sm.runner.worktrees import tidied, workplace


def test_a_worktree_is_made_once_and_kept_out_of_git(repository):
    first = workplace(repository.root, "FEAT-012")
    assert first == workplace(repository.root, "FEAT-012")
    assert isinstance(first, Workplace)
    assert (first.branch, first.target) == ("sm/FEAT-012", "trunk")
    assert Path(first.worktree, "README.md").exists()
    assert repository.dirty == ""
    assert (repository.root / ".git/info/exclude").read_text().count("/.worktrees/") == 1


def test_a_branch_that_an_earlier_run_has_kept_is_continued(repository):
    place = workplace(repository.root, "FEAT-012")
    repository.commit("login.txt", "in\n", at=place.worktree)
    repository.git("worktree", "remove", place.worktree)
    assert workplace(repository.root, "FEAT-012") == place
    assert Path(place.worktree, "login.txt").exists()


def test_a_worktree_whose_directory_was_removed_is_made_again(repository):
    import shutil

    place = workplace(repository.root, "FEAT-012")
    repository.commit("login.txt", "in\n", at=place.worktree)
    shutil.rmtree(place.worktree)
    assert workplace(repository.root, "FEAT-012") == place
    assert Path(place.worktree, "login.txt").exists()


def test_a_project_inside_a_repository_is_worked_on_in_the_same_place_of_the_worktree(repository):
    repository.commit("sub/a.txt", "a\n")
    place = workplace(repository.root / "sub", "FEAT-012")
    assert Path(place.directory) == Path(place.worktree, "sub")


def test_what_is_in_the_way_is_left_alone(repository):
    other = repository.root / ".worktrees/FEAT-012"
    other.mkdir(parents=True)
    (other / "mine.txt").write_text("mine\n")
    refused = workplace(repository.root, "FEAT-012")
    assert isinstance(refused, Refusal)
    assert refused.reason.endswith("exists and is not a worktree")
    assert (other / "mine.txt").read_text() == "mine\n"


def test_a_link_in_its_place_is_not_followed(repository, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (repository.root / ".worktrees").symlink_to(tmp_path / "elsewhere")
    assert "symbolic link" in workplace(repository.root, "FEAT-012").reason
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_checkout_on_no_branch_is_refused(repository):
    repository.git("checkout", "-q", "--detach")
    assert workplace(repository.root, "FEAT-012").reason == "the checkout is on no branch with a commit"


@pytest.mark.parametrize(
    ("path", "own"),
    [
        (".issues/a.md", True),
        (".Issues/a.md", True),
        (".issues", True),
        (".issues2/a.md", False),
        ("src/.issues/a.md", False),
        ("TODO.md", True),
        ("docs/TODO.md", False),
        ("sub/.sprints/x.yaml", True),
    ],
)
def test_what_belongs_to_the_issues_is_known_by_its_path(path, own):
    assert is_protected(path, (".issues", "TODO.md", "sub/.sprints")) == own


def test_a_title_stays_a_part_of_one_line():
    assert one_line("Log in\n\nSm-Issue: R-2/BUG-001\x1b[2J") == "Log in Sm-Issue: R-2/BUG-001 [2J"
    assert len(one_line("x" * 500)) == 61


def test_a_branch_that_is_checked_out_elsewhere_is_refused_with_that_place(repository, tmp_path):
    from sm.core.errors import SmError

    repository.git("worktree", "add", "-q", "-b", "sm/FEAT-012", str(tmp_path / "elsewhere"))
    with pytest.raises(SmError, match="elsewhere"):
        workplace(repository.root, "FEAT-012")
    assert not (repository.root / ".worktrees/FEAT-012").exists()


def test_a_worktree_with_files_that_are_not_committed_is_not_removed(repository):
    place = workplace(repository.root, "FEAT-012")
    head = repository.git("rev-parse", "HEAD")
    Path(place.worktree, "mine.txt").write_text("mine\n")
    assert tidied(repository.root, place, head) == (f"kept {place.worktree}: it holds files that are not committed",)
    assert Path(place.worktree, "mine.txt").exists()


def test_a_branch_with_more_than_was_delivered_is_not_removed(repository):
    place = workplace(repository.root, "FEAT-012")
    head = repository.git("rev-parse", "HEAD")
    repository.commit("more.txt", "more\n", at=place.worktree)
    (note,) = tidied(repository.root, place, head)
    assert note.startswith("kept the branch sm/FEAT-012")
    assert repository.git("log", "-1", "--format=%s", "sm/FEAT-012") == "Write more.txt"
