"""Issues in memory, as the port has them."""

from dataclasses import replace

from sm.runner.issues.issue import IssueList, IssueStatus
from sm.runner.issues.notes import ANSWER_HEAD, note_head, with_note


class FakeIssues:
    def __init__(self, *issues, problems=()):
        self.issues = {issue.id: issue for issue in issues}
        self.problems = problems

    def list(self):
        return IssueList(tuple(self.issues.values()), tuple(self.problems))

    def read(self, issue):
        return self.list().find(issue)

    def set_status(self, issue, status, note=""):
        known = self.read(issue)
        text = with_note(known.text, note_head(status), note) if note.strip() else known.text
        self.issues[known.id] = replace(known, status=status, text=text)

    def answer(self, issue, text):
        known = self.read(issue)
        waits = known.status in {IssueStatus.NEEDS_YOU, IssueStatus.BLOCKED}
        status = IssueStatus.OPEN if waits else known.status
        self.issues[known.id] = replace(known, status=status, text=with_note(known.text, ANSWER_HEAD, text))
