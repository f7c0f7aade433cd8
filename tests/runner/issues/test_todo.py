"""A checklist: which lines are issues, ids that stay, and ticking a box changes nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sm.core.errors import SmError
from sm.runner.issues.issue import IssueStatus, IssueType
from sm.runner.issues.todo import MARKS, TodoSource


class Checklist:
    def __init__(self, root, text):
        self.path = root / "TODO.md"
        self.path.write_text(text, newline="")

    @property
    def source(self):
        return TodoSource(self.path)

    @property
    def text(self):
        return self.path.read_bytes().decode()

    def ids(self):
        return {issue.title: issue.id for issue in self.source.list().issues}


@pytest.fixture
def checklist(tmp_path):
    return lambda text: Checklist(tmp_path, text)


def test_each_item_with_a_box_is_an_issue_in_the_order_of_the_file(checklist):
    found = checklist(
        "# To do\n\n- [ ] one\n* [x] two\n+ [X] three\n1. [ ] four\n2) [-] five\n"
        "- six\n- [] seven\n- [ ]eight\n[ ] nine\n"
    )
    issues = found.source.list().issues
    assert [(issue.title, issue.status.value, issue.number) for issue in issues] == [
        ("one", "open", 1), ("two", "done", 2), ("three", "done", 3), ("four", "open", 4), ("five", "closed", 5),
    ]  # fmt: skip
    assert {issue.type for issue in issues} == {IssueType.TASK}
    assert issues[0].place == "TODO.md:3"


def test_a_fence_holds_no_issues(checklist):
    found = checklist("- [ ] one\n\n  ```md\n  - [ ] not one\n  ~~~\n  ```\n\n~~~\n- [ ] nor this\n~~~\n- [ ] two\n")
    assert list(found.ids()) == ["one", "two"]
    assert "- [ ] not one" in found.source.list().issues[0].text


def test_what_is_below_an_item_belongs_to_it(checklist):
    found = checklist(
        "- [ ] one in `src/a.py`\n  Read this:\n\n    indented\n- [ ] two\nnot below it\n\n# Later\n  nor this\n"
    )
    one, two = found.source.list().issues
    assert one.text == "one in `src/a.py`\nRead this:\n\n  indented"
    assert one.files == ("src/a.py",)
    assert two.text == "two"


def test_an_item_with_items_below_it_holds_them(checklist):
    found = checklist("- [ ] log in\n  why\n  - [ ] form\n\t- [x] button\n  - [ ] session\n    of a day\n- [ ] other\n")
    issues = {issue.title: issue for issue in found.source.list().issues}
    assert issues["log in"].type is IssueType.EPIC
    assert issues["log in"].text == "log in\nwhy"
    parents = {title: issue.parent for title, issue in issues.items()}
    log_in, form = issues["log in"].id, issues["form"].id
    assert parents == {"log in": "", "form": log_in, "button": form, "session": log_in, "other": ""}
    assert issues["session"].text == "session\nof a day"


def test_priority_and_id_may_be_written_before_the_words(checklist):
    found = checklist(
        "- [ ] P0 fire\n- [ ] (P1) smoke\n- [ ] [P2]: ash\n- [ ] FEAT-012: log in\n"
        "- [ ] P4 bug-7 x\n- [ ] P1000 pages\n"
    )
    assert [(issue.id[:4], issue.priority, issue.title) for issue in found.source.list().issues] == [
        ("TODO", 0, "fire"), ("TODO", 1, "smoke"), ("TODO", 2, "ash"), ("FEAT", 3, "log in"), ("BUG-", 4, "x"),
        ("TODO", 3, "P1000 pages"),
    ]  # fmt: skip
    assert found.source.read("FEAT-12").title == "log in"
    assert found.source.read("feat-012").type is IssueType.FEAT


def test_an_id_stays_whatever_is_ticked_moved_or_added(checklist):
    before = checklist("- [ ] one\n- [ ] two\n  - [ ] tests\n- [ ] three\n  - [ ] tests\n").ids()
    after = checklist(
        "# New\n- [ ] zero\n* [x]  three\n    - [ ] tests\n\n## Old\n- [/] two\n  words\n- [?] one\r\n"
    ).ids()
    assert {title: after[title] for title in ("one", "two", "three")} == {
        title: before[title] for title in ("one", "two", "three")
    }
    assert after["zero"] not in before.values()


def test_items_of_the_same_words_have_different_ids_which_stay_when_the_first_is_done(checklist):
    found = checklist("- [ ] same\n- [ ] same\n- [ ] same\n")
    ids = [issue.id for issue in found.source.list().issues]
    assert len(set(ids)) == 3
    found.source.set_status(ids[1], IssueStatus.DONE)
    assert found.text == "- [ ] same\n- [x] same\n- [ ] same\n"
    assert [issue.id for issue in found.source.list().issues] == ids


def test_an_id_that_is_given_twice_is_refused_with_both_places(checklist):
    found = checklist("- [ ] FEAT-1 one\n- [ ] bug-001: two\n- [ ] three\n")
    assert [issue.title for issue in found.source.list().issues] == ["three"]
    for name in ("FEAT-1", "BUG-1", "1"):
        with pytest.raises(SmError, match=r"number 1 is used twice: TODO\.md:1 and TODO\.md:2"):
            found.source.set_status(name, IssueStatus.DONE)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("- [o] one", "TODO.md:1: box [o]: accepted are [ ], [x], [-], [/], [?], [!]"),
        ("- [ ] P9 one", "TODO.md:1: priority 'P9': accepted are P0 to P5"),
    ],
)
def test_an_item_that_cannot_be_read_is_reported(checklist, line, problem):
    found = checklist(f"{line}\n- [ ] two\n").source.list()
    assert [str(problem) for problem in found.problems] == [problem]
    assert [issue.title for issue in found.issues] == ["two"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("- [ ] one\r\n- [ ] two", "- [x] one\r\n- [ ] two"),
        ("\ufeff# T\n\t* [ ]   one \n", "\ufeff# T\n\t* [x]   one \n"),
        ("- [ ] one [ ] [x]\n", "- [x] one [ ] [x]\n"),
        ("- [ ] one\n  - [ ] below\n", "- [x] one\n  - [ ] below\n"),
        ("10) [ ] one", "10) [x] one"),
    ],
)
def test_marking_done_ticks_the_box_and_changes_nothing_else(checklist, before, after):
    found = checklist(before)
    found.source.set_status(found.source.list().issues[0].id, IssueStatus.DONE, "delivered as 1a2b3c")
    assert found.text == after


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=6), st.integers(0, 5), st.sampled_from(list(IssueStatus)))
def test_law_a_status_changes_one_character(tmp_path_factory, words, place, status):
    found = Checklist(tmp_path_factory.mktemp("todo"), "".join(f"- [ ] {word}\n" for word in words))
    before = found.text
    issues = found.source.list().issues
    chosen = issues[place % len(issues)]
    found.source.set_status(chosen.id, status)
    line = before.split("\n")[chosen.number - 1]
    lines = before.split("\n")
    lines[chosen.number - 1] = line.replace("[ ]", f"[{MARKS[status]}]", 1)
    assert found.text == "\n".join(lines)
    assert found.source.read(chosen.id).status is status


def test_a_reason_is_quoted_below_the_item_and_becomes_no_item(checklist):
    found = checklist("- [ ] one\n  more\n\n- [ ] two")
    one, two = (issue.id for issue in found.source.list().issues)
    found.source.set_status(one, IssueStatus.NEEDS_YOU, "why?\n- [ ] three\n# Four")
    found.source.answer(two, "so")
    assert found.text == (
        "- [?] one\n  more\n  **sm: needs you**\n  > why?\n  > - [ ] three\n  > # Four\n\n"
        "- [ ] two\n  **sm: answer**\n  > so\n"
    )
    assert list(found.ids().values()) == [one, two]


def test_an_item_that_is_gone_is_refused(checklist):
    found = checklist("- [ ] one\n")
    known = found.source.list().issues[0].id
    found.path.write_text("- [ ] two\n")
    with pytest.raises(SmError, match="No such issue"):
        found.source.set_status(known, IssueStatus.DONE)


def test_bytes_that_are_no_text_are_refused(checklist):
    found = checklist("")
    found.path.write_bytes(b"- [ ] one\n\xff")
    with pytest.raises(SmError, match=r"TODO\.md: line 2 is not UTF-8"):
        found.source.list()
