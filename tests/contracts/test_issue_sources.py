"""The port `IssueSource`: files, a checklist, GitHub through a stand-in of `gh`, and in memory."""

import json

import pytest

from sm.core.errors import SmError
from sm.runner.issues.files import FilesSource
from sm.runner.issues.github import GithubSource
from sm.runner.issues.issue import Issue, IssueStatus, IssueType
from sm.runner.issues.todo import TodoSource
from tests.fakes import gh
from tests.fakes.issues import FakeIssues

OPEN, IN_PROGRESS, NEEDS_YOU, BLOCKED, DONE, CLOSED = IssueStatus
TITLES = ["Log in", "Log out", "Rename `a.py`"]


class World:
    """A source with three issues, of which the last is done, and all that it has stored."""

    def __init__(self, source, stored):
        self.source, self.stored = source, stored

    @property
    def ids(self):
        return [issue.id for issue in self.source.list().issues]

    def statuses(self):
        return [issue.status for issue in self.source.list().issues]


def files(root):
    for number, title in enumerate(TITLES, 1):
        status = "done" if number == 3 else "open"
        path = root / f".issues/bugs/P{number}-BUG-{number:03}-x.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"---\nstatus: {status}\n---\n\n# {title}\n")
    return World(FilesSource(root / ".issues"), lambda: [path.read_bytes() for path in sorted(root.rglob("*.md"))])


def todo(root):
    boxes = "".join(f"- [{'x' if number == 3 else ' '}] {title}\n" for number, title in enumerate(TITLES, 1))
    path = root / "TODO.md"
    path.write_text(f"# To do\n\n{boxes}\nThat is all.\n")
    return World(TodoSource(path), path.read_bytes)


def github(root):
    environ = gh.install(root / "bin")
    found = [gh.issue(number, title) for number, title in enumerate(TITLES, 1)]
    found[2] |= {"state": "CLOSED", "stateReason": "COMPLETED"}
    path = root / "bin/state.json"
    path.write_text(json.dumps(gh.state(*found)))
    return World(GithubSource(root, environ, "sm"), lambda: json.loads(path.read_text())["issues"])


def memory(root):
    made = [
        Issue(f"BUG-{number:03}", IssueType.BUG, number, number, title, DONE if number == 3 else OPEN, "nowhere")
        for number, title in enumerate(TITLES, 1)
    ]
    source = FakeIssues(*made)
    return World(source, lambda: dict(source.issues))


@pytest.fixture(params=[files, todo, github, memory], ids=lambda made: made.__name__)
def world(request, tmp_path):
    return request.param(tmp_path)


def test_every_issue_is_listed_whatever_its_status_and_read_as_it_is_listed(world):
    listed = world.source.list()
    assert [issue.title for issue in listed.issues] == TITLES
    assert world.statuses() == [OPEN, OPEN, DONE]
    assert [world.source.read(issue.id) for issue in listed.issues] == list(listed.issues)
    assert len({issue.id for issue in listed.issues}) == 3
    assert listed.problems == ()


def test_an_id_is_recognised_in_any_case(world):
    for known in world.ids:
        assert world.source.read(f" {known.lower()} ").id == known


@pytest.mark.parametrize("name", ["BUG-999", "GH-999", "BUG-0010", "1x", "", "../x", "--json", "TODO-0"])
def test_an_unknown_id_is_refused_by_every_call(world, name):
    before = world.stored()
    for call in (
        lambda: world.source.read(name),
        lambda: world.source.set_status(name, DONE),
        lambda: world.source.answer(name, "yes"),
    ):
        with pytest.raises(SmError) as refused:
            call()
        assert refused.value.refused.code == "no_issue"
    assert world.stored() == before


@pytest.mark.parametrize("status", IssueStatus)
def test_a_status_that_is_written_is_read_and_no_other_issue_changes(world, status):
    first, *others = world.source.list().issues
    world.source.set_status(first.id, status)
    now, *rest = world.source.list().issues
    assert (now.id, now.title, now.status) == (first.id, first.title, status)
    assert rest == others


@pytest.mark.parametrize("status", [IN_PROGRESS, NEEDS_YOU, BLOCKED, DONE, CLOSED])
def test_what_is_written_twice_is_there_once(world, status):
    first = world.ids[0]
    world.source.set_status(first, status, "see the log")
    before = world.stored()
    world.source.set_status(first, status, "see the log")
    assert world.stored() == before


def test_from_any_status_an_issue_can_be_opened_again(world):
    first = world.ids[0]
    for status in (IN_PROGRESS, NEEDS_YOU, BLOCKED, DONE, CLOSED):
        world.source.set_status(first, status)
        world.source.set_status(first, OPEN)
        assert world.source.read(first).status is OPEN


def test_a_reason_is_read_with_the_issue_and_a_later_one_does_not_replace_it(world):
    """BUG-930, BUG-1383."""
    first = world.ids[0]
    world.source.set_status(first, NEEDS_YOU, "Which database?\nIt says nothing.")
    world.source.set_status(first, BLOCKED, "No network.")
    text = world.source.read(first).text
    assert all(line in text for line in ("Which database?", "It says nothing.", "No network."))
    assert world.source.read(first).title == TITLES[0]


def test_an_answer_is_read_with_the_issue_which_is_open_again(world):
    first = world.ids[0]
    world.source.set_status(first, NEEDS_YOU, "Which database?")
    world.source.answer(first, "SQLite,\nand nothing else")
    now = world.source.read(first)
    assert (now.id, now.status) == (first, OPEN)
    assert now.text.index("Which database?") < now.text.index("SQLite,") < now.text.index("and nothing else")


@pytest.mark.parametrize("status", [OPEN, IN_PROGRESS])
def test_an_answer_to_an_issue_that_waits_for_none_changes_no_status(world, status):
    first = world.ids[0]
    world.source.set_status(first, status)
    world.source.answer(first, "Mind the tests")
    assert world.source.read(first).status is status
    assert "Mind the tests" in world.source.read(first).text


def test_the_same_answer_twice_is_there_once(world):
    first = world.ids[0]
    for _ in range(2):
        world.source.answer(first, "SQLite")
    assert world.source.read(first).text.count("SQLite") == 1


def test_nothing_in_a_text_can_move_the_cursor_or_hide(world):
    first = world.ids[0]
    world.source.set_status(first, NEEDS_YOU, "a\x1b[2Jb\x00c\u202ed\r\ne")
    assert "abcd" in world.source.read(first).text
    assert "\x1b" not in world.source.read(first).text
