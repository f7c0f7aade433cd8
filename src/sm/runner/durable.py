"""The durable engine: DBOS, with a workflow for a run and one for each of its issues.

Seen in dbos 3.4.0 (installed with `pip install 'agent-sm[run]'`), as far as this depends on it:
- `_dbos.py:_launch` gives every PENDING workflow of this executor id, application version and name back to the internal
  queue, so a restart with the same three continues what was interrupted. A second process with them would work the same
  issues at the same time: `executors.py` keeps it out, and gives the work of a dead process back in the same way.
- `_queue.py` has each process of that name take what waits in a queue; one statement claims a workflow for one process.
- `_sys_db.py` keeps a step's result by its number in the workflow: the order of the steps may only depend on earlier
  results. A step that was interrupted runs again. The result of a process that has lost the workflow since is refused.
- Without `application_version` it is a digest of the code, and an upgrade would leave runs behind: it is ours.
- After 100 recoveries a workflow is given up, unless `max_recovery_attempts` is None.
- SQLite is in its default mode with a full sync at each commit, and waits 30 s for a lock (`_sys_db_sqlite.py`).
- Results are pickled: only text is given to it, so that a stored run can be read by any later version.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import msgspec

from sm.core.errors import error
from sm.paths import atomic_write
from sm.runner.attempt import mark
from sm.runner.breakers import halted
from sm.runner.database import RunDatabase
from sm.runner.outcome import IssueOutcome, Result, RunOutcome
from sm.runner.relocation import checkout, worked_anywhere
from sm.runner.report import report
from sm.runner.run import OpenRun, worked
from sm.runner.steering import raised, stopping, unwanted
from sm.runner.tools import Tools
from sm.runner.workflow import IssueWork

if TYPE_CHECKING:
    from dbos import WorkflowHandle

APPLICATION_VERSION = "10"
"""Changed only where the order of the steps changes: runs of another version are not continued."""
UNFINISHED = ["PENDING", "ENQUEUED"]
RUN, ISSUE = "run", "issue"
POLL_INTERVAL_S = 0.25
FIRST_ENDED_INTERVAL_S = 0.2


class DbosSteps:
    """The steps of the workflow that this thread runs."""

    def __init__(self, dbos: Any) -> None:  # noqa: ANN401  # a class of a module that is loaded late
        self._dbos = dbos

    def step(self, name: str, function: Callable[[], str]) -> str:
        return str(self._dbos.run_step({"name": name}, function))

    def sleep(self, seconds: float) -> None:
        self._dbos.sleep(seconds)


class DbosIssues:
    """The issues of the run that this thread runs: a workflow for each, which a restart continues by its id."""

    def __init__(
        self,
        dbos: Any,  # noqa: ANN401
        workflow: Callable[[str, str], str],
        run: str,
        queue: str,
        attributes: Callable[[], dict[str, str]],
    ) -> None:
        """`dbos` is the module; where there is a queue, whoever is free takes an issue from it."""
        self._dbos = dbos
        self._attributes = attributes
        self._workflow = workflow
        self._run = run
        self._queue = queue
        self._begun: dict[str, WorkflowHandle[str]] = {}

    def raised(self) -> Sequence[str]:
        found = DbosSteps(self._dbos.DBOS).step("raised", lambda: "\n".join(raised(self._attributes())))
        return found.splitlines()

    def begin(self, issue: str) -> None:
        engine = self._dbos.DBOS
        given = (self._workflow, self._run, issue)
        with self._dbos.SetWorkflowID(mark(self._run, issue)):
            if self._queue:
                self._begun[issue] = engine.enqueue_workflow(self._queue, *given)
            else:
                self._begun[issue] = engine.start_workflow(*given)

    def first_ended(self, issues: Sequence[str]) -> IssueOutcome:
        handles = [self._begun[issue] for issue in issues]
        first = handles[0]  # alone it is waited for without a look at the database
        if len(handles) > 1:
            first = self._dbos.DBOS.wait_first(handles, polling_interval_sec=FIRST_ENDED_INTERVAL_S)
        return msgspec.json.decode(first.get_result(polling_interval_sec=FIRST_ENDED_INTERVAL_S), type=IssueOutcome)


class DurableRuns:
    """The runs of one project, in a process that works on them. Use it as a context manager; one at a time."""

    def __init__(self, database: RunDatabase, tools: Tools) -> None:
        self._database = database
        self._tools = tools
        self._executor = database.executor()
        self._dbos: Any = None
        self._workflow: Callable[[str], str] | None = None

    def __enter__(self) -> Self:
        dbos = loaded()
        self._database.made()
        self._executor.acquire()
        self._dbos = dbos.DBOS
        self._register(dbos)
        self._dbos(
            config={
                "name": self._database.application,
                "system_database_url": self._database.url,
                "application_version": APPLICATION_VERSION,
                "executor_id": self._executor.id,
                "log_level": "ERROR",
                "console_log_level": "ERROR",
            }
        )
        self._dbos.launch()
        self._executor.watch(self._working, self._recover)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is KeyboardInterrupt:
            return  # the process ends at once: the engine would wait for steps that may take long
        self._executor.unwatch()
        self._dbos.destroy(destroy_registry=True)
        self._executor.release()

    @property
    def executor(self) -> str:
        """What the engine calls this process."""
        return self._executor.id

    def unfinished(self) -> OpenRun | None:
        """Return the run that was interrupted, and is already being continued."""
        found = self._listed(name=RUN, status=UNFINISHED)
        return msgspec.json.decode(found[0].input["args"][0], type=OpenRun) if found else None

    def begun(self, wanted: Callable[[], OpenRun]) -> tuple[OpenRun, bool]:
        """Return the run that has not ended, or begin the wanted one; and whether it was begun."""
        with self._executor.alone():
            unfinished = self.unfinished()
            if unfinished is not None:
                return unfinished, False
            new = wanted()
            self.begin(new)
            return new, True

    def begin(self, wanted: OpenRun) -> None:
        """Begin a run; one of that name that was begun is left as it is."""
        from dbos import SetWorkflowID  # noqa: PLC0415  # loaded late, as above

        if wanted.each:
            limits = {"worker_concurrency": wanted.each, "polling_interval_sec": POLL_INTERVAL_S}
            self._dbos.register_queue(self._queue(wanted), **limits, on_conflict="always_update")
        with SetWorkflowID(wanted.run):
            self._dbos.start_workflow(self._workflow, msgspec.json.encode(wanted).decode())

    def outcome(self, run: str) -> RunOutcome:
        """Wait for the run's end; its report is on this machine then, whoever has written it first."""
        handle: WorkflowHandle[str] = self._dbos.retrieve_workflow(run)
        found = msgspec.json.decode(handle.get_result(polling_interval_sec=POLL_INTERVAL_S), type=RunOutcome)
        if not self.report(run).exists():
            self._written(found)
        return found

    def report(self, run: str) -> Path:
        """Return where a run's report is once it has ended."""
        return self._database.directory / f"{run}.md"

    def _written(self, found: RunOutcome) -> str:
        atomic_write(self.report(found.run), report(found).encode())
        return ""

    def _register(self, dbos: Any) -> None:  # noqa: ANN401  # the module
        tools, steps = self._tools, DbosSteps(self._dbos)

        @dbos.DBOS.workflow(name=ISSUE, max_recovery_attempts=None)  # type: ignore[untyped-decorator]
        def issue_workflow(run: str, issue: str) -> str:
            reason = steps.step("wanted", lambda: unwanted(self._attributes(run), issue))
            left_out = IssueOutcome(issue=issue, title="", result=Result.SKIPPED, reason=reason)
            here = checkout(tools.top)
            outcome = (
                left_out if reason else worked_anywhere(steps, here, lambda own: IssueWork(own, tools, run, issue))
            )
            return msgspec.json.encode(outcome).decode()

        @dbos.DBOS.workflow(name=RUN, max_recovery_attempts=None)  # type: ignore[untyped-decorator]
        def run_workflow(stored: str) -> str:
            wanted = msgspec.json.decode(stored, type=OpenRun)
            limit = int(steps.step("rules", lambda: str(tools.rules.max_failures)))
            attributes = partial(self._attributes, wanted.run)
            issues = DbosIssues(dbos, issue_workflow, wanted.run, self._queue(wanted), attributes)
            outcomes = worked(wanted, issues, partial(self._halted, wanted, limit))
            found = RunOutcome(wanted.run, str(tools.project), outcomes)
            steps.step("report", lambda: self._written(found))
            steps.step("notify", lambda: tools.notify(found))
            return msgspec.json.encode(found).decode()

        self._workflow = run_workflow

    def _halted(self, wanted: OpenRun, max_failures: int, outcomes: Sequence[IssueOutcome]) -> str:
        """Return why no more issues are begun; those that wait in the queue hear it too."""
        reason = halted(outcomes, stops=wanted.stops, max_failures=max_failures)
        if reason and wanted.each:
            self._dbos.update_workflow_attributes(wanted.run, stopping(reason), merge=True)
        return reason

    def _queue(self, wanted: OpenRun) -> str:
        """Return the queue of the run's issues: how many a worker takes from it at a time is a fact of the queue."""
        return f"{self._database.application}-{wanted.each}" if wanted.each else ""

    def _attributes(self, run: str) -> dict[str, str]:
        """Return what was asked of a run since it began."""
        found = self._listed(workflow_ids=[run], load_input=False)
        return found[0].attributes or {} if found else {}

    # --- the work of dead processes -------------------------------------------------------------------------------

    def _working(self) -> set[str]:
        """Return the executors whose work has not ended."""
        return {found.executor_id for found in self._listed(status="PENDING") if found.executor_id}

    def _recover(self, executor: str) -> None:
        self._dbos._recover_pending_workflows([executor])  # noqa: SLF001  # its own recovery has no public name

    def _listed(self, **chosen: Any) -> list[Any]:  # noqa: ANN401  # what the engine takes
        own = {"app_version": APPLICATION_VERSION, "application_name": self._database.application}
        found: list[Any] = self._dbos.list_workflows(**chosen, **own, load_output=False)
        return found


def loaded() -> Any:  # noqa: ANN401  # the module
    try:
        import dbos  # noqa: PLC0415  # 0.6 s, and an extra
    except ImportError as problem:
        hint = "pip install 'agent-sm[run]' into the environment of sm"
        raise error("no_engine", f"The engine of unattended runs is not installed ({problem})", hint) from problem
    return dbos
