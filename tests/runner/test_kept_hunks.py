"""What a branch takes back of its target, however git was brought to record it as merged."""

from pathlib import Path

import pytest

from sm.runner.kept_hunks import dropped

CODE = "def a():\n    return 1\n\n\ndef b():\n    return 2\n\n\ndef c():\n    return 3\n"


@pytest.fixture
def work(repository):
    """A branch and its target, which both began from the same commit."""
    repository.base = repository.commit("code.py", CODE)
    repository.git("branch", "work")
    return repository


def merged(repository, *options, files=None):
    """Merge trunk into the branch; with `files` as what the merge holds of them, whatever git makes of it."""
    repository.git("switch", "-q", "work")
    if files is None:
        repository.git("merge", "-q", "--no-edit", *options, "trunk")
    else:
        repository.git("merge", "-q", "--no-commit", "--no-ff", "-s", "ours", "trunk")
        for name, text in files.items():
            repository.git("checkout", "-q", "trunk", "--", ".")
            Path(repository.root, name).write_text(text)
            repository.git("add", "--", name)
        repository.git("commit", "-q", "-m", "Merge")
    return dropped(repository.root, repository.base, "trunk", "work")


def on_work(repository, name, text):
    repository.git("switch", "-q", "work")
    repository.commit(name, text)
    repository.git("switch", "-q", "trunk")


def test_a_clean_merge_takes_nothing_back(work):
    on_work(work, "code.py", CODE.replace("return 3", "return 33"))
    work.commit("code.py", CODE.replace("return 1", "return 11"))
    work.commit("other.py", "x = 1\n")
    assert merged(work) == ()


def test_a_merge_by_the_strategy_ours_takes_everything_back(work):
    on_work(work, "code.py", CODE.replace("return 3", "return 33"))
    work.commit("code.py", CODE.replace("return 1", "return 11"))
    work.commit("with blank.py", "x = 1\n")
    work.commit("grün.py", "x = 1\n")
    assert merged(work, "-s", "ours") == ("code.py", "grün.py", "with blank.py")


def test_a_commit_on_top_of_the_target_with_the_files_of_before_does_too(work):
    on_work(work, "own.py", "own = 1\n")
    work.commit("code.py", CODE.replace("return 2", "return 22"))
    work.git("switch", "-q", "work")
    work.git("reset", "-q", "--soft", "trunk")
    work.git("commit", "-q", "-m", "Write own.py")
    assert dropped(work.root, work.base, "trunk", "work") == ("code.py",)


def test_of_a_line_that_both_have_changed_every_gained_word_has_to_stay(work):
    on_work(work, "code.py", CODE.replace("return 1", "return 1 + own"))
    work.commit("code.py", CODE.replace("return 1", "return theirs(1)"))
    assert merged(work, files={"code.py": CODE.replace("return 1", "return theirs(1) + own")}) == ()


def test_a_conflict_that_is_resolved_by_one_side_takes_the_other_back(work):
    on_work(work, "code.py", CODE.replace("return 1", "return 1 + own"))
    work.commit("code.py", CODE.replace("return 1", "return theirs(1)"))
    assert merged(work, files={"code.py": CODE.replace("return 1", "return 1 + own")}) == ("code.py",)


def test_lines_that_the_target_has_removed_do_not_come_back(work):
    on_work(work, "own.py", "own = 1\n")
    without = CODE.replace("def b():\n    return 2\n\n\n", "")
    work.commit("code.py", without)
    assert merged(work) == ()
    work.commit("code.py", CODE)
    assert dropped(work.root, work.base, "trunk", "work") == ("code.py",)


def test_a_file_that_the_target_has_removed_does_not_come_back(work):
    on_work(work, "own.py", "own = 1\n")
    work.git("rm", "-q", "code.py")
    work.git("commit", "-q", "-m", "Remove code.py")
    assert merged(work, "-s", "ours") == ("code.py",)


def test_a_file_that_either_has_renamed_is_followed(work):
    work.git("switch", "-q", "work")
    work.git("mv", "code.py", "moved.py")
    work.git("commit", "-q", "-m", "Move it")
    work.git("switch", "-q", "trunk")
    work.commit("code.py", CODE.replace("return 1", "return 11"))
    assert merged(work) == ()


def test_a_file_that_the_target_has_renamed_may_be_changed_in_its_other_lines(work):
    on_work(work, "code.py", CODE.replace("return 3", "return 33"))
    work.git("mv", "code.py", "moved.py")
    work.git("commit", "-q", "-m", "Move it")
    assert merged(work) == ()


def test_bytes_that_are_no_text_count_too(work):
    (work.root / "a.bin").write_bytes(bytes(range(256)))
    work.git("add", "a.bin")
    work.git("commit", "-q", "-m", "Add bytes")
    assert merged(work, "-s", "ours") == ("a.bin",)


def test_what_the_branch_adds_beside_a_gained_line_is_its_own(work):
    on_work(work, "list.txt", "one\n")
    work.commit("list.txt", "two\n")
    assert merged(work, files={"list.txt": "one\ntwo\nthree\n"}) == ()


def test_a_target_that_has_not_moved_has_gained_nothing(work):
    work.git("switch", "-q", "work")
    work.git("rm", "-q", "README.md")
    work.git("commit", "-q", "-m", "Remove")
    assert dropped(work.root, work.base, "trunk", "work") == ()
