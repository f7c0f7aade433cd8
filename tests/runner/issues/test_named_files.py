"""Which files an issue names, and who names the same."""

import pytest

from sm.runner.issues.issue import Issue, IssueStatus, IssueType
from sm.runner.issues.named_files import given_files, named_files, overlapping, same_files


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("see `src/app.py`, `src/app.py:12` and `src/app.py:3-9`", ["src/app.py"]),
        ("`README.md` but not README.md", ["README.md"]),
        ("`a` or `b/c` or `b/`", ["b/c", "b/"]),
        ("src/a.py and/or ./docs/b.md.", ["src/a.py", "docs/b.md"]),
        ('(tests/test_a.py) "lib/x.c", [lib/y.h](lib/z.h#L3)', ["tests/test_a.py", "lib/x.c", "lib/y.h", "lib/z.h"]),
        ("all of src/auth/ now", ["src/auth/"]),
        ("`/etc/passwd` ../up.py `~/.ssh/id.pub` /root/x.py `a/../b.py`", []),
        ("https://example.com/a/b.html and v1.2/3", []),
        ("`e.g` `.env` `.github/workflows/ci.yml` `Dockerfile`", ["e.g", ".env", ".github/workflows/ci.yml"]),
        ("`src/über/näme.py` `src/字.py`", ["src/über/näme.py", "src/字.py"]),
        ("", []),
    ],
)
def test_paths_in_a_text(text, files):
    assert list(named_files(text)) == files


def test_paths_that_are_listed_need_no_ending():
    assert given_files(["./Makefile", "src", "../x", "/abs", "Makefile"]) == ("Makefile", "src")


def with_files(number, *files):
    return Issue(f"BUG-{number}", IssueType.BUG, 3, number, "t", IssueStatus.OPEN, "p", files=files)


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        ("src/a.py", "src/a.py", True),
        ("src/a.py", "SRC/A.py", True),
        ("src/", "src/a.py", True),
        ("src", "src/deep/a.py", True),
        ("a.py", "src/a.py", True),
        ("src/a.py", "src/ab.py", False),
        ("src/a", "src/a.py", False),
        ("a.py", "src/ba.py", False),
        ("src/a.py", "lib/a.py", False),
    ],
)
def test_who_names_the_same(one, other, meet):
    assert bool(overlapping(with_files(1, one), with_files(2, other))) is meet
    assert bool(overlapping(with_files(1, other), with_files(2, one))) is meet


def test_pairs_are_named_with_their_files():
    issues = [with_files(1, "a/b.py", "c.py"), with_files(2, "a/"), with_files(3, "d.py"), with_files(4)]
    assert same_files(issues) == (("BUG-1", "BUG-2", ("a/b.py",)),)
