"""Issues on GitHub, through the user's own `gh`: those with the configured label, by authors who may write.

Everybody may open an issue in a public repository. What an agent is given is therefore only what people with write
access have written: the issue's own text, and comments of such people. Somebody who may not write is not asked about
twice. What is sent is a comment and a label, and only where this source was named.

A comment carries a mark that depends on what it says, so that it is sent once, however often a step is repeated; only
our own comments are searched for it. An agent's words are sent in a fence: they mention no one and link to nothing.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sm.core.errors import SmError, error
from sm.core.model.framing import cleaned
from sm.runner.issues.gh import gh
from sm.runner.issues.issue import (
    DEFAULT_PRIORITY,
    Issue,
    IssueList,
    IssueProblem,
    IssueStatus,
    IssueType,
    canonical,
    type_of,
)
from sm.runner.issues.named_files import named_files
from sm.runner.issues.notes import note_head, shortened

MAX_LISTED = 1_000
MEMBERS = "number,title,body,labels,author,state,stateReason,url,comments"
MAY_WRITE = frozenset({"admin", "maintain", "write"})
MAY_HAVE_ACCESS = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})
"""What GitHub calls a commenter who may have write access; whoever else comments has none, and is not asked about."""
_PRIORITY_LABEL = re.compile(r"(?:priority[ :/-]{0,4})?P([0-5])", re.IGNORECASE)
_LOGIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})")
_WAITS_FOR = re.compile(r"^\W{0,4}(?:blocked by|depends on):?[ \t]+(#\d[^\n]{0,300})", re.IGNORECASE | re.MULTILINE)
_NUMBER = re.compile(r"#(\d{1,9})")
_MARK = re.compile(r"<!-- sm:[0-9a-f]{16} -->")
Json = dict[str, Any]


class GithubSource:
    """The issues of one repository: of the directory's, unless another is named."""

    def __init__(self, directory: Path, environ: Mapping[str, str], label: str, repository: str = "") -> None:
        self._directory = directory
        self._label = label
        quiet = {"GH_PROMPT_DISABLED": "1", "GH_NO_UPDATE_NOTIFIER": "1", "NO_COLOR": "1"}
        self._environ = {**environ, **quiet, **({"GH_REPO": repository} if repository else {})}
        self._writers: dict[str, bool] = {}

    def list(self) -> IssueList:
        options = ("--label", self._label, "--state", "all", "--limit", str(MAX_LISTED), "--json", MEMBERS)
        found = [self._issue(answer) for answer in self._asked("issue", "list", *options)]
        issues = sorted((one for one in found if isinstance(one, Issue)), key=lambda issue: issue.number)
        problems = [one for one in found if isinstance(one, IssueProblem)]
        if len(found) >= MAX_LISTED:
            problems.append(IssueProblem("", f"more than {MAX_LISTED:,} issues have the label {self._label}"))
        return IssueList(tuple(issues), tuple(problems))

    def read(self, issue: str) -> Issue:
        found = self._issue(self._viewed(issue))
        if isinstance(found, IssueProblem):
            raise error("bad_issue", str(found), "sm works on issues with its label by people with write access alone")
        return found

    def set_status(self, issue: str, status: IssueStatus, note: str = "") -> None:
        known = self.read(issue)
        if note.strip():
            self._comment(known, f"{note_head(status)}\n\n{_fenced(note)}")
        self._label_as(known, status)

    def answer(self, issue: str, text: str) -> None:
        known = self.read(issue)
        self._comment(known, cleaned(text))
        if known.status.waits_for_answer:
            self._label_as(known, IssueStatus.OPEN)

    def _viewed(self, issue: str) -> Json:
        number = _number_in(issue)
        unknown = error("no_issue", f"No such issue: {issue}", "an issue of GitHub is called GH-12, #12 or 12")
        if not number:
            raise unknown
        try:
            view: Json = self._asked("issue", "view", number, "--json", MEMBERS)
        except SmError as problem:
            if "Could not resolve to" not in problem.refused.message:
                raise
            raise unknown from problem
        return view

    # --- what is read -------------------------------------------------------------------------------------------------

    def _issue(self, answer: Json) -> Issue | IssueProblem:
        known = f"GH-{int(answer['number'])}"
        place = str(answer["url"])
        labels = tuple(str(label["name"]) for label in answer["labels"])
        if self._label.casefold() not in {label.casefold() for label in labels}:
            return IssueProblem(place, f"it has no label {self._label}", (known,))
        author = str((answer["author"] or {}).get("login", ""))
        if not self._may_write(author):
            return IssueProblem(place, f"its author {author or '(unknown)'} has no write access", (known,))
        text = "\n\n".join((_plain(answer["body"]), *self._comments(answer["comments"]))).strip()
        return Issue(
            id=known,
            type=_type(labels),
            priority=_priority(labels),
            number=int(answer["number"]),
            title=cleaned(str(answer["title"])),
            status=self._status(answer, labels),
            place=place,
            labels=labels,
            blocked_by=_dependencies(_plain(answer["body"])),
            files=named_files(text),
            text=text,
        )

    def _comments(self, comments: Sequence[Json]) -> Sequence[str]:
        """Return the comments of people who may write, without the marks of our own."""
        found = []
        for comment in comments:
            author = str((comment["author"] or {}).get("login", ""))
            if comment.get("authorAssociation") in MAY_HAVE_ACCESS and self._may_write(author):
                lines = _MARK.sub("", _plain(comment["body"])).strip().split("\n")
                found.append("\n".join((f"Comment of {author}:", *(f"> {line}".rstrip() for line in lines))))
        return found

    def _status(self, answer: Json, labels: Sequence[str]) -> IssueStatus:
        if answer["state"] == "CLOSED":
            return IssueStatus.CLOSED if answer.get("stateReason") == "NOT_PLANNED" else IssueStatus.DONE
        ours = {self._status_label(status).casefold(): status for status in IssueStatus}
        return next((ours[label.casefold()] for label in labels if label.casefold() in ours), IssueStatus.OPEN)

    def _may_write(self, login: str) -> bool:
        if _LOGIN.fullmatch(login) is None:  # an app, or a deleted account
            return False
        if login not in self._writers:
            path = f"repos/{{owner}}/{{repo}}/collaborators/{login}/permission"
            try:
                self._writers[login] = self._asked("api", path).get("permission") in MAY_WRITE
            except SmError as problem:
                if "HTTP 404" not in problem.refused.message:
                    raise
                self._writers[login] = False
        return self._writers[login]

    # --- what is sent -------------------------------------------------------------------------------------------------

    def _comment(self, issue: Issue, text: str) -> None:
        mark = f"<!-- sm:{hashlib.sha256(f'{issue.id} {text}'.encode()).hexdigest()[:16]} -->"
        for comment in self._viewed(issue.id)["comments"]:
            if comment.get("viewerDidAuthor") and mark in str(comment["body"]):
                return
        self._run("issue", "comment", str(issue.number), "--body-file", "-", given=f"{text}\n\n{mark}\n")

    def _label_as(self, issue: Issue, status: IssueStatus) -> None:
        wanted = {self._status_label(status)} - {self._status_label(IssueStatus.OPEN)}
        ours = {self._status_label(other) for other in IssueStatus}
        added = sorted(wanted - set(issue.labels))
        removed = sorted(ours.intersection(issue.labels) - wanted)
        if not (added or removed):
            return
        options = [part for name in added for part in ("--add-label", name)]
        options += [part for name in removed for part in ("--remove-label", name)]
        try:
            self._run("issue", "edit", str(issue.number), *options)
        except SmError as problem:
            if "not found" not in problem.refused.message:
                raise
            for name in added:
                self._run("label", "create", name, "--description", "set by sm")
            self._run("issue", "edit", str(issue.number), *options)

    def _status_label(self, status: IssueStatus) -> str:
        return f"{self._label}:{status.value}"

    # --- gh -----------------------------------------------------------------------------------------------------------

    def _asked(self, *arguments: str) -> Any:  # noqa: ANN401  # JSON of somebody else's program
        try:
            return json.loads(self._run(*arguments))
        except (ValueError, RecursionError) as problem:
            raise error("gh_failed", f"gh {' '.join(arguments[:2])} printed no JSON", "update gh") from problem

    def _run(self, *arguments: str, given: str = "") -> str:
        return gh(self._directory, self._environ, *arguments, given=given)


def _number_in(name: str) -> str:
    found = canonical(name.strip().removeprefix("#")).removeprefix("GH-")
    return str(int(found)) if found.isascii() and found.isdigit() and len(found) < 10 else ""  # noqa: PLR2004


def _plain(text: object) -> str:
    return cleaned(str(text or ""))


def _fenced(text: str) -> str:
    """Return a text in a fence that nothing in it closes."""
    plain = shortened(text)
    longest = max((len(run) for run in re.findall(r"`+", plain)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{plain}\n{fence}"


def _type(labels: Sequence[str]) -> IssueType:
    for label in labels:
        try:
            return type_of(label)
        except ValueError:
            continue
    return IssueType.TASK


def _priority(labels: Sequence[str]) -> int:
    found = [int(match[1]) for label in labels if (match := _PRIORITY_LABEL.fullmatch(label.strip()))]
    return min(found, default=DEFAULT_PRIORITY)


def _dependencies(body: str) -> tuple[str, ...]:
    lines = _WAITS_FOR.findall(body)
    return tuple(dict.fromkeys(f"GH-{int(number)}" for line in lines for number in _NUMBER.findall(line)))
