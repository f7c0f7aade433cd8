"""Writes runs with the real engine, as `sm auto` leaves them: a process of its own, as that is one.

`python written_runs.py FILE` reads JSON from its standard input: outcomes of runs that have ended, and one run that is
worked on, with what its steps have found. It prints a line when all is written, and works on until it is killed.
"""

import asyncio
import contextlib
import json
import os
import sys
import threading
from pathlib import Path

import msgspec

from sm.runner.attempt import mark
from sm.runner.database import local_database
from sm.runner.durable import APPLICATION_VERSION, ISSUE, RUN
from sm.runner.outcome import IssueOutcome, RunOutcome
from sm.runner.run import OpenRun


@contextlib.asynccontextmanager
async def written(home, ended=(), works=None, project="pro-ject"):
    """Write runs below that SM_HOME; yield the process that works on one."""
    file = home.runs / f"{project}-0123abcd.sqlite"
    local_database(file).made()
    given = {"ended": [msgspec.to_builtins(run) for run in ended], "works": works}
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.web.written_runs", str(file), stdin=pipe, stdout=pipe
    )
    file.with_suffix(".lock").write_text(str(process.pid))
    try:
        process.stdin.write(json.dumps(given).encode() + b"\n")
        assert await asyncio.wait_for(process.stdout.readline(), 60) == b"written\n"
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def main(file, given):  # noqa: C901  # two workflows and what they share
    from dbos import DBOS, SetWorkflowID

    database, waiting = local_database(file), threading.Event()
    config = {"name": database.application, "system_database_url": database.url, "executor_id": "local"}
    DBOS(config={**config, "application_version": APPLICATION_VERSION, "log_level": "ERROR"})
    outcomes, reached = {}, threading.Event()

    @DBOS.workflow(name=ISSUE)
    def work(run, issue):
        if (run, issue) in outcomes:
            return msgspec.json.encode(outcomes[run, issue]).decode()
        for name, found in given["works"]["steps"]:
            DBOS.run_step({"name": name}, lambda found=found: json.dumps({"found": found}))
        reached.set()
        waiting.wait()
        return ""

    @DBOS.workflow(name=RUN)
    def run_all(stored):
        wanted = msgspec.json.decode(stored, type=OpenRun)
        ends = all((wanted.run, issue) in outcomes for issue in wanted.issues)
        for issue in wanted.issues if ends else wanted.issues[:1]:
            with SetWorkflowID(mark(wanted.run, issue)):
                DBOS.start_workflow(work, wanted.run, issue)
        if ends:
            done = tuple(outcomes[wanted.run, issue] for issue in wanted.issues)
            return msgspec.json.encode(RunOutcome(wanted.run, "/home/dev/pro-ject", done)).decode()
        waiting.wait()
        return ""

    DBOS.launch()
    for run in given["ended"]:
        found = msgspec.convert(run, type=RunOutcome)
        outcomes |= {(found.run, each.issue): each for each in found.outcomes}
        begin(
            DBOS, SetWorkflowID, run_all, OpenRun(found.run, tuple(each.issue for each in found.outcomes))
        ).get_result()
    if given["works"]:
        begin(DBOS, SetWorkflowID, run_all, OpenRun(given["works"]["run"], tuple(given["works"]["issues"])))
        reached.wait()
    os.write(1, b"written\n")
    waiting.wait()


def begin(engine, named, workflow, wanted):
    with named(wanted.run):
        return engine.start_workflow(workflow, msgspec.json.encode(wanted).decode())


def outcome(issue, result, **more):
    return IssueOutcome(issue=issue, result=result, **{"title": f"Title of {issue}", **more})


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.stdin.readline()))
