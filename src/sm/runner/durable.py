"""The durable engine: DBOS, with a workflow for a run and one for each of its issues. Only this module imports it.

Seen in dbos 3.4.0 (installed with `pip install 'agent-sm[run]'`), as far as this depends on it:
- `_dbos.py:_launch` gives every PENDING workflow of this executor id, application version and name back to the internal
  queue, so a restart with the same three continues what was interrupted. A second process with them would work the same
  issues at the same time: a kernel lock on the database keeps it out.
- `_sys_db.py` keeps a step's result by its number in the workflow: the order of the steps may only depend on earlier
  results. A step that was interrupted runs again.
- Without `application_version` it is a digest of the code, and an upgrade would leave runs behind: it is ours.
- After 100 recoveries a workflow is given up, unless `max_recovery_attempts` is None.
- SQLite is in its default mode with a full sync at each commit, and waits 30 s for a lock (`_sys_db_sqlite.py`).
- Results are pickled: only text is given to it, so that a stored run can be read by any later version.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import msgspec

from sm.core.errors import error
from sm.paths import PRIVATE_FILE, atomic_write, make_private
from sm.runner.attempt import mark
from sm.runner.breakers import halted
from sm.runner.outcome import IssueOutcome, RunOutcome
from sm.runner.report import report
from sm.runner.run import OpenRun, worked
from sm.runner.tools import Tools
from sm.runner.workflow import IssueWork

if TYPE_CHECKING:
    from dbos import WorkflowHandle

APPLICATION = "sm-runs"
APPLICATION_VERSION = "6"
"""Changed only where the order of the steps changes: runs of another version are not continued."""
EXECUTOR = "local"
UNFINISHED = ["PENDING", "ENQUEUED"]
RUN, ISSUE = "run", "issue"
POLL_INTERVAL_S = 0.5
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

    def __init__(self, dbos: Any, workflow: Callable[[str, str], str], run: str) -> None:  # noqa: ANN401  # the module
        self._dbos = dbos
        self._workflow = workflow
        self._run = run
        self._begun: dict[str, WorkflowHandle[str]] = {}

    def begin(self, issue: str) -> None:
        with self._dbos.SetWorkflowID(mark(self._run, issue)):
            self._begun[issue] = self._dbos.DBOS.start_workflow(self._workflow, self._run, issue)

    def first_ended(self, issues: Sequence[str]) -> IssueOutcome:
        handles = [self._begun[issue] for issue in issues]
        first = handles[0]  # alone it is waited for without a look at the database
        if len(handles) > 1:
            first = self._dbos.DBOS.wait_first(handles, polling_interval_sec=FIRST_ENDED_INTERVAL_S)
        return msgspec.json.decode(first.get_result(polling_interval_sec=FIRST_ENDED_INTERVAL_S), type=IssueOutcome)


class DurableRuns:
    """The runs of one project, whose state is one file. Use it as a context manager; one in a process at a time."""

    def __init__(self, database: Path, tools: Tools) -> None:
        self._database = database
        self._tools = tools
        self._lock = -1
        self._dbos: Any = None
        self._workflow: Callable[[str], str] | None = None

    def __enter__(self) -> Self:
        dbos = _loaded()
        make_private(self._database.parent)
        self._lock = _locked(self._database)
        os.close(os.open(self._database, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE))
        self._dbos = dbos.DBOS
        self._register(dbos)
        self._dbos(
            config={
                "name": APPLICATION,
                "system_database_url": f"sqlite:///{self._database}",
                "application_version": APPLICATION_VERSION,
                "executor_id": EXECUTOR,
                "log_level": "ERROR",
                "console_log_level": "ERROR",
            }
        )
        self._dbos.launch()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is KeyboardInterrupt:
            return  # the process ends at once: the engine would wait for steps that may take long
        self._dbos.destroy(destroy_registry=True)
        os.close(self._lock)

    def unfinished(self) -> OpenRun | None:
        """Return the run that was interrupted, and is already being continued."""
        found = self._dbos.list_workflows(
            name=RUN, status=UNFINISHED, app_version=APPLICATION_VERSION, load_output=False
        )
        if not found:
            return None
        return msgspec.json.decode(found[0].input["args"][0], type=OpenRun)

    def begin(self, wanted: OpenRun) -> None:
        """Begin a run; one of that name that was begun is left as it is."""
        from dbos import SetWorkflowID  # noqa: PLC0415  # loaded late, as above

        with SetWorkflowID(wanted.run):
            self._dbos.start_workflow(self._workflow, msgspec.json.encode(wanted).decode())

    def outcome(self, run: str) -> RunOutcome:
        """Wait for the run's end."""
        handle: WorkflowHandle[str] = self._dbos.retrieve_workflow(run)
        return msgspec.json.decode(handle.get_result(polling_interval_sec=POLL_INTERVAL_S), type=RunOutcome)

    def report(self, run: str) -> Path:
        """Return where a run's report is once it has ended."""
        return self._database.parent / f"{run}.md"

    def _written(self, found: RunOutcome) -> str:
        atomic_write(self.report(found.run), report(found).encode())
        return ""

    def _register(self, dbos: Any) -> None:  # noqa: ANN401  # the module
        tools, steps = self._tools, DbosSteps(self._dbos)

        @dbos.DBOS.workflow(name=ISSUE, max_recovery_attempts=None)  # type: ignore[untyped-decorator]
        def issue_workflow(run: str, issue: str) -> str:
            return msgspec.json.encode(IssueWork(steps, tools, run, issue).outcome()).decode()

        @dbos.DBOS.workflow(name=RUN, max_recovery_attempts=None)  # type: ignore[untyped-decorator]
        def run_workflow(stored: str) -> str:
            wanted = msgspec.json.decode(stored, type=OpenRun)
            halts = partial(halted, stops=wanted.stops, max_failures=tools.rules.max_failures)
            outcomes = worked(wanted, DbosIssues(dbos, issue_workflow, wanted.run), halts)
            found = RunOutcome(wanted.run, str(tools.project), outcomes)
            steps.step("report", lambda: self._written(found))
            steps.step("notify", lambda: tools.notify(found))
            return msgspec.json.encode(found).decode()

        self._workflow = run_workflow


def _loaded() -> Any:  # noqa: ANN401  # the module
    try:
        import dbos  # noqa: PLC0415  # 0.6 s, and an extra
    except ImportError as problem:
        hint = "pip install 'agent-sm[run]' into the environment of sm"
        raise error("no_engine", f"The engine of unattended runs is not installed ({problem})", hint) from problem
    return dbos


def _locked(database: Path) -> int:
    """Return the descriptor of the lock, which the kernel frees with this process."""
    descriptor = os.open(database.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pid = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
        os.close(descriptor)
        hint = "wait for it, or press Ctrl-C there: the same command continues it"
        raise error("run_active", f"Another sm (pid {pid}) works on this project's issues", hint) from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, str(os.getpid()).encode(), 0)
    return descriptor
