"""The runs of a project as anybody may look at them, and what may be asked of one that works.

The engine's client reads and writes its database, and runs nothing: a run is looked at while another process has it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import msgspec

from sm.core.errors import error
from sm.runner.attempt import mark
from sm.runner.database import RunDatabase
from sm.runner.durable import ISSUE, RUN, loaded
from sm.runner.executors import connected
from sm.runner.outcome import IssueOutcome, RunOutcome
from sm.runner.run import OpenRun
from sm.runner.steering import raising, skipping, stopping, unwanted

State = Literal["waits", "works", "ended", "failed", "left_out"]
OPEN = {"ENQUEUED": "waits", "DELAYED": "waits", "PENDING": "works"}
ENDED = "SUCCESS"
MAX_RUNS = 100


class IssueInRun(msgspec.Struct, frozen=True):
    issue: str
    state: State
    step: str = ""
    """What was done last, of one that is worked on."""
    session: str = ""
    worker: str = ""
    queued: bool = False
    """It waits in the queue of several workers."""
    outcome: IssueOutcome | None = None
    title: str = ""
    """Empty until it is worked on."""


class SeenRun(msgspec.Struct, frozen=True):
    run: str
    state: State
    begun: float
    """Unix time."""
    issues: tuple[str, ...]
    outcome: RunOutcome | None = None


class Runs:
    """What the engine has kept of a project's runs; use it within `opened`."""

    def __init__(self, database: RunDatabase, client: Any) -> None:  # noqa: ANN401  # of a module that is loaded late
        self._database = database
        self._client = client

    def all(self) -> list[SeenRun]:
        """Return the runs, newest first."""
        found = self._listed(name=RUN, sort_desc=True, limit=MAX_RUNS)
        return [run for workflow in found if (run := _seen(workflow)) is not None]

    def find(self, name: str | None) -> SeenRun:
        """Return the run of that name, or the newest one."""
        known = self.all()
        found = next((run for run in known if name in {None, run.run}), None)
        if found is None:
            message = f"No such run: {name}" if name else "This project has had no run"
            raise error("no_run", message, "sm runs list shows them" if known else "sm auto begins one")
        return found

    def issues(self, run: SeenRun) -> list[IssueInRun]:
        """Return how far each of its issues is."""
        begun = {workflow.workflow_id: workflow for workflow in self._listed(name=ISSUE, workflow_id_prefix=run.run)}
        attributes = self._attributes(run.run)
        return [self._issue(issue, begun.get(mark(run.run, issue)), attributes) for issue in run.issues]

    def stop(self, run: SeenRun) -> None:
        """Have it begin no more issues; those that are worked on are finished."""
        self._change(run, stopping())

    def skip(self, run: SeenRun, issue: str) -> str:
        """Have it leave out an issue that has not begun; return its id."""
        known = self._not_begun(run, issue)
        self._change(run, skipping(known.issue))
        return known.issue

    def put_first(self, run: SeenRun, issue: str, at: float) -> str:
        """Have it begin an issue before the others that have not begun; return its id."""
        known = self._not_begun(run, issue)
        if known.state == "left_out":
            raise error("run_state", f"{known.issue} is left out of {run.run}", "sm auto works on it in another run")
        if known.queued:
            hint = f"sm runs skip leaves others out of {run.run}"
            raise error("run_state", f"{known.issue} is in the queue of the workers, which keeps its order", hint)
        self._change(run, raising(known.issue, at))
        return known.issue

    def issue(self, run: SeenRun, issue: str) -> IssueInRun:
        """Return one of its issues, named in any case."""
        known = next((each for each in self.issues(run) if each.issue.casefold() == issue.casefold()), None)
        if known is None:
            raise error("no_issue", f"{run.run} has no issue {issue}", f"sm runs show {run.run} lists them")
        return known

    def _not_begun(self, run: SeenRun, issue: str) -> IssueInRun:
        known = self.issue(run, issue)
        if known.state not in {"waits", "left_out"}:
            hint = f"sm kill {known.session} ends its session" if known.session else "sm issues list"
            raise error("run_state", f"{known.issue} has begun already", hint)
        return known

    def _change(self, run: SeenRun, attribute: dict[str, str]) -> None:
        if run.state not in {"waits", "works"}:
            raise error("run_state", f"{run.run} has ended", "sm runs list shows the runs")
        self._client.update_workflow_attributes(run.run, attribute, merge=True)

    def _issue(self, issue: str, workflow: Any, attributes: dict[str, str]) -> IssueInRun:  # noqa: ANN401
        if workflow is None or workflow.status in {"ENQUEUED", "DELAYED"}:
            state: State = "left_out" if unwanted(attributes, issue) else "waits"
            return IssueInRun(issue, state, queued=workflow is not None)
        if workflow.status == ENDED:
            outcome = msgspec.json.decode(workflow.output, type=IssueOutcome)
            return IssueInRun(issue, "ended", session=outcome.session, outcome=outcome, title=outcome.title)
        steps = self._client.list_workflow_steps(workflow.workflow_id)
        last = steps[-1]["function_name"] if steps else ""
        state = "works" if workflow.status in OPEN else "failed"
        return IssueInRun(issue, state, last, _session(steps), workflow.executor_id or "", title=_title(steps))

    def _attributes(self, run: str) -> dict[str, str]:
        found = self._listed(workflow_ids=[run], load_input=False, load_output=False)
        return found[0].attributes or {} if found else {}

    def _listed(self, **chosen: Any) -> list[Any]:  # noqa: ANN401  # what the engine takes
        found: list[Any] = self._client.list_workflows(**chosen, application_name=self._database.application)
        return found


def _seen(workflow: Any) -> SeenRun | None:  # noqa: ANN401
    """Return a run; None for one that another version has kept in a form that is not known."""
    try:
        plan = msgspec.json.decode(workflow.input["args"][0], type=OpenRun)
    except (msgspec.DecodeError, TypeError, KeyError, IndexError):
        return None
    ended = workflow.status == ENDED
    state: State = "ended" if ended else "works" if workflow.status in OPEN else "failed"
    outcome = msgspec.json.decode(workflow.output, type=RunOutcome) if ended else None
    return SeenRun(plan.run, state, (workflow.created_at or 0) / 1_000, plan.issues, outcome)


def _session(steps: list[Any]) -> str:
    """Return the session of the newest attempt, which that step has returned."""
    found = [step["output"] for step in steps if step["function_name"] == "ensure_session" and step["output"]]
    return str(msgspec.json.decode(found[-1]).get("found") or "") if found else ""


def _title(steps: list[Any]) -> str:
    """Return the issue's title as it was when the work began; empty before that."""
    found = [step["output"] for step in steps if step["function_name"] == "prepare" and step["output"]]
    prepared = msgspec.json.decode(found[-1]).get("found") if found else None
    return str(prepared.get("title") or "") if prepared else ""


@contextmanager
def opened(database: RunDatabase) -> Iterator[Runs]:
    """Open a project's runs to look at them; SmError where it has had none."""
    dbos = loaded()
    if not _exists(database):
        raise error("no_run", "This project has had no run", "sm auto begins one")
    client = dbos.DBOSClient(
        system_database_url=database.url, application_name=database.application, retry_connection_errors=False
    )
    try:
        yield Runs(database, client)
    finally:
        client.destroy()


def _exists(database: RunDatabase) -> bool:
    if database.file is not None:
        return database.file.exists()
    with connected(database.url) as connection:
        row = connection.execute("SELECT to_regclass('dbos.workflow_status')").fetchone()
        return row is not None and row[0] is not None
