"""`sm auto` and `sm parallel`: agents work on a project's issues, and what passes its check is merged."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sm.cli.connection import user_client
from sm.cli.exits import INTERRUPTED, REFUSED
from sm.cli.format import emit_json, say, show
from sm.cli.issues import choosing, seen_issues, source_option, why_none
from sm.cli.new import check_configuration, sendable_environment
from sm.cli.options import json_option
from sm.cli.run_lines import RunLines, say_rules
from sm.client import inside_session
from sm.core.errors import error
from sm.paths import open_home
from sm.plain_text import plain
from sm.runner.issues.sprints import sprint

if TYPE_CHECKING:
    from sm.cli.issues import SeenIssues
    from sm.runner.attempt import AgentSessions
    from sm.runner.durable import DurableRuns
    from sm.runner.review import Reviewers
    from sm.runner.run import OpenRun
    from sm.runner.tools import Tools
    from sm.settings import RunnerSettings, Settings

OVERRIDING = ("check", "deliver", "timeout", "idle_timeout", "on_ask", "database")
"""Options that are settings of runner.* for one run."""
Command = Callable[..., Any]
database_option = click.option(
    "--database", metavar="URL", help="postgresql://USER@HOST/NAME, shared with workers; default: runner.database."
)


jobs_option = click.option(
    "-j", "--jobs", type=click.IntRange(1, 64), metavar="N", help="So many at a time; default: runner.jobs."
)


def running(command: Command) -> Command:
    """Give a command the options of unattended work."""
    options = (
        source_option,
        click.option("--check", metavar="COMMAND", help="For issues that name no check; default: runner.check."),
        click.option(
            "--handoff-threshold",
            type=click.IntRange(1, 100),
            metavar="PERCENT",
            help="Of the usable context, at which an agent hands off, over what is configured.",
        ),
        click.option("--timeout", type=float, metavar="SECONDS", help="Of work on one issue; default: runner.timeout."),
        click.option(
            "--idle-timeout",
            type=float,
            metavar="SECONDS",
            help="Without a sign of work, after which a client is replaced; default: runner.idle_timeout.",
        ),
        click.option(
            "--on-ask",
            type=click.Choice(["wait", "deny"]),
            help="What an agent asks waits for you, or is denied; default: runner.on_ask.",
        ),
        click.option(
            "--deliver",
            type=click.Choice(["merge", "branch", "pull-request"]),
            help="How what passes gets to you; default: runner.deliver.",
        ),
        click.option("--client", "command", metavar="PATH", help="The client's executable; default: as configured."),
        database_option,
        click.option("--dry-run", is_flag=True, help="Only show what would be worked on, and how it is checked."),
        json_option,
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command()
@choosing
@running
def auto(**given: Any) -> None:  # noqa: ANN401
    """Have agents work on this project's open issues, one after the other.

    Each is worked on in a worktree below .worktrees/. What is committed there and passes the issue's check is merged
    into the branch that is checked out here. Everything else is kept, with the reason in the issue.

    After an interruption the same command continues. The exit code is 0 if all chosen issues are delivered. With --json
    each line is an object: what happens, each issue that ends, and the run as the last one.
    """
    work(given, jobs=1)


@click.command()
@choosing
@running
@jobs_option
def parallel(jobs: int | None, **given: Any) -> None:  # noqa: ANN401
    """Have agents work on this project's open issues, several at the same time.

    As sm auto does. Branches are merged one at a time, each after it has taken in what was merged since its check, and
    has passed it again. Issues that name the same files, or wait for each other, do not run at the same time.
    """
    work(given, jobs=jobs, spread=True)


def work(given: dict[str, Any], *, jobs: int | None, spread: bool = False) -> None:
    """Begin or continue a run and wait for its end; one that is spread is worked on by all that share its database."""
    if inside_session() is not None:
        raise error("inside_session", "Unattended work cannot be started in a session", "run it in a shell of yours")
    as_json, command, threshold = given.pop("as_json"), given.pop("command"), given.pop("handoff_threshold")
    here = Path.cwd()
    check_configuration(here)
    settings = settings_for(here, {name: given.pop(name) for name in OVERRIDING} | {"source": given["source"]})
    from sm.archive.redaction.redact import without_secrets  # noqa: PLC0415  # 10 ms of patterns

    seen = seen_issues(given.pop("source"), given, without_secrets)
    if given["dry_run"]:
        _show_plan(seen, settings.runner, as_json=as_json)
        return
    lines = RunLines(as_json)
    tools = tools_for(seen, settings, command, threshold, lines)
    with durable_runs(settings.runner, tools, "agents keep working, and the same command continues from here") as runs:
        say_rules(settings.runner, tools)
        shared = spread and bool(settings.runner.database)
        stops = _stops(seen, given["name"])
        run = _begun(runs, seen, jobs or settings.runner.jobs, stops=stops, shared=shared)
        found = runs.outcome(run)
        lines.ended(found, runs.report(found.run), _left_out(seen))
    if not found.complete or seen.plan.left_out:
        raise click.exceptions.Exit(REFUSED)


def settings_for(here: Path, given: Mapping[str, object]) -> Settings:
    """Return the settings; what a command was given counts over runner.* of that name."""
    from sm.settings import load  # noqa: PLC0415  # msgspec costs 30 ms

    return load(here, os.environ, {f"runner.{name}": value for name, value in given.items()})


def tools_for(
    seen: SeenIssues, settings: Settings, command: str | None, handoff_threshold: int | None, lines: RunLines
) -> Tools:
    from sm.archive.redaction.redact import without_secrets  # noqa: PLC0415
    from sm.clock import SystemClock  # noqa: PLC0415
    from sm.providers.claude.launch import mode_arguments  # noqa: PLC0415  # as all of these: for a run alone
    from sm.providers.claude.state import awaits_tool  # noqa: PLC0415
    from sm.providers.claude.traits import CLAUDE  # noqa: PLC0415
    from sm.providers.claude.transcript import last_reply_text  # noqa: PLC0415
    from sm.runner.attempt import AgentSessions, SessionOptions, Transcripts  # noqa: PLC0415
    from sm.runner.budgets import RunBudgets  # noqa: PLC0415
    from sm.runner.merges import top_of_repository  # noqa: PLC0415
    from sm.runner.tools import RunRules, Tools  # noqa: PLC0415

    chosen = settings.runner
    options = SessionOptions(
        sendable_environment(),
        command=command,
        model=chosen.model or None,
        arguments=mode_arguments(chosen.permission_mode),
        headless=chosen.mode == "headless",
        handoff_threshold=handoff_threshold,
    )
    rules = RunRules(
        check=chosen.check,
        check_limit=chosen.check_timeout,
        setup=chosen.setup,
        deliver=chosen.deliver,
        port_step=chosen.port_step,
        time_limit=chosen.timeout,
        idle_limit=chosen.idle_timeout,
        denies_asks=chosen.on_ask == "deny",
        ask_limit=chosen.ask_timeout,
        max_continuations=settings.continuation.max_continuations,
        max_failures=chosen.max_failures,
        reviews=chosen.review,
        budgets=RunBudgets(*chosen.budgets(), chosen.run_timeout or None),
    )
    sessions = AgentSessions(user_client, options, Transcripts(awaits_tool, last_reply_text))
    return Tools(
        project=seen.project.directory,
        top=top_of_repository(seen.project.directory),
        source=seen.project.source,
        sessions=sessions,
        rules=rules,
        traits=CLAUDE,
        redact=without_secrets,
        say=lines.said,
        now=SystemClock().now,
        ended=lines.issue_ended,
        reviewers=_reviewers(seen, sessions, chosen),
    )


def _reviewers(seen: SeenIssues, sessions: AgentSessions, chosen: RunnerSettings) -> Reviewers:
    """Return the agents that review: as those that work, but for their model, and that they cannot write."""
    from dataclasses import replace  # noqa: PLC0415

    from sm.archive.redaction.redact import without_secrets  # noqa: PLC0415
    from sm.providers.claude.launch import READ_ONLY  # noqa: PLC0415
    from sm.providers.claude.traits import CLAUDE  # noqa: PLC0415
    from sm.runner.review import Reviewers  # noqa: PLC0415

    options = replace(sessions.options, model=chosen.review_model or sessions.options.model, arguments=READ_ONLY)
    own = replace(sessions, options=options)
    return Reviewers(own, seen.project.source, CLAUDE, without_secrets, chosen.review_timeout)


def _begun(runs: DurableRuns, seen: SeenIssues, jobs: int, *, stops: bool, shared: bool) -> str:
    """Return the run to wait for: the one that was interrupted, else a new one."""
    wanted = [issue.id for issue in seen.plan.order]
    run, new = runs.begun(lambda: _new_run(seen, jobs, stops=stops, shared=shared))
    if not new:
        other = [issue for issue in wanted if issue not in run.issues]
        if other:
            say(f"not part of the interrupted run, and to be worked on once it has ended: {plain(', '.join(other))}")
    say(f"{'run' if new else 'continues run'} {run.run}: {plain(', '.join(run.issues))}")
    return run.run


def _new_run(seen: SeenIssues, jobs: int, *, stops: bool, shared: bool) -> OpenRun:
    if not seen.plan.order:
        raise error("nothing_to_do", f"No issue can be worked now{why_none(seen)}", "sm issues list says why")
    from sm.clock import SystemClock  # noqa: PLC0415
    from sm.runner.run import OpenRun, waits  # noqa: PLC0415
    from sm.runner.run_id import new_run_id  # noqa: PLC0415

    wanted = tuple(issue.id for issue in seen.plan.order)
    run = new_run_id(SystemClock().now(), secrets.token_hex(2))
    if jobs == 1 and not shared:
        return OpenRun(run, wanted, stops)
    order = waits(seen.plan.order, seen.plan.needs)
    return OpenRun(run, wanted, stops, len(wanted) if shared else jobs, order, jobs if shared else 0)


def _stops(seen: SeenIssues, name: str | None) -> bool:
    """Whether the sprint of that name ends with the first issue that is not delivered."""
    return name is not None and sprint(seen.project.directory, name).on_failure == "stop"


@contextmanager
def durable_runs(chosen: RunnerSettings, tools: Tools, words: str) -> Iterator[DurableRuns]:
    """Work on a project's runs. At Ctrl-C end at once, with those words.

    The engine's threads would run on, and what they do is as safe as at a power cut.
    """
    user_client()  # a server that cannot be started is an error now, and not only once an agent is needed
    from sm.runner.database import run_database  # noqa: PLC0415
    from sm.runner.durable import DurableRuns  # noqa: PLC0415  # with the engine 0.7 s

    kept = run_database(chosen.database, open_home(os.environ).runs, tools.project, tools.top)
    try:
        with DurableRuns(kept, tools) as runs:
            yield runs
    except KeyboardInterrupt:
        say(f"interrupted; {words}")
        os._exit(INTERRUPTED)


def _show_plan(seen: SeenIssues, chosen: RunnerSettings, *, as_json: bool) -> None:
    from sm.runner.readiness import not_ready  # noqa: PLC0415  # msgspec costs 30 ms

    planned = []
    for issue in seen.plan.order:
        check = issue.check or chosen.check
        refused = not_ready(issue, check)
        reason = refused.reason if refused else None
        planned.append({"issue": issue.id, "title": issue.title, "check": check, "not_ready": reason})
    if as_json:
        emit_json({"issues": planned, "left_out": _left_out(seen)})
        return
    for entry in planned:
        reason = entry["not_ready"]
        how = f"would not be begun: {reason}" if reason else f"checked by: {entry['check']}"
        show(plain(f"{entry['issue']}  {entry['title']}  {how}"))
    for out in seen.plan.left_out:
        say(plain(f"left out: {out.id} {out.reason}"))


def _left_out(seen: SeenIssues) -> list[dict[str, str]]:
    return [{"issue": out.id, "reason": out.reason} for out in seen.plan.left_out]
