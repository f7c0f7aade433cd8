"""Which channel a directory has, whatever way it is written, on real repositories and real links."""

import unicodedata
from pathlib import Path

import pytest

from sm.archive.handoffs import channels
from sm.archive.handoffs.channels import branch_at, channel_at, repository_root, spelled, work_tree
from sm.core.model.channel import channel_directory
from tests.archive.handoffs.test_project_directory import git


@pytest.fixture
def repository(tmp_path):
    root = tmp_path / "repo"
    root.mkdir()
    git(root, "init", "-q")
    (root / "file").write_text("x")
    git(root, "add", "file")
    git(root, "commit", "-qm", "first")
    (root / "deep" / "er").mkdir(parents=True)
    return root


def test_a_directory_in_a_repository_belongs_to_its_root(repository):
    assert channel_at(str(repository / "deep" / "er"), {}) == str(repository)


def test_outside_of_any_repository_a_directory_is_its_own_channel(tmp_path):
    """C6: two of them have nothing to do with each other."""
    (tmp_path / "one").mkdir()
    assert channel_at(str(tmp_path), {}) == str(tmp_path)
    assert channel_at(str(tmp_path / "one"), {}) == str(tmp_path / "one")


def test_what_is_checked_out_is_told_of_each_worktree(repository, tmp_path):
    """C6"""
    git(repository, "checkout", "-qb", "main-line")
    git(repository, "worktree", "add", "-q", "-b", "a/feature", str(tmp_path / "tree"))
    assert branch_at(str(repository / "deep")) == "main-line"
    assert branch_at(str(tmp_path / "tree")) == "a/feature"
    git(tmp_path / "tree", "checkout", "-q", "--detach")
    commit = (repository / ".git" / "refs" / "heads" / "main-line").read_text()[:12]
    assert branch_at(str(tmp_path / "tree")) == commit
    assert branch_at(str(tmp_path)) == ""
    assert work_tree(str(repository / "deep")) == str(repository)
    assert work_tree(str(tmp_path / "tree")) == str(tmp_path / "tree")
    assert work_tree(str(tmp_path)) is None


def test_every_worktree_belongs_to_its_repository(repository, tmp_path):
    git(repository, "worktree", "add", "-q", str(tmp_path / "tree"))
    assert channel_at(str(tmp_path / "tree"), {}) == str(repository)


def test_worktrees_of_a_bare_repository_share_it(repository, tmp_path):
    git(tmp_path, "clone", "-q", "--bare", str(repository), "bare.git")
    for name in ("one", "two"):
        git(tmp_path / "bare.git", "worktree", "add", "-q", "-b", name, str(tmp_path / name))
        assert channel_at(str(tmp_path / name), {}) == str(tmp_path / "bare.git")


def test_a_submodule_is_a_project_of_its_own(repository, tmp_path):
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(repository), "inner")
    inner = channel_at(str(outer / "inner" / "deep"), {})
    assert inner == str(outer / ".git" / "modules" / "inner")
    assert channel_at(str(outer), {}) == str(outer)


def test_a_nested_repository_is_a_project_of_its_own_unless_a_configured_path_holds_both(repository):
    nested = repository / "deep" / "nested"
    nested.mkdir()
    git(nested, "init", "-q")
    assert channel_at(str(nested), {}) == str(nested)
    assert channel_at(str(nested), {str(repository): "all"}) == "all"
    assert channel_at(str(nested), {str(repository): "all", str(nested): "inner"}) == "inner"


@pytest.mark.parametrize("content", ["gitdir: nowhere\n", "no pointer\n"])
def test_a_worktree_whose_repository_is_gone_stands_for_itself(tmp_path, content):
    (tmp_path / "tree" / "deep").mkdir(parents=True)
    (tmp_path / "tree" / ".git").write_text(content)
    assert repository_root(tmp_path / "tree" / "deep") == str(tmp_path / "tree")


def test_a_directory_that_only_is_named_like_a_repository_is_none(tmp_path):
    (tmp_path / ".git").mkdir()
    assert repository_root(tmp_path) is None


def test_a_link_leads_to_the_place_it_names(repository, tmp_path):
    (tmp_path / "link").symlink_to(repository / "deep")
    assert channel_at(str(tmp_path / "link" / "er"), {}) == str(repository)
    assert channel_at(str(repository / "deep"), {str(tmp_path / "link"): "linked"}) == "linked"


def test_a_configured_path_below_home_is_found(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "w").mkdir()
    assert channel_at(str(tmp_path / "w"), {"~/w": "work"}) == "work"


@pytest.mark.parametrize(("written", "asked"), [("NFC", "NFD"), ("NFD", "NFC")])
def test_a_configured_path_in_another_form_of_unicode_counts(tmp_path, written, asked):
    place = tmp_path / unicodedata.normalize(asked, "é")
    place.mkdir()
    assert channel_at(str(place), {str(tmp_path / unicodedata.normalize(written, "é")): "accent"}) == "accent"


def test_two_directories_that_differ_in_their_form_alone_are_two_projects_where_the_file_system_says_so(tmp_path):
    paths = [tmp_path / unicodedata.normalize(form, "é") for form in ("NFC", "NFD")]
    for path in paths:
        path.mkdir()
        git(path, "init", "-q")
    channels = {str(paths[0]): "composed", str(paths[1]): "decomposed"}
    assert [channel_at(str(path), channels) for path in paths] == ["composed", "decomposed"]
    assert len({channel_directory(channel_at(str(path), {})) for path in paths}) == 2


class Insensitive:
    """A file system that takes any letter case for the same name, over one that does not."""

    def __init__(self, monkeypatch):
        real = Path.stat

        def stat(path, **options):
            return real(self.as_listed(path), **options)

        monkeypatch.setattr(Path, "stat", stat)

    def as_listed(self, path):
        place = Path("/")
        for part in path.parts[1:]:
            names = [entry.name for entry in place.iterdir()] if place.is_dir() else []
            place /= next((name for name in names if name.casefold() == part.casefold()), part)
        return place


def test_where_letter_case_does_not_count_a_place_has_one_spelling(tmp_path, monkeypatch):
    (tmp_path / "Repo" / "Deep").mkdir(parents=True)
    Insensitive(monkeypatch)
    monkeypatch.setattr(channels.os.path, "realpath", str)
    assert spelled(str(tmp_path / "rEPO" / "deep")) == str(tmp_path / "Repo" / "Deep")


def test_two_projects_of_one_name_never_mix(tmp_path):
    found = set()
    for above in ("acme", "other"):
        place = tmp_path / above / "app"
        place.mkdir(parents=True)
        git(place, "init", "-q")
        (place / "sub").mkdir()
        found.add(channel_directory(channel_at(str(place / "sub"), {})))
    assert len(found) == 2
    assert all(name.startswith("app-") for name in found)
