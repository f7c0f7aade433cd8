"""The routes of one run's page: how far each of its issues is, and the report once it has ended."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from sm.api.routes import backend
from sm.archive.redaction.redact import redacted
from sm.core.errors import SmError, error
from sm.runner.known_runs import RUN_NAME, ReadAnswer
from sm.web.answers import html_answer
from sm.web.pages.fleet_page import live, page
from sm.web.pages.runs import run_views
from sm.web.pages.templates import render


async def show(request: Request) -> Response:
    """The page of one run."""
    mark = live(request).mark  # what happens while it is read is news to the page
    return page(request, "run.html", "run", **{**await _shown(request), "seen": mark})


async def parts(request: Request) -> Response:
    """What of a run's page changes: its state, its issues and its report."""
    return html_answer(render("_run_parts.html", **await _shown(request)))


async def _shown(request: Request) -> dict[str, Any]:
    shared, name = live(request), request.path_params["run"]
    unknown = error("not_found", "No such run on this machine", "sm runs list shows those of a project")
    if RUN_NAME.fullmatch(name) is None:
        raise unknown
    picture = await shared.refresh()
    try:
        answer = await shared.reader.read(name)
    except SmError as problem:
        answer, unknown = ReadAnswer(), problem
    found = run_views(answer.runs or (), picture.rows)
    run = next((view for view in found if view.name == name), None)
    if run is None:
        raise unknown
    report = redacted(answer.report, backend(request).own_tokens)
    return {"run": run, "report": report, "now": picture.at}
