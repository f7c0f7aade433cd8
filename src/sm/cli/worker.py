"""`sm worker`: works on the issues of runs that several processes, here or on other machines, share."""

from __future__ import annotations

import threading
from pathlib import Path

import click

from sm.cli.auto import database_option, durable_runs, settings_for, tools_for
from sm.cli.format import say
from sm.cli.issues import ALL_ISSUES, seen_issues, source_option
from sm.cli.new import check_configuration
from sm.cli.run_lines import RunLines
from sm.client import inside_session
from sm.core.errors import error


@click.command()
@source_option
@database_option
@click.option("--check", metavar="COMMAND", help="For issues that name no check; default: runner.check.")
@click.option("--client", "command", metavar="PATH", help="The client's executable; default: as configured.")
def worker(source: str | None, database: str | None, check: str | None, command: str | None) -> None:
    """Work on issues of this directory's project, of runs that are kept in a PostgreSQL.

    Start one on each machine, in a clone of the repository; sm auto, with the same database, begins the run. Each issue
    is worked on by one of them. What one leaves that has died is continued by another. Ctrl-C ends it.
    """
    if inside_session() is not None:
        raise error("inside_session", "sm worker cannot be used inside a session", "run it in a shell of yours")
    here = Path.cwd()
    check_configuration(here)
    settings = settings_for(here, {"check": check, "source": source, "database": database})
    if not settings.runner.database:
        hint = "set runner.database, or give --database: postgresql://USER@HOST/NAME"
        raise error("no_run_database", "Workers share a PostgreSQL, and none is named", hint)
    from sm.archive.redaction.redact import without_secrets  # noqa: PLC0415  # 10 ms of patterns

    seen = seen_issues(source, ALL_ISSUES, without_secrets)
    tools = tools_for(seen, settings, command, None, RunLines(as_json=False))
    with durable_runs(
        settings.runner, tools, "agents keep working; another worker, or this one again, continues"
    ) as runs:
        say(f"works as {runs.executor}; Ctrl-C ends it")
        threading.Event().wait()
