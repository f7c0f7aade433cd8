"""What a worktree gets besides what is committed: files that git ignores, and submodules."""

import os
from pathlib import Path

import pytest

from sm.core.errors import SmError
from sm.runner.merges import work
from sm.runner.worktrees import tidied, workplace


def ignored(repository, *names):
    """Files of the user that git ignores, and one that it does not."""
    repository.commit(".gitignore", "*.env\nlocal/\n")
    for name in (*names, "notes.txt"):
        path = repository.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name}\n")


def test_ignored_files_that_are_named_are_in_the_worktree_and_no_others(repository):
    ignored(repository, ".env", "app.env", "local/deep dir/ü.txt", "local/skip.bin")
    (repository.root / ".worktreeinclude").write_text("# mine\n.env\nlocal/**\n!local/skip.bin\nnotes.txt\nREADME.md\n")
    place = workplace(repository.root, "FEAT-012")
    tree = Path(place.worktree)
    assert (tree / "local/deep dir/ü.txt").read_text() == "local/deep dir/ü.txt\n"
    assert (tree / ".env").exists()
    assert [name for name in ("app.env", "local/skip.bin", "notes.txt") if (tree / name).exists()] == []
    assert repository.git("status", "--porcelain", at=tree) == ""
    (tree / ".env").write_text("changed by the agent\n")
    assert workplace(repository.root, "FEAT-012") == place
    assert (tree / ".env").read_text() == "changed by the agent\n"


def test_without_such_a_file_nothing_is_copied(repository):
    ignored(repository, ".env")
    place = workplace(repository.root, "FEAT-012")
    assert not Path(place.worktree, ".env").exists()


def test_a_link_is_copied_as_a_link_and_none_is_followed_out_of_the_worktree(repository, tmp_path):
    ignored(repository)
    (tmp_path / "elsewhere").mkdir()
    (repository.root / "local").mkdir()
    (repository.root / "local/link").symlink_to("/nowhere")
    (repository.root / ".worktreeinclude").write_text("local/\n")
    place = workplace(repository.root, "FEAT-012")
    assert Path(place.worktree, "local/link").readlink() == Path("/nowhere")
    other = workplace(repository.root, "FEAT-013")
    assert Path(other.worktree, "local/link").is_symlink()
    Path(other.worktree, "local/link").unlink()
    Path(other.worktree, "local").rmdir()
    Path(other.worktree, "local").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SmError, match="reached by a link out of its worktree"):
        workplace(repository.root, "FEAT-013")
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.fixture
def with_submodule(repository, tmp_path):
    """A repository with another one in it, in a path with a blank."""
    other = tmp_path / "other"
    other.mkdir()
    repository.git("init", "-q", at=other)
    repository.commit("lib.py", "x = 1\n", at=other)
    config = Path(os.environ["HOME"], ".gitconfig")
    config.write_text(config.read_text() + '[protocol "file"]\nallow = always\n')
    repository.git("submodule", "--quiet", "add", str(other), "third party/lib")
    repository.git("commit", "-q", "-m", "Add a submodule")
    return repository


def test_submodules_are_in_a_worktree_and_end_with_it(with_submodule):
    place = workplace(with_submodule.root, "FEAT-012")
    assert Path(place.worktree, "third party/lib/lib.py").read_text() == "x = 1\n"
    assert workplace(with_submodule.root, "FEAT-012") == place
    head = with_submodule.git("rev-parse", "HEAD")
    assert tidied(with_submodule.root, place, head) == ()
    assert not Path(place.worktree).exists()
    assert with_submodule.git("branch", "--format=%(refname:short)") == "trunk"
    assert with_submodule.dirty == ""


@pytest.mark.parametrize("name", ["mine.txt", "third party/lib/mine.txt"])
def test_a_worktree_with_submodules_is_not_removed_with_files_that_are_not_committed(with_submodule, name):
    place = workplace(with_submodule.root, "FEAT-012")
    Path(place.worktree, name).write_text("mine\n")
    (note,) = tidied(with_submodule.root, place, with_submodule.git("rev-parse", "HEAD"))
    assert note == f"kept {place.worktree}: it holds files that are not committed"
    assert Path(place.worktree, name).exists()


def test_a_submodule_with_new_commits_is_not_delivered(with_submodule):
    place = workplace(with_submodule.root, "FEAT-012")
    with_submodule.commit("lib.py", "x = 2\n", at=Path(place.worktree, "third party/lib"))
    with_submodule.git("commit", "-q", "-a", "-m", "Move it", at=place.worktree)
    found = work(place, ())
    assert found.reason == "it changes submodules, whose new commits are in its worktree alone: third party/lib"
