"""`sm runs`: the unattended runs of this directory's project, how far each issue is, and what ends one early."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sm.cli.format import emit_json, say, show
from sm.cli.options import json_option
from sm.cli.run_lines import plain_values
from sm.cli.tables import Column, table, terminal_width
from sm.client import inside_session
from sm.core.errors import SmError, error
from sm.plain_text import plain

if TYPE_CHECKING:
    from sm.runner.runs import IssueInRun, Runs, SeenRun

Command = Callable[..., Any]


@click.group()
def runs() -> None:
    """Show this project's unattended runs, and steer one: its issues, its end, the agents that work on them.

    The newest run is meant where none is named.
    """


def _about_runs(command: Command) -> Command:
    """Give a command what says where the runs are."""
    for option in (json_option, click.option("--database", metavar="URL", help="Default: runner.database.")):
        command = option(command)
    return command


@runs.command("list")
@_about_runs
def list_runs(*, database: str | None, as_json: bool) -> None:
    """List the runs, newest first."""
    found: list[SeenRun] = []
    try:
        with _opened(database) as known:
            found = known.all()
    except SmError as problem:
        if problem.refused.code != "no_run":
            raise
    if as_json:
        emit_json([plain_values(run) for run in found])
    elif found:
        show(table(_run_columns(found), terminal_width()))
    else:
        say("no runs")


@runs.command("show")
@click.argument("run", required=False)
@_about_runs
def show_run(run: str | None, *, database: str | None, as_json: bool) -> None:
    """Show how far each issue of a run is."""
    with _opened(database) as known:
        found = known.find(run)
        issues = known.issues(found)
    if as_json:
        emit_json({**plain_values(found), "issues": [plain_values(issue) for issue in issues]})
        return
    say(f"{found.run}: {found.state}")
    show(table(_issue_columns(issues), terminal_width()))


@runs.command("skip")
@click.argument("issue", metavar="ID")
@click.option("--run", metavar="RUN", help="Of this run; default: the newest.")
@_about_runs
def skip_issue(issue: str, run: str | None, *, database: str | None, as_json: bool) -> None:
    """Leave an issue out of a run that has not begun it yet."""
    _refuse_agents()
    with _opened(database) as known:
        found = known.find(run)
        left_out = known.skip(found, issue)
    emit_json({"run": found.run, "skipped": left_out}) if as_json else say(f"{found.run} leaves out {plain(left_out)}")


@runs.command("raise")
@click.argument("issue", metavar="ID")
@click.option("--run", metavar="RUN", help="Of this run; default: the newest.")
@_about_runs
def raise_issue(issue: str, run: str | None, *, database: str | None, as_json: bool) -> None:
    """Have a run begin an issue before the others that it has not begun.

    What it waits for still comes first.
    """
    from sm.clock import SystemClock  # noqa: PLC0415

    _refuse_agents()
    with _opened(database) as known:
        found = known.find(run)
        raised = known.put_first(found, issue, SystemClock().now())
    emit_json({"run": found.run, "raised": raised}) if as_json else say(f"{found.run} begins {plain(raised)} next")


@runs.command("message")
@click.argument("issue", metavar="ID")
@click.argument("text", nargs=-1, required=True)
@click.option("--run", metavar="RUN", help="Of this run; default: the newest.")
@_about_runs
def message_issue(issue: str, text: tuple[str, ...], run: str | None, *, database: str | None, as_json: bool) -> int:
    """Send TEXT to the agent that works on an issue.

    As sm send does; `-` reads TEXT from standard input.
    """
    from sm.cli.messages import given_text, send_message  # noqa: PLC0415

    _refuse_agents()
    with _opened(database) as known:
        found = known.find(run)
        works = known.issue(found, issue)
    if works.state != "works" or not works.session:
        hint = f"sm issues answer {works.issue} TEXT adds to the issue itself"
        raise error("run_state", f"No agent works on {works.issue} in {found.run}", hint)
    words = given_text(text, "message", f"sm runs message {works.issue}")
    return send_message({"to": works.session, "text": words}, as_json=as_json)


@runs.command("stop")
@click.argument("run", required=False)
@_about_runs
def stop_run(run: str | None, *, database: str | None, as_json: bool) -> None:
    """Have a run begin no further issue. Those that are worked on are finished."""
    _refuse_agents()
    with _opened(database) as known:
        found = known.find(run)
        known.stop(found)
    emit_json({"run": found.run, "stops": True}) if as_json else say(f"{found.run} begins no further issue")


def _refuse_agents() -> None:
    if inside_session() is not None:
        raise error("inside_session", "A session may not steer its user's runs", "ask the user who runs sm")


@contextmanager
def _opened(database: str | None) -> Iterator[Runs]:
    from sm.paths import locate_home  # noqa: PLC0415
    from sm.runner.database import run_database  # noqa: PLC0415  # as all of these: not for --help
    from sm.runner.issues.sources import SourceChoice, project_issues  # noqa: PLC0415
    from sm.runner.merges import top_of_repository  # noqa: PLC0415
    from sm.runner.runs import opened  # noqa: PLC0415
    from sm.settings import load  # noqa: PLC0415

    chosen = load(Path.cwd(), os.environ, {"runner.database": database}).runner
    source = SourceChoice(chosen.source, chosen.label, chosen.repository)
    project = project_issues(Path.cwd(), source, os.environ, str).directory
    kept = run_database(chosen.database, locate_home(os.environ).runs, project, top_of_repository(project))
    with opened(kept) as known:
        yield known


def _counts(run: SeenRun) -> str:
    """Return how many issues of a run have ended in which way."""
    if run.outcome is None:
        return f"{len(run.issues)} issues"
    results = [outcome.result.replace("_", " ") for outcome in run.outcome.outcomes]
    return ", ".join(f"{results.count(result)} {result}" for result in dict.fromkeys(results))


def _run_columns(found: list[SeenRun]) -> list[Column]:
    from sm.clock import stamp  # noqa: PLC0415

    return [
        Column("RUN", [plain(run.run) for run in found]),
        Column("BEGUN", [stamp(run.begun) for run in found], rank=1),
        Column("STATE", [run.state for run in found]),
        Column("ISSUES", [_counts(run) for run in found], shrinks=True),
    ]


def _issue_columns(issues: list[IssueInRun]) -> list[Column]:
    return [
        Column("ID", [plain(issue.issue) for issue in issues]),
        Column("STATE", [_state(issue) for issue in issues]),
        Column("SESSION", [issue.session or "-" for issue in issues]),
        Column("STEP", [issue.step or "-" for issue in issues], rank=1),
        Column("REASON", [plain(issue.outcome.reason) if issue.outcome else "" for issue in issues], shrinks=True),
    ]


def _state(issue: IssueInRun) -> str:
    return issue.outcome.result.value if issue.outcome else issue.state
