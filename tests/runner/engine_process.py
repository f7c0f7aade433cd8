"""A process that works on issues with the real engine, to be killed: `python engine_process.py ROOT [STEP]`.

With STEP, as `FEAT-012:check`, it ends itself with SIGKILL once that step has run and before its result is kept. With
--stop the first issue that is not delivered ends the run, with --beside all are worked on at the same time. It prints
the outcome as JSON.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec

from sm.providers.claude.traits import CLAUDE
from sm.runner.durable import DbosSteps, DurableRuns
from sm.runner.issues.files import FilesSource
from sm.runner.outcome import SessionLook
from sm.runner.run import OpenRun
from sm.runner.tools import RunRules, Tools


class FileSessions:
    """Sessions in a file, each of which commits what its issue asks for, once."""

    def __init__(self, log):
        self.log = log

    def ensured(self, attempt, prepared):
        begun = self.log.read_text().splitlines() if self.log.exists() else []
        if attempt not in begun:
            tree = prepared.place.worktree
            Path(tree, f"{prepared.id}.txt").write_text("done\n")
            subprocess.run(["git", "-C", tree, "add", "--", f"{prepared.id}.txt"], check=True)
            subprocess.run(["git", "-C", tree, "commit", "-qm", f"Do {prepared.id}"], check=True)
            with self.log.open("a") as log:
                log.write(f"{attempt}\n")
        return attempt.replace("/", "-")

    def look(self, session):
        return SessionLook(session, "idle", "", at_rest=True, rotations=0, last_activity=1.0)

    def last_message(self, session):
        return ""

    def end(self, session):
        pass

    def costs(self, run):
        return ()

    def run_ended(self, run, project, words):
        with self.log.with_name("told").open("a") as file:
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


def main(root, *step):
    project = Path(root, "pro ject")
    source = FilesSource(project / ".issues")
    sessions = FileSessions(Path(root, "sessions"))
    tools = Tools(project, project, source, sessions, RunRules(), CLAUDE, str, [].append, time.time)
    if step and not step[-1].startswith("--"):
        die_at(step[-1])
    with DurableRuns(Path(root, "runs", "a.sqlite"), tools) as runs:
        unfinished = runs.unfinished()
        if unfinished is None:
            issues = tuple(issue.id for issue in source.list().issues)
            jobs = len(issues) if "--beside" in step else 1
            runs.begin(OpenRun("R-1", issues, "--stop" in step, jobs))
        found = runs.outcome("R-1")
        sys.stdout.write(msgspec.json.encode({"continued": unfinished is not None, "outcome": found}).decode())


if __name__ == "__main__":
    main(*sys.argv[1:])
