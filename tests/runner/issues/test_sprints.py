"""A sprint's file: a list or a filter, and what is wrong with it."""

import pytest

from sm.core.errors import SmError
from sm.runner.issues.filters import IssueFilter
from sm.runner.issues.issue import IssueType
from sm.runner.issues.sprints import Sprint, sprint, sprint_names


@pytest.fixture
def written(tmp_path):
    def write(text, name="june.yaml"):
        path = tmp_path / ".sprints" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return tmp_path

    return write


def test_a_list(written):
    project = written(
        "name: June\ndescription: what is left\nissues:\n  - BUG-001\n  - 012 # as text\non_failure: stop\n"
    )
    assert sprint(project, "june") == Sprint("june", IssueFilter(only=("BUG-001", "012")), "stop", "what is left")


def test_a_filter(written):
    project = written(
        "filter:\n  type: bug, FEAT\n  priority: [P0, 1]\n  label: api\n  skip: [BUG-9]\n  max_issues: 5\n"
    )
    chosen = IssueFilter((IssueType.BUG, IssueType.FEAT), (0, 1), ("api",), (), ("BUG-9",), 5)
    assert sprint(project, "june") == Sprint("june", chosen)
    assert sprint(written("filter: {}\n", "all.yml"), "all").chosen == IssueFilter()
    assert sprint_names(project) == ["all", "june"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "exactly one of `issues` and `filter` is needed"),
        ("issues: [BUG-1]\nfilter: {}\n", "exactly one of `issues` and `filter` is needed"),
        ("issues: []\n", "`issues` is empty"),
        ("issues: {a: 1}\n", "issues is not a list"),
        ("issues: [[BUG-1]]\n", "issues is not plain text"),
        ("isues: [BUG-1]\n", "unknown key isues: accepted are name, description, created, issues, filter, on_failure"),
        ("filter: {prio: 1}\n", "unknown key filter.prio: accepted are type, priority, label, skip, max_issues"),
        ("filter: [BUG]\n", "filter is not a list of `key: value` lines"),
        ("filter: {type: chore}\n", "type 'chore': accepted are BUG, FEAT, ENH, EPIC, TASK"),
        ("filter: {priority: 6}\n", "priority '6': accepted are P0 to P5"),
        ("filter: {max_issues: 0}\n", "filter.max_issues '0': accepted is a whole number from 1"),
        ("filter: {max_issues: -1}\n", "filter.max_issues '-1': accepted is a whole number from 1"),
        ("issues: [BUG-1]\non_failure: ask\n", "on_failure 'ask': accepted are stop and continue"),
        ("issues: [BUG-1]\nissues: [BUG-2]\n", "line 2: issues is there twice"),
        ("issues: [BUG-1\n", "line 2: expected ',' or ']', but got '<stream end>'"),
        ("- BUG-1\n", "it is not a list of `key: value` lines"),
    ],
)
def test_what_is_wrong_is_reported(written, text, problem):
    """BUG-886, BUG-1513: keys were passed over without a word."""
    with pytest.raises(SmError) as refused:
        sprint(written(text), "june")
    assert (refused.value.refused.code, refused.value.refused.message) == (
        "bad_sprint", f".sprints/june.yaml: {problem}",
    )  # fmt: skip


def test_an_unknown_sprint_is_refused_with_those_that_exist(written):
    with pytest.raises(SmError) as refused:
        sprint(written("issues: [1]"), "july")
    assert (refused.value.refused.message, refused.value.refused.hint) == ("No such sprint: .sprints/july.yaml", "june")


@pytest.mark.parametrize("name", ["../june", "a/b", "", ".hidden", "a\nb", "x" * 200])
def test_a_name_is_no_path(written, name):
    with pytest.raises(SmError, match="Not a name for a sprint"):
        sprint(written("issues: [1]"), name)


def test_a_link_is_not_read(written, tmp_path):
    project = written("issues: [1]")
    (tmp_path / "elsewhere.yaml").write_text("issues: [2]")
    (project / ".sprints/out.yaml").symlink_to(tmp_path / "elsewhere.yaml")
    with pytest.raises(SmError, match=r"\.sprints/out\.yaml: "):
        sprint(project, "out")
