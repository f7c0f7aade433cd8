"""What is looked at before anything is spent on an issue."""

import pytest

from sm.runner.issues.issue import Issue, IssueStatus, IssueType
from sm.runner.readiness import MAX_TASKS, MAX_TEXT, not_ready


def issue(text="Write it."):
    return Issue("FEAT-012", IssueType.FEAT, 1, 12, "Log in", IssueStatus.OPEN, "x.md", text=text)


@pytest.mark.parametrize("check", ["make test", "test -f 'a b' && ! grep -q x y", "true", "for i in 1 2; do :; done"])
def test_an_issue_with_a_check_can_be_worked(check):
    assert not_ready(issue(), check) is None


@pytest.mark.parametrize(
    ("text", "check", "reason"),
    [
        ("", " ", "no command says whether it is done"),
        ("", "make 'test", "/bin/sh cannot read its check: "),
        ("", "make\0test", "/bin/sh cannot read its check: it has a zero byte"),
        ("x" * (MAX_TEXT + 1), "true", "its text has 100,001 characters, more than 100,000"),
        ("- [ ] a\n" * (MAX_TASKS + 1), "true", "it lists 31 open tasks, more than 30"),
    ],
)
def test_what_cannot_be_worked_says_why(text, check, reason):
    refused = not_ready(issue(text), check)
    assert refused.reason.startswith(reason)
    assert refused.hint


def test_the_check_is_not_run_for_it(tmp_path):
    not_ready(issue(), f"touch {tmp_path}/ran")
    assert not (tmp_path / "ran").exists()
