"""A process that works on issues with the real engine, to be killed: `python engine_process.py ROOT [STEP]`.

With STEP, as `FEAT-012:check`, it ends itself with SIGKILL once that step has run and before its result is kept. With
--stop the first issue that is not delivered ends the run, with --beside all are worked on at the same time, with
--worker it works on what others have begun. It prints the outcome as JSON.
"""

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import msgspec

from sm.providers.claude.traits import CLAUDE
from sm.runner import git
from sm.runner.database import local_database, run_database
from sm.runner.durable import DbosSteps, DurableRuns
from sm.runner.issues.files import FilesSource
from sm.runner.outcome import SessionLook
from sm.runner.run import OpenRun
from sm.runner.tools import RunRules, Tools

AGENT = """
mkdir "$1" 2>/dev/null || exit 0
cd "$2"
echo done > "$3.txt" && git add -- "$3.txt" && git commit -qm "Do $3" && touch "$1/rests"
"""


class FileSessions:
    """Sessions as directories, whose agents are processes that outlive this one, and do what their issue asks for."""

    def __init__(self, directory):
        self.directory = directory
        directory.mkdir(exist_ok=True)

    def ensured(self, attempt, prepared):
        name = attempt.replace("/", "-")
        place = str(self.directory / name)
        command = ["/bin/sh", "-c", AGENT, "agent", place, prepared.place.worktree, prepared.id]
        subprocess.Popen(command, start_new_session=True)  # one that has begun before ends at once
        return name

    def look(self, session):
        rests = (self.directory / session / "rests").exists()
        return SessionLook(session, "idle" if rests else "working", "", at_rest=rests, rotations=0, last_activity=1.0)

    def last_message(self, session):
        return ""

    def end(self, session):
        pass

    def costs(self, run):
        return ()

    def run_ended(self, run, project, words):
        with self.directory.with_name("told").open("a") as file:
            file.write(f"{run} in {project}: {words}\n")


def die_at(wanted):
    """Make the engine's process end in that step."""
    issue, _, step = wanted.partition(":")
    original = DbosSteps.step

    def dying(self, name, function):
        def run():
            result = function()
            if name == step and issue in str(self._dbos.workflow_id):
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return original(self, name, run)

    DbosSteps.step = dying


def die_after(count):
    """Make the engine's process end after so many of its commands of git, and of beginnings and ends of steps."""
    step, run = DbosSteps.step, git._run
    left = iter(range(count))

    def moment():
        if next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)

    def dying_step(self, name, function):
        def dying():
            moment()
            result = function()
            moment()
            return result

        return step(self, name, dying)

    def dying_run(*given):
        done = run(*given)
        moment()
        return done

    DbosSteps.step, git._run = dying_step, dying_run


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=Path)
    parser.add_argument("step", nargs="?")
    parser.add_argument("--stop", action="store_true")
    parser.add_argument("--beside", action="store_true")
    parser.add_argument("--each", type=int, default=0, help="so many at a time by each worker")
    parser.add_argument("--dies-after", type=int)
    parser.add_argument("--worker", action="store_true", help="work on the runs of others until the end")
    parser.add_argument("--database", help="the URL of a PostgreSQL")
    return parser.parse_intermixed_args()


def main(given):
    project = given.root / "pro ject"
    source = FilesSource(project / ".issues")
    sessions = FileSessions(given.root / "sessions")
    tools = Tools(project, project, source, sessions, RunRules(), CLAUDE, str, [].append, time.time)
    if given.step:
        die_at(given.step)
    if given.dies_after is not None:
        die_after(given.dies_after)
    issues = tuple(issue.id for issue in source.list().issues)
    jobs = len(issues) if given.beside or given.each else 1
    file = local_database(given.root / "runs/a.sqlite")
    shared = given.database and run_database(given.database, given.root / "runs", project, project)
    with DurableRuns(shared or file, tools) as runs:
        if given.worker:
            threading.Event().wait()
        run, begun = runs.begun(lambda: OpenRun("R-1", issues, given.stop, jobs, each=given.each))
        found = runs.outcome(run.run)
        sys.stdout.write(msgspec.json.encode({"continued": not begun, "outcome": found}).decode())


if __name__ == "__main__":
    main(arguments())
