"""Which source a project's issues come from. GitHub is used only where it is named.

What an agent has said, or a command has printed, ends up in a repository or on a web page: a reason is written without
secrets, whatever the source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sm.core.errors import error
from sm.files import is_git_entry
from sm.runner.issues.files import DIRECTORY, FilesSource
from sm.runner.issues.github import GithubSource
from sm.runner.issues.issue import Issue, IssueList, IssueStatus
from sm.runner.issues.source import IssueSource
from sm.runner.issues.todo import NAMES, TodoSource

SourceName = Literal["auto", "files", "todo", "github"]


@dataclass(frozen=True, slots=True)
class Project:
    """A directory with issues."""

    directory: Path
    source: IssueSource


@dataclass(frozen=True, slots=True)
class WithoutSecrets:
    """A source that is given no secret with a reason; an answer is the user's own words."""

    inner: IssueSource
    redact: Callable[[str], str]

    def list(self) -> IssueList:
        return self.inner.list()

    def read(self, issue: str) -> Issue:
        return self.inner.read(issue)

    def set_status(self, issue: str, status: IssueStatus, note: str = "") -> None:
        self.inner.set_status(issue, status, self.redact(note))

    def answer(self, issue: str, text: str) -> None:
        self.inner.answer(issue, text)


@dataclass(frozen=True, slots=True)
class SourceChoice:
    """What is configured about where issues are."""

    name: SourceName
    label: str
    repository: str


def project_issues(
    cwd: Path, choice: SourceChoice, environ: Mapping[str, str], redact: Callable[[str], str]
) -> Project:
    """Return the source of the project that `cwd` is in; SmError where it has none."""
    directory, source = _found(cwd, choice, environ)
    return Project(directory, WithoutSecrets(source, redact))


def _found(cwd: Path, choice: SourceChoice, environ: Mapping[str, str]) -> tuple[Path, IssueSource]:
    name = choice.name
    if name == "github":
        return top_of(cwd), GithubSource(cwd, environ, choice.label, choice.repository)
    directories = upwards(cwd)
    folder = next((path for directory in directories if (path := directory / DIRECTORY).is_dir()), None)
    if name != "todo" and folder is not None:
        return folder.parent, FilesSource(folder)
    checklists = (directory / found for directory in directories for found in NAMES)
    checklist = next((path for path in checklists if path.is_file()), None)
    if name != "files" and checklist is not None:
        return checklist.parent, TodoSource(checklist)
    wanted = {"files": f"{DIRECTORY}/", "todo": "TODO.md"}.get(name, f"{DIRECTORY}/ or TODO.md")
    hint = f"write one as {DIRECTORY}/P2-FEAT-001-slug.md; issues of GitHub: --source github"
    raise error("no_source", f"No {wanted} in {cwd} or above it", hint)


def top_of(cwd: Path) -> Path:
    """Return the top of the repository around a directory; the directory itself where it is in none."""
    return next((directory for directory in (cwd, *cwd.parents) if is_git_entry(directory / ".git")), cwd)


def upwards(cwd: Path) -> list[Path]:
    """Return the directory and those above it, up to the top of its repository."""
    top = top_of(cwd)
    return [directory for directory in (cwd, *cwd.parents) if directory.is_relative_to(top)]
