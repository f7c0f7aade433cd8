"""`sm issues`: what is to be done in a project, in which order, and what waits for its user."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from sm.cli.format import coloured, emit_json, say, show
from sm.cli.messages import given_text
from sm.cli.options import json_option
from sm.cli.tables import Column, table, terminal_width
from sm.client import inside_session
from sm.core.errors import error
from sm.plain_text import plain
from sm.runner.issues.filters import IssueFilter
from sm.runner.issues.issue import Issue, IssueList, IssueProblem, priority_of, type_of
from sm.runner.issues.named_files import same_files
from sm.runner.issues.order import WorkPlan, planned
from sm.runner.issues.sources import Project, SourceChoice, project_issues
from sm.runner.issues.sprints import sprint

Command = Callable[..., Any]
T = TypeVar("T")


@click.group()
def issues() -> None:
    """List a project's issues in the order of work, and answer in them.

    Issues are Markdown files in .issues/ (P1-FEAT-012-slug.md), the items of a TODO.md, or, with --source github, those
    of GitHub that have the label of runner.label. This directory's project is meant.
    """


source_option = click.option(
    "--source",
    type=click.Choice(["auto", "files", "todo", "github"]),
    help="Where the issues are; without it as in runner.source.",
)
issue_argument = click.argument("issue", metavar="ID")


def choosing(command: Command) -> Command:
    """Give a command the options that choose issues."""
    options = (
        click.option("--type", "types", multiple=True, metavar="TYPE", help="Only bug, feat, enh, epic or task."),
        click.option("--priority", "priorities", multiple=True, metavar="P", help="Only these: P0 is the most urgent."),
        click.option("--label", "labels", multiple=True, metavar="LABEL", help="Only with one of these labels."),
        click.option("--only", multiple=True, metavar="ID", help="Only these; an epic means its issues."),
        click.option("--skip", multiple=True, metavar="ID", help="Not these."),
        click.option("--sprint", "name", metavar="NAME", help="Only what .sprints/NAME.yaml names."),
        click.option("--max-issues", type=click.IntRange(1, 10_000), metavar="N", help="At most N of them."),
    )
    for option in reversed(options):
        command = option(command)
    return command


ALL_ISSUES = {"types": (), "priorities": (), "labels": (), "only": (), "skip": (), "name": None, "max_issues": None}
"""What those options are where none is given."""


class SeenIssues(NamedTuple):
    """The issues of a project, and the chosen ones in their order."""

    project: Project
    found: IssueList
    plan: WorkPlan


@issues.command("list")
@choosing
@click.option("--all", "everything", is_flag=True, help="Also those that are done or closed.")
@source_option
@json_option
def list_issues(*, everything: bool, source: str | None, as_json: bool, **choice: Any) -> None:  # noqa: ANN401
    """List the open issues in the order of work.

    Options with several values take commas, or are repeated. WAVE is the number of issues in a row that have to be done
    first. What cannot be worked now comes last, with the reason.
    """
    seen = seen_issues(source, choice)
    reasons = {out.id: out.reason for out in seen.plan.left_out}
    rest = [issue for issue in seen.found.issues if issue.id in reasons]
    over = [issue for issue in seen.found.issues if everything and issue.status.is_over]
    listed = [*seen.plan.order, *rest, *over]
    waves = {issue.id: number for number, wave in enumerate(seen.plan.waves) for issue in wave}
    if as_json:
        emit_json({"issues": [_view(issue, waves, reasons) for issue in listed], **_remarks(seen)})
        return
    if listed:
        show(table(_columns(listed, waves, reasons), terminal_width()))
    else:
        say("no open issues")
    _say_problems(seen.found.problems)


@issues.command("show")
@issue_argument
@source_option
@json_option
def show_issue(issue: str, source: str | None, *, as_json: bool) -> None:
    """Show an issue with all that is known of it. ID is also its number."""
    found = _project(source).source.read(issue)
    if as_json:
        emit_json(asdict(found))
        return
    show(f"{coloured(plain(found.id), '1')}  P{found.priority}  {found.type}  {found.status}  {plain(found.title)}")
    for name, value in _facts(found):
        show(f"{name + ':':<12}{plain(value)}")
    if found.text:
        show("\n" + "\n".join(map(plain, found.text.split("\n"))))


@issues.command("next")
@choosing
@source_option
@json_option
def next_issue(*, source: str | None, as_json: bool, **choice: Any) -> None:  # noqa: ANN401
    """Show the issue to be worked next.

    The exit code is 1 if none can be worked.
    """
    seen = seen_issues(source, choice)
    if not as_json:
        _say_problems(seen.found.problems)
    if not seen.plan.order:
        raise error("nothing_to_do", f"No issue can be worked now{why_none(seen)}", "sm issues list says why")
    first = seen.plan.order[0]
    if as_json:
        emit_json(asdict(first))
    else:
        show(f"{plain(first.id)}  P{first.priority}  {plain(first.title)}  {plain(first.place)}")


@issues.command("answer")
@issue_argument
@click.argument("text", nargs=-1, required=True, metavar="TEXT...")
@source_option
@json_option
def answer_issue(issue: str, text: tuple[str, ...], source: str | None, *, as_json: bool) -> None:
    """Answer an issue that needs you, or add words to another.

    One that needs you, or is blocked, is open again. `-` as TEXT reads standard input. With the source github this is
    a comment in your name.
    """
    if inside_session() is not None:
        raise error("forbidden", "A session may not answer in its user's name", "ask the user who runs sm")
    words = given_text(text, "answer", f"sm issues answer {issue}")
    found = _project(source).source
    known = found.read(issue)
    if known.status.is_over:
        message = f"{known.id} is {known.status}"
        raise error("issue_over", message, "set its status to open first, or write another issue")
    found.answer(known.id, words)
    now = found.read(known.id)
    emit_json(asdict(now)) if as_json else show(f"{plain(now.id)} {now.status}")


def _project(source: str | None, redact: Callable[[str], str] = str) -> Project:
    from sm import settings  # noqa: PLC0415  # msgspec costs 30 ms, which `--help` does not need

    configured = settings.load(Path.cwd(), os.environ, {"runner.source": source}).runner
    choice = SourceChoice(configured.source, configured.label, configured.repository)
    return project_issues(Path.cwd(), choice, os.environ, redact)


def seen_issues(source: str | None, choice: dict[str, Any], redact: Callable[[str], str] = str) -> SeenIssues:
    """Return the issues of this directory's project, and what the options of `choosing` mean of them.

    Whoever writes reasons into them says how secrets are taken out of those.
    """
    project = _project(source, redact)
    chosen = _filter(choice)
    if choice["name"]:
        if chosen != IssueFilter(max_issues=chosen.max_issues):
            raise error("usage", "--sprint says which issues", "of the other options it takes --max-issues alone")
        listed = sprint(project.directory, choice["name"]).chosen
        chosen = replace(listed, max_issues=chosen.max_issues or listed.max_issues)
    found = project.source.list()
    return SeenIssues(project, found, planned(found, chosen))


def _filter(choice: dict[str, Any]) -> IssueFilter:
    return IssueFilter(
        types=_each(type_of, choice["types"]),
        priorities=_each(priority_of, choice["priorities"]),
        labels=_parts(choice["labels"]),
        only=_parts(choice["only"]),
        skip=_parts(choice["skip"]),
        max_issues=choice["max_issues"],
    )


def _parts(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(part for value in values for text in value.split(",") if (part := text.strip()))


def _each(parse: Callable[[str], T], values: Iterable[str]) -> tuple[T, ...]:
    try:
        return tuple(map(parse, _parts(values)))
    except ValueError as problem:
        raise error("usage", f"Invalid {problem}", "sm issues list --help") from problem


def _view(issue: Issue, waves: dict[str, int], reasons: dict[str, str]) -> dict[str, object]:
    return {**asdict(issue), "wave": waves.get(issue.id), "reason": reasons.get(issue.id, "")}


def _remarks(seen: SeenIssues) -> dict[str, object]:
    return {
        "problems": [asdict(problem) for problem in seen.found.problems],
        "cycles": seen.plan.cycles,
        "same_files": [{"issues": [one, other], "files": files} for one, other, files in same_files(seen.plan.order)],
    }


def _columns(listed: list[Issue], waves: dict[str, int], reasons: dict[str, str]) -> list[Column]:
    return [
        Column("ID", [plain(issue.id) for issue in listed]),
        Column("PRIORITY", [f"P{issue.priority}" for issue in listed], rank=2),
        Column("STATUS", [str(issue.status) for issue in listed]),
        Column("WAVE", [str(waves[issue.id]) if issue.id in waves else "-" for issue in listed], rank=3),
        Column("TITLE", [plain(issue.title) for issue in listed], shrinks=True),
        Column("REASON", [plain(reasons.get(issue.id, "")) for issue in listed], rank=1, shrinks=True),
    ]


def _facts(issue: Issue) -> Iterable[tuple[str, str]]:
    yield "place", issue.place
    lists = {
        "labels": issue.labels,
        "blocked by": issue.blocked_by,
        "depends on": issue.depends_on,
        "blocks": issue.blocks,
        "parent": (issue.parent,) if issue.parent else (),
        "files": issue.files,
    }
    yield from ((name, ", ".join(values)) for name, values in lists.items() if values)
    if issue.check:
        yield "check", issue.check


def _say_problems(problems: Iterable[IssueProblem]) -> None:
    for problem in problems:
        say(f"left out: {plain(str(problem))}")


def why_none(seen: SeenIssues) -> str:
    left_out, problems = seen.plan.left_out, seen.found.problems
    first = [f"{plain(left_out[0].id)} {plain(left_out[0].reason)}"] if left_out else []
    more = [f"{len(left_out) - 1} more"] if len(left_out) > 1 else []
    unread = [f"{len(problems)} cannot be read"] if problems else []
    words = ", and ".join((*first, *more, *unread))
    return f": {words}" if words else ""
