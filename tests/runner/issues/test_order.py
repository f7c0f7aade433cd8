"""In which order, in which waves, and why not: dependencies, cycles, epics, choices."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sm.core.errors import SmError
from sm.runner.issues.filters import IssueFilter
from sm.runner.issues.issue import Issue, IssueList, IssueProblem, IssueStatus, IssueType
from sm.runner.issues.order import planned

OPEN, IN_PROGRESS, NEEDS_YOU, BLOCKED, DONE, CLOSED = IssueStatus


def issue(name, priority=3, **others):
    kind, _, number = name.partition("-")
    made = Issue(name, IssueType(kind), priority, int(number), name.lower(), OPEN, f".issues/{name}.md")
    return replace(made, **others)


def plan(*issues, problems=(), **chosen):
    return planned(IssueList(issues, tuple(problems)), IssueFilter(**chosen))


def order(*issues, **chosen):
    return [found.id for found in plan(*issues, **chosen).order]


def reasons(*issues, **chosen):
    return {out.id: out.reason for out in plan(*issues, **chosen).left_out}


def waves(*issues, **chosen):
    return [[found.id for found in wave] for wave in plan(*issues, **chosen).waves]


def test_priority_comes_first_then_the_number():
    issues = [issue("BUG-9", 1), issue("FEAT-2", 1), issue("ENH-10", 0), issue("BUG-1", 5)]
    assert order(*issues) == ["ENH-10", "FEAT-2", "BUG-9", "BUG-1"]
    assert waves(*issues) == [["ENH-10", "FEAT-2", "BUG-9", "BUG-1"]]


def test_nothing_comes_before_what_it_waits_for_which_is_as_urgent():
    issues = [
        issue("BUG-1", 0, blocked_by=("feat-004",)),
        issue("BUG-2", 2),
        issue("FEAT-3", 1, depends_on=("2", "BUG-1")),
        issue("FEAT-4", 5),
    ]
    assert order(*issues) == ["FEAT-4", "BUG-1", "BUG-2", "FEAT-3"]
    assert waves(*issues) == [["FEAT-4", "BUG-2"], ["BUG-1"], ["FEAT-3"]]


def test_what_blocks_another_is_waited_for_as_if_that_one_said_so():
    issues = [issue("BUG-1", 0), issue("BUG-2", 5, blocks=("bug-001",))]
    assert waves(*issues) == [["BUG-2"], ["BUG-1"]]


@pytest.mark.parametrize("status", [DONE, CLOSED])
def test_what_is_over_is_waited_for_no_longer_and_not_worked(status):
    assert order(issue("BUG-1", status=status), issue("BUG-2", blocked_by=("BUG-1",))) == ["BUG-2"]
    assert reasons(issue("BUG-1", status=status)) == {}


def test_an_issue_in_progress_is_continued():
    assert order(issue("BUG-1", status=IN_PROGRESS)) == ["BUG-1"]


def test_who_waits_for_somebody_is_left_out_with_the_reason_and_so_is_who_waits_for_that_one():
    issues = [
        issue("BUG-1", status=NEEDS_YOU),
        issue("BUG-2", status=BLOCKED),
        issue("BUG-3", blocked_by=("BUG-1",)),
        issue("BUG-4", blocked_by=("BUG-2",)),
        issue("BUG-5", depends_on=("BUG-4",)),
        issue("BUG-6", blocked_by=("BUG-99",)),
    ]
    assert order(*issues) == []
    assert reasons(*issues) == {
        "BUG-1": "needs you: sm issues answer BUG-1 TEXT",
        "BUG-2": "is blocked",
        "BUG-3": "waits for BUG-1, which needs you",
        "BUG-4": "waits for BUG-2, which is blocked",
        "BUG-5": "waits for BUG-4",
        "BUG-6": "waits for BUG-99, which does not exist",
    }


def test_who_waits_for_an_issue_that_cannot_be_read_is_shown_why():
    problem = IssueProblem(".issues/x.md", "line 2 is not UTF-8", ("BUG-9",))
    found = plan(issue("BUG-1", blocked_by=("bug-009",)), problems=[problem])
    assert found.left_out[0].reason == "waits for bug-009: .issues/x.md: line 2 is not UTF-8"


def test_a_cycle_is_reported_with_its_members_and_whoever_waits_for_it_is_left_out():
    issues = [
        issue("BUG-1", blocked_by=("BUG-3",)),
        issue("BUG-2", depends_on=("BUG-1",)),
        issue("BUG-3", blocked_by=("BUG-2",)),
        issue("BUG-4", blocked_by=("BUG-2",)),
        issue("BUG-5", blocked_by=("BUG-5",)),
        issue("BUG-6"),
    ]
    found = plan(*issues)
    assert found.cycles == (("BUG-1", "BUG-3", "BUG-2"), ("BUG-5",))
    assert [known.id for known in found.order] == ["BUG-6"]
    assert reasons(*issues) == {
        **dict.fromkeys(("BUG-1", "BUG-2", "BUG-3"), "is in a cycle: BUG-1 → BUG-3 → BUG-2 → BUG-1"),
        "BUG-4": "waits for BUG-2",
        "BUG-5": "is in a cycle: BUG-5 → BUG-5",
    }


def test_an_epic_is_done_once_its_issues_are_and_never_worked_itself():
    epic, child, other = (
        issue("EPIC-1", 0),
        issue("BUG-2", parent="epic-001"),
        issue("BUG-3", 0, blocked_by=("EPIC-1",)),
    )
    assert order(epic, child, other) == ["BUG-2", "BUG-3"]
    assert order(epic, replace(child, status=DONE), other) == ["BUG-3"]
    assert reasons(epic, replace(child, status=BLOCKED), other)["BUG-3"] == "waits for BUG-2, which is blocked"
    assert reasons(epic, other) == {
        "EPIC-1": "is an epic without issues", "BUG-3": "waits for EPIC-1, which is an epic without issues",
    }  # fmt: skip


def test_an_issue_does_not_wait_for_the_epic_that_it_is_in():
    epics = [issue("EPIC-1"), issue("EPIC-2", parent="EPIC-1")]
    children = [
        issue("BUG-3", parent="EPIC-2", blocked_by=("EPIC-1",)),
        issue("BUG-4", parent="EPIC-2", depends_on=("2",)),
    ]
    assert order(*epics, *children) == ["BUG-3", "BUG-4"]


def test_epics_that_hold_each_other_end_no_search():
    issues = [issue("EPIC-1", parent="EPIC-2"), issue("EPIC-2", parent="EPIC-1"), issue("BUG-3", parent="EPIC-1")]
    assert order(*issues) == ["BUG-3"]
    assert order(*issues, only=("EPIC-2",)) == ["BUG-3"]


MANY = [
    issue("BUG-1", 0, labels=("Api",)),
    issue("FEAT-2", 1, labels=("ui", "api")),
    issue("ENH-3", 2),
    issue("EPIC-4"),
    issue("BUG-5", 3, parent="EPIC-4"),
    issue("BUG-6", 4, depends_on=("BUG-1",)),
]


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({}, "BUG-1 FEAT-2 ENH-3 BUG-5 BUG-6"),
        ({"types": (IssueType.BUG,)}, "BUG-1 BUG-5 BUG-6"),
        ({"types": (IssueType.ENH, IssueType.FEAT)}, "FEAT-2 ENH-3"),
        ({"priorities": (0, 3)}, "BUG-1 BUG-5"),
        ({"labels": ("API",)}, "BUG-1 FEAT-2"),
        ({"labels": ("none", "ui")}, "FEAT-2"),
        ({"only": ("bug-001", "3")}, "BUG-1 ENH-3"),
        ({"only": ("EPIC-4", "P2-ENH-3-x.md")}, "ENH-3 BUG-5"),
        ({"skip": ("EPIC-4", "FEAT-2")}, "BUG-1 ENH-3 BUG-6"),
        ({"only": ("BUG-1", "FEAT-2"), "labels": ("ui",)}, "FEAT-2"),
        ({"max_issues": 2}, "BUG-1 FEAT-2"),
        ({"max_issues": 99}, "BUG-1 FEAT-2 ENH-3 BUG-5 BUG-6"),
        ({"types": (IssueType.TASK,)}, ""),
    ],
)
def test_what_is_chosen_is_worked_in_the_same_order(chosen, expected):
    assert order(*MANY, **chosen) == expected.split()


def test_who_waits_for_an_open_issue_that_is_not_chosen_is_left_out():
    assert order(*MANY, only=("BUG-6",)) == []
    assert reasons(*MANY, only=("BUG-6",)) == {"BUG-6": "waits for BUG-1, which is not chosen"}


@pytest.mark.parametrize("option", ["only", "skip"])
def test_every_unknown_id_of_a_choice_is_named(option):
    with pytest.raises(SmError) as refused:
        plan(*MANY, **{option: ("BUG-1", "BUG-11", "FAET-2")})
    assert refused.value.refused.message == "No such issue: BUG-11, FAET-2"
    assert refused.value.refused.hint == "the nearest: BUG-1, FEAT-2"


NAMES = [f"BUG-{number}" for number in range(1, 8)]
ISSUES = st.fixed_dictionaries(
    {
        name: st.builds(
            lambda priority, needs, status, name=name: issue(name, priority, blocked_by=tuple(needs), status=status),
            st.integers(0, 5),
            st.lists(st.sampled_from(NAMES), max_size=2),
            st.sampled_from([OPEN, OPEN, OPEN, IN_PROGRESS, DONE, NEEDS_YOU]),
        )
        for name in NAMES
    }
)


@given(ISSUES)
def test_law_an_order_keeps_every_promise(drawn):
    found = plan(*drawn.values())
    place = {known.id: number for number, known in enumerate(found.order)}
    wave = {known.id: number for number, members in enumerate(found.waves) for known in members}
    assert wave.keys() == place.keys()
    for known in found.order:
        open_needs = [need for need in known.waits_for if drawn[need].status is not DONE]
        assert all(place[need] < place[known.id] and wave[need] < wave[known.id] for need in open_needs)
        assert wave[known.id] == max((wave[need] + 1 for need in open_needs), default=0)
    out = {left.id for left in found.left_out}
    assert out.isdisjoint(place)
    assert out | place.keys() == {name for name, known in drawn.items() if known.status is not DONE}
    for cycle in found.cycles:
        assert all(following in drawn[known].waits_for for known, following in pairwise((*cycle, cycle[0])))
        assert set(cycle) <= out


def test_a_thousand_issues_in_a_chain_are_ordered():
    issues = [issue(f"BUG-{number}", depends_on=(f"BUG-{number + 1}",)) for number in range(1, 1000)]
    assert order(*issues, issue("BUG-1000")) == [f"BUG-{number}" for number in range(1000, 0, -1)]
