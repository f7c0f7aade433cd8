"""Which issues of a run are begun while others are worked on."""

from functools import partial

import pytest

from sm.runner.breakers import STOPPED, halted
from sm.runner.issues.issue import Issue, IssueStatus, IssueType
from sm.runner.outcome import IssueOutcome, Result
from sm.runner.run import OpenRun, waits, worked


class Engine:
    """Ends the issue that was begun last, or the first one that a test names; keeps what runs beside what."""

    def __init__(self, results=(), raised=()):
        self.results = dict(results)
        self.beside = []
        self.raises = dict(raised)
        """By the number of looks before, what the user has put before the others."""
        self.looks = 0

    def raised(self):
        self.looks += 1
        return self.raises.get(self.looks, ())

    def begin(self, issue):
        self.beside.append(issue)

    def first_ended(self, issues):
        self.beside.append(tuple(issues))
        return IssueOutcome(issue=issues[-1], title="", result=self.results.get(issues[-1], Result.DELIVERED))


def run(engine, **given):
    wanted = OpenRun("R-1", **given)
    return worked(wanted, engine, partial(halted, stops=wanted.stops, max_failures=0))


def test_one_at_a_time_is_their_order():
    engine = Engine()
    outcomes = run(engine, issues=("A", "B", "C"))
    assert engine.beside == ["A", ("A",), "B", ("B",), "C", ("C",)]
    assert [outcome.issue for outcome in outcomes] == ["A", "B", "C"]


def test_as_many_as_asked_for_run_and_the_next_begins_as_soon_as_one_has_ended():
    engine = Engine()
    outcomes = run(engine, issues=("A", "B", "C", "D"), jobs=2)
    assert engine.beside == ["A", "B", ("A", "B"), "C", ("A", "C"), "D", ("A", "D"), ("A",)]
    assert [outcome.issue for outcome in outcomes] == ["A", "B", "C", "D"]


def test_what_waits_for_another_begins_once_that_has_ended_and_what_does_not_overtakes_it():
    engine = Engine()
    run(engine, issues=("A", "B", "C"), jobs=2, waits={"B": ("A",)})
    assert engine.beside == ["A", "C", ("A", "C"), ("A",), "B", ("B",)]


def test_what_is_raised_begins_before_the_others_unless_it_waits_for_one():
    engine = Engine(raised={2: ("D", "C"), 3: ("D", "C")})
    outcomes = run(engine, issues=("A", "B", "C", "D"), waits={"D": ("B",)})
    assert engine.beside == ["A", ("A",), "C", ("C",), "B", ("B",), "D", ("D",)]
    assert [outcome.issue for outcome in outcomes] == ["A", "B", "C", "D"]


@pytest.mark.parametrize("result", [Result.NEEDS_YOU, Result.UNFINISHED, Result.SKIPPED])
def test_a_run_that_stops_begins_nothing_more_and_waits_for_what_runs(result):
    engine = Engine({"B": result})
    outcomes = run(engine, issues=("A", "B", "C"), jobs=2, stops=True)
    assert engine.beside == ["A", "B", ("A", "B"), ("A",)]
    assert [outcome.result for outcome in outcomes] == [Result.DELIVERED, result, Result.SKIPPED]
    assert outcomes[2].reason == STOPPED


def issue(name, *files):
    kind = IssueType.FEAT
    return Issue(name, kind, 1, 1, name, IssueStatus.OPEN, f".issues/{name}.md", files=files)


def test_issues_wait_for_what_they_need_and_for_earlier_ones_that_name_the_same_files():
    order = [issue("A", "src/a.py"), issue("B", "src/b.py"), issue("C", "src/"), issue("D", "docs/d.md")]
    needs = {"A": frozenset(), "B": frozenset({"A"}), "C": frozenset(), "D": frozenset({"E"})}
    assert waits(order, needs) == {"B": ("A",), "C": ("A", "B")}
