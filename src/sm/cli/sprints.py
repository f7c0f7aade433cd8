"""`sm sprint`: the named lists of issues of a project, and work on one of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sm.cli.auto import jobs_option, running, work
from sm.cli.format import emit_json, say, show
from sm.cli.issues import ALL_ISSUES
from sm.cli.options import json_option
from sm.cli.tables import Column, table, terminal_width
from sm.core.errors import SmError
from sm.plain_text import plain
from sm.runner.issues.sources import upwards
from sm.runner.issues.sprints import DIRECTORY, sprint_names
from sm.runner.issues.sprints import sprint as read_sprint


@click.group()
def sprint() -> None:
    """List this project's sprints, and have agents work on one.

    A sprint is a file .sprints/NAME.yaml with a list of issues, or a filter: `sm help unattended` shows the form.
    """


@sprint.command("run")
@click.argument("name")
@running
@jobs_option
def run_sprint(name: str, jobs: int | None, **given: Any) -> None:  # noqa: ANN401
    """Have agents work on the issues of .sprints/NAME.yaml, in the order of their dependencies.

    As sm parallel does. With `on_failure: stop` in the sprint no issue is begun once one was not delivered; otherwise
    only those are left out that wait for it. After an interruption the same command continues.
    """
    work({**ALL_ISSUES, **given, "name": name}, jobs=jobs, spread=True)


@sprint.command("list")
@json_option
def list_sprints(*, as_json: bool) -> None:
    """List the sprints of this directory's project."""
    found = [_view(name) for name in sprint_names(_project())]
    if as_json:
        emit_json(found)
    elif found:
        columns = [
            Column("NAME", [plain(view["name"]) for view in found]),
            Column("ON FAILURE", [view["on_failure"] for view in found], rank=1),
            Column("DESCRIPTION", [plain(view["description"]) for view in found], shrinks=True),
        ]
        show(table(columns, terminal_width()))
    else:
        say("no sprints: write .sprints/NAME.yaml")


def _project() -> Path:
    """Return the nearest directory with sprints, up to the top of the repository."""
    here = Path.cwd()
    return next((directory for directory in upwards(here) if (directory / DIRECTORY).is_dir()), here)


def _view(name: str) -> dict[str, str]:
    """Return what is shown of a sprint; of one that cannot be read, why."""
    try:
        found = read_sprint(_project(), name)
    except SmError as problem:
        return {"name": name, "on_failure": "-", "description": problem.refused.message}
    return {"name": name, "on_failure": found.on_failure, "description": found.description}
